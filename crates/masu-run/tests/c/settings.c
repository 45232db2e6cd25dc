/* What a malloc did, by its own statistics where it keeps them and by the kernel's where not:
 * one scene of allocations, then lines of `figure value` for the tests of settings to judge.
 *
 * Relies on weak symbols: those of the malloc that runs are there, those of all others are null.
 * Nothing here allocates but the scene itself, so that the figures are the scene's. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MIB (1 << 20)

/* jemalloc's and gperftools' doors to their statistics. */
__attribute__((weak)) int mallctl(const char *, void *, size_t *, void *, size_t);
__attribute__((weak)) int MallocExtension_GetNumericProperty(const char *, size_t *);

static void say(const char *figure, unsigned long long value) {
    char line[128];
    int length = snprintf(line, sizeof line, "%s %llu\n", figure, value);
    if (write(1, line, (size_t)length) != length) _exit(3);
}

static unsigned long long rss(void) {
    unsigned long long size, resident;
    char text[128] = {0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || !fgets(text, sizeof text, file)) _exit(3);
    fclose(file);
    if (sscanf(text, "%llu %llu", &size, &resident) != 2) _exit(3);
    return resident * (unsigned long long)sysconf(_SC_PAGESIZE);
}

/* Bytes of the mapping called [heap], bytes of mappings that huge pages are advised for (hg) and
 * refused for (nh), and whether the process has refused them altogether. */
static void say_mappings(void) {
    static char line[4096];
    unsigned long long heap = 0, advised = 0, refused = 0, size = 0;
    FILE *file = fopen("/proc/self/smaps", "r");
    if (!file) _exit(3);
    while (fgets(line, sizeof line, file)) {
        unsigned long long start, end;
        if (sscanf(line, "%llx-%llx ", &start, &end) == 2) {
            size = end - start;
            if (strstr(line, "[heap]")) heap += size;
        } else if (strncmp(line, "VmFlags:", 8) == 0) {
            if (strstr(line, " hg")) advised += size;
            if (strstr(line, " nh")) refused += size;
        }
    }
    fclose(file);
    say("heap", heap);
    say("advised", advised);
    say("refused", refused);
    say("disabled", (unsigned long long)(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1));
}

static size_t number(const char *name) {
    size_t value = 0, length = sizeof value;
    uint64_t epoch = 1;
    mallctl("epoch", NULL, NULL, &epoch, sizeof epoch);
    return mallctl(name, &value, &length, NULL, 0) == 0 ? value : SIZE_MAX;
}

static unsigned number32(const char *name) {
    unsigned value = 0;
    size_t length = sizeof value;
    return mallctl(name, &value, &length, NULL, 0) == 0 ? value : UINT32_MAX;
}

/* The malloc's own figures; those of a malloc that keeps none are left out. */
static void say_statistics(void) {
    if (mallctl) {
        say("jemalloc.tcache_bytes", number("stats.arenas.4096.tcache_bytes"));
        say("jemalloc.background", number("stats.background_thread.num_threads"));
    } else if (MallocExtension_GetNumericProperty) {
        size_t value = 0;
        MallocExtension_GetNumericProperty("tcmalloc.current_total_thread_cache_bytes", &value);
        say("tcmalloc.cached", value);
        MallocExtension_GetNumericProperty("tcmalloc.pageheap_unmapped_bytes", &value);
        say("tcmalloc.unmapped", value);
    } else {
        struct mallinfo2 info = mallinfo2();
        say("mallinfo.mapped_blocks", info.hblks);
        say("mallinfo.used", info.uordblks);
        say("mallinfo.fastbin", info.fsmblks);
    }
}

/* `count` blocks of `size` bytes, all written to, then freed, the last one first. */
static void come_and_go(size_t count, size_t size) {
    static char *blocks[1 << 16];
    for (size_t index = 0; index < count; index++) {
        blocks[index] = malloc(size);
        if (!blocks[index]) _exit(3);
        memset(blocks[index], 1, size);
    }
    for (size_t index = count; index-- > 0;) free(blocks[index]);
}

static void *volatile kept;

static void one(void) {
    kept = malloc(100);
}

/* 64 MiB in blocks that no malloc maps one by one, all freed: how much stays resident? */
static void trim(void) {
    kept = malloc(100);
    unsigned long long before = rss();
    come_and_go(1024, 64 << 10);
    unsigned long long after = rss();
    say("resident", after > before ? after - before : 0);
}

/* Blocks of 1 MiB that stay. */
static void large(void) {
    static char *blocks[4];
    for (int index = 0; index < 4; index++) {
        blocks[index] = malloc(MIB);
        blocks[index][0] = 1;
    }
    kept = blocks[0];
}

/* 64 MiB that stay and are written to. */
static void huge(void) {
    for (int index = 0; index < 1024; index++) {
        char *block = malloc(64 << 10);
        memset(block, 1, 64 << 10);
        kept = block;
    }
}

/* Half of 512 blocks of 1 MiB come and go, so that free ones never lie side by side: 4 GiB are freed
 * in all, none of them written to. */
static void churn(void) {
    static char *blocks[512];
    for (int round = 0; round < 16; round++) {
        for (int index = 0; index < 512; index++)
            if (!blocks[index]) blocks[index] = malloc(MIB);
        for (int index = 0; index < 512; index += 2) {
            free(blocks[index]);
            blocks[index] = NULL;
        }
    }
}

/* How many of the blocks that this thread freed last come back first, the very last one before all
 * others? Where a malloc keeps none, it hands them out in the order of their addresses again. */
static void reuse(void) {
    enum { COUNT = 4096, ROUNDS = 20 };
    static char *blocks[COUNT];
    for (int round = 0; round < ROUNDS; round++) {
        for (int index = 0; index < COUNT; index++) blocks[index] = malloc(64);
        for (int index = 0; index < COUNT; index++) free(blocks[index]);
    }
    unsigned long long run = 0;
    while (run < COUNT && malloc(64) == blocks[COUNT - 1 - run]) run++;
    say("reused", run * 64);
}

/* Small blocks that go to whatever keeps them for the next malloc. */
static void cache(void) {
    come_and_go(4096, 64);
}

#define THREADS 8
static pthread_barrier_t together;
static unsigned arena_of[THREADS];

static void *worker(void *index) {
    /* More than others may have left over. */
    for (int count = 0; count < 5000; count++) *(char *)malloc(64) = 1;
    arena_of[(uintptr_t)index] = mallctl ? number32("thread.arena") : 0;
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    return NULL;
}

/* Threads that all allocate while the others are there. */
static void threads(void) {
    pthread_t all[THREADS];
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (uintptr_t index = 0; index < THREADS; index++)
        pthread_create(&all[index], NULL, worker, (void *)index);
    pthread_barrier_wait(&together);
    if (mallctl) {
        unsigned long long seen = 0;
        for (int index = 0; index < THREADS; index++) seen |= 1ULL << (arena_of[index] & 63);
        say("arenas", (unsigned long long)__builtin_popcountll(seen));
    } else {
        static char text[1 << 16];
        FILE *file = fmemopen(text, sizeof text - 1, "w");
        unsigned long long count = 0;
        if (!file || malloc_info(0, file) != 0) _exit(3);
        fclose(file);
        for (char *at = text; (at = strstr(at, "<heap nr=")) != NULL; at++) count++;
        const char *shards = strstr(text, "<shards count=\"");
        if (shards) count = strtoull(shards + strlen("<shards count=\""), NULL, 10);
        say("arenas", count);
    }
    pthread_barrier_wait(&together);
    for (int index = 0; index < THREADS; index++) pthread_join(all[index], NULL);
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*act)(void);
    } scenes[] = {{"one", one},   {"trim", trim},   {"large", large},
                  {"huge", huge}, {"churn", churn}, {"reuse", reuse}, {"cache", cache}, {"threads", threads}};
    for (size_t index = 0; count == 2 && index < sizeof scenes / sizeof *scenes; index++) {
        if (strcmp(words[1], scenes[index].name) == 0) {
            alarm(120); /* A scene that stands still fails its test instead of waiting for ever. */
            scenes[index].act();
            say_statistics();
            say_mappings();
            return 0;
        }
    }
    return 2;
}
