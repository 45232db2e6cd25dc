/* main.c: runs one workload on its threads: warms up, counts, says what was used. */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "scale.h"

const char program[] = "scale";
const char arguments_told[] =
    "Usage: scale WORKLOAD [--threads T] [--start N] [--ops N] [--seed N] [--marks] [--pauses]\n"
    "       scale --list\n"
    "  --start N  operations of each thread before those that are counted (500)\n"
    "  --ops N    operations of each thread that are counted (2000)\n"
    "  --marks    say to the plugin of workloads/scale/coherence what begins and ends\n"
    "  --pauses   time every call\n";

enum { THREADS_MAX_HERE = 256, ASLEEP_NS = 50000, STACK = 256 << 10 };

struct ring *rings;
struct place *places;

static const struct workload *workload;
static unsigned threads = 1;
static uint64_t seed = 1, ops_start = 500, ops_steady = 2000;
static bool marks, pauses;
/* Threads that came to a meeting, ever. */
static struct place *meeting;

static void mark(uint64_t verb, uint64_t first, uint64_t second, const char *third) {
    if (marks) syscall(MARK_CALL, verb, first, second, third);
}

static struct used used_by_now(void) {
    struct timespec cpu;
    struct rusage usage;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    getrusage(RUSAGE_THREAD, &usage);
    return (struct used){(uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec, (uint64_t)usage.ru_nvcsw};
}

void use_begins(struct worker *worker) {
    if (marks) return;
    worker->since = used_by_now();
    worker->sleeps_seen = worker->since.switches;
}

void use_ends(struct worker *worker) {
    if (marks) return;
    struct used now = used_by_now();
    worker->used.cpu_ns += now.cpu_ns - worker->since.cpu_ns;
    worker->used.switches += now.switches - worker->since.switches;
}

void wait_begins(struct worker *worker) {
    mark(MARK_WAITS, 1, 0, NULL);
    use_ends(worker);
}

void wait_ends(struct worker *worker) {
    use_begins(worker);
    mark(MARK_WAITS, 0, 0, NULL);
}

void wait_a_little(void) {
    if (marks) {
        sched_yield();
    } else {
        /* Many threads that look every 50 us leave no time for those that work. */
        struct timespec span = {0, 25000L * threads};
        nanosleep(&span, NULL);
    }
}

static void call_took(struct worker *worker, uint64_t ns) {
    if (ns > worker->pause_ns) worker->pause_ns = ns;
    if (ns < ASLEEP_NS) return;
    uint64_t sleeps = used_by_now().switches;
    if (sleeps != worker->sleeps_seen && ns > worker->pause_asleep_ns) worker->pause_asleep_ns = ns;
    worker->sleeps_seen = sleeps;
}

static struct sealed *seal(struct worker *worker, struct sealed *block, size_t size) {
    if (!block) cannot("allocate: malloc returned NULL");
    block->label = (uint64_t)worker->stamp << 32 | size;
    block->next = NULL;
    set_word_at(block, size - 8, mix(block->label));
    return block;
}

struct sealed *block_new(struct worker *worker, size_t size) {
    uint64_t before = pauses ? now_ns() : 0;
    struct sealed *block = malloc(size);
    if (pauses) call_took(worker, now_ns() - before);
    keep(block);
    return seal(worker, block, size);
}

static size_t check(struct sealed *block) {
    keep(block);
    size_t size = (uint32_t)block->label;
    if (size < SEALED_MIN || word_at(block, size - 8) != mix(block->label)) contents_wrong(block, size);
    return size;
}

struct sealed *block_grown(struct worker *worker, struct sealed *block, size_t size) {
    check(block);
    uint64_t before = pauses ? now_ns() : 0;
    block = realloc(block, size);
    if (pauses) call_took(worker, now_ns() - before);
    return seal(worker, block, size);
}

void block_free(struct worker *worker, struct sealed *block) {
    check(block);
    /* A thread that was given the same block finds no label. */
    block->label = 0;
    keep(block);
    uint64_t before = pauses ? now_ns() : 0;
    free(block);
    if (pauses) call_took(worker, now_ns() - before);
}

pthread_t start_worker(void *(*body)(void *), void *argument) { return start_thread_with(STACK, body, argument); }

/* Waits until all threads are here, for the n-th time. */
static void meet(uint64_t number) {
    _Atomic uintptr_t *here = (_Atomic uintptr_t *)&meeting->block;
    atomic_fetch_add(here, 1);
    while (atomic_load(here) < number * threads) wait_a_little();
}

static void phase(struct worker *worker, uint64_t which, uint64_t operations) {
    worker->operations = 0;
    worker->used = (struct used){0, 0};
    worker->pause_ns = worker->pause_asleep_ns = 0;
    use_begins(worker);
    mark(MARK_PHASE, which, 0, NULL);
    worker->operations = workload->run(worker, operations);
    mark(MARK_OPERATIONS, worker->operations, 0, NULL);
    mark(MARK_PHASE, PHASE_NONE, 0, NULL);
    use_ends(worker);
}

static uint64_t of_workload(uint64_t operations) {
    return operations / workload->divisor > 0 ? operations / workload->divisor : 1;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    meet(1);
    phase(worker, PHASE_START, of_workload(ops_start));
    meet(2);
    phase(worker, PHASE_STEADY, of_workload(ops_steady));
    meet(3);
    worker_clear(worker);
    return NULL;
}

void worker_clear(struct worker *worker) {
    for (unsigned i = 0; i < KEPT; i++)
        if (worker->kept[i]) block_free(worker, worker->kept[i]);
    while (worker->list) {
        struct sealed *next = worker->list->next;
        block_free(worker, worker->list);
        worker->list = next;
    }
    for (unsigned i = 0; i < EXCHANGED_A_THREAD; i++) {
        struct sealed *left = places[worker->index * EXCHANGED_A_THREAD + i].block;
        if (left) block_free(worker, left);
    }
}

static void list(void) {
    for (const struct workload *one = workloads; one->name; one++)
        print(STDOUT_FILENO, "%-10s %s\n", one->name, one->about);
}

static void read_arguments(char **arguments) {
    for (workload = workloads; workload->name; workload++)
        if (strcmp(workload->name, *arguments) == 0) break;
    if (!workload->name) usage("there is no workload '%s'", *arguments);
    running = workload->name;
    for (arguments++; *arguments; arguments++) {
        const char *option = *arguments;
        if (strcmp(option, "--marks") == 0) {
            marks = true;
            continue;
        }
        if (strcmp(option, "--pauses") == 0) {
            pauses = true;
            continue;
        }
        const char *text = *++arguments;
        if (strcmp(option, "--threads") == 0) threads = (unsigned)number(option, text, 1, THREADS_MAX_HERE);
        else if (strcmp(option, "--start") == 0) ops_start = number(option, text, 1, 1u << 30);
        else if (strcmp(option, "--ops") == 0) ops_steady = number(option, text, 1, 1u << 30);
        else if (strcmp(option, "--seed") == 0) seed = number(option, text, 0, UINT32_MAX);
        else usage("'%s' is no option", option);
        if (!text) break;
    }
}

static void *named_table(const char *name, size_t count, size_t size) {
    void *table = table_new(count, size);
    mark(MARK_NAME, (uintptr_t)table, (uintptr_t)table + count * size, name);
    return table;
}

static void say(const struct worker *workers) {
    struct used used = {0, 0};
    uint64_t operations = 0, pause = 0, asleep = 0;
    for (unsigned i = 0; i < threads; i++) {
        operations += workers[i].operations;
        used.cpu_ns += workers[i].used.cpu_ns;
        used.switches += workers[i].used.switches;
        if (workers[i].pause_ns > pause) pause = workers[i].pause_ns;
        if (workers[i].pause_asleep_ns > asleep) asleep = workers[i].pause_asleep_ns;
    }
    print(STDOUT_FILENO, "%s threads %u operations %llu", workload->name, threads, (unsigned long long)operations);
    if (!marks)
        print(STDOUT_FILENO, " cpu_ns %llu switches %llu pause_ns %llu pause_asleep_ns %llu",
              (unsigned long long)used.cpu_ns, (unsigned long long)used.switches, (unsigned long long)pause,
              (unsigned long long)asleep);
    print(STDOUT_FILENO, "\n");
}

int main(int count, char **arguments) {
    extern const char __executable_start, etext;
    if (count < 2) usage("which workload?");
    if (strcmp(arguments[1], "--list") == 0) {
        list();
        return 0;
    }
    read_arguments(arguments + 1);
    mark(MARK_CODE, (uintptr_t)&__executable_start, (uintptr_t)&etext, NULL);
    struct worker *workers = named_table("the program's threads", threads, sizeof *workers);
    rings = named_table("the program's rings", threads, sizeof *rings);
    places = named_table("the program's exchange", (size_t)threads * EXCHANGED_A_THREAD, sizeof *places);
    meeting = named_table("the program's meeting", 1, sizeof *meeting);
    for (unsigned i = 0; i < threads; i++) {
        workers[i].index = i;
        workers[i].threads = threads;
        workers[i].stamp = i + 1;
        workers[i].rng = rng_new(mix(seed) + i);
        workers[i].thread = start_worker(work, &workers[i]);
    }
    for (unsigned i = 0; i < threads; i++) join_thread(workers[i].thread);
    say(workers);
    return 0;
}
