/* twice.c: a malloc with a planted fault, to show that the patterns notice one: now and then it hands out
 * a live block a second time. free does nothing. */
#include <stddef.h>
#include <pthread.h>
#include <string.h>

static _Alignas(4096) char memory[(size_t)1 << 30];
static size_t used, calls;
static char *last;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The size stands before the block, for realloc and for the fault. */
static size_t size_of(const char *block) {
    size_t size;
    memcpy(&size, block - 16, sizeof size);
    return size;
}

void *malloc(size_t size) {
    if (size > sizeof memory / 2) return NULL;
    size_t whole = (size + 16 + 15) / 16 * 16;
    char *block = NULL;
    pthread_mutex_lock(&lock);
    if (++calls > 1000 && calls % 100 == 0 && last && size <= size_of(last)) {
        block = last;
    } else if (used + whole <= sizeof memory) {
        block = memory + used + 16;
        memcpy(block - 16, &size, sizeof size);
        last = block;
        used += whole;
    }
    pthread_mutex_unlock(&lock);
    return block;
}

void free(void *block) { (void)block; }

void *calloc(size_t count, size_t size) { return malloc(count * size); }

void *realloc(void *block, size_t size) {
    if (!block) return malloc(size);
    char *grown = malloc(size);
    if (grown) memmove(grown, block, size_of(block) < size ? size_of(block) : size);
    return grown;
}
