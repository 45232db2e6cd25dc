/* lifetime.c: what happens to memory over a program's life: after a peak, between bursts, while threads
 * wait, when few blocks outlive many. Here the resident set is the figure as much as time is. */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"

/* A line on stderr beside the one of `main`. */
static void figure(const char *line, int length) {
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0) cannot("write to stderr");
}

/* ---- idle-threads: what a waiting thread costs that allocated once ---- */

struct idlers {
    pthread_mutex_t lock;
    pthread_cond_t all_wait, all_leave;
    size_t size;
    unsigned waiting;
    int leave;
    uint64_t sum;
};

static void idle_wait(struct idlers *idlers) {
    pthread_mutex_lock(&idlers->lock);
    idlers->waiting++;
    pthread_cond_signal(&idlers->all_wait);
    while (!idlers->leave) pthread_cond_wait(&idlers->all_leave, &idlers->lock);
    pthread_mutex_unlock(&idlers->lock);
}

static void *idle_without(void *argument) {
    idle_wait(argument);
    return NULL;
}

static void *idle_with_block(void *argument) {
    struct idlers *idlers = argument;
    struct held held = held_new(idlers->size, 1);
    idle_wait(idlers);
    uint64_t sum = held_free(&held);
    pthread_mutex_lock(&idlers->lock);
    idlers->sum += sum;
    pthread_mutex_unlock(&idlers->lock);
    return NULL;
}

/* Starts `count` threads, waits until all of them wait, and returns the resident set in KiB. */
static uint64_t start_idlers(struct idlers *idlers, void *(*body)(void *), pthread_t *threads,
                             unsigned count) {
    unsigned target = idlers->waiting + count;
    for (unsigned i = 0; i < count; i++) threads[i] = start_thread(body, idlers);
    pthread_mutex_lock(&idlers->lock);
    while (idlers->waiting < target) pthread_cond_wait(&idlers->all_wait, &idlers->lock);
    pthread_mutex_unlock(&idlers->lock);
    return status_kb("VmRSS:");
}

static uint64_t idle_threads(const struct plan *plan) {
    struct idlers idlers = {.lock = PTHREAD_MUTEX_INITIALIZER, .all_wait = PTHREAD_COND_INITIALIZER,
                            .all_leave = PTHREAD_COND_INITIALIZER, .size = plan->size};
    unsigned count = plan->threads;
    pthread_t *threads = table_new(2 * (size_t)count, sizeof *threads);
    char line[160];
    /* The main thread allocates first, so that what a malloc sets up once is no idle thread's cost. */
    struct held first = held_new(plan->size, 1);
    uint64_t start_kb = status_kb("VmRSS:");
    uint64_t without_kb = start_idlers(&idlers, idle_without, threads, count);
    uint64_t with_kb = start_idlers(&idlers, idle_with_block, threads + count, count);
    long long without = (long long)(without_kb - start_kb) * 1024 / count;
    long long with = (long long)(with_kb - without_kb) * 1024 / count;
    figure(line, snprintf(line, sizeof line, "%s rss_per_thread_bytes %lld without_malloc %lld difference %lld\n",
                          plan->name, with, without, with - without));
    pthread_mutex_lock(&idlers.lock);
    idlers.leave = 1;
    pthread_cond_broadcast(&idlers.all_leave);
    pthread_mutex_unlock(&idlers.lock);
    for (unsigned i = 0; i < 2 * count; i++) join_thread(threads[i]);
    table_drop(threads, 2 * (size_t)count, sizeof *threads);
    return idlers.sum + held_free(&first);
}

/* ---- phase-change: the sizes change after the peak ---- */

#define PHASES 5
#define PHASE_KEEPS 256 /* one block in so many, at random, outlives its phase */

static uint64_t phase(const struct share *share, size_t size, struct rng *rng, struct held *held, size_t count,
                      struct held *kept, size_t *keeps, size_t keeps_max) {
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        held[i] = held_new(rng_between(rng, size / 2, size), (uint32_t)(share->seed + i));
        touch_pages(held[i].block, 1, held[i].size - 8, i);
    }
    for (size_t i = 0; i < count; i++) {
        if (rng_below(rng, PHASE_KEEPS) == 0 && *keeps < keeps_max) kept[(*keeps)++] = held[i];
        else sum += held_free(&held[i]);
    }
    return sum;
}

/* Every phase fills the same bytes with blocks four times the size of the last phase's, then frees all
 * but a few. What the small blocks leave behind is of use only if it can change its size class. */
static uint64_t phase_change(const struct share *share) {
    size_t bytes = share->live * share->size, keeps_max = share->live / 64 + 1;
    struct held *held = table_new(share->live, sizeof *held);
    struct held *kept = table_new(keeps_max, sizeof *kept);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0, left = share->ops;
    while (left > 0) {
        size_t keeps = 0, size = share->size;
        for (unsigned i = 0; i < PHASES && left > 0; i++, size *= 4) {
            size_t count = bytes / size < left ? bytes / size : (size_t)left;
            sum += phase(share, size, &rng, held, count, kept, &keeps, keeps_max);
            left -= count;
        }
        sum += held_free_all(kept, keeps);
    }
    table_drop(kept, keeps_max, sizeof *kept);
    table_drop(held, share->live, sizeof *held);
    return sum;
}

/* ---- long-among-short: one block in 64 stays long ---- */

#define SHORT_LIVED 1000

static uint64_t long_among_short(const struct share *share) {
    struct held brief[SHORT_LIVED] = {{0}};
    struct held *lasting = table_new(share->live, sizeof *lasting);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        /* Requests in flight end in no special order; long-lived blocks end at random, too. */
        struct held *slot = i % 64 == 0 ? &lasting[rng_below(&rng, share->live)]
                                        : &brief[rng_below(&rng, SHORT_LIVED)];
        sum += held_free(slot);
        *slot = held_new(rng_between(&rng, 16, share->size), (uint32_t)i);
    }
    sum += held_free_all(brief, SHORT_LIVED) + held_free_all(lasting, share->live);
    table_drop(lasting, share->live, sizeof *lasting);
    return sum;
}

/* ---- sparse-among-small: buffers of which both ends alone are used, among many small blocks ---- */

#define SPARSE_EVERY 1024
#define SPARSE_TIMES 2048 /* the most by which such a buffer is longer than a small block */

static uint64_t sparse_among_small(const struct share *share) {
    struct held *held = table_new(share->live, sizeof *held);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        /* Fills the table from its start, then replaces at random. */
        struct held *slot = &held[i < share->live ? i : rng_below(&rng, share->live)];
        size_t most = i % SPARSE_EVERY == 0 ? share->size * SPARSE_TIMES : share->size;
        sum += held_free(slot);
        *slot = held_new(rng_between(&rng, most / 16, most), (uint32_t)i);
    }
    sum += held_free_all(held, share->live);
    table_drop(held, share->live, sizeof *held);
    return sum;
}

/* ---- bursts: work, then nothing for a while ---- */

#define BURSTS 20
#define IDLE_NS 20000000

struct bursts {
    pthread_barrier_t barrier;
    uint64_t idle_kb;
};

/* All threads sleep together while the clock stands still. The small calls after it let a malloc without
 * a thread of its own give memory back, which it can do only inside a call; then the resident set is
 * read. */
static uint64_t idle(const struct share *share) {
    struct bursts *bursts = share->context;
    struct timespec left = {0, IDLE_NS};
    uint64_t sum = 0;
    pthread_barrier_wait(&bursts->barrier);
    if (share->index == 0) clock_pauses();
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
    for (uint32_t i = 0; i < 100; i++) {
        struct held held = held_new(64, i);
        sum += held_free(&held);
    }
    pthread_barrier_wait(&bursts->barrier);
    if (share->index == 0) bursts->idle_kb += status_kb("VmRSS:") / BURSTS;
    if (share->index == 0) clock_resumes();
    pthread_barrier_wait(&bursts->barrier);
    return sum;
}

static uint64_t burst_and_idle(const struct share *share) {
    struct held *held = table_new(share->live, sizeof *held);
    uint32_t *order = table_new(share->live, sizeof *order);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (size_t i = 0; i < share->live; i++) order[i] = (uint32_t)i;
    shuffle(order, share->live, &rng);
    for (uint64_t burst = 0; burst < BURSTS; burst++) {
        uint64_t ops = share->ops / BURSTS + (burst < share->ops % BURSTS);
        /* Each burst is ops long but has at most `live` blocks at once. */
        while (ops > 0) {
            size_t count = ops < share->live ? (size_t)ops : share->live;
            for (size_t i = 0; i < count; i++)
                held[i] = held_new(rng_between(&rng, 16, share->size), (uint32_t)i);
            for (size_t i = 0; i < share->live; i++) sum += held_free(&held[order[i]]);
            ops -= count;
        }
        sum += idle(share);
    }
    table_drop(order, share->live, sizeof *order);
    table_drop(held, share->live, sizeof *held);
    return sum;
}

static uint64_t bursts(const struct plan *plan) {
    struct bursts bursts = {.idle_kb = 0};
    char line[96];
    pthread_barrier_init(&bursts.barrier, NULL, plan->threads);
    uint64_t sum = on_threads(plan, burst_and_idle, &bursts);
    figure(line, snprintf(line, sizeof line, "%s idle_rss_kb %llu\n", plan->name,
                          (unsigned long long)bursts.idle_kb));
    return sum;
}

/* ---- small-program: nearly nothing ---- */

static uint64_t small_program(const struct share *share) {
    struct held held[64] = {{0}};
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        struct held *slot = &held[rng_below(&rng, 64)];
        sum += held_free(slot);
        *slot = held_new(rng_between(&rng, 16, share->size), (uint32_t)i);
    }
    return sum + held_free_all(held, 64);
}

#define LIFETIME(NAME, T, SIZE_MIN, SIZE, LIVE, OPS, BODY, ABOUT)                                        \
    {.name = NAME, .group = "lifetime", .threads = T, .threads_min = 1, .size_min = SIZE_MIN,            \
     .size = SIZE, .live = LIVE, .ops = OPS, BODY, .about = ABOUT}

const struct pattern lifetime_patterns[] = {
    LIFETIME("idle-threads", 1000, 16, 64, 1001, 1000, .whole = idle_threads, "threads that allocated one block and wait"),
    LIFETIME("phase-change", 1, 64, 64, 2 << 20, 14000000, .each = phase_change, "block sizes grow fourfold after each peak"),
    LIFETIME("long-among-short", 1, 16, 512, 250000, 40000000, .each = long_among_short, "one block in 64 lives long"),
    LIFETIME("sparse-among-small", 2, 16, 1024, 400000, 8000000, .each = sparse_among_small, "buffers of up to 2,048 times size, little used, among small blocks"),
    LIFETIME("bursts", 2, 16, 512, 200000, 4000000, .whole = bursts, "a heap filled and freed, then idle, 20 times"),
    LIFETIME("jsonl", 2, 0, 0, 16000, 500000, .whole = jsonl, "JSON lines parsed on workers"),
    LIFETIME("small-program", 1, 16, 256, 64, 100, .each = small_program, "a program that hardly allocates"),
    {0},
};
