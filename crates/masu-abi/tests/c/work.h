/* Shared by the test programs: work that touches all kinds of blocks and checks what it wrote. */
#ifndef WORK_H
#define WORK_H

#include "served.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* Mostly small, some up to 40 KB, a few up to 2 MiB. */
static inline size_t random_size(unsigned *seed)
{
    *seed = *seed * 1103515245 + 12345;
    unsigned draw = *seed >> 8;
    if (draw % 500 == 0)
        return draw % (2 * MIB);
    return draw % 16 == 0 ? draw % 40000 : draw % 600;
}

/* Allocates, frees and checks `steps` times, among 64 live blocks. */
static inline void work(unsigned seed, int steps)
{
    enum { LIVE = 64 };
    struct {
        unsigned char *start;
        size_t size;
        unsigned char mark;
    } live[LIVE] = {0};
    for (int step = 0; step < steps; step++) {
        unsigned i = (seed >> 4) % LIVE;
        if (live[i].start && live[i].size) {
            CHECK(live[i].start[0] == live[i].mark);
            CHECK(live[i].start[live[i].size - 1] == live[i].mark);
        }
        free(live[i].start);
        size_t size = random_size(&seed);
        live[i].start = malloc(size);
        CHECK(live[i].start);
        live[i].size = size;
        live[i].mark = (unsigned char)step;
        if (size)
            live[i].start[0] = live[i].start[size - 1] = (unsigned char)step;
    }
    for (int i = 0; i < LIVE; i++)
        free(live[i].start);
}

/* `work` as a thread. */
static inline void *work_once(void *argument)
{
    work((unsigned)(uintptr_t)argument, 100);
    return NULL;
}

/* Blocks of all sizes, grown, shrunk, aligned, cleared, looked at, and freed; as a thread. */
static inline void *exercise(void *argument)
{
    enum { LIVE = 64 };
    unsigned state = (unsigned)(uintptr_t)argument;
    unsigned char *blocks[LIVE] = {0};
    size_t lengths[LIVE] = {0};
    for (int step = 0; step < 20000; step++) {
        size_t size = 1 + random_size(&state), align = (size_t)16 << (state >> 22 & 7);
        unsigned at = state >> 16 & (LIVE - 1);
        for (size_t i = 0; i < lengths[at]; i += 97)
            CHECK(blocks[at][i] == at);
        if (blocks[at] && state >> 30 & 1) {
            blocks[at] = realloc(blocks[at], size);
            for (size_t i = 0; i < size && i < lengths[at]; i += 97)
                CHECK(blocks[at][i] == at);
        } else {
            free(blocks[at]);
            switch (state >> 26 & 3) {
            case 0:
                blocks[at] = calloc(1, size);
                for (size_t i = 0; i < size; i++)
                    CHECK(blocks[at][i] == 0);
                break;
            case 1:
                blocks[at] = aligned_alloc(align, size);
                CHECK((uintptr_t)blocks[at] % align == 0);
                break;
            default:
                blocks[at] = malloc(size);
            }
        }
        CHECK(blocks[at] && (uintptr_t)blocks[at] % 16 == 0 && malloc_usable_size(blocks[at]) >= size);
        memset(blocks[at], (int)at, malloc_usable_size(blocks[at]));
        lengths[at] = size;
    }
    for (int at = 0; at < LIVE; at++)
        free(blocks[at]);
    return NULL;
}

/* Ends `work_until_stopped`. */
__attribute__((unused)) static atomic_int stop;

/* `work` again and again, as a thread. */
static inline void *work_until_stopped(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    while (!stop)
        work(seed++, 200);
    return NULL;
}

/* Runs a thread to its end; returns what the thread returns. */
static inline void *run_thread(void *(*body)(void *), uintptr_t argument)
{
    pthread_t thread;
    void *result;
    CHECK(pthread_create(&thread, NULL, body, (void *)argument) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

/* Threads that a group starts together; the argument of each is its number, from 1. */
enum { WORKERS_MAX = 8 };
__attribute__((unused)) static pthread_t workers[WORKERS_MAX];

static inline void start_workers(size_t count, void *(*body)(void *))
{
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_create(&workers[i], NULL, body, (void *)(i + 1)) == 0);
}

static inline void join_workers(size_t count)
{
    stop = 1;
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_join(workers[i], NULL) == 0);
}

/* Waits for a child, which must succeed. */
static inline void expect_success(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Runs statements in a forked process, which must succeed, and ends it after a minute: a lock that nobody gives
 * back would hold it for ever. */
#define IN_CHILD(...)          \
    do {                       \
        pid_t child = fork();  \
        if (child == 0) {      \
            alarm(60);         \
            __VA_ARGS__;       \
            _exit(0);          \
        }                      \
        expect_success(child); \
    } while (0)

/* Blocks of one size, each with the one before. */
struct link {
    struct link *next;
};

/* Allocates and writes blocks of a size until they are `most` bytes or there are no more; returns their number. */
static inline size_t allocate_links(struct link **last, size_t size, size_t most)
{
    struct link *link;
    size_t count = 0;
    for (*last = NULL; count * size < most && (link = malloc(size)); count++) {
        memset(link, 0x77, size);
        link->next = *last;
        *last = link;
    }
    return count;
}

static inline void free_links(struct link *last)
{
    while (last) {
        struct link *next = last->next;
        free(last);
        last = next;
    }
}

/* Resident memory in bytes. */
static inline size_t resident(void)
{
    size_t total, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%zu %zu", &total, &pages) == 2);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

#endif
