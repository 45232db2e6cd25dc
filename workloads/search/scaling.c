/* scaling THREADS: each thread allocates and frees 100,000 blocks ROUNDS times over, LIVE of them alive at once. The work of a thread
 * does not depend on how many there are, so the wall time is what sharing a malloc costs, and CPUs that are too few. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 100000, ROUNDS = 20, LIVE = 1000, SMALLEST = 16, LARGEST = 512, THREADS_MAX = 256 };

/* Xorshift: every thread draws sizes of its own. */
static uint32_t draw(uint32_t *state) {
    uint32_t next = *state;
    next ^= next << 13;
    next ^= next >> 17;
    next ^= next << 5;
    return *state = next;
}

static void *work(void *argument) {
    uint32_t state = 2463534242u + (uint32_t)(uintptr_t)argument * 7919u;
    unsigned char *live[LIVE] = {0};
    uintptr_t sum = 0;
    for (long i = 0; i < (long)BLOCKS * ROUNDS; i++) {
        uint32_t drawn = draw(&state);
        size_t at = drawn % LIVE, size = SMALLEST + (drawn >> 16) % (LARGEST - SMALLEST + 1);
        if (live[at]) {
            sum += *live[at];
            free(live[at]);
        }
        live[at] = malloc(size);
        if (!live[at]) {
            fprintf(stderr, "scaling: no memory for %zu bytes\n", size);
            exit(1);
        }
        *live[at] = (unsigned char)size;
    }
    for (size_t at = 0; at < LIVE; at++) free(live[at]);
    return (void *)sum;
}

int main(int count, char **words) {
    char *end = NULL;
    long threads = count == 2 ? strtol(words[1], &end, 10) : 0;
    if (threads < 1 || threads > THREADS_MAX || *end) {
        fprintf(stderr, "Usage: scaling THREADS, from 1 to %d\n", THREADS_MAX);
        return 2;
    }
    pthread_t started[THREADS_MAX];
    uintptr_t sum = 0;
    for (long i = 0; i < threads; i++) {
        if (pthread_create(&started[i], NULL, work, (void *)(uintptr_t)i) != 0) {
            fprintf(stderr, "scaling: cannot start thread %ld\n", i);
            return 1;
        }
    }
    for (long i = 0; i < threads; i++) {
        void *own;
        pthread_join(started[i], &own);
        sum += (uintptr_t)own;
    }
    /* The same for the same threads, whatever the malloc. */
    printf("%lu\n", (unsigned long)sum);
    return 0;
}
