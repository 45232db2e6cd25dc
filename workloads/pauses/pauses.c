/* pauses.c: how long single calls of malloc and free take, not how long all of them do together. Threads
 * allocate small blocks and write to them, then free them in random order, each thread any of the blocks. Each
 * call is timed by the CPU time of its thread, so what others run in between does not count.
 *
 * The row "nothing" is the same measurement without a call between its two looks at the clock, repeated for as long
 * as all frees of the thread took together: what the machine itself adds, interrupts above all. A figure no higher
 * than its says nothing about a malloc. On a machine in use the worst call is most often one in which the thread was
 * switched out: the time of those counts what the switch and the host cost. "whole" is the worst of the others, whose
 * time by the clock is their CPU time. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../patterns/run.h"

const char program[] = "pauses";
const char arguments_told[] =
    "Usage: pauses [--threads T] [--blocks N] [--size-min BYTES] [--size-max BYTES] [--rounds N] [--seed N]\n";

enum { NOTHING, MALLOC, FREE, KINDS };

static const char *const names[KINDS] = {"nothing", "malloc", "free"};

/* Times in nanoseconds: each doubling has STEPS buckets. */
enum { STEPS_LOG = 5, STEPS = 1 << STEPS_LOG, BUCKETS = 40 * STEPS };

struct times {
    uint64_t counts[BUCKETS];
    uint64_t calls, sum, worst, worst_whole, over_100us, over_1ms;
};

static uint64_t threads = 1, blocks_total = 600000, size_min = 16, size_max = 2048, rounds = 2, seed = 1;
static char **blocks;
static uint32_t *order;
static pthread_barrier_t barrier;

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A moment by both clocks, the CPU's last where a call begins and first where it ends. */
struct moment {
    uint64_t wall, cpu;
};

static struct moment begin(void) {
    uint64_t wall = now_ns();
    return (struct moment){wall, cpu_ns()};
}

static uint64_t draw(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t bucket_of(uint64_t ns) {
    if (ns < STEPS) return (size_t)ns;
    unsigned doubling = 63 - (unsigned)__builtin_clzll(ns) - STEPS_LOG;
    size_t bucket = ((size_t)doubling + 1) * STEPS + (size_t)((ns >> doubling) - STEPS);
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* The least time that falls into a bucket. */
static uint64_t least_of(size_t bucket) {
    if (bucket < STEPS) return bucket;
    return (STEPS + bucket % STEPS) << (bucket / STEPS - 1);
}

/* A call that ends now. */
static void note(struct times *times, struct moment start) {
    uint64_t ns = cpu_ns() - start.cpu, apart = now_ns() - start.wall - ns;
    times->counts[bucket_of(ns)]++;
    times->calls++;
    times->sum += ns;
    if (ns > times->worst) times->worst = ns;
    if (apart < 20000 && ns > times->worst_whole) times->worst_whole = ns;
    times->over_100us += ns > 100000;
    times->over_1ms += ns > 1000000;
}

struct worker {
    uint64_t index;
    pthread_t thread;
    struct times *times;
};

static void *work(void *argument) {
    struct worker *worker = argument;
    uint64_t state = (seed * 1000 + worker->index + 1) * 0x9e3779b97f4a7c15u;
    uint64_t first = blocks_total * worker->index / threads;
    uint64_t end = blocks_total * (worker->index + 1) / threads;
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = first; i < end; i++) {
            size_t size = size_min + draw(&state) % (size_max - size_min + 1);
            struct moment start = begin();
            char *block = malloc(size);
            note(&worker->times[MALLOC], start);
            if (!block) cannot("allocate: malloc returned NULL");
            block[0] = block[size - 1] = 1;
            blocks[i] = block;
        }
        pthread_barrier_wait(&barrier);
        for (uint64_t i = first; i < end; i++) {
            char *block = blocks[order[i]];
            struct moment start = begin();
            free(block);
            note(&worker->times[FREE], start);
        }
        pthread_barrier_wait(&barrier);
    }
    while (worker->times[NOTHING].sum < worker->times[FREE].sum) {
        struct moment start = begin();
        note(&worker->times[NOTHING], start);
    }
    return NULL;
}

static uint64_t quantile(const struct times *times, double part) {
    uint64_t wanted = (uint64_t)((double)times->calls * part), seen = 0;
    size_t bucket = 0;
    while (bucket < BUCKETS - 1 && (seen += times->counts[bucket]) <= wanted) bucket++;
    return least_of(bucket);
}

static void show(const char *name, const struct times *times) {
    print(STDOUT_FILENO, "%-8s p50 %.2f p99 %.2f p99.99 %.1f worst %.1f whole %.1f over_100us %llu over_1ms %llu\n", name,
          (double)quantile(times, 0.5) / 1e3, (double)quantile(times, 0.99) / 1e3,
          (double)quantile(times, 0.9999) / 1e3, (double)times->worst / 1e3, (double)times->worst_whole / 1e3,
          (unsigned long long)times->over_100us, (unsigned long long)times->over_1ms);
}

static void add(struct times *sum, const struct times *times) {
    for (size_t bucket = 0; bucket < BUCKETS; bucket++) sum->counts[bucket] += times->counts[bucket];
    sum->calls += times->calls;
    if (times->worst > sum->worst) sum->worst = times->worst;
    if (times->worst_whole > sum->worst_whole) sum->worst_whole = times->worst_whole;
    sum->over_100us += times->over_100us;
    sum->over_1ms += times->over_1ms;
}

static void read_arguments(char **arguments) {
    static const struct {
        const char *name;
        uint64_t *value, least, most;
    } known[] = {{"--threads", &threads, 1, 256},        {"--blocks", &blocks_total, 1, 100000000},
                 {"--size-min", &size_min, 1, 1 << 30},  {"--size-max", &size_max, 1, 1 << 30},
                 {"--rounds", &rounds, 1, 1000},         {"--seed", &seed, 1, UINT32_MAX}};
    for (; *arguments; arguments += 2) {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(arguments[0], known[i].name) != 0) i++;
        if (i == sizeof known / sizeof *known) usage("'%s' is not an option", arguments[0]);
        *known[i].value = number(arguments[0], arguments[1], known[i].least, known[i].most);
    }
    if (size_min > size_max) usage("--size-min is more than --size-max");
}

int main(int count, char **arguments) {
    (void)count;
    read_arguments(arguments + 1);
    blocks = table_new(blocks_total, sizeof *blocks);
    order = table_new(blocks_total, sizeof *order);
    struct worker *workers = table_new(threads, sizeof *workers);
    struct times *times = table_new((threads + 1) * KINDS, sizeof *times), *sums = times + threads * KINDS;
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (uint64_t i = 0; i < blocks_total; i++) order[i] = (uint32_t)i;
    for (uint64_t i = blocks_total; i > 1; i--) {
        uint64_t other = draw(&state) % i;
        uint32_t swap = order[i - 1];
        order[i - 1] = order[other];
        order[other] = swap;
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (uint64_t i = 0; i < threads; i++) workers[i] = (struct worker){i, 0, times + i * KINDS};
    /* One thread is the main thread: a program without threads stays one. */
    if (threads == 1) {
        work(&workers[0]);
    } else {
        for (uint64_t i = 0; i < threads; i++) workers[i].thread = start_thread_with(0, work, &workers[i]);
        for (uint64_t i = 0; i < threads; i++) join_thread(workers[i].thread);
    }
    for (uint64_t i = 0; i < threads * KINDS; i++) add(&sums[i % KINDS], &times[i]);
    for (int kind = 0; kind < KINDS; kind++) show(names[kind], &sums[kind]);
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    print(STDOUT_FILENO, "cpu_ms %.0f rss_peak_kb %llu rss_kb %llu\n", (double)cpu.tv_sec * 1e3 + (double)cpu.tv_nsec / 1e6,
          (unsigned long long)status_kb("VmHWM:"), (unsigned long long)status_kb("VmRSS:"));
    return 0;
}
