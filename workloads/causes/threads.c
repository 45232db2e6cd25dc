/* threads.c: causes that lie in how threads share memory and work. */
#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>

#include "cause.h"

/* ---- arena-lock: threads that all allocate from one arena, in sizes that no thread caches ---- */

#define SLOTS 64
/* glibc's thread caches end at 1,032 bytes: each of these requests takes the arena's lock. */
#define UNCACHED_MIN ((size_t)1100)
#define UNCACHED_MAX ((size_t)4000)
#define LOCK_THREADS 8

static uint64_t replace_blocks(unsigned index) {
    struct held held[SLOTS] = {{0}};
    struct rng rng = rng_new(index);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 10000000 / LOCK_THREADS; i++) {
        struct held *slot = &held[rng_below(&rng, SLOTS)];
        sum += held_free(slot);
        *slot = held_new(rng_between(&rng, UNCACHED_MIN, UNCACHED_MAX), (uint32_t)i);
    }
    return sum + held_free_all(held, SLOTS);
}

static uint64_t arena_lock(void) {
    /* What MALLOC_ARENA_MAX=1 does, which is often advised against large heaps. */
    mallopt(M_ARENA_MAX, 1);
    return on_each(LOCK_THREADS, replace_blocks);
}

/* ---- thread-per-task: a thread for each small chunk of numbers ---- */

#define TASKS 30000
#define TASKS_AT_ONCE 4
#define CHUNK 100

struct task {
    int64_t *chunk;
    int64_t first;
    int64_t result;
    pthread_t thread;
};

static void *run_task(void *argument) {
    struct task *task = argument;
    int64_t sum = 0;
    for (size_t i = 0; i < CHUNK; i++) sum += task->chunk[i];
    task->result = sum * 100 / 10 + 1;
    free(task->chunk);
    return NULL;
}

static void start_task(struct task *task, int64_t first) {
    *task = (struct task){take(CHUNK * sizeof(int64_t)), first, 0, 0};
    for (size_t i = 0; i < CHUNK; i++) task->chunk[i] = first + (int64_t)i;
    task->thread = start_thread(run_task, task);
}

static uint64_t end_task(struct task *task) {
    join_thread(task->thread);
    int64_t last = task->first + CHUNK - 1;
    int64_t expected = (task->first + last) * CHUNK / 2 * 100 / 10 + 1;
    if (task->result != expected) contents_wrong(task, CHUNK * sizeof(int64_t));
    return (uint64_t)expected;
}

static uint64_t thread_per_task(void) {
    struct task tasks[TASKS_AT_ONCE];
    uint64_t sum = 0;
    for (int64_t done = 0; done < TASKS; done += TASKS_AT_ONCE) {
        for (int i = 0; i < TASKS_AT_ONCE; i++) start_task(&tasks[i], (done + i) * CHUNK + 1);
        for (int i = 0; i < TASKS_AT_ONCE; i++) sum += end_task(&tasks[i]);
    }
    return sum;
}

/* ---- producer-consumer: one thread allocates, another frees ---- */

/* Messages that are handed over at once: the queue should not be what is slow. */
#define BATCH 512
#define QUEUE_BATCHES 16
/* The smallest message: glibc frees blocks of up to 128 bytes without a lock. */
#define MESSAGE_MIN ((size_t)200)
#define MESSAGE_MAX ((size_t)600)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sealed *batches[QUEUE_BATCHES]; /* lists; an empty one says that no more will come */
    size_t put;
    size_t got;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void queue_put(struct sealed *batch) {
    pthread_mutex_lock(&queue.lock);
    while (queue.put - queue.got == QUEUE_BATCHES) pthread_cond_wait(&queue.changed, &queue.lock);
    queue.batches[queue.put++ % QUEUE_BATCHES] = batch;
    pthread_cond_signal(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
}

static struct sealed *queue_get(void) {
    pthread_mutex_lock(&queue.lock);
    while (queue.put == queue.got) pthread_cond_wait(&queue.changed, &queue.lock);
    struct sealed *batch = queue.batches[queue.got++ % QUEUE_BATCHES];
    pthread_cond_signal(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    return batch;
}

static uint64_t produce_or_consume(unsigned index) {
    uint64_t sum = 0;
    if (index == 1) {
        /* The first of each batch stays to the end, as something does in any program: else the heap is empty now
         * and then and goes back to the kernel, which is another cause. */
        struct sealed *kept = NULL;
        for (struct sealed *batch; (batch = queue_get());) {
            struct sealed *next = batch->next;
            batch->next = kept;
            kept = batch;
            sum += sealed_free_list(next, MESSAGE_MAX);
        }
        return sum + sealed_free_list(kept, MESSAGE_MAX);
    }
    struct rng rng = rng_new(index);
    for (int i = 0; i < 8000000 / BATCH; i++) {
        struct sealed *batch = NULL;
        for (uint32_t j = 0; j < BATCH; j++) {
            struct sealed *message = sealed_new(rng_between(&rng, MESSAGE_MIN, MESSAGE_MAX), j);
            message->next = batch;
            batch = message;
        }
        queue_put(batch);
    }
    queue_put(NULL);
    return sum;
}

static uint64_t producer_consumer(void) { return on_each(2, produce_or_consume); }

/* ---- serial-phase: one thread prepares for long what many work on briefly ---- */

#define WORDS ((size_t)2 << 20)
#define MIXED 150
#define SHARES 4

static uint64_t *words;

static uint64_t sum_share(unsigned index) {
    size_t begin = WORDS / SHARES * index;
    uint64_t sum = 0;
    for (size_t i = begin; i < begin + WORDS / SHARES; i++) {
        uint64_t word = words[i];
        /* As many turns as making it took, but several threads are at it. */
        for (uint64_t turn = 0; turn < MIXED; turn++) word = mix(word);
        keep(&word);
        sum += words[i];
    }
    return sum;
}

static uint64_t serial_phase(void) {
    words = take(WORDS * sizeof *words);
    uint64_t word = 1, written = 0;
    for (size_t i = 0; i < WORDS; i++) {
        for (uint64_t turn = 0; turn < MIXED; turn++) word = mix(word + i);
        words[i] = word;
        written += word;
    }
    uint64_t sum = on_each(SHARES, sum_share);
    if (sum != written) contents_wrong(words, WORDS * sizeof *words);
    free(words);
    return sum;
}

/* ---- spinning: threads that wait for their turn by asking for it over and over ---- */

#define SPINNERS 4

static atomic_uint whose_turn;

static uint64_t take_turns(unsigned index) {
    uint64_t sum = index;
    for (uint64_t round = 0; round < 4000; round++) {
        while (atomic_load(&whose_turn) % SPINNERS != index) sched_yield();
        for (int i = 0; i < 20000; i++) sum = mix(sum);
        atomic_fetch_add(&whose_turn, 1);
    }
    return sum;
}

static uint64_t spinning(void) { return on_each(SPINNERS, take_turns); }

const struct cause thread_causes[] = {
    {"arena-lock", arena_lock, "threads that share one arena wait for its lock"},
    {"thread-per-task", thread_per_task, "a thread started for a microsecond of work"},
    {"producer-consumer", producer_consumer, "one thread allocates what another frees"},
    {"serial-phase", serial_phase, "one thread works for long before all do"},
    {"spinning", spinning, "threads that wait for their turn without sleeping"},
    {0},
};
