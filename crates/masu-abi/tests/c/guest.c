/* A library that is loaded and unloaded: it allocates in its constructor, in a thread's own
 * storage and for its host, and frees its own when it goes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char *own;
static __thread char in_thread[1000];

static void around_fork(void)
{
    /* More than a thread's cache would hold, so that every lock is asked for. */
    char *blocks[300];
    for (int i = 0; i < 300; i++)
        blocks[i] = malloc((size_t)i * 200);
    for (int i = 0; i < 300; i++)
        free(blocks[i]);
    free(calloc(1, 300000));
}

__attribute__((constructor)) static void load(void)
{
    pthread_atfork(around_fork, around_fork, around_fork);
    own = malloc(5000);
    memset(own, 'o', 5000);
}

__attribute__((destructor)) static void unload(void)
{
    if (own[4999] != 'o')
        abort();
    free(own);
}

/* A block of `size` bytes, all 'g', for the host to free. */
char *guest_make(size_t size)
{
    char *block = malloc(size);
    if (block)
        memset(block, 'g', size);
    return block;
}

/* Runs in a thread of its own, which ends before the library goes. */
void *guest_thread(void *argument)
{
    memset(in_thread, 1, sizeof in_thread);
    for (size_t size = 1; size < 100000; size = size * 2 + 1)
        free(guest_make(size));
    return argument;
}

/* The malloc that this library is bound to. */
void *guest_malloc(void)
{
    return (void *)malloc;
}
