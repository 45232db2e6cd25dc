/* Memory that comes back: after a peak, without a thread that sees to it, and not more often than it
 * pays. The name of a group, given as argument, runs that one; the peak in MiB follows it. */
#include "work.h"

#include <sys/mman.h>
#include <sys/resource.h>

static size_t peak;

static uint64_t state = 88172645463325252u;

static size_t random_between(size_t least, size_t most)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return least + state % (most - least + 1);
}

/* What was freed last stays for a tenth of a second; calls after that give it back in steps. */
static void some_calls_later(void)
{
    for (int turn = 0; turn < 3; turn++) {
        usleep(150 * 1000);
        for (int i = 0; i < 600; i++) {
            /* Of one length each block would be the one before. */
            char *block = malloc((size_t)(100 + 100 * (i % 2)) << 10);
            CHECK(block);
            block[0] = 1;
            free(block);
        }
    }
}

/* Fills `peak` bytes with blocks, frees them in random order, and holds what is left against 5 % of
 * them. The table of blocks is the kernel's, so that nothing but the blocks counts. */
static void comes_back(size_t least, size_t most)
{
    size_t count = 0, live = 0, most_blocks = peak / ((least + most) / 2) * 5 / 4 + 64;
    char **blocks = mmap(NULL, most_blocks * sizeof *blocks, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    CHECK(blocks != MAP_FAILED);
    size_t before = resident();
    while (live < peak && count < most_blocks) {
        size_t size = random_between(least, most);
        blocks[count] = malloc(size);
        CHECK(blocks[count]);
        memset(blocks[count], 1, size);
        live += size;
        count++;
    }
    size_t full = resident();
    CHECK(full - before > live / 20 * 19);
    for (size_t i = count; i > 1; i--) {
        size_t other = random_between(0, i - 1);
        char *block = blocks[i - 1];
        blocks[i - 1] = blocks[other];
        blocks[other] = block;
    }
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    size_t at_once = resident();
    some_calls_later();
    size_t after = resident();
    fprintf(stderr, "%zu to %zu bytes: peak %zu MiB; left %zu MiB, after some calls %zu MiB\n", least, most,
            (full - before) / MIB, (at_once - before) / MIB, (after - before) / MIB);
    CHECK(at_once < before + live / 20 + 80 * MIB);
    /* What caches, sparse pages and the budget keep counts once, however high the peak was: only the
     * peak of 2 GiB is held against 5 % alone. */
    CHECK(after < before + live / 20 + (peak < 2048 * MIB ? 16 * MIB : 0));
}

GROUP(small_blocks) { comes_back(16, 1024); }

static pthread_barrier_t allocated;

static void *sleeps(void *unused)
{
    free(malloc(100));
    pthread_barrier_wait(&allocated);
    for (;;)
        pause();
    return unused;
}

/* A second thread makes steps shorter; all goes back nevertheless. */
GROUP(small_blocks_beside_a_thread)
{
    CHECK(pthread_barrier_init(&allocated, NULL, 2) == 0);
    start_workers(1, sleeps);
    pthread_barrier_wait(&allocated);
    small_blocks();
}

GROUP(blocks_of_pages) { comes_back(2048, 32 << 10); }
GROUP(blocks_of_slices) { comes_back(64 << 10, MIB); }
GROUP(large_blocks) { comes_back(4 * MIB, 32 * MIB); }

/* Blocks that are made together and freed together stay where they are: each time that they went back would show as
 * faults, one for each place that is written. */
GROUP(up_and_down)
{
    enum { TURNS = 2000, BLOCKS = 48, STEP = 1 << 16 };
    struct rusage before, after;
    char *blocks[BLOCKS];
    getrusage(RUSAGE_SELF, &before);
    for (int turn = 0; turn < TURNS; turn++) {
        for (int i = 0; i < BLOCKS; i++) {
            blocks[i] = malloc(MIB / 2);
            CHECK(blocks[i]);
            for (size_t at = 0; at < MIB / 2; at += STEP)
                blocks[i][at] = 1;
        }
        for (int i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    getrusage(RUSAGE_SELF, &after);
    long faults = after.ru_minflt - before.ru_minflt;
    fprintf(stderr, "%d turns, %ld faults\n", TURNS, faults);
    CHECK(faults < 20 * BLOCKS * (long)(MIB / 2 / STEP));
}

/* Blocks far apart, because they are aligned to more than their size: what lies between them was never
 * touched. With huge pages each block would take 2 MiB. */
GROUP(aligned_blocks_far_apart)
{
    enum { BLOCKS = 200, SIZE = 100 << 10 };
    char *blocks[BLOCKS];
    size_t before = resident();
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = aligned_alloc(2 * MIB, SIZE);
        CHECK(blocks[i]);
        CHECK((uintptr_t)blocks[i] % (2 * MIB) == 0);
        memset(blocks[i], 1, SIZE);
    }
    size_t after = resident();
    fprintf(stderr, "%zu kB before, %zu kB after\n", before >> 10, after >> 10);
    CHECK(after - before < (size_t)BLOCKS * SIZE * 2);
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    peak = (size_t)strtoul(arguments[2], NULL, 10) * MIB;
    CHECK(peak > 0);
    return run_group(count, arguments, 600);
}
