/* First-class heaps as masu.h has them, one group of checks after another. The argument names a group. */
#include <errno.h>
#include <masu.h>
#include <sys/resource.h>

#include "work.h"

#define COUNT 3000

static size_t size_of_turn(size_t i) { return i % 11 == 0 ? i * 97 : i % 701; }

static int filled(const void *block, size_t size, int value) {
    const unsigned char *byte = block;
    for (size_t i = 0; i < size; i++)
        if (byte[i] != (unsigned char)value) return 0;
    return 1;
}

static size_t live(masu_heap_t *heap) {
    struct masu_heap_statistics counts;
    CHECK(masu_heap_statistics(heap, &counts, sizeof counts) == sizeof counts);
    CHECK(counts.committed_bytes >= counts.live_bytes + counts.cached_bytes);
    return counts.live_blocks;
}

/* Blocks go back by plain free, and stay in their heap through plain realloc. */
GROUP(plain_free) {
    static void *blocks[COUNT];
    masu_heap_t *heap = masu_heap_new();
    CHECK(heap && live(heap) == 0);
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = masu_heap_malloc(heap, size_of_turn(i));
        CHECK(blocks[i] && (uintptr_t)blocks[i] % 16 == 0);
        CHECK(masu_heap_of(blocks[i]) == heap && malloc_usable_size(blocks[i]) >= size_of_turn(i));
        memset(blocks[i], (int)i, size_of_turn(i));
    }
    CHECK(live(heap) == COUNT);
    for (size_t i = 0; i < COUNT; i += 2) {
        size_t size = size_of_turn(i), larger = size * 3 + 1;
        blocks[i] = realloc(blocks[i], larger);
        CHECK(blocks[i] && masu_heap_of(blocks[i]) == heap && filled(blocks[i], size, (int)i));
    }
    errno = 4711;
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
    CHECK(errno == 4711 && live(heap) == 0);
    masu_heap_destroy(heap);
    masu_heap_destroy(NULL);
}

GROUP(rules) {
    masu_heap_t *heap = masu_heap_new(), *other = masu_heap_new();
    char *block = malloc(100);
    CHECK(heap && other && heap != other && !masu_heap_of(block) && !masu_heap_of(NULL));
    CHECK(!masu_heap_of(&heap));
    strcpy(block, "kept");
    block = masu_heap_realloc(heap, block, 5000);
    CHECK(masu_heap_of(block) == heap && strcmp(block, "kept") == 0);
    block = masu_heap_realloc(other, block, 200000);
    CHECK(masu_heap_of(block) == other && strcmp(block, "kept") == 0);
    block = masu_heap_realloc(other, block, 10);
    CHECK(masu_heap_of(block) == other && strcmp(block, "kept") == 0 && live(heap) == 0);
    CHECK(masu_heap_of(masu_heap_realloc(other, NULL, 0)) == other);
    for (size_t align = 1; align <= 1 << 20; align *= 2) {
        void *aligned = masu_heap_aligned_alloc(heap, align, 100);
        CHECK(aligned && (uintptr_t)aligned % align == 0 && (uintptr_t)aligned % 16 == 0);
        memset(aligned, 255, 100);
        free(aligned);
    }
    errno = 0;
    CHECK(!masu_heap_aligned_alloc(heap, 3, 1) && errno == EINVAL);
    errno = 0;
    CHECK(!masu_heap_malloc(heap, (size_t)PTRDIFF_MAX + 1) && errno == ENOMEM);
    errno = 0;
    CHECK(!masu_heap_calloc(heap, (size_t)1 << 62, 8) && errno == ENOMEM);
    for (size_t size = 1; size < 1 << 20; size = size * 3 + 1) {
        void *zeroed = masu_heap_calloc(heap, 1, size);
        CHECK(zeroed && filled(zeroed, size, 0));
        memset(zeroed, 255, size);
        free(zeroed);
    }
    CHECK(masu_heap_malloc(heap, 0) != masu_heap_malloc(heap, 0) && live(heap) == 2);
    masu_heap_clear(heap);
    CHECK(live(heap) == 0 && masu_heap_malloc(heap, 8));
    masu_heap_destroy(heap);
    masu_heap_destroy(other);
}

/* What is in use when a heap is destroyed goes back to the system; where a program does the same again
 * at once, masu keeps it for the next time until an option says not to. */
GROUP(destroy_returns_memory) {
    size_t before = resident(), full;
    for (int round = 0; round < 5; round++) {
        masu_heap_t *heap = masu_heap_new();
        for (size_t sum = 0, i = 0; sum < (size_t)128 << 20; sum += size_of_turn(i), i++) {
            void *block = masu_heap_malloc(heap, size_of_turn(i));
            CHECK(block);
            memset(block, 1, size_of_turn(i));
        }
        full = resident();
        CHECK(full > before + ((size_t)100 << 20));
        masu_heap_destroy(heap);
        if (round > 0) malloc_trim(0);
        CHECK(resident() < before + ((size_t)24 << 20));
    }
}

static masu_heap_t *shared;
static void *handed[COUNT];

static void *free_handed(void *from) {
    for (size_t i = (size_t)from - 1; i < COUNT; i += 2) {
        CHECK(filled(handed[i], size_of_turn(i), (int)i));
        free(handed[i]);
        CHECK(masu_heap_malloc(shared, i));
    }
    return NULL;
}

/* Other threads free and allocate, and one of them destroys. */
static void *destroy(void *heap) {
    masu_heap_destroy(heap);
    return NULL;
}

GROUP(threads) {
    for (int round = 0; round < 10; round++) {
        shared = masu_heap_new();
        for (size_t i = 0; i < COUNT; i++) {
            handed[i] = masu_heap_malloc(shared, size_of_turn(i));
            CHECK(handed[i]);
            memset(handed[i], (int)i, size_of_turn(i));
        }
        start_workers(2, free_handed);
        join_workers(2);
        CHECK(live(shared) == COUNT);
        run_thread(destroy, (uintptr_t)shared);
    }
}

GROUP(fork_keeps_heaps) {
    masu_heap_t *heap = masu_heap_new();
    char *block = masu_heap_malloc(heap, 100);
    strcpy(block, "parent's");
    pid_t child = fork();
    if (child == 0) {
        CHECK(strcmp(block, "parent's") == 0 && live(heap) == 1);
        free(block);
        CHECK(masu_heap_malloc(heap, 100000) && live(heap) == 1);
        masu_heap_destroy(heap);
        heap = masu_heap_new();
        CHECK(heap && masu_heap_malloc(heap, 10));
        _exit(0);
    }
    expect_success(child);
    CHECK(strcmp(block, "parent's") == 0 && live(heap) == 1);
    masu_heap_destroy(heap);
}

/* The process's numbers hold what heaps hold. */
GROUP(totals) {
    struct masu_statistics before, after;
    masu_statistics(&before, sizeof before);
    masu_heap_t *heap = masu_heap_new();
    for (int i = 0; i < 1000; i++) CHECK(masu_heap_malloc(heap, 1000));
    CHECK(masu_heap_malloc(heap, 1 << 20));
    masu_statistics(&after, sizeof after);
    CHECK(after.heaps == before.heaps + 1);
    CHECK(after.heap_bytes - before.heap_bytes == (size_t)1000 * 1024);
    CHECK(after.live_bytes - before.live_bytes == ((size_t)1000 * 1024) + (1 << 20));
    masu_heap_destroy(heap);
    masu_statistics(&after, sizeof after);
    CHECK(after.heaps == before.heaps && after.live_bytes == before.live_bytes);
}

/* What caches keep is there for a new heap too. */
GROUP(made_of_what_is_kept) {
    static void *kept[8][8];
    struct rlimit limit = {(rlim_t)64 << 20, (rlim_t)64 << 20};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < 8; j++) CHECK((kept[i][j] = malloc(1000 + 100 * i)) != NULL);
    while (malloc(1 << 16)) continue;
    while (masu_heap_new()) continue;
    CHECK(errno == ENOMEM);
    for (size_t i = 0; i < 8; i++)
        for (size_t j = 0; j < 8; j++) free(kept[i][j]);
    CHECK(masu_heap_new());
}

/* Wrong on purpose: the library ends the program. */
GROUP(used_when_gone) {
    masu_heap_t *heap = masu_heap_new();
    masu_heap_destroy(heap);
    masu_heap_destroy(heap);
}

RUN_GROUPS(300)
