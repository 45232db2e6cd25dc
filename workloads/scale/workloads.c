/* workloads.c: what the threads do. */
#include <stdatomic.h>

#include "scale.h"

enum {
    LARGE_KEPT = 4,
    LARGE_MIN = 100 << 10,
    LARGE_MAX = 4 << 20,
    FOR_ALL = 8, /* threads' worth of operations, where one thread meets all others */
    CHILD_BLOCKS = 16,
    CHILD_LEAVES = 4,
    REPLIES = 4,
    REQUEST_BLOCKS = 24,
    LIST_BLOCKS = 512,
    LIST_SIZE = 64,
    LISTS_WAITING = 2,
    WAVE_BLOCKS = 8009, /* a prime */
    WAVE_STEP = 769,
};

/* Replaces one of so many blocks that the thread keeps. */
static void replace(struct worker *worker, size_t kept, size_t size) {
    struct sealed **place = &worker->kept[rng_below(&worker->rng, kept)];
    if (*place) block_free(worker, *place);
    *place = block_new(worker, size);
}

static uint64_t private_small(struct worker *worker, uint64_t operations) {
    for (uint64_t i = 0; i < operations; i++) replace(worker, KEPT, small_size(worker));
    return operations;
}

static size_t large_size(struct worker *worker) {
    size_t size = (size_t)LARGE_MIN << rng_below(&worker->rng, 5);
    size += rng_below(&worker->rng, size);
    return size < LARGE_MAX ? size : LARGE_MAX;
}

static uint64_t private_large(struct worker *worker, uint64_t operations) {
    for (uint64_t i = 0; i < operations; i++) replace(worker, LARGE_KEPT, large_size(worker));
    return operations;
}

static uint64_t growing(struct worker *worker, uint64_t operations) {
    for (uint64_t i = 0; i < operations; i++) {
        struct sealed *block = block_new(worker, small_size(worker));
        block->next = worker->list;
        worker->list = block;
    }
    return operations;
}

/* Leaves a block at a place, and takes what lay there. */
static void exchange(struct worker *worker, struct sealed *block) {
    struct place *place = &places[rng_below(&worker->rng, (size_t)worker->threads * EXCHANGED_A_THREAD)];
    struct sealed *found = atomic_exchange_explicit(&place->block, block, memory_order_acq_rel);
    if (found) block_free(worker, found);
}

static uint64_t all_to_all(struct worker *worker, uint64_t operations) {
    for (uint64_t i = 0; i < operations; i++) exchange(worker, block_new(worker, small_size(worker)));
    return operations;
}

/* Whether the slot of the ring that is next to be filled is free, or waits until it is. */
static bool try_put(struct ring *ring, unsigned *at, struct sealed *block) {
    struct sealed *_Atomic *slot = &ring->slots[*at % RING_SLOTS];
    if (atomic_load_explicit(slot, memory_order_acquire)) return false;
    atomic_store_explicit(slot, block, memory_order_release);
    ++*at;
    return true;
}

static struct sealed *try_take(struct ring *ring, unsigned *at) {
    struct sealed *_Atomic *slot = &ring->slots[*at % RING_SLOTS];
    struct sealed *block = atomic_load_explicit(slot, memory_order_acquire);
    if (!block) return NULL;
    atomic_store_explicit(slot, NULL, memory_order_release);
    ++*at;
    return block;
}

static void put(struct worker *worker, struct ring *ring, unsigned *at, struct sealed *block) {
    if (try_put(ring, at, block)) return;
    wait_begins(worker);
    while (!try_put(ring, at, block)) wait_a_little();
    wait_ends(worker);
}

static struct sealed *take_from(struct worker *worker, struct ring *ring, unsigned *at) {
    struct sealed *block = try_take(ring, at);
    if (block) return block;
    wait_begins(worker);
    while (!(block = try_take(ring, at))) wait_a_little();
    wait_ends(worker);
    return block;
}

/* One thread alone fills its ring and empties it. */
static uint64_t to_itself(struct worker *worker, uint64_t operations) {
    struct ring *ring = &rings[worker->index];
    for (uint64_t i = 0; i < operations; i++) {
        put(worker, ring, &worker->produced, block_new(worker, small_size(worker)));
        if (i % RING_SLOTS == RING_SLOTS - 1 || i == operations - 1)
            while (worker->consumed != worker->produced) block_free(worker, try_take(ring, &worker->consumed));
    }
    return operations;
}

/* Threads in pairs: the first allocates for both, the second frees. */
static uint64_t pairs(struct worker *worker, uint64_t operations) {
    struct ring *ring = &rings[worker->index / 2];
    if (worker->threads == 1) return to_itself(worker, operations);
    if (worker->index == worker->threads - 1 && worker->index % 2 == 0) return private_small(worker, operations);
    if (worker->index % 2 == 1) {
        for (uint64_t i = 0; i < 2 * operations; i++)
            block_free(worker, take_from(worker, ring, &worker->consumed));
        return 0;
    }
    for (uint64_t i = 0; i < 2 * operations; i++)
        put(worker, ring, &worker->produced, block_new(worker, small_size(worker)));
    return 2 * operations;
}

static struct sealed *list_new(struct worker *worker, uint64_t count) {
    struct sealed *list = NULL;
    for (uint64_t i = 0; i < count; i++) {
        struct sealed *block = block_new(worker, LIST_SIZE);
        block->next = list;
        list = block;
    }
    return list;
}

static void list_free(struct worker *worker, struct sealed *list) {
    while (list) {
        struct sealed *next = list->next;
        block_free(worker, list);
        list = next;
    }
}

/* Threads in pairs: the first makes lists for both, the second frees them. */
static uint64_t lists(struct worker *worker, uint64_t operations) {
    struct ring *ring = &rings[worker->index / 2];
    bool alone = worker->index == worker->threads - 1 && worker->index % 2 == 0;
    uint64_t all = alone ? operations : 2 * operations, count;
    for (uint64_t left = all; left > 0; left -= count) {
        count = left < LIST_BLOCKS ? left : LIST_BLOCKS;
        unsigned at = worker->produced++ % LISTS_WAITING;
        if (alone) list_free(worker, list_new(worker, count));
        else if (worker->index % 2 == 0) put(worker, ring, &at, list_new(worker, count));
        else list_free(worker, take_from(worker, ring, &at));
    }
    return alone || worker->index % 2 == 0 ? all : 0;
}

/* Each thread makes blocks of many sizes, then frees them in another order. The first wave of each is longer than that of the
 * thread before it, so that some make blocks while others free them. */
static uint64_t waves(struct worker *worker, uint64_t operations) {
    struct sealed **blocks = table_new(WAVE_BLOCKS, sizeof *blocks);
    size_t count = WAVE_BLOCKS * (worker->index + 1) / worker->threads;
    uint64_t done = 0;
    while (done < operations) {
        for (size_t i = 0; i < count; i++) blocks[i] = block_new(worker, small_size(worker));
        /* A permutation, for the length of a whole wave is a prime. */
        for (size_t i = 0; i < WAVE_BLOCKS; i++) {
            size_t at = i * WAVE_STEP % WAVE_BLOCKS;
            if (at < count) block_free(worker, blocks[at]);
        }
        done += count;
        count = WAVE_BLOCKS;
    }
    table_drop(blocks, WAVE_BLOCKS, sizeof *blocks);
    return done;
}

/* How many blocks each of the threads but the first has to do with, where the first meets all of them. */
static uint64_t of_each(const struct worker *worker, uint64_t operations) {
    unsigned others = worker->threads - 1;
    uint64_t all = operations * (worker->threads < FOR_ALL ? worker->threads : FOR_ALL);
    return (all + others - 1) / others;
}

/* The first thread allocates, all others free. */
static uint64_t one_to_all(struct worker *worker, uint64_t operations) {
    if (worker->threads == 1) return to_itself(worker, operations);
    uint64_t blocks = of_each(worker, operations);
    if (worker->index > 0) {
        for (uint64_t i = 0; i < blocks; i++)
            block_free(worker, take_from(worker, &rings[worker->index], &worker->consumed));
        return 0;
    }
    unsigned before = worker->produced, at = before;
    for (uint64_t i = 0; i < blocks; i++)
        for (unsigned other = 1; other < worker->threads; other++) {
            at = before + (unsigned)i;
            put(worker, &rings[other], &at, block_new(worker, small_size(worker)));
        }
    worker->produced = at;
    return blocks * (worker->threads - 1);
}

/* All others allocate, the first frees; after every so many blocks it allocates one for itself, unless that is 0. */
static uint64_t gather(struct worker *worker, uint64_t operations, unsigned replies) {
    uint64_t blocks = of_each(worker, operations);
    if (worker->index > 0) {
        for (uint64_t i = 0; i < blocks; i++)
            put(worker, &rings[worker->index], &worker->produced, block_new(worker, small_size(worker)));
        return blocks;
    }
    unsigned before = worker->consumed, at = before;
    for (uint64_t i = 0; i < blocks; i++)
        for (unsigned other = 1; other < worker->threads; other++) {
            at = before + (unsigned)i;
            block_free(worker, take_from(worker, &rings[other], &at));
            if (replies && (i * worker->threads + other) % replies == 0) replace(worker, KEPT, small_size(worker));
        }
    worker->consumed = at;
    return 0;
}

static uint64_t all_to_one(struct worker *worker, uint64_t operations) {
    return worker->threads == 1 ? to_itself(worker, operations) : gather(worker, operations, REPLIES);
}

static uint64_t only_frees(struct worker *worker, uint64_t operations) {
    return worker->threads == 1 ? to_itself(worker, operations) : gather(worker, operations, 0);
}

/* A thread that does little, and leaves some of its blocks to the one that started it. */
struct child {
    struct worker worker;
    struct sealed *left[CHILD_LEAVES];
};

static void *child_body(void *argument) {
    struct child *child = argument;
    struct sealed *blocks[CHILD_BLOCKS];
    use_begins(&child->worker);
    for (unsigned i = 0; i < CHILD_BLOCKS; i++) blocks[i] = block_new(&child->worker, small_size(&child->worker));
    for (unsigned i = CHILD_LEAVES; i < CHILD_BLOCKS; i++) block_free(&child->worker, blocks[i]);
    for (unsigned i = 0; i < CHILD_LEAVES; i++) child->left[i] = blocks[i];
    use_ends(&child->worker);
    return NULL;
}

static uint64_t thread_churn(struct worker *worker, uint64_t operations) {
    struct child child = {.worker = *worker};
    child.worker.used = (struct used){0, 0};
    for (uint64_t i = 0; i < operations; i++) {
        child.worker.rng = rng_new(mix(worker->stamp) + i);
        pthread_t thread = start_worker(child_body, &child);
        wait_begins(worker);
        join_thread(thread);
        wait_ends(worker);
        for (unsigned k = 0; k < CHILD_LEAVES; k++) block_free(worker, child.left[k]);
    }
    worker->used.cpu_ns += child.worker.used.cpu_ns;
    worker->used.switches += child.worker.used.switches;
    if (child.worker.pause_ns > worker->pause_ns) worker->pause_ns = child.worker.pause_ns;
    if (child.worker.pause_asleep_ns > worker->pause_asleep_ns)
        worker->pause_asleep_ns = child.worker.pause_asleep_ns;
    worker->stamp++;
    return operations;
}

static size_t request_size(struct worker *worker) {
    size_t kind = rng_below(&worker->rng, 32);
    if (kind < 24) return small_size(worker);
    if (kind < 31) return rng_between(&worker->rng, SMALL_MAX, 4 << 10);
    return rng_between(&worker->rng, 4 << 10, 64 << 10);
}

/* Requests of some blocks and a text that grows; a block in eight stays for another thread's request. */
static uint64_t server(struct worker *worker, uint64_t operations) {
    uint64_t done = 0;
    while (done < operations) {
        struct sealed *blocks[REQUEST_BLOCKS];
        size_t count = rng_between(&worker->rng, REQUEST_BLOCKS / 3, REQUEST_BLOCKS);
        for (size_t i = 0; i < count; i++) blocks[i] = block_new(worker, request_size(worker));
        struct sealed *text = block_new(worker, 100);
        for (size_t size = 200; size <= 3200; size *= 2) text = block_grown(worker, text, size);
        block_free(worker, text);
        for (size_t i = 0; i < count; i++) {
            if (i % 8 == 0) exchange(worker, blocks[i]);
            else block_free(worker, blocks[i]);
        }
        done += count + 1;
    }
    return done;
}

const struct workload workloads[] = {
    {"private", private_small, 1, "each thread replaces one of 64 small blocks of its own"},
    {"pairs", pairs, 1, "threads in pairs: one allocates, the other frees (1:1)"},
    {"lists", lists, 1, "threads in pairs: one makes lists of 512 blocks, the other frees them"},
    {"fan-out", one_to_all, 1, "one thread allocates, all others free (1:n)"},
    {"fan-in", all_to_one, 1, "all allocate, one frees and allocates a little (n:1)"},
    {"reaper", only_frees, 1, "all allocate, one thread does nothing but free"},
    {"exchange", all_to_all, 1, "every block is freed by whichever thread comes by (all to all)"},
    {"large", private_large, 16, "each thread replaces one of 4 blocks of 100 KiB to 4 MiB"},
    {"growing", growing, 1, "nothing is freed: one operation is one allocation"},
    {"waves", waves, 1, "each thread makes 8,009 blocks of many sizes, then frees them in another order"},
    {"churn", thread_churn, 64, "threads that allocate 16 blocks and end: one operation is one thread"},
    {"server", server, 1, "requests: many sizes, a text that grows, some blocks stay for others"},
    {0},
};
