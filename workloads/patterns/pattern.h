/* pattern.h: what every pattern is written with. A pattern is a fixed amount of work for malloc and
 * free: the same calls for the same seed, whatever the malloc, so that time and memory alone differ.
 *
 * The one hard idea is the checksum. It must not depend on which thread frees a block, or when, and
 * yet it must depend on what memory holds. So each block carries a stamp that follows from the seed;
 * the freeing thread reads the stamp back, checks it, and adds it to a sum. Every block is freed
 * once, a sum knows no order, and a block that was overwritten ends the run with exit code 3. */
#ifndef PATTERN_H
#define PATTERN_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

/* A step no larger than any OS page: touching one word in each step touches every OS page. */
#define TOUCH_STEP ((size_t)4096)

/* No pattern takes more threads. */
#define THREADS_MAX 1024

/* The parameters of one run. `ops` and `live` are totals, to be split among the threads. */
struct plan {
    const char *name;
    unsigned threads;
    size_t size;
    size_t live;
    uint64_t seed;
    uint64_t ops;
};

/* One thread's part of a plan. `context` is whatever the pattern gave to `on_threads`. */
struct share {
    unsigned index;
    unsigned threads;
    size_t size;
    size_t live;
    uint64_t seed;
    uint64_t ops;
    void *context;
};

/* One line of a group's table; the table ends with a line without a name. A pattern has `each`, run by
 * every thread on its own share, or `whole`, run once, which starts threads as it likes. Both return
 * the checksum. */
struct pattern {
    const char *name;
    const char *group;
    unsigned threads;     /* how many by default */
    unsigned threads_min; /* fewer make no sense */
    size_t size_min;      /* bytes; the smallest `--size` that makes sense */
    size_t size;          /* bytes of a block, or of the largest; 0: takes no `--size` */
    size_t live;          /* most blocks that are live at once, all threads together */
    size_t live_max;      /* the most that `--live` may ask for; 0: takes no `--live` */
    uint64_t ops;
    uint64_t (*each)(const struct share *);
    uint64_t (*whole)(const struct plan *);
    const char *about;
};

extern const struct pattern small_patterns[];
extern const struct pattern large_patterns[];
extern const struct pattern thread_patterns[];
extern const struct pattern lifetime_patterns[];

uint64_t jsonl(const struct plan *plan);

/* Runs `body` on the plan's threads, each with its share, and returns the sum of what they return.
 * One thread means the calling one: a program without threads stays one. */
uint64_t on_threads(const struct plan *plan, uint64_t (*body)(const struct share *), void *context);

/* Each operation replaces one of the live buffers, of size / part to size, touched; one touched word in `check_every` is
 * checked. */
uint64_t buffers_replaced(const struct share *share, size_t part, size_t check_every);

/* Starts a thread, or ends the run. A pattern's has a stack of 256 KiB. */
pthread_t start_thread(void *(*body)(void *), void *argument);

/* Stops and resumes the pattern's own clock; for one thread at a time. */
void clock_pauses(void);
void clock_resumes(void);

/* Makes the compiler believe that `block` and what it points to are used here. */
static inline void keep(void *block) { __asm__ volatile("" : : "r"(block) : "memory"); }

/* Spreads the bits of `value`: neighboring values give unrelated results. */
static inline uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* A stream of random numbers: a Weyl sequence, mixed. */
struct rng {
    uint64_t state;
};

static inline struct rng rng_new(uint64_t seed) { return (struct rng){mix(seed + 1)}; }

static inline uint32_t rng_next(struct rng *rng) {
    rng->state += 0x9e3779b97f4a7c15u;
    uint64_t value = (rng->state ^ (rng->state >> 32)) * 0xd6e8feb86659fd93u;
    return (uint32_t)(value >> 32);
}

/* A number below `limit`, which is at most 2^32. */
static inline size_t rng_below(struct rng *rng, size_t limit) {
    return (size_t)(((uint64_t)rng_next(rng) * limit) >> 32);
}

/* A number from `low` to `high`, both included. */
static inline size_t rng_between(struct rng *rng, size_t low, size_t high) {
    return low + rng_below(rng, high - low + 1);
}

static inline void shuffle(uint32_t *order, size_t count, struct rng *rng) {
    for (size_t i = count; i > 1; i--) {
        size_t other = rng_below(rng, i);
        uint32_t swap = order[i - 1];
        order[i - 1] = order[other];
        order[other] = swap;
    }
}

/* malloc that ends the run where there is no memory. */
static inline void *take(size_t size) {
    void *block = malloc(size);
    if (!block) cannot("allocate: malloc returned NULL");
    keep(block);
    return block;
}

static inline uint64_t word_at(const void *block, size_t offset) {
    uint64_t word;
    memcpy(&word, (const char *)block + offset, sizeof word);
    return word;
}

static inline void set_word_at(void *block, size_t offset, uint64_t word) {
    memcpy((char *)block + offset, &word, sizeof word);
}

static inline uint64_t stamp_word(size_t size, uint64_t stamp) {
    return (stamp + 1) * 0x9e3779b97f4a7c15u + size;
}

/* Writes the stamp at both ends of a block: words where two fit, single bytes where not. */
static inline void stamp_block(void *block, size_t size, uint64_t stamp) {
    uint64_t word = stamp_word(size, stamp);
    if (size >= 16) {
        set_word_at(block, 0, word);
        set_word_at(block, size - 8, word);
    } else {
        ((unsigned char *)block)[0] = (unsigned char)(word >> 56);
        ((unsigned char *)block)[size - 1] = (unsigned char)(word >> 56);
    }
}

/* Reads both stamps back and returns them as one number for the checksum. */
static inline uint64_t check_block(void *block, size_t size, uint64_t stamp) {
    uint64_t word = stamp_word(size, stamp);
    keep(block);
    if (size >= 16) {
        if (word_at(block, 0) != word || word_at(block, size - 8) != word) contents_wrong(block, size);
        return word;
    }
    const unsigned char *bytes = block;
    if (bytes[0] != word >> 56 || bytes[size - 1] != word >> 56) contents_wrong(block, size);
    return word >> 56;
}

/* Writes one word in each OS page of a block from the step at or after `from`. */
static inline void touch_pages(void *block, size_t from, size_t size, uint64_t stamp) {
    size_t offset = (from + TOUCH_STEP - 1) / TOUCH_STEP * TOUCH_STEP;
    for (; offset + 8 <= size; offset += TOUCH_STEP) set_word_at(block, offset, mix(stamp) + offset);
}

/* Checks the touched words, one in `every`, and returns their sum. */
static inline uint64_t check_pages(void *block, size_t size, uint64_t stamp, size_t every) {
    uint64_t sum = 0;
    keep(block);
    for (size_t offset = 0; offset + 8 <= size; offset += every * TOUCH_STEP) {
        uint64_t word = word_at(block, offset);
        if (word != mix(stamp) + offset) contents_wrong(block, size);
        sum += word;
    }
    return sum;
}

/* A block as its owner remembers it; no block where `block` is null. */
struct held {
    void *block;
    uint32_t size;
    uint32_t stamp;
};

static inline struct held held_new(size_t size, uint32_t stamp) {
    struct held held = {take(size), (uint32_t)size, stamp};
    stamp_block(held.block, size, stamp);
    return held;
}

/* Checks and frees a block, if there is one, and returns its part of the checksum. */
static inline uint64_t held_free(struct held *held) {
    if (!held->block) return 0;
    uint64_t sum = check_block(held->block, held->size, held->stamp);
    free(held->block);
    held->block = NULL;
    return sum;
}

static inline uint64_t held_free_all(struct held *held, size_t count) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += held_free(&held[i]);
    return sum;
}

/* A block that says itself how large it is, so that any thread can check it and free it, and that can
 * stand in a list. Its last word is the seal. */
struct sealed {
    uint64_t label; /* stamp << 32 | size */
    struct sealed *next;
};

#define SEALED_MIN ((size_t)24)

static inline struct sealed *sealed_new(size_t size, uint32_t stamp) {
    struct sealed *block = take(size);
    block->label = (uint64_t)stamp << 32 | size;
    block->next = NULL;
    set_word_at(block, size - 8, mix(block->label));
    return block;
}

/* Checks and frees a sealed block of at most `size_max` bytes; returns its part of the checksum. */
static inline uint64_t sealed_free(struct sealed *block, size_t size_max) {
    keep(block);
    size_t size = (uint32_t)block->label;
    if (size < SEALED_MIN || size > size_max) contents_wrong(block, size);
    uint64_t seal = word_at(block, size - 8);
    if (seal != mix(block->label)) contents_wrong(block, size);
    /* Another thread that was given the same block finds no label. */
    block->label = 0;
    keep(block);
    free(block);
    return seal;
}

static inline uint64_t sealed_free_list(struct sealed *list, size_t size_max) {
    uint64_t sum = 0;
    while (list) {
        struct sealed *next = list->next;
        sum += sealed_free(list, size_max);
        list = next;
    }
    return sum;
}

#endif
