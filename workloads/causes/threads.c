/* threads.c: causes that lie in how threads share memory and work. */
#include <malloc.h>
#include <sched.h>
#include <stdatomic.h>

#include "cause.h"

/* ---- arena-lock: threads that all allocate from one arena, in sizes that no thread caches ---- */

#define SLOTS 64
/* glibc's thread caches end at 1,032 bytes: each of these requests takes the arena's lock. */
#define UNCACHED_MIN ((size_t)1100)

static uint64_t replace_blocks(const struct work *work, unsigned index) {
    struct held held[SLOTS] = {{0}};
    struct rng rng = rng_new(index);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < work->rounds / work->threads; i++) {
        struct held *slot = &held[rng_below(&rng, SLOTS)];
        sum += held_free(slot);
        *slot = held_new(rng_between(&rng, UNCACHED_MIN, work->size), (uint32_t)i);
    }
    return sum + held_free_all(held, SLOTS);
}

static uint64_t arena_lock(const struct work *work) {
    /* What MALLOC_ARENA_MAX=1 does, which is often advised against large heaps. */
    mallopt(M_ARENA_MAX, 1);
    return on_each(work, replace_blocks);
}

/* ---- thread-per-task: a thread for each small chunk of numbers ---- */

struct task {
    int64_t *chunk;
    int64_t first;
    size_t count;
    int64_t result;
    pthread_t thread;
};

static void *run_task(void *argument) {
    struct task *task = argument;
    int64_t sum = 0;
    for (size_t i = 0; i < task->count; i++) sum += task->chunk[i];
    task->result = sum * 100 / 10 + 1;
    free(task->chunk);
    return NULL;
}

static void start_task(struct task *task, int64_t first, size_t count) {
    *task = (struct task){take(count * sizeof(int64_t)), first, count, 0, 0};
    for (size_t i = 0; i < count; i++) task->chunk[i] = first + (int64_t)i;
    task->thread = start_thread(run_task, task);
}

static uint64_t end_task(struct task *task) {
    join_thread(task->thread);
    int64_t last = task->first + (int64_t)task->count - 1;
    int64_t expected = (task->first + last) * (int64_t)task->count / 2 * 100 / 10 + 1;
    if (task->result != expected) contents_wrong(task, task->count * sizeof(int64_t));
    return (uint64_t)expected;
}

static uint64_t thread_per_task(const struct work *work) {
    struct task *tasks = table_new(work->threads, sizeof *tasks);
    size_t count = work->size / sizeof(int64_t);
    uint64_t sum = 0;
    for (uint64_t done = 0; done < work->rounds;) {
        unsigned now = 0;
        for (; now < work->threads && done < work->rounds; now++, done++)
            start_task(&tasks[now], (int64_t)(done * count) + 1, count);
        for (unsigned i = 0; i < now; i++) sum += end_task(&tasks[i]);
    }
    table_drop(tasks, work->threads, sizeof *tasks);
    return sum;
}

/* ---- producer-consumer: one thread allocates, another frees ---- */

#define PAIRS_MAX 32
/* Messages that are handed over at once: the queue should not be what is slow. */
#define BATCH 512
#define QUEUE_BATCHES 16
/* The smallest message: glibc frees blocks of up to 128 bytes without a lock. */
#define MESSAGE_MIN ((size_t)200)

static struct queue {
    _Alignas(64) pthread_mutex_t lock;
    pthread_cond_t changed;
    struct sealed *batches[QUEUE_BATCHES]; /* lists; an empty one says that no more will come */
    size_t put;
    size_t got;
} queues[PAIRS_MAX];

static void queue_put(struct queue *queue, struct sealed *batch) {
    pthread_mutex_lock(&queue->lock);
    while (queue->put - queue->got == QUEUE_BATCHES) pthread_cond_wait(&queue->changed, &queue->lock);
    queue->batches[queue->put++ % QUEUE_BATCHES] = batch;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static struct sealed *queue_get(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    while (queue->put == queue->got) pthread_cond_wait(&queue->changed, &queue->lock);
    struct sealed *batch = queue->batches[queue->got++ % QUEUE_BATCHES];
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return batch;
}

static uint64_t produce_or_consume(const struct work *work, unsigned index) {
    struct queue *queue = &queues[index / 2];
    uint64_t sum = 0;
    if (index % 2 == 1) {
        /* The first of each batch stays to the end, as something does in any program: else the heap is empty now
         * and then and goes back to the kernel, which is another cause. */
        struct sealed *kept = NULL;
        for (struct sealed *batch; (batch = queue_get(queue));) {
            struct sealed *next = batch->next;
            batch->next = kept;
            kept = batch;
            sum += sealed_free_list(next, work->size);
        }
        return sum + sealed_free_list(kept, work->size);
    }
    struct rng rng = rng_new(index);
    uint64_t batches = work->rounds / (work->threads / 2) / BATCH;
    for (uint64_t i = 0; i < batches; i++) {
        struct sealed *batch = NULL;
        for (uint32_t j = 0; j < BATCH; j++) {
            struct sealed *message = sealed_new(rng_between(&rng, MESSAGE_MIN, work->size), j);
            message->next = batch;
            batch = message;
        }
        queue_put(queue, batch);
    }
    queue_put(queue, NULL);
    return sum;
}

static uint64_t producer_consumer(const struct work *work) {
    struct work of_pairs = *work;
    of_pairs.threads -= work->threads % 2;
    for (unsigned i = 0; i < of_pairs.threads / 2; i++) {
        pthread_mutex_init(&queues[i].lock, NULL);
        pthread_cond_init(&queues[i].changed, NULL);
    }
    return on_each(&of_pairs, produce_or_consume);
}

/* ---- serial-phase: one thread prepares for long what many work on briefly ---- */

static struct {
    uint64_t *words;
    size_t count;
} table;

static uint64_t sum_share(const struct work *work, unsigned index) {
    size_t begin = table.count * index / work->threads;
    size_t end = table.count * (index + 1) / work->threads;
    uint64_t sum = 0;
    for (size_t i = begin; i < end; i++) {
        uint64_t word = table.words[i];
        /* As many turns as making it took, but several threads are at it. */
        for (uint64_t turn = 0; turn < work->rounds; turn++) word = mix(word);
        keep(&word);
        sum += table.words[i];
    }
    return sum;
}

static uint64_t serial_phase(const struct work *work) {
    table.count = work->size / sizeof(uint64_t);
    table.words = take(table.count * sizeof(uint64_t));
    uint64_t word = 1, written = 0;
    for (size_t i = 0; i < table.count; i++) {
        for (uint64_t turn = 0; turn < work->rounds; turn++) word = mix(word + i);
        table.words[i] = word;
        written += word;
    }
    uint64_t sum = on_each(work, sum_share);
    if (sum != written) contents_wrong(table.words, work->size);
    free(table.words);
    return sum;
}

#define MIB ((size_t)1 << 20)

/* ---- spinning: threads that wait for their turn by asking for it over and over ---- */

static atomic_uint whose_turn;

static uint64_t take_turns(const struct work *work, unsigned index) {
    uint64_t sum = index;
    for (uint64_t round = 0; round < work->rounds; round++) {
        while (atomic_load(&whose_turn) % work->threads != index) sched_yield();
        for (size_t i = 0; i < work->size; i++) sum = mix(sum);
        atomic_fetch_add(&whose_turn, 1);
    }
    return sum;
}

static uint64_t spinning(const struct work *work) {
    atomic_store(&whose_turn, 0);
    return on_each(work, take_turns);
}

const struct cause thread_causes[] = {
    {"arena-lock", 2, 8, 64, 2000, 4000, 64 << 10, "bytes", 10000000, arena_lock,
     "threads that share one arena wait for its lock"},
    {"thread-per-task", 1, 4, 64, 8, 800, 1 << 20, "bytes", 30000, thread_per_task,
     "a thread started for a microsecond of work"},
    {"producer-consumer", 2, 2, 2 * PAIRS_MAX, 256, 600, 4096, "bytes", 8000000, producer_consumer,
     "one thread allocates what another frees"},
    {"serial-phase", 2, 4, 64, 8, 16 * MIB, 400 * MIB, "bytes", 150, serial_phase,
     "one thread works for long before all do"},
    {"spinning", 2, 4, 64, 1, 20000, 1000000, "steps", 4000, spinning,
     "threads that wait for their turn without sleeping"},
    {0},
};
