/* Misuse of the heap, one kind a run, for tests/hardened.rs. Prints the pointer that is misused, then
 * does it; a run that comes to its end prints "survived". Also good behavior at the edges of what the
 * hardened build checks. */

#include "work.h"

#include <sys/mman.h>
#include <sys/resource.h>

/* Newer than the C library. */
__attribute__((weak)) void free_sized(void *, size_t);
__attribute__((weak)) void free_aligned_sized(void *, size_t, size_t);

/* masu's. */
__attribute__((weak)) int masu_option_set(const char *, size_t);
__attribute__((weak)) void *masu_heap_new(void);
__attribute__((weak)) void *masu_heap_malloc(void *, size_t);

static int global[16];
static size_t size;

static char *named(void *pointer) {
    printf("%p\n", pointer);
    fflush(stdout);
    return pointer;
}

static char *block(void) {
    char *made = malloc(size);
    if (!made) exit(2);
    memset(made, 1, size);
    return made;
}

/* Frees so many blocks that whatever rested has left. */
static void churn(void) {
    for (int i = 0; i < 5000; i++) {
        char *other = malloc(size);
        free(other);
    }
}

GROUP(twice) { char *p = named(block()); free(p); free(p); }
GROUP(twice_later) { char *p = named(block()); free(p); char *q = block(); free(q); free(p); }
GROUP(realloc_freed) { char *p = named(block()); free(p); if (!realloc(p, size + 1)) exit(2); }
GROUP(usable_freed) { char *p = named(block()); free(p); if (malloc_usable_size(p)) exit(2); }
GROUP(free_after_realloc) {
    char *p = named(block());
    char *q = realloc(p, size * 4 + 200000);
    if (q == p) exit(3);
    free(p);
}
GROUP(interior) { free(named(block() + 16)); }
GROUP(far_inside) {
    char *p = malloc(3ul << 30);
    if (!p) exit(2);
    memset(p + (2ul << 30), 3, 1 << 20);
    free(named(p + (2ul << 30) + 16));
}
GROUP(misaligned) { free(named(block() + 1)); }
GROUP(realloc_interior) { if (!realloc(named(block() + 16), size)) exit(2); }
GROUP(usable_interior) { if (malloc_usable_size(named(block() + 16))) exit(2); }
GROUP(last_byte) { free(named(block() + size - 1)); }
GROUP(stack) { int local[4] = {0}; free(named(local)); }
GROUP(global_variable) { free(named(global)); }
GROUP(literal) { free(named((void *)"constant")); }
GROUP(mapping) {
    free(named(mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
}
GROUP(unmapped) { free(named((void *)0x4141414141410)); }
GROUP(never_handed_out) { free(named((void *)(((uintptr_t)block() | 0x3fffff) + 1 - 65536))); }
GROUP(far_inside_of_a_heap) { free(named((char *)masu_heap_malloc(masu_heap_new(), size) + size / 2)); }
GROUP(glibc_block) {
    void *(*other)(size_t) = (void *(*)(size_t))dlsym(dlopen("libc.so.6", RTLD_NOW), "malloc");
    free(named(other(size)));
}
GROUP(overflow) { char *p = named(block()); p[size] = 2; free(p); }
GROUP(overflow_zero) { char *p = named(block()); p[size] = 0; free(p); }
GROUP(overflow_realloc) { char *p = named(block()); p[size] = 2; if (!realloc(p, size + 500)) exit(2); }
GROUP(overflow_usable) { char *p = named(block()); p[malloc_usable_size(p)] = 2; free(p); }
GROUP(write_after_free) {
    volatile char *p = named(block());
    free((void *)p);
    p[size / 2] = 3;
    churn();
}
GROUP(sized) { free_sized(named(block()), size + 1); }
GROUP(aligned_sized) {
    char *p = aligned_alloc(64, size);
    free_aligned_sized(named(p), 64, size - 1);
}
GROUP(page_freed) {
    /* So many blocks that their pages are given back. */
    enum { COUNT = 20000 };
    static char *all[COUNT];
    int count = size > 1000 ? COUNT / (int)(size / 1000) + 2 : COUNT;
    for (int i = 0; i < count; i++) all[i] = block();
    char *p = named(all[count / 2]);
    for (int i = 0; i < count; i++) free(all[i]);
    free(p);
}
static void *other_thread(void *p) { free(p); return 0; }
GROUP(twice_by_threads) {
    char *p = named(block());
    run_thread(other_thread, (uintptr_t)p);
    free(p);
}
GROUP(large_guard) { volatile char *p = named(block()); p[(size + 70000) & ~15ul] = 1; }
GROUP(large_before) { volatile char *p = named(block()); p[-1] = 1; }
GROUP(large_after_free) { volatile char *p = named(block()); free((void *)p); p[0] = 1; }

/* What has to work. */
GROUP(sound) {
    size_t sizes[] = {0, 1, 7, 8, 9, 16, 24, 25, 100, 1000, 1016, 1024, 4096, 16384, 20000, 65000, 65528, 65529,
                      65536, 100000, 131072, 1000000, 70000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int round = 0; round < (sizes[i] > 1000000 ? 3 : sizes[i] > 60000 ? 20 : 300); round++) {
            size_t n = sizes[i];
            char *p = malloc(n);
            if ((uintptr_t)p % 16) exit(4);
            if (malloc_usable_size(p) != n) exit(5);
            memset(p, round, n);
            char *z = calloc(1, n);
            for (size_t at = 0; at < n; at += n > 4096 ? 512 : 1) if (z[at]) exit(6);
            memset(z, 0xff, n);
            p = realloc(p, n + n / 2 + 1);
            for (size_t at = 0; at < n; at += n > 4096 ? 512 : 1) if (p[at] != (char)round) exit(7);
            memset(p, round, n + n / 2 + 1);
            p = realloc(p, n / 2 + 1);
            free_sized(p, n / 2 + 1);
            free(z);
        }
    }
    for (size_t align = 1; align <= 1 << 29; align *= 2) {
        char *p = memalign(align, 1000);
        if ((uintptr_t)p % align) exit(8);
        memset(p, 1, 1000);
        free_aligned_sized(p, align, 1000);
        p = memalign(align, 100000);
        if ((uintptr_t)p % align) exit(9);
        memset(p, 1, 100000);
        free(p);
    }
    puts("sound");
}

static void *worker(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    char *held[64] = {0};
    size_t lengths[64];
    for (int i = 0; i < 100000; i++) {
        int place = rand_r(&seed) % 64;
        if (held[place]) {
            if (held[place][0] != (char)place || held[place][lengths[place] - 1] != (char)place) exit(10);
            free(held[place]);
        }
        lengths[place] = 1 + rand_r(&seed) % (rand_r(&seed) % 100 ? 600 : 200000);
        held[place] = malloc(lengths[place]);
        memset(held[place], place, lengths[place]);
    }
    for (int place = 0; place < 64; place++) free(held[place]);
    return 0;
}

GROUP(threads_and_forks) {
    start_workers(8, worker);
    for (int i = 0; i < 20; i++) IN_CHILD(worker((void *)99));
    join_workers(8);
    puts("sound");
}

/* More large blocks than a process may have mappings for their guards. */
GROUP(many_large) {
    enum { MANY = 40000 };
    static char *held[MANY];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++) {
            size_t length = 66000 + i % 7 * 10000;
            held[i] = malloc(length);
            if (!held[i]) exit(12);
            held[i][length - 1] = 1;
        }
        for (int i = 0; i < MANY; i++) free(held[i * 9973L % MANY]);
    }
}

/* The limit on data lets no freed block be opened again, time after time. */
GROUP(limit_on_data) {
    enum { MANY = 1000, ROUNDS = 16 };
    static char *held[MANY];
    size_t committed[ROUNDS];
    unsigned long data;
    FILE *pages = fopen("/proc/self/statm", "r");
    if (!pages || fscanf(pages, "%*u %*u %*u %*u %*u %lu", &data) != 1) exit(13);
    fclose(pages);
    struct rlimit limit = {data * sysconf(_SC_PAGESIZE) + (24 << 20), RLIM_INFINITY};
    setrlimit(RLIMIT_DATA, &limit);
    for (int round = 0; round < ROUNDS; round++) {
        int count = 0;
        while (count < MANY && (held[count] = malloc(66000 + count % 7 * 10000))) count++;
        if (count == MANY || count < 100) exit(14);
        while (count > 0) free(held[--count]);
        committed[round] = mallinfo2().arena;
    }
    if (committed[ROUNDS - 1] > committed[ROUNDS / 4] * 5 / 4) exit(15);
}

/* Freed small blocks rest, until a request would fail. */
GROUP(limit_on_memory) {
    enum { LIMIT = 16 << 20 };
    masu_option_set("memory_limit", LIMIT);
    for (size_t length = 16; length < 60000; length += length / 8 + 8) {
        static char *held[20000];
        int count = 0;
        while (count < 20000 && count * length < 256 << 10) held[count++] = malloc(length);
        while (count > 0) free(held[--count]);
    }
    for (int round = 0; round < 4; round++) {
        char *large = malloc(LIMIT / 4 * 3);
        if (!large) exit(16);
        free(large);
    }
}

/* Prints where the blocks lie, counted from the first, for one process to be held against another. */
GROUP(places) {
    char *first = malloc(48);
    for (int i = 0; i < 32; i++) printf("%td ", (char *)malloc(48) - first);
    puts("");
}

/* Prints how many other blocks were freed before a block came back. */
GROUP(rest) {
    char *p = malloc(48);
    uintptr_t place = (uintptr_t)p;
    free(p);
    int freed = 0;
    for (; freed < 100000; freed++) {
        char *q = malloc(48);
        uintptr_t got = (uintptr_t)q;
        free(q);
        if (got == place) break;
    }
    printf("%d\n", freed);
}

/* Prints how many bytes of a freed block are not zero. */
GROUP(cleared) {
    volatile char *p = malloc(size);
    memset((void *)p, 7, size);
    free((void *)p);
    int found = 0;
    for (size_t i = 0; i < size; i++) found += p[i] != 0;
    printf("%d\n", found);
}

int main(int count, char **arguments) {
    size = count > 2 ? strtoul(arguments[2], 0, 10) : 0;
    int code = run_group(count, arguments, 600);
    fputs("survived\n", stderr);
    return code;
}
