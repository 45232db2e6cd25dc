/* cause.h: what every cause is written with. A cause is a program that is slow, or large, for one reason that
 * is known because it was put there: `masu diagnose` is held against it.
 *
 * Blocks carry the stamps of ../patterns, so that memory that does not hold what was written ends a run with
 * exit code 3. No cause holds more than 512 MiB. */
#ifndef CAUSE_H
#define CAUSE_H

#include "../patterns/pattern.h"

/* One line of a table, which ends with a line without a name. */
struct cause {
    const char *name;
    uint64_t (*run)(void); /* returns a checksum of what was read back from memory */
    const char *about;
};

extern const struct cause memory_causes[];
extern const struct cause thread_causes[];
extern const struct cause other_causes[];

/* The folder with the libraries that one cause loads, or NULL. */
extern const char *libraries;

/* Runs `body` on so many threads, each with its index, and returns the sum of what they return. */
uint64_t on_each(unsigned threads, uint64_t (*body)(unsigned index));

#endif
