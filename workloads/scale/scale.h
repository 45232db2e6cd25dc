/* scale.h: what every workload of many threads is written with.
 *
 * A workload is a function that each thread runs on its own share, first to warm up and then to be counted. Threads wait
 * for each other in `wait_a_little` alone, between `wait_begins` and `wait_ends`: what happens there is the program's
 * own and is counted nowhere. */
#ifndef SCALE_H
#define SCALE_H

#include <stdbool.h>

#include "../patterns/pattern.h"
#include "marks.h"

enum { CACHE_LINE = 64, RING_SLOTS = 64, KEPT = 64, EXCHANGED_A_THREAD = 16, SMALL_MIN = 24, SMALL_MAX = 256 };

/* Blocks on their way from one thread to one other. */
struct ring {
    _Alignas(CACHE_LINE) struct sealed *_Atomic slots[RING_SLOTS];
};

/* A place where any thread may leave a block and take the one that lay there. */
struct place {
    _Alignas(CACHE_LINE) struct sealed *_Atomic block;
};

/* What was used outside of waiting. */
struct used {
    uint64_t cpu_ns, switches;
};

struct worker {
    _Alignas(CACHE_LINE) unsigned index;
    unsigned threads;
    uint32_t stamp;
    struct rng rng;
    struct sealed *kept[KEPT];
    struct sealed *list; /* what is never freed before the end */
    unsigned produced, consumed; /* slots of rings, ever */
    struct used since, used;
    uint64_t operations;
    uint64_t pause_ns, pause_asleep_ns; /* the longest call, and the longest in which the thread slept */
    uint64_t sleeps_seen;
    pthread_t thread;
};

struct workload {
    const char *name;
    /* Does `operations` of this thread's, and returns how many it did. */
    uint64_t (*run)(struct worker *, uint64_t operations);
    unsigned divisor; /* operations are so many times fewer, because each is that much longer */
    const char *about;
};

extern const struct workload workloads[];

/* One of each for every thread, and EXCHANGED_A_THREAD places. */
extern struct ring *rings;
extern struct place *places;

/* What the calling thread uses in between is its own. */
void use_begins(struct worker *);
void use_ends(struct worker *);

void wait_begins(struct worker *);
void wait_a_little(void);
void wait_ends(struct worker *);

/* malloc, realloc and free of sealed blocks, timed where that is asked for. */
struct sealed *block_new(struct worker *, size_t size);
struct sealed *block_grown(struct worker *, struct sealed *, size_t size);
void block_free(struct worker *, struct sealed *);

/* Frees what the worker and, for one of them, what the places still hold. */
void worker_clear(struct worker *);

pthread_t start_worker(void *(*body)(void *), void *argument);

static inline size_t small_size(struct worker *worker) { return rng_between(&worker->rng, SMALL_MIN, SMALL_MAX); }

#endif
