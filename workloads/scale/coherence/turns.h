/* turns.h: which guest thread runs: one at a time, each for some hundred instructions, the one that is furthest behind
 * first. So threads stay close to each other however many CPUs the machine has, and a run with the same seed has the
 * same order, but for threads that sleep in the kernel. */
#ifndef TURNS_H
#define TURNS_H

#include <stdint.h>

/* Instructions of a turn on average, and what the lengths of turns are drawn from. */
void turns_begin(uint64_t quantum, uint64_t seed);

/* A thread begins to take part on this core, as far as `parent` has come; it has no turn yet. */
void turns_join(unsigned core, int parent);

/* Before `instructions` of the core's thread: returns once it is its turn. */
void turns_run(unsigned core, uint64_t instructions);

/* The thread may sleep in the kernel; it is back; it has ended. */
void turns_leave(unsigned core);
void turns_return(unsigned core);
void turns_end(unsigned core);

/* How many instructions the core's thread has come, asked by itself. */
uint64_t turns_clock(unsigned core);

/* It has nothing to do just now: the others go first. */
void turns_yield(unsigned core);

/* From now on nobody waits for a turn. */
void turns_stop(void);

/* How often a turn was given to another thread, and how often it was taken away from one that did not come back. */
uint64_t turns_given(void);
uint64_t turns_slipped(void);

#endif
