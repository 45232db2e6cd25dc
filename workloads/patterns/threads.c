/* threads.c: blocks that one thread allocates and another frees, threads that come and go, and threads
 * that write to neighboring blocks. Who frees a block depends on timing; the checksum does not, because
 * every block is freed exactly once. Hand-over never grows without bound: it waits, or is skipped. */
#include <sched.h>
#include <stdatomic.h>

#include "pattern.h"

/* ---- server: random replacement; each thread ends after a while and a successor takes its table ---- */

#define SERVER_GENERATION_OPS 50000

struct server {
    struct held *held;
    size_t live;
    size_t size;
    uint64_t left;
    struct rng rng;
    uint64_t sum;
    pthread_mutex_t *lock;
    pthread_cond_t *ended;
    unsigned *running;
};

static void *serve(void *argument) {
    struct server *server = argument;
    uint64_t ops = server->left < SERVER_GENERATION_OPS ? server->left : SERVER_GENERATION_OPS;
    for (uint64_t i = 0; i < ops; i++) {
        struct held *slot = &server->held[rng_below(&server->rng, server->live)];
        server->sum += held_free(slot);
        *slot = held_new(rng_between(&server->rng, 10, server->size), (uint32_t)i);
    }
    server->left -= ops;
    if (server->left > 0) {
        pthread_detach(start_thread(serve, server));
        return NULL;
    }
    pthread_mutex_lock(server->lock);
    --*server->running;
    pthread_cond_signal(server->ended);
    pthread_mutex_unlock(server->lock);
    return NULL;
}

static uint64_t server(const struct plan *plan) {
    /* Static because the last thread may still be leaving the lock when this function returns. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
    static unsigned running;
    running = plan->threads;
    struct server *servers = table_new(plan->threads, sizeof *servers);
    uint64_t sum = 0;
    for (unsigned i = 0; i < plan->threads; i++) {
        size_t live = plan->live / plan->threads;
        servers[i] = (struct server){table_new(live, sizeof(struct held)), live, plan->size,
                                     plan->ops / plan->threads + (i < plan->ops % plan->threads),
                                     rng_new(plan->seed + i), 0, &lock, &ended, &running};
        pthread_detach(start_thread(serve, &servers[i]));
    }
    pthread_mutex_lock(&lock);
    while (running > 0) pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < plan->threads; i++) {
        sum += servers[i].sum + held_free_all(servers[i].held, servers[i].live);
        table_drop(servers[i].held, servers[i].live, sizeof(struct held));
    }
    table_drop(servers, plan->threads, sizeof *servers);
    return sum;
}

/* ---- ring and asymmetric: producers that only allocate, consumers that only free ---- */

#define QUEUE_BLOCKS 4096
#define PASS_BLOCKS 64

/* Waiting for a moment: first on the spot, because the other side is about to act, then letting others run. */
static void wait_turn(unsigned *waits) {
    if (++*waits > 200) {
        sched_yield();
        return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* A bounded queue between two threads. Each position is written by one side only; a store with release
 * publishes the blocks before it, or the emptied places. */
struct queue {
    _Alignas(64) _Atomic size_t put;
    _Alignas(64) _Atomic size_t got;
    _Alignas(64) struct sealed *blocks[QUEUE_BLOCKS];
};

static void queue_put(struct queue *queue, struct sealed **blocks, size_t count) {
    size_t put = atomic_load_explicit(&queue->put, memory_order_relaxed);
    unsigned waits = 0;
    while (put + count - atomic_load_explicit(&queue->got, memory_order_acquire) > QUEUE_BLOCKS)
        wait_turn(&waits);
    for (size_t i = 0; i < count; i++) queue->blocks[(put + i) % QUEUE_BLOCKS] = blocks[i];
    atomic_store_explicit(&queue->put, put + count, memory_order_release);
}

/* Waits for at least one block and takes up to PASS_BLOCKS of them. */
static size_t queue_get(struct queue *queue, struct sealed **blocks) {
    size_t got = atomic_load_explicit(&queue->got, memory_order_relaxed), put;
    unsigned waits = 0;
    while ((put = atomic_load_explicit(&queue->put, memory_order_acquire)) == got) wait_turn(&waits);
    size_t count = put - got < PASS_BLOCKS ? put - got : PASS_BLOCKS;
    for (size_t i = 0; i < count; i++) blocks[i] = queue->blocks[(got + i) % QUEUE_BLOCKS];
    atomic_store_explicit(&queue->got, got + count, memory_order_release);
    return count;
}

/* One producer serves `consumers` queues in turn. A null pointer ends a queue. */
struct lanes {
    struct queue *queues;
    unsigned consumers;
    uint64_t ops;
};

static void produce(const struct share *share, struct queue *queues, const struct lanes *lanes) {
    struct rng rng = rng_new(share->seed);
    struct sealed *blocks[PASS_BLOCKS];
    size_t count = 0;
    unsigned lane = 0;
    for (uint64_t i = 0; i < lanes->ops; i++) {
        blocks[count++] = sealed_new(rng_between(&rng, SEALED_MIN, share->size), (uint32_t)i);
        if (count < PASS_BLOCKS && i + 1 < lanes->ops) continue;
        queue_put(&queues[lane++ % lanes->consumers], blocks, count);
        count = 0;
    }
    blocks[0] = NULL;
    for (lane = 0; lane < lanes->consumers; lane++) queue_put(&queues[lane], blocks, 1);
}

static uint64_t consume(const struct share *share, struct queue *queue) {
    struct sealed *blocks[PASS_BLOCKS];
    uint64_t sum = 0;
    for (;;) {
        size_t count = queue_get(queue, blocks);
        for (size_t i = 0; i < count; i++) {
            if (!blocks[i]) return sum;
            sum += sealed_free(blocks[i], share->size);
        }
    }
}

static uint64_t lane_body(const struct share *share) {
    const struct lanes *lanes = share->context;
    unsigned group = share->index / (lanes->consumers + 1), role = share->index % (lanes->consumers + 1);
    struct queue *queues = lanes->queues + (size_t)group * lanes->consumers;
    if (role > 0) return consume(share, &queues[role - 1]);
    produce(share, queues, lanes);
    return 0;
}

static uint64_t run_lanes(const struct plan *plan, unsigned consumers) {
    unsigned groups = plan->threads / (consumers + 1);
    struct lanes lanes = {table_new((size_t)groups * consumers, sizeof(struct queue)), consumers,
                          (plan->ops + groups - 1) / groups};
    uint64_t sum = on_threads(plan, lane_body, &lanes);
    table_drop(lanes.queues, (size_t)groups * consumers, sizeof(struct queue));
    return sum;
}

static uint64_t ring(const struct plan *plan) {
    if (plan->threads % 2 != 0) cannot("pair an odd number of threads; give an even --threads");
    return run_lanes(plan, 1);
}

static uint64_t asymmetric(const struct plan *plan) { return run_lanes(plan, plan->threads - 1); }

/* ---- generations: all threads end and new ones start; blocks and lists live on ---- */

#define GENERATIONS 100
#define EXCHANGE 1000
#define NEAR 64
#define LIST_MAX 1000

struct heritage {
    _Atomic(struct sealed *) exchange[EXCHANGE];
    struct sealed *lists[2][THREADS_MAX]; /* by generation and thread */
    unsigned generation;
};

static size_t generation_size(struct rng *rng, size_t size_max) {
    uint32_t r = rng_next(rng);
    if (r % 256 == 0) return rng_between(rng, size_max / 8, size_max);
    return rng_between(rng, SEALED_MIN, r % 8 == 0 ? size_max / 16 : size_max / 128);
}

static uint64_t live_a_generation(const struct share *share) {
    struct heritage *heritage = share->context;
    struct rng rng = rng_new(share->seed);
    struct sealed *near[NEAR] = {0}, *list = NULL, *old;
    unsigned now = heritage->generation % 2;
    size_t listed = 0;
    uint64_t sum = 0;
    /* The list of the neighbor's forerunner: this thread did not allocate it. */
    struct sealed **inherited = &heritage->lists[!now][(share->index + 1) % share->threads];
    sum += sealed_free_list(*inherited, share->size);
    *inherited = NULL;
    for (uint64_t i = 0; i < share->ops; i++) {
        struct sealed *block = sealed_new(generation_size(&rng, share->size), (uint32_t)i);
        uint32_t r = rng_next(&rng);
        if (r % 4 == 0) {
            old = atomic_exchange_explicit(&heritage->exchange[r / 4 % EXCHANGE], block, memory_order_acq_rel);
        } else if (r % 16 == 1 && listed < LIST_MAX) {
            block->next = list;
            list = block;
            listed++;
            continue;
        } else {
            old = near[r / 16 % NEAR];
            near[r / 16 % NEAR] = block;
        }
        if (old) sum += sealed_free(old, share->size);
    }
    for (size_t i = 0; i < NEAR; i++)
        if (near[i]) sum += sealed_free(near[i], share->size);
    heritage->lists[now][share->index] = list;
    return sum;
}

static uint64_t generations(const struct plan *plan) {
    struct heritage *heritage = table_new(1, sizeof *heritage);
    uint64_t sum = 0;
    for (unsigned i = 0; i < GENERATIONS; i++) {
        struct plan generation = *plan;
        generation.ops = plan->ops / GENERATIONS + (i < plan->ops % GENERATIONS);
        generation.seed = mix(plan->seed + i);
        heritage->generation = i;
        sum += on_threads(&generation, live_a_generation, heritage);
    }
    for (size_t i = 0; i < EXCHANGE; i++)
        if (heritage->exchange[i]) sum += sealed_free(heritage->exchange[i], plan->size);
    for (size_t i = 0; i < plan->threads; i++)
        sum += sealed_free_list(heritage->lists[(GENERATIONS - 1) % 2][i], plan->size);
    table_drop(heritage, 1, sizeof *heritage);
    return sum;
}

/* ---- mixed-cross: random replacement of mixed sizes, one block in four freed by the neighbor ---- */

#define POST_BLOCKS 32
#define MAILBOX_MAX 1024

/* Posted blocks, as one list. `waiting` counts them, so that a neighbor which does not run is sent
 * no more than MAILBOX_MAX; the sender then frees by itself. */
struct mailbox {
    _Alignas(64) _Atomic(struct sealed *) list;
    _Atomic size_t waiting;
};

struct post {
    struct sealed *first, *last;
    size_t count;
};

static void post_send(struct post *post, struct mailbox *to) {
    post->last->next = atomic_load_explicit(&to->list, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&to->list, &post->last->next, post->first,
                                                  memory_order_release, memory_order_relaxed)) {}
    atomic_fetch_add_explicit(&to->waiting, post->count, memory_order_relaxed);
    *post = (struct post){0};
}

static uint64_t mailbox_empty(struct mailbox *mailbox, size_t size_max) {
    struct sealed *list = atomic_exchange_explicit(&mailbox->list, NULL, memory_order_acquire);
    atomic_store_explicit(&mailbox->waiting, 0, memory_order_relaxed);
    return sealed_free_list(list, size_max);
}

static uint64_t mixed_body(const struct share *share) {
    struct mailbox *mailboxes = share->context, *own = &mailboxes[share->index];
    struct mailbox *neighbor = &mailboxes[(share->index + 1) % share->threads];
    struct sealed **blocks = table_new(share->live, sizeof *blocks);
    struct rng rng = rng_new(share->seed);
    struct post post = {0};
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        size_t at = rng_below(&rng, share->live);
        struct sealed *old = blocks[at];
        /* Small sizes are far more frequent: the range shrinks to a random part of itself twice. */
        size_t size = rng_below(&rng, rng_below(&rng, share->size - SEALED_MIN) + 1) + SEALED_MIN;
        blocks[at] = sealed_new(size, (uint32_t)i);
        if (i % 256 == 0) sum += mailbox_empty(own, share->size);
        if (!old) continue;
        if (at % 4 != 0 || atomic_load_explicit(&neighbor->waiting, memory_order_relaxed) > MAILBOX_MAX) {
            sum += sealed_free(old, share->size);
            continue;
        }
        old->next = post.first;
        post.first = old;
        if (!post.last) post.last = old;
        if (++post.count == POST_BLOCKS) post_send(&post, neighbor);
    }
    if (post.count > 0) post_send(&post, neighbor);
    for (size_t i = 0; i < share->live; i++)
        if (blocks[i]) sum += sealed_free(blocks[i], share->size);
    table_drop(blocks, share->live, sizeof *blocks);
    return sum;
}

static uint64_t mixed_cross(const struct plan *plan) {
    struct mailbox *mailboxes = table_new(plan->threads, sizeof *mailboxes);
    uint64_t sum = on_threads(plan, mixed_body, mailboxes);
    for (unsigned i = 0; i < plan->threads; i++) sum += mailbox_empty(&mailboxes[i], plan->size);
    table_drop(mailboxes, plan->threads, sizeof *mailboxes);
    return sum;
}

/* ---- waves: all blocks are made, then all freed, in another order ---- */

static uint64_t waves(const struct share *share) {
    struct held *held = table_new(share->live, sizeof *held);
    uint32_t *order = table_new(share->live, sizeof *order);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t left = share->ops, count; left > 0; left -= count) {
        count = rng_between(&rng, share->live / 2, share->live);
        if (count > left) count = left;
        for (uint64_t i = 0; i < count; i++) {
            held[i] = held_new(rng_between(&rng, 16, share->size), (uint32_t)i);
            order[i] = (uint32_t)i;
        }
        shuffle(order, count, &rng);
        for (uint64_t i = 0; i < count; i++) sum += held_free(&held[order[i]]);
    }
    table_drop(held, share->live, sizeof *held);
    table_drop(order, share->live, sizeof *order);
    return sum;
}

/* ---- batches: lists of many blocks, made by one thread and freed by its partner ---- */

#define BATCH_BLOCKS 4096
#define BATCHES_WAITING 4

/* Lists on their way from one thread to its partner. */
struct chute {
    _Alignas(64) _Atomic(struct sealed *) lists[BATCHES_WAITING];
};

static struct sealed *batch_new(size_t size, uint64_t count) {
    struct sealed *list = NULL;
    for (uint64_t i = 0; i < count; i++) {
        struct sealed *block = sealed_new(size, (uint32_t)i);
        block->next = list;
        list = block;
    }
    return list;
}

static uint64_t batches_body(const struct share *share) {
    struct chute *chute = (struct chute *)share->context + share->index / 2;
    uint64_t pair_ops = 2 * share->ops, sum = 0, count;
    unsigned at = 0;
    for (uint64_t left = pair_ops; left > 0; left -= count, at++) {
        _Atomic(struct sealed *) *place = &chute->lists[at % BATCHES_WAITING];
        unsigned waits = 0;
        struct sealed *list;
        count = left < BATCH_BLOCKS ? left : BATCH_BLOCKS;
        if (share->index % 2 == 0) {
            list = batch_new(share->size, count);
            while (atomic_load_explicit(place, memory_order_acquire)) wait_turn(&waits);
            atomic_store_explicit(place, list, memory_order_release);
        } else {
            while (!(list = atomic_load_explicit(place, memory_order_acquire))) wait_turn(&waits);
            atomic_store_explicit(place, NULL, memory_order_release);
            sum += sealed_free_list(list, share->size);
        }
    }
    return sum;
}

static uint64_t batches(const struct plan *plan) {
    if (plan->threads % 2 != 0) cannot("pair an odd number of threads; give an even --threads");
    /* Each pair makes the same number of blocks. */
    struct plan fixed = *plan;
    fixed.ops = (plan->ops + plan->threads - 1) / plan->threads * plan->threads;
    struct chute *chutes = table_new(plan->threads / 2, sizeof *chutes);
    uint64_t sum = on_threads(&fixed, batches_body, chutes);
    table_drop(chutes, plan->threads / 2, sizeof *chutes);
    return sum;
}

/* ---- exchange-large: few blocks, mostly large, replaced at random by any thread ---- */

static uint64_t exchange_body(const struct share *share) {
    _Atomic(struct sealed *) *table = share->context;
    size_t places = share->live * share->threads;
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        struct sealed *block = sealed_new(rng_between(&rng, SEALED_MIN, share->size), (uint32_t)i);
        struct sealed *old = atomic_exchange_explicit(&table[rng_below(&rng, places)], block, memory_order_acq_rel);
        if (old) sum += sealed_free(old, share->size);
    }
    return sum;
}

static uint64_t exchange_large(const struct plan *plan) {
    struct plan fixed = *plan;
    fixed.live = plan->live / plan->threads * plan->threads;
    _Atomic(struct sealed *) *table = table_new(fixed.live, sizeof *table);
    uint64_t sum = on_threads(&fixed, exchange_body, table);
    for (size_t i = 0; i < fixed.live; i++)
        if (table[i]) sum += sealed_free(table[i], plan->size);
    table_drop(table, fixed.live, sizeof *table);
    return sum;
}

/* ---- sparse-cross: blocks of all sizes of which both ends alone are used; one thread frees them all ---- */

#define SPARSE_DOUBLINGS 20
#define SPARSE_EACH 8
#define SPARSE_BATCH 100
#define SPARSE_WAITING 2000

struct sink {
    pthread_mutex_t lock;
    struct sealed *list;
    size_t waiting;
    unsigned allocating;
};

static void sink_add(struct sink *sink, struct post *post) {
    for (unsigned waits = 0;;) {
        pthread_mutex_lock(&sink->lock);
        int fits = sink->waiting <= SPARSE_WAITING;
        if (fits && post->first) {
            post->last->next = sink->list;
            sink->list = post->first;
            sink->waiting += post->count;
        }
        pthread_mutex_unlock(&sink->lock);
        if (fits) break;
        wait_turn(&waits);
    }
    *post = (struct post){0};
}

static uint64_t sink_empty(struct sink *sink, size_t size_max) {
    uint64_t sum = 0;
    unsigned waits = 0;
    for (unsigned allocating = 1; allocating > 0;) {
        pthread_mutex_lock(&sink->lock);
        struct sealed *list = sink->list;
        allocating = sink->allocating;
        sink->list = NULL;
        sink->waiting = 0;
        pthread_mutex_unlock(&sink->lock);
        if (!list) wait_turn(&waits);
        sum += sealed_free_list(list, size_max);
    }
    return sum;
}

static uint64_t sparse_body(const struct share *share) {
    struct sink *sink = share->context;
    if (share->index == 0) return sink_empty(sink, share->size);
    struct post post = {0};
    for (uint64_t i = 0; i < share->ops; i++) {
        size_t size = share->size >> (SPARSE_DOUBLINGS - 1 - i / SPARSE_EACH % SPARSE_DOUBLINGS);
        struct sealed *block = sealed_new(size < SEALED_MIN ? SEALED_MIN : size, (uint32_t)i);
        block->next = post.first;
        post.first = block;
        if (!post.last) post.last = block;
        if (++post.count == SPARSE_BATCH) sink_add(sink, &post);
    }
    if (post.count > 0) sink_add(sink, &post);
    pthread_mutex_lock(&sink->lock);
    sink->allocating--;
    pthread_mutex_unlock(&sink->lock);
    return 0;
}

static uint64_t sparse_cross(const struct plan *plan) {
    struct sink sink = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, plan->threads - 1};
    return on_threads(plan, sparse_body, &sink);
}

/* ---- false sharing: small blocks of two threads in one cache line make every write slow ---- */

#define WRITES 50 /* to each block, each time */

static uint64_t write_often(void *block, uint64_t start) {
    volatile uint64_t *counter = block;
    *counter = start;
    for (unsigned i = 0; i < WRITES; i++) *counter = *counter + 1;
    if (*counter != start + WRITES) contents_wrong(block, sizeof *counter);
    return *counter;
}

static uint64_t false_sharing_active(const struct share *share) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        void *block = take(share->size);
        sum += write_often(block, i);
        free(block);
    }
    return sum;
}

/* The first blocks of all threads were allocated in turn by one, so they are neighbors. A malloc that
 * hands a thread the block it has just freed keeps them neighbors for ever. Each thread writes to all its
 * blocks in turn, so that two threads meet in a line without running in step. */
static uint64_t passive_body(const struct share *share) {
    void **blocks = (void **)share->context + (size_t)share->index * share->live;
    uint64_t *written = table_new(share->live, sizeof *written);
    uint64_t sum = 0;
    for (uint64_t i = 0, at = 0; i < share->ops; i++, at = at + 1 < share->live ? at + 1 : 0) {
        free(blocks[at]);
        blocks[at] = take(share->size);
        *(uint64_t *)blocks[at] = written[at] = i;
        for (unsigned write = 0; write < WRITES; write++)
            for (size_t to = 0; to < share->live; to++) ++*(volatile uint64_t *)blocks[to];
        for (size_t to = 0; to < share->live; to++) written[to] += WRITES;
        if (*(volatile uint64_t *)blocks[at] != written[at]) contents_wrong(blocks[at], share->size);
        sum += written[at];
    }
    table_drop(written, share->live, sizeof *written);
    return sum;
}

static uint64_t false_sharing_passive(const struct plan *plan) {
    size_t each = plan->live / plan->threads ? plan->live / plan->threads : 1;
    void **blocks = table_new(each * plan->threads, sizeof *blocks);
    for (size_t i = 0; i < each * plan->threads; i++) {
        /* In turn: block i goes to thread i modulo the number of threads. */
        void **block = &blocks[i % plan->threads * each + i / plan->threads];
        *block = take(plan->size);
        *(uint64_t *)*block = 0;
    }
    uint64_t sum = on_threads(plan, passive_body, blocks);
    for (size_t i = 0; i < each * plan->threads; i++) free(blocks[i]);
    table_drop(blocks, each * plan->threads, sizeof *blocks);
    return sum;
}

/* ---- thread-start-exit, many-threads ---- */

static uint64_t small_task(const struct share *share) {
    struct held held[4];
    struct rng rng = rng_new(share->seed);
    for (size_t i = 0; i < 4; i++) held[i] = held_new(rng_between(&rng, 16, share->size), (uint32_t)i);
    return held_free_all(held, 4);
}

static uint64_t thread_start_exit(const struct plan *plan) {
    uint64_t sum = 0;
    struct plan burst = *plan;
    for (uint64_t left = plan->ops; left > 0; left -= burst.ops) {
        burst.ops = left < plan->threads ? left : plan->threads;
        burst.seed = mix(plan->seed + left);
        sum += on_threads(&burst, small_task, NULL);
    }
    return sum;
}

#define UNIT_OPS 10000

/* The work is cut into units that do not know the thread they run on: any number of threads does the
 * same work and ends with the same checksum. */
struct units {
    _Atomic uint64_t next;
    uint64_t count;
    const struct plan *plan;
};

static uint64_t work_units(const struct share *share) {
    struct units *units = share->context;
    struct held *held = table_new(share->live, sizeof *held);
    uint64_t sum = 0, unit;
    while ((unit = atomic_fetch_add_explicit(&units->next, 1, memory_order_relaxed)) < units->count) {
        struct rng rng = rng_new(mix(units->plan->seed) + unit);
        for (uint64_t i = 0; i < UNIT_OPS && unit * UNIT_OPS + i < units->plan->ops; i++) {
            struct held *slot = &held[rng_below(&rng, share->live)];
            sum += held_free(slot);
            *slot = held_new(rng_between(&rng, 16, share->size), (uint32_t)i);
        }
        sum += held_free_all(held, share->live);
    }
    table_drop(held, share->live, sizeof *held);
    return sum;
}

static uint64_t many_threads(const struct plan *plan) {
    struct plan fixed = *plan;
    struct units units = {0, (plan->ops + UNIT_OPS - 1) / UNIT_OPS, plan};
    /* The table of a unit has one size however many threads there are. */
    fixed.live = plan->live / 64 * plan->threads;
    return on_threads(&fixed, work_units, &units);
}

#define THREADS(NAME, T, T_MIN, SIZE_MIN, SIZE, LIVE, OPS, BODY, ABOUT)                                  \
    {.name = NAME, .group = "threads", .threads = T, .threads_min = T_MIN, .size_min = SIZE_MIN,         \
     .size = SIZE, .live = LIVE, .ops = OPS, BODY, .about = ABOUT}

const struct pattern thread_patterns[] = {
    THREADS("server", 2, 1, 16, 500, 10000, 80000000, .whole = server, "random replacement; threads end and successors take their blocks"),
    THREADS("ring", 2, 2, SEALED_MIN, 256, 8192, 30000000, .whole = ring, "one thread allocates, its partner frees"),
    THREADS("asymmetric", 4, 2, SEALED_MIN, 256, 16384, 20000000, .whole = asymmetric, "one thread allocates, all others free"),
    THREADS("generations", 2, 1, 4096, 16384, 4096, 50000000, .whole = generations, "threads come and go, lists are handed on"),
    THREADS("mixed-cross", 2, 1, 64, 8000, 20000, 16000000, .whole = mixed_cross, "mixed sizes, one in four freed by a neighbor"),
    THREADS("waves", 4, 1, 16, 1024, 1000000, 6000000, .each = waves, "each thread makes all its blocks, then frees them in another order"),
    THREADS("batches", 2, 2, SEALED_MIN, 64, 24576, 30000000, .whole = batches, "lists of 4,096 blocks, made by one thread and freed by its partner"),
    THREADS("exchange-large", 4, 1, 64, 16384, 1000, 3000000, .whole = exchange_large, "few blocks, mostly large, replaced at random by any thread"),
    THREADS("sparse-cross", 4, 2, 4096, 2 << 20, 2400, 400000, .whole = sparse_cross, "blocks of all sizes, little used; one thread frees them all"),
    THREADS("false-sharing-active", 2, 1, 8, 8, 2, 25000000, .each = false_sharing_active, "threads allocate and write at once"),
    THREADS("false-sharing-passive", 2, 1, 8, 8, 16, 2000000, .whole = false_sharing_passive, "threads free neighbors, allocate and write"),
    THREADS("thread-start-exit", 2, 2, 16, 256, 8, 40000, .whole = thread_start_exit, "threads that allocate a little and end"),
    THREADS("many-threads", 64, 1, 16, 512, 64 * 200, 60000000, .whole = many_threads, "one amount of work on many threads"),
    {0},
};
