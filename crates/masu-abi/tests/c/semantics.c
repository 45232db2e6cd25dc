/* What C23, POSIX and glibc's manual say of each function of the malloc family, one group of
 * functions after another. The name of a group, given as argument, runs that one. */
#include "served.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

void *pvalloc(size_t size);
void cfree(void *block);
void free_sized(void *block, size_t size);
void *mallocx(size_t size, int flags);
void *rallocx(void *block, size_t size, int flags);
size_t xallocx(void *block, size_t size, size_t extra, int flags);
size_t sallocx(void *block, int flags);
size_t nallocx(size_t size, int flags);
void dallocx(void *block, int flags);
void sdallocx(void *block, size_t size, int flags);
void free_aligned_sized(void *block, size_t align, size_t size);
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);
void __libc_free(void *block);
int __posix_memalign(void **result, size_t align, size_t size);
int masu_option_set(const char *name, size_t value);

#define HUGE_SIZE ((size_t)PTRDIFF_MAX + 1)
/* An errno that nothing here sets. */
#define UNTOUCHED 4711

static int aligned_to(const void *block, size_t align)
{
    return ((uintptr_t)block & (align - 1)) == 0;
}

static void fill(void *block, size_t size, unsigned seed)
{
    unsigned char *byte = block;
    for (size_t i = 0; i < size; i++)
        byte[i] = (unsigned char)(i * 31 + seed);
}

static int filled(const void *block, size_t size, unsigned seed)
{
    const unsigned char *byte = block;
    for (size_t i = 0; i < size; i++)
        if (byte[i] != (unsigned char)(i * 31 + seed))
            return 0;
    return 1;
}

/* The call gave null and this errno. */
#define FAILS_WITH(call, number)                                                          \
    do {                                                                                  \
        errno = UNTOUCHED;                                                                \
        CHECK((call) == NULL);                                                            \
        CHECK(errno == (number));                                                         \
    } while (0)

GROUP(zero_sizes)
{
    void *a = malloc(0), *b = malloc(0), *c = calloc(0, 7), *d = calloc(7, 0);
    void *e = realloc(NULL, 0), *f = aligned_alloc(64, 0), *g = NULL;
    CHECK(a && b && c && d && e && f);
    CHECK(a != b);
    CHECK(posix_memalign(&g, 64, 0) == 0 && g && g != f);
    free(a), free(b), free(c), free(d), free(e), free(f), free(g);
    free(NULL);
    cfree(NULL);
    free_sized(NULL, 1);
    free_aligned_sized(NULL, 1, 1);
    CHECK(malloc_usable_size(NULL) == 0);
}

GROUP(every_size_is_aligned_and_writable)
{
    for (size_t size = 0; size < 3000; size++) {
        void *block = malloc(size);
        CHECK(block && aligned_to(block, 16));
        size_t usable = malloc_usable_size(block);
        CHECK(usable >= size);
        fill(block, usable, (unsigned)size);
        CHECK(malloc_usable_size(block) == usable);
        CHECK(filled(block, usable, (unsigned)size));
        free(block);
    }
    for (size_t size = 3000; size < (64u << 20); size = size * 9 / 8 + 1) {
        unsigned char *block = malloc(size);
        CHECK(block && aligned_to(block, alignof(max_align_t)));
        size_t usable = malloc_usable_size(block);
        CHECK(usable >= size);
        block[0] = 1, block[size - 1] = 2, block[usable - 1] = 3;
        CHECK(malloc_usable_size(block) == usable);
        free(block);
    }
}

GROUP(impossible_sizes_fail)
{
    FAILS_WITH(malloc(HUGE_SIZE), ENOMEM);
    FAILS_WITH(malloc(SIZE_MAX), ENOMEM);
    FAILS_WITH(malloc(PTRDIFF_MAX), ENOMEM);
    FAILS_WITH(calloc(1, HUGE_SIZE), ENOMEM);
    FAILS_WITH(calloc(SIZE_MAX, 2), ENOMEM);
    FAILS_WITH(calloc((size_t)1 << 32, (size_t)1 << 32), ENOMEM);
    FAILS_WITH(calloc(((size_t)1 << 32) + 1, (size_t)1 << 32), ENOMEM);
    FAILS_WITH(aligned_alloc(64, HUGE_SIZE), ENOMEM);
    FAILS_WITH(aligned_alloc((size_t)1 << 62, 1), ENOMEM);
    FAILS_WITH(aligned_alloc((size_t)1 << 63, SIZE_MAX), ENOMEM);
    FAILS_WITH(memalign(4096, SIZE_MAX - 4095), ENOMEM);
    FAILS_WITH(valloc(SIZE_MAX), ENOMEM);
    FAILS_WITH(pvalloc(SIZE_MAX), ENOMEM);
    FAILS_WITH(pvalloc(SIZE_MAX - 5000), ENOMEM);
    FAILS_WITH(reallocarray(NULL, SIZE_MAX / 2, 3), ENOMEM);
    FAILS_WITH(realloc(NULL, HUGE_SIZE), ENOMEM);
}

GROUP(a_size_that_overflows_is_a_lack_of_memory)
{
    for (int way = 0; way < 3; way++) {
        pid_t child = fork();
        if (child == 0) {
            masu_option_set("abort_on_oom", 1);
            void *none = way == 0   ? calloc(SIZE_MAX, 2)
                         : way == 1 ? reallocarray(NULL, SIZE_MAX, 2)
                                    : pvalloc(SIZE_MAX);
            _exit(none != NULL);
        }
        int status = 0;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

GROUP(realloc_rules)
{
    char *block = malloc(100);
    fill(block, 100, 1);
    /* Failure leaves the block as it was. */
    FAILS_WITH(realloc(block, HUGE_SIZE), ENOMEM);
    FAILS_WITH(realloc(block, PTRDIFF_MAX), ENOMEM);
    FAILS_WITH(reallocarray(block, SIZE_MAX / 4, 8), ENOMEM);
    CHECK(filled(block, 100, 1));

    /* Contents are kept from size to size, growing and shrinking. */
    size_t kept = 100;
    for (size_t size = 100; size < (48u << 20); size = size * 3 / 2) {
        block = realloc(block, size);
        CHECK(block && aligned_to(block, 16) && filled(block, kept, 1));
        fill(block, size, 1);
        kept = size;
    }
    for (size_t size = kept; size > 3; size = size * 2 / 3) {
        block = realloc(block, size);
        CHECK(block && aligned_to(block, 16) && filled(block, size, 1));
    }
    /* As glibc: 0 frees, and errno is kept. */
    errno = UNTOUCHED;
    CHECK(realloc(block, 0) == NULL && errno == UNTOUCHED);
    block = malloc(10);
    CHECK(reallocarray(block, 0, 10) == NULL);
    block = malloc(10);
    CHECK(reallocarray(block, 10, 0) == NULL);

    block = reallocarray(NULL, 10, 20);
    fill(block, 200, 2);
    block = reallocarray(block, 1000, 1000);
    CHECK(block && filled(block, 200, 2));
    free(block);

    /* An aligned block grows like any other. */
    block = aligned_alloc(1 << 16, 5000);
    fill(block, 5000, 3);
    block = realloc(block, 500000);
    CHECK(block && filled(block, 5000, 3));
    free(block);
}

GROUP(calloc_is_zero_after_dirty_reuse)
{
    static const size_t sizes[] = {1, 24, 100, 1000, 5000, 40000, 300000, 3u << 20, 40u << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t size = sizes[s];
        for (int round = 0; round < 5; round++) {
            void *dirty[8];
            for (int i = 0; i < 8; i++) {
                dirty[i] = malloc(size);
                CHECK(dirty[i]);
                memset(dirty[i], 0xa5, malloc_usable_size(dirty[i]));
                if (size > (1u << 20)) {
                    free(dirty[i]);
                    dirty[i] = NULL;
                }
            }
            for (int i = 0; i < 8; i++)
                free(dirty[i]);
            unsigned char *zero = calloc(size / 2 + 1, 2);
            CHECK(zero);
            for (size_t i = 0; i < size / 2 * 2 + 2; i++)
                CHECK(zero[i] == 0);
            memset(zero, 0x5a, malloc_usable_size(zero));
            free(zero);
        }
    }
}

GROUP(alignments)
{
    for (size_t align = 1; align <= ((size_t)16 << 20); align *= 2) {
        static const size_t sizes[] = {0, 1, 17, 100, 4096, 70000, 1 << 20};
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t size = sizes[s];
            unsigned char *a = aligned_alloc(align, size), *b = memalign(align, size);
            CHECK(a && b && a != b && aligned_to(a, align) && aligned_to(b, align));
            CHECK(aligned_to(a, 16) && aligned_to(b, 16));
            CHECK(malloc_usable_size(a) >= size);
            fill(a, size, 1), fill(b, size, 2);
            CHECK(filled(a, size, 1) && filled(b, size, 2));
            free_aligned_sized(a, align, size);
            free(b);
            if (align >= sizeof(void *)) {
                void *c = NULL;
                CHECK(posix_memalign(&c, align, size) == 0 && aligned_to(c, align));
                fill(c, size, 3);
                free(c);
            }
        }
    }
}

GROUP(bad_alignments)
{
    FAILS_WITH(aligned_alloc(0, 8), EINVAL);
    FAILS_WITH(aligned_alloc(3, 8), EINVAL);
    FAILS_WITH(aligned_alloc(48, 96), EINVAL);
    FAILS_WITH(aligned_alloc(SIZE_MAX, 8), EINVAL);

    /* memalign rounds up. */
    for (size_t align = 0; align < 5000; align += 7) {
        void *block = memalign(align, 10);
        size_t power = 16;
        while (power < align)
            power *= 2;
        CHECK(block && aligned_to(block, power));
        free(block);
    }
    FAILS_WITH(memalign(SIZE_MAX / 2 + 2, 8), EINVAL);

    /* posix_memalign returns its error and touches no result; glibc's sets errno for want of memory. */
    char here;
    static const size_t bad[] = {0, 1, 2, 4, 7, 9, 24, 100, SIZE_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        void *result = &here;
        errno = UNTOUCHED;
        CHECK(posix_memalign(&result, bad[i], 8) == EINVAL);
        CHECK(result == &here && errno == UNTOUCHED);
    }
    void *result = &here;
    errno = UNTOUCHED;
    CHECK(posix_memalign(&result, 64, HUGE_SIZE) == ENOMEM && errno == ENOMEM);
    errno = UNTOUCHED;
    CHECK(posix_memalign(&result, (size_t)1 << 62, 8) == ENOMEM && errno == ENOMEM);
    CHECK(result == &here);
}

GROUP(whole_pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t size = sizes[s], rounded = (size + page - 1) / page * page;
        void *a = valloc(size), *b = pvalloc(size);
        CHECK(a && b && aligned_to(a, page) && aligned_to(b, page));
        CHECK(malloc_usable_size(a) >= size && malloc_usable_size(b) >= rounded);
        fill(b, rounded, 1);
        free(a), free(b);
    }
}

GROUP(errno_is_kept_by_free)
{
    static const size_t sizes[] = {0, 100, 5000, 40000, 1 << 20, 100u << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        void *block = malloc(sizes[s]);
        CHECK(block);
        memset(block, 1, sizes[s]);
        errno = UNTOUCHED;
        free(block);
        CHECK(errno == UNTOUCHED);
    }
    /* Success leaves it alone too. */
    errno = UNTOUCHED;
    free(realloc(malloc(10), 200000));
    free(calloc(3, 300000));
    CHECK(errno == UNTOUCHED);
}

GROUP(sized_frees_do_not_believe_the_size)
{
    for (int round = 0; round < 1000; round++) {
        char *blocks[64];
        for (int i = 0; i < 64; i++) {
            blocks[i] = malloc(100);
            fill(blocks[i], 100, (unsigned)i);
        }
        for (int i = 0; i < 64; i++)
            CHECK(filled(blocks[i], 100, (unsigned)i));
        for (int i = 0; i < 64; i++) {
            if (i % 2)
                free_sized(blocks[i], 7);
            else
                free_aligned_sized(blocks[i], 4096, 1 << 20);
        }
    }
}

GROUP(second_names)
{
    char *block = __libc_malloc(10);
    fill(block, 10, 1);
    block = __libc_realloc(block, 10000);
    CHECK(filled(block, 10, 1));
    free(block);
    __libc_free(malloc(10));
    block = __libc_calloc(10, 10);
    CHECK(block && block[0] == 0 && block[99] == 0);
    cfree(block);
    block = __libc_memalign(1024, 10);
    CHECK(aligned_to(block, 1024));
    free(block);
    block = __libc_valloc(10);
    CHECK(aligned_to(block, (size_t)sysconf(_SC_PAGESIZE)));
    free(block);
    block = __libc_pvalloc(10);
    CHECK(aligned_to(block, (size_t)sysconf(_SC_PAGESIZE)));
    free(block);
    void *result;
    CHECK(__posix_memalign(&result, 256, 10) == 0 && aligned_to(result, 256));
    free(result);
}

GROUP(jemallocs_functions)
{
    enum { ZERO = 0x40, TCACHE_NONE = 1 << 8, ARENA_7 = 8 << 20 };
    for (int log = 0; log < 22; log++)
        for (size_t size = 1; size < 300000; size = size * 7 + 3) {
            int flags = log | TCACHE_NONE | ARENA_7;
            char *block = mallocx(size, flags);
            CHECK(block && aligned_to(block, (size_t)1 << log));
            CHECK(sallocx(block, 0) == malloc_usable_size(block) && nallocx(size, flags) >= size);
            CHECK(sallocx(block, 0) >= nallocx(size, flags));
            fill(block, size, 3);
            CHECK(xallocx(block, size * 9, 0, 0) == sallocx(block, 0));
            size_t old = sallocx(block, 0);
            char *more = rallocx(block, old + 5000, flags | ZERO);
            CHECK(more && aligned_to(more, (size_t)1 << log) && filled(more, size, 3));
            for (size_t i = old; i < old + 5000; i++)
                CHECK(more[i] == 0);
            fill(more, old + 5000, 4);
            char *less = rallocx(more, size, flags);
            CHECK(less && filled(less, size, 4));
            sdallocx(less, size, flags);
            block = mallocx(size, flags | ZERO);
            // A program that wrote none of it relies on zeros wherever the block grows.
            for (int steps = 0; steps < 3; steps++) {
                more = rallocx(block, sallocx(block, 0) + 1, flags | ZERO);
                CHECK(more && aligned_to(more, (size_t)1 << log));
                block = more;
            }
            for (size_t i = 0; i < sallocx(block, 0); i++)
                CHECK(block[i] == 0);
            fill(block, size, 5);
            if (log % 2)
                dallocx(block, flags);
            else
                free(block);
        }
    sdallocx(malloc(100), 100, 0);
    char *kept = malloc(100);
    fill(kept, 100, 6);
    FAILS_WITH(mallocx(SIZE_MAX / 2 + 1, 0), ENOMEM);
    FAILS_WITH(mallocx(1, 40 | ZERO), ENOMEM);
    FAILS_WITH(mallocx(1, 63), ENOMEM);
    FAILS_WITH(rallocx(kept, SIZE_MAX / 2 + 1, ZERO), ENOMEM);
    FAILS_WITH(rallocx(kept, 200, 63), ENOMEM);
    CHECK(filled(kept, 100, 6));
    dallocx(kept, 0);
    CHECK(nallocx(SIZE_MAX, 0) == 0 && nallocx(((size_t)1 << 47) + 1, 0) == 0);
    for (int log = 25; log < 64; log++) {
        char *block = mallocx(1, log);
        CHECK((nallocx(1, log) > 0) == (block != NULL));
        free(block);
    }
}

RUN_GROUPS(300)
