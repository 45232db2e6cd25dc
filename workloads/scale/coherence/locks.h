/* locks.h: how long locks are held, found without knowing any malloc.
 *
 * A word that an atomic operation of one thread makes nonzero, and that the same thread makes zero again with no other in
 * between, was held by that thread from the one to the other: a mutex, a spin lock, an entry of a queue. An atomic
 * operation of another thread on the word while it is held is an attempt that failed. What is never zero again is a
 * counter and not shown; a lock that is never zero (tickets, queues of waiters) is not seen. */
#ifndef LOCKS_H
#define LOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How far a thread has come: instructions, system calls, lines moved. */
struct came_to {
    uint64_t instructions, calls, moves;
};

/* A core's thread, which has come to `now`, wrote `value` to the word. */
void locks_write(unsigned core, unsigned phase, uint64_t address, uint64_t value, bool is_atomic, struct came_to now);

/* Whether the core's thread seems to hold a lock, so that its plain writes may give it back. */
bool locks_any(unsigned core);

/* The thread has ended. */
void locks_end(unsigned core);

/* Writes the locks that were held longest. */
void locks_write_report(FILE *to);

#endif
