// Asks for memory a known number of times, so that the counting library can be held against it.
//
// Relies on `tests/count.rs`, which runs it with a number of rounds and subtracts a run of none:
// what the C library allocates for itself is the same in both.

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <pthread.h>
#include <unistd.h>

// `operator new(size_t)` and `operator delete(void *)`.
void *_Znwm(size_t size);
void _ZdlPv(void *block);

// COUPLING: `REQUESTS` and `BYTES` in `tests/count.rs` are sums over this function.
static void one_round(void) {
    void *aligned;
    free(malloc(100));                        // 100 bytes
    free(malloc(100000));                     // 100000
    free(calloc(3, 7));                       // 21
    free(aligned_alloc(64, 128));             // 128
    free(memalign(4096, 10));                 // 10
    if (posix_memalign(&aligned, 256, 5) != 0) abort();
    free(aligned);                            // 5
    free(valloc(9));                          // 9
    char *block = realloc(NULL, 50);          // 50
    block = realloc(block, 5000);             // 5000
    block = reallocarray(block, 2, 30);       // 60
    block = realloc(block, 0);                // a free
    if (block != NULL) abort();
    free(NULL);
    _ZdlPv(_Znwm(33));                        // 33
}

static void *rounds(void *count) {
    for (intptr_t n = 0; n < (intptr_t)count; n++) one_round();
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    intptr_t many = atoi(arguments[2]);
    if (strcmp(arguments[1], "alone") == 0) {
        rounds((void *)many);
    } else if (strcmp(arguments[1], "threads") == 0) {
        pthread_t threads[4];
        for (int n = 0; n < 4; n++) pthread_create(&threads[n], NULL, rounds, (void *)many);
        for (int n = 0; n < 4; n++) pthread_join(threads[n], NULL);
    } else if (strcmp(arguments[1], "fork") == 0) {
        // Two children and a grandchild, each as much as the parent.
        fork();
        fork();
        rounds((void *)many);
        while (wait(NULL) > 0) {}
    } else {
        return 2;
    }
    return 0;
}
