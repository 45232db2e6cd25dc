/* cause.h: what every cause is written with. A cause is a program that is slow, or large, for one reason that
 * is known because it was put there: `masu diagnose` is held against it.
 *
 * Blocks carry the stamps of ../patterns, so that memory that does not hold what was written ends a run with
 * exit code 3. No cause holds more than 512 MiB, whatever its arguments. */
#ifndef CAUSE_H
#define CAUSE_H

#include "../patterns/pattern.h"

/* The parameters of one run. */
struct work {
    const char *name;
    unsigned threads;
    size_t size;
    uint64_t rounds;
    const char *libraries; /* a folder; only where a cause loads libraries */
};

/* One line of a table, which ends with a line without a name. */
struct cause {
    const char *name;
    unsigned threads_min;
    unsigned threads; /* by default; 0: takes no --threads */
    unsigned threads_max;
    size_t size_min;
    size_t size;
    size_t size_max;
    const char *unit; /* of the size */
    uint64_t rounds;
    uint64_t (*run)(const struct work *); /* returns a checksum of what was read back from memory */
    const char *about;
};

extern const struct cause memory_causes[];
extern const struct cause thread_causes[];
extern const struct cause other_causes[];

/* Runs `body` on the work's threads, each with its index, and returns the sum of what they return. */
uint64_t on_each(const struct work *work, uint64_t (*body)(const struct work *, unsigned index));

#endif
