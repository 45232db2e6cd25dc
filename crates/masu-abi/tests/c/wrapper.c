/* A program that puts functions of its own before the malloc family and calls the second names
 * behind them, as wrappers that count do. None of them may be called from inside the library. */
#include "served.h"

#include <malloc.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *block);

static int depth;
static long calls;

#define WRAPPED(call)                                                                     \
    do {                                                                                  \
        if (++depth > 1)                                                                  \
            abort();                                                                      \
        calls++;                                                                          \
        call;                                                                             \
        depth--;                                                                          \
    } while (0)

void *malloc(size_t size)
{
    void *block;
    WRAPPED(block = __libc_malloc(size));
    return block;
}

void *calloc(size_t count, size_t size)
{
    void *block;
    WRAPPED(block = __libc_calloc(count, size));
    return block;
}

void *realloc(void *block, size_t size)
{
    WRAPPED(block = __libc_realloc(block, size));
    return block;
}

void *memalign(size_t align, size_t size)
{
    void *block;
    WRAPPED(block = __libc_memalign(align, size));
    return block;
}

void free(void *block)
{
    WRAPPED(__libc_free(block));
}

int main(void)
{
    CHECK(is_masu((void *)__libc_malloc) && is_masu((void *)__libc_free));
    CHECK(!is_masu((void *)malloc) && is_masu((void *)reallocarray));
    calls = 0;
    free(realloc(malloc(10), 1000));
    free(memalign(256, 10));
    char *zero = calloc(100, 100);
    CHECK(zero && zero[9999] == 0);
    free(zero);
    CHECK(calls == 7);
    /* These are the library's, and so is all that they call. */
    free(reallocarray(aligned_alloc(64, 10), 1000, 10));
    free(valloc(10));
    CHECK(calls == 9);
    return 0;
}
