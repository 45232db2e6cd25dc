/* Pointers that no block starts at, or whose block is free: each group does one thing wrong, and what follows
 * it must not be reached. */
#include "work.h"

#include <masu.h>

#include <errno.h>
#include <sys/mman.h>

#define GIB ((size_t)1 << 30)

/* What the wrong calls return, which nobody looks at. */
static void *volatile got;
static volatile size_t usable;

/* A group with these statements. Where the last one returns, the test failed. */
#define WRONG(name, ...)                             \
    GROUP(name)                                      \
    {                                                \
        __VA_ARGS__;                                 \
        fprintf(stderr, "the wrong call returned\n"); \
        _exit(3);                                    \
    }

/* A place in the middle of a block, which looks to glibc like a chunk of its own, as a program's data may. */
static char *forged(char *block, size_t offset)
{
    CHECK(block);
    char *inside = block + offset;
    ((size_t *)inside)[-1] = ((size_t *)(inside + 0x50))[-1] = 0x51;
    return inside;
}

static char *inside_large(size_t offset) { return forged(calloc(1, 1 << 20), offset); }

WRONG(free_inside_a_large_block, free(inside_large(4096)))
WRONG(free_far_inside_a_large_block, free(inside_large(200000)))
WRONG(realloc_inside_a_large_block, got = realloc(inside_large(4096), 100))
WRONG(realloc_far_inside_a_large_block, got = realloc(inside_large(200000), 100000))
WRONG(grow_inside_a_large_block, got = realloc(inside_large(4096), 2 << 20))
WRONG(size_inside_a_large_block, usable = malloc_usable_size(inside_large(4096)))
WRONG(size_far_inside_a_large_block, usable = malloc_usable_size(inside_large(200000)))

/* Freed blocks: not parked, for each is of another size than the one before. */
static char *freed_large(void)
{
    char *before = malloc(3 << 20), *block = malloc(1 << 20), *behind = malloc(2 << 20);
    CHECK(before && block && behind);
    free(block);
    return block;
}

WRONG(free_a_free_large_block, free(freed_large()))
WRONG(realloc_a_free_large_block, got = realloc(freed_large(), 100000))
WRONG(size_of_a_free_large_block, usable = malloc_usable_size(freed_large()))

/* A free block whose neighbors are free too: no run starts there any more. */
static char *merged_large(void)
{
    char *blocks[3];
    for (size_t i = 0; i < 3; i++)
        CHECK((blocks[i] = malloc((1 + i) << 20)));
    char *behind = malloc(5 << 20);
    for (size_t i = 0; i < 3; i++)
        free(blocks[i]);
    CHECK(behind);
    /* Whichever lies in the middle. */
    char *middle = blocks[0];
    for (size_t i = 0; i < 3; i++) {
        size_t lower = 0;
        for (size_t j = 0; j < 3; j++)
            lower += blocks[j] < blocks[i];
        if (lower == 1)
            middle = blocks[i];
    }
    return middle;
}

WRONG(free_a_merged_large_block, free(merged_large()))

static char *parked_large(void)
{
    char *block = NULL;
    for (int i = 0; i < 10; i++) {
        block = malloc(100000);
        CHECK(block);
        free(block);
    }
    return block;
}

WRONG(free_a_parked_block, free(parked_large()))
WRONG(realloc_a_parked_block, got = realloc(parked_large(), 100001))
WRONG(shrink_a_parked_block, got = realloc(parked_large(), 100))
WRONG(size_of_a_parked_block, usable = malloc_usable_size(parked_large()))
WRONG(free_inside_a_parked_block, free(parked_large() + 65536))

WRONG(free_after_realloc_moved_it,
      char *block = malloc(1 << 20), *behind = malloc(2 << 20), *moved = realloc(block, 8 << 20);
      CHECK(behind && moved && moved != block);
      free(block))

/* A block over 1 GiB has an arena of its own, with one entry of the class map. */
static char *huge(void)
{
    char *block = malloc(5 * GIB / 2);
    CHECK(block);
    return block;
}

WRONG(free_inside_a_huge_block, free(forged(huge(), 4096)))
WRONG(free_far_inside_a_huge_block, free(forged(huge(), 3 * GIB / 2)))
WRONG(free_beyond_two_gib_of_a_huge_block, free(forged(huge(), 9 * GIB / 4)))
WRONG(realloc_far_inside_a_huge_block, got = realloc(huge() + 3 * GIB / 2, 100))
WRONG(size_far_inside_a_huge_block, usable = malloc_usable_size(huge() + 3 * GIB / 2))

enum { MANY = 2000 };

static char *many[MANY];

static void make_many(size_t size)
{
    for (int i = 0; i < MANY; i++)
        CHECK((many[i] = malloc(size)));
}

/* A block of a page that went back as a whole. */
WRONG(free_a_block_of_a_page_that_is_gone,
      make_many(5000);
      for (int i = 0; i < MANY; i++) free(many[i]);
      malloc_trim(0);
      free(many[MANY / 2]))

static uintptr_t small(size_t size) { return (uintptr_t)malloc(size); }

WRONG(free_of_memory_of_the_allocators_own, free((void *)((small(100) & ~(uintptr_t)0x3fffff) + 4096)))
WRONG(free_of_memory_never_handed_out, free((void *)((small(100) | 0x3fffff) + 1 - 65536)))
WRONG(realloc_inside_a_small_block, got = realloc((void *)(small(400) + 32), 100))
WRONG(realloc_of_a_misaligned_pointer, got = realloc((void *)(small(400) + 3), 100))
WRONG(size_inside_a_small_block, usable = malloc_usable_size((void *)(small(4000) + 64)))

/* Small blocks are kept unseen, as many as a thread keeps; what is more is looked at, or goes home with the trim. */
WRONG(free_small_blocks_twice_in_a_row,
      make_many(100);
      for (int i = 0; i < MANY; i++) free(many[i]), free(many[i]))
WRONG(free_one_of_many_twice_in_a_row,
      make_many(100);
      for (int i = 0; i < MANY / 2; i++) free(many[i]);
      free(many[MANY / 2 - 1]);
      for (int i = MANY / 2; i < MANY; i++) free(many[i]);
      malloc_trim(0))

/* All are freed in the order of their addresses, or its reverse, and one is free already. */
static void free_all_of_which_one_is_free(int first, int step)
{
    make_many(100);
    free(many[MANY / 2]);
    malloc_trim(0);
    for (int i = 0; i < MANY; i++)
        free(many[first + i * step]);
    malloc_trim(0);
}

WRONG(free_in_order_what_is_free, free_all_of_which_one_is_free(0, 1))
WRONG(free_in_reverse_what_is_free, free_all_of_which_one_is_free(MANY - 1, -1))

static void free_many_at(size_t offset)
{
    make_many(100);
    for (int i = 0; i < MANY; i++)
        free(many[i] + offset);
    malloc_trim(0);
}

WRONG(free_misaligned_pointers, free_many_at(3))
WRONG(free_inside_small_blocks, free_many_at(16))
WRONG(free_a_middle_block_twice, char *block = malloc(48000); free(block); free(block))

/* --- Blocks of first-class heaps --- */

static char *large_of_a_heap(void) { return masu_heap_calloc(masu_heap_new(), 1, 1 << 20); }

/* A block of a heap that is destroyed. */
static char *gone_of_a_heap(size_t size)
{
    masu_heap_t *heap = masu_heap_new();
    char *blocks[100];
    for (int i = 0; i < 100; i++)
        CHECK((blocks[i] = masu_heap_malloc(heap, size)));
    masu_heap_destroy(heap);
    return blocks[50];
}

WRONG(free_inside_a_large_block_of_a_heap, free(forged(large_of_a_heap(), 4096)))
WRONG(free_far_inside_a_large_block_of_a_heap, free(forged(large_of_a_heap(), 200000)))
WRONG(realloc_far_inside_a_large_block_of_a_heap, got = realloc(forged(large_of_a_heap(), 200000), 100))
WRONG(free_a_free_large_block_of_a_heap, char *block = large_of_a_heap(); free(block); free(block))
WRONG(free_a_block_of_a_heap_that_is_gone, free(gone_of_a_heap(5000)))
WRONG(realloc_a_block_of_a_heap_that_is_gone, got = realloc(gone_of_a_heap(1 << 20), 2 << 20))

/* --- What is not wrong --- */

/* Another malloc maps memory where an arena was: its blocks go to it. */
GROUP(another_malloc_may_have_the_addresses_of_an_arena_that_is_gone)
{
    char *block = huge();
    size_t bytes = 2 * (size_t)sysconf(_SC_PAGESIZE);
    free(block);
    char *mapped = mmap(block + MIB, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(mapped == block + MIB);
    /* As glibc has a block that it mapped: its length, and a bit that says so. */
    ((size_t *)mapped)[1] = bytes | 2;
    free(mapped + 16);
    /* Its free has unmapped it. */
    CHECK(msync(mapped, bytes, MS_ASYNC) != 0 && errno == ENOMEM);
}

RUN_GROUPS(60)
