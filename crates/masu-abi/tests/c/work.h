/* Shared by the test programs: work that touches all kinds of blocks and checks what it wrote. */
#ifndef WORK_H
#define WORK_H

#include "served.h"

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

/* Waits for a child, which must succeed. */
static inline void expect_success(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
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
