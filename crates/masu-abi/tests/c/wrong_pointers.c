/* Pointers that no block starts at, or whose block is free: each function does one thing wrong, and what follows
 * it must not be reached. */
#include "work.h"

#include <masu.h>

#include <errno.h>
#include <sys/mman.h>

#define GIB ((size_t)1 << 30)

/* Where the wrong call returns, the test failed. */
#define MUST_END(call) \
    do { \
        volatile uintptr_t result = (uintptr_t)(call); \
        (void)result; \
        fprintf(stderr, "the call returned\n"); \
        _exit(3); \
    } while (0)
#define MUST_END_FREEING(pointer) \
    do { \
        free(pointer); \
        fprintf(stderr, "the call returned\n"); \
        _exit(3); \
    } while (0)

/* A large block with what glibc takes for a chunk of its own in the middle, as a program's data may have it. */
static char *large_with_forged_chunk(char **inside)
{
    char *block = malloc(1 << 20);
    CHECK(block);
    memset(block, 0, 1 << 20);
    *inside = block + 4096;
    ((size_t *)*inside)[-1] = 0x51;
    ((size_t *)(*inside + 0x50))[-1] = 0x51;
    return block;
}

static void free_inside_a_large_block(void)
{
    char *inside;
    large_with_forged_chunk(&inside);
    MUST_END_FREEING(inside);
}

static void free_far_inside_a_large_block(void)
{
    char *inside;
    char *block = large_with_forged_chunk(&inside);
    memcpy(block + 200000 - 16, inside - 16, 4096);
    MUST_END_FREEING(block + 200000);
}

static void realloc_inside_a_large_block(void)
{
    char *inside;
    large_with_forged_chunk(&inside);
    MUST_END(realloc(inside, 100));
}

static void realloc_far_inside_a_large_block(void)
{
    char *inside;
    char *block = large_with_forged_chunk(&inside);
    memcpy(block + 200000 - 16, inside - 16, 4096);
    MUST_END(realloc(block + 200000, 100000));
}

static void grow_inside_a_large_block(void)
{
    char *block = malloc(1 << 20);
    MUST_END(realloc(block + 4096, 2 << 20));
}

static void size_inside_a_large_block(void)
{
    char *block = malloc(1 << 20);
    MUST_END(malloc_usable_size(block + 4096));
}

static void size_far_inside_a_large_block(void)
{
    char *block = malloc(1 << 20);
    MUST_END(malloc_usable_size(block + 200000));
}

/* Freed blocks: not parked, for each is of another size than the one before. */
static char *freed_large(void)
{
    char *before = malloc(3 << 20), *block = malloc(1 << 20), *behind = malloc(2 << 20);
    CHECK(before && block && behind);
    free(block);
    return block;
}

static void free_a_free_large_block(void)
{
    MUST_END_FREEING(freed_large());
}

static void realloc_a_free_large_block(void)
{
    MUST_END(realloc(freed_large(), 100000));
}

static void size_of_a_free_large_block(void)
{
    MUST_END(malloc_usable_size(freed_large()));
}

/* A free block whose neighbors are free too: no run starts there any more. */
static void free_a_merged_large_block(void)
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
    MUST_END_FREEING(middle);
}

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

static void free_a_parked_block(void)
{
    MUST_END_FREEING(parked_large());
}

static void realloc_a_parked_block(void)
{
    MUST_END(realloc(parked_large(), 100001));
}

static void shrink_a_parked_block(void)
{
    MUST_END(realloc(parked_large(), 100));
}

static void size_of_a_parked_block(void)
{
    MUST_END(malloc_usable_size(parked_large()));
}

static void free_inside_a_parked_block(void)
{
    MUST_END_FREEING(parked_large() + 65536);
}

static void free_after_realloc_moved_it(void)
{
    char *block = malloc(1 << 20), *behind = malloc(2 << 20);
    char *moved = realloc(block, 8 << 20);
    CHECK(behind && moved && moved != block);
    MUST_END_FREEING(block);
}

/* A block over 1 GiB has an arena of its own, with one entry of the class map. */
static char *huge(void)
{
    char *block = malloc(5 * GIB / 2);
    CHECK(block);
    return block;
}

static void free_inside_a_huge_block(void)
{
    char *inside = huge() + 4096;
    ((size_t *)inside)[-1] = 0x51;
    MUST_END_FREEING(inside);
}

static void free_far_inside_a_huge_block(void)
{
    char *inside = huge() + 3 * GIB / 2;
    ((size_t *)inside)[-1] = 0x51;
    MUST_END_FREEING(inside);
}

static void free_beyond_two_gib_of_a_huge_block(void)
{
    char *inside = huge() + 9 * GIB / 4;
    ((size_t *)inside)[-1] = 0x51;
    MUST_END_FREEING(inside);
}

static void realloc_far_inside_a_huge_block(void)
{
    MUST_END(realloc(huge() + 3 * GIB / 2, 100));
}

static void size_far_inside_a_huge_block(void)
{
    MUST_END(malloc_usable_size(huge() + 3 * GIB / 2));
}

/* A block of a page that went back as a whole. */
static void free_a_block_of_a_page_that_is_gone(void)
{
    enum { BLOCKS = 2000 };
    static char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        CHECK((blocks[i] = malloc(5000)));
    for (int i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    malloc_trim(0);
    MUST_END_FREEING(blocks[BLOCKS / 2]);
}

static void free_of_memory_of_the_allocators_own(void)
{
    char *block = malloc(100);
    MUST_END_FREEING((char *)((uintptr_t)block & ~(uintptr_t)0x3fffff) + 4096);
}

static void free_of_memory_never_handed_out(void)
{
    char *block = malloc(100);
    MUST_END_FREEING((char *)((uintptr_t)block | 0x3fffff) + 1 - 65536);
}

static void realloc_inside_a_small_block(void)
{
    char *block = malloc(400);
    MUST_END(realloc(block + 32, 100));
}

static void realloc_of_a_misaligned_pointer(void)
{
    char *block = malloc(400);
    MUST_END(realloc(block + 3, 100));
}

static void size_inside_a_small_block(void)
{
    char *block = malloc(4000);
    MUST_END(malloc_usable_size(block + 64));
}

/* Small blocks are kept unseen, as many as a thread keeps; what is more is looked at. */
enum { MANY = 1000 };

static char *many[MANY];

static void make_many(size_t size)
{
    for (int i = 0; i < MANY; i++)
        CHECK((many[i] = malloc(size)));
}

static void free_small_blocks_twice_in_a_row(void)
{
    make_many(100);
    for (int i = 0; i < MANY; i++) {
        free(many[i]);
        free(many[i]);
    }
    fprintf(stderr, "the calls returned\n");
    _exit(3);
}

static void free_one_of_many_twice_in_a_row(void)
{
    make_many(100);
    for (int i = 0; i < MANY; i++) {
        free(many[i]);
        if (i == MANY - 200)
            free(many[i]);
    }
    /* It went by while the stack was full, or goes home with the rest. */
    malloc_trim(0);
    fprintf(stderr, "the calls returned\n");
    _exit(3);
}

/* All are freed in the order of their addresses, or its reverse, and one is free already. */
static void free_all_of_which_one_is_free(int first, int step)
{
    make_many(100);
    free(many[MANY / 2]);
    malloc_trim(0);
    for (int i = 0; i < MANY; i++)
        free(many[first + i * step]);
    malloc_trim(0);
    fprintf(stderr, "the calls returned\n");
    _exit(3);
}

static void free_in_order_what_is_free(void)
{
    free_all_of_which_one_is_free(0, 1);
}

static void free_in_reverse_what_is_free(void)
{
    free_all_of_which_one_is_free(MANY - 1, -1);
}

static void free_misaligned_pointers(void)
{
    make_many(100);
    for (int i = 0; i < MANY; i++)
        free(many[i] + 3);
    fprintf(stderr, "the calls returned\n");
    _exit(3);
}

static void free_inside_small_blocks(void)
{
    make_many(100);
    for (int i = 0; i < MANY; i++)
        free(many[i] + 16);
    malloc_trim(0);
    fprintf(stderr, "the calls returned\n");
    _exit(3);
}

static void free_a_middle_block_twice(void)
{
    char *block = malloc(48000);
    free(block);
    MUST_END_FREEING(block);
}

/* --- Blocks of first-class heaps --- */

static char *large_of_a_heap(void)
{
    masu_heap_t *heap = masu_heap_new();
    char *block = masu_heap_malloc(heap, 1 << 20);
    CHECK(block);
    memset(block, 0, 1 << 20);
    ((size_t *)(block + 200000))[-1] = 0x51;
    return block;
}

static void free_inside_a_large_block_of_a_heap(void)
{
    MUST_END_FREEING(large_of_a_heap() + 4096);
}

static void free_far_inside_a_large_block_of_a_heap(void)
{
    MUST_END_FREEING(large_of_a_heap() + 200000);
}

static void realloc_far_inside_a_large_block_of_a_heap(void)
{
    MUST_END(realloc(large_of_a_heap() + 200000, 100));
}

static void free_a_free_large_block_of_a_heap(void)
{
    char *block = large_of_a_heap();
    free(block);
    MUST_END_FREEING(block);
}

static void free_a_block_of_a_heap_that_is_gone(void)
{
    masu_heap_t *heap = masu_heap_new();
    char *blocks[100];
    for (int i = 0; i < 100; i++)
        CHECK((blocks[i] = masu_heap_malloc(heap, 5000)));
    masu_heap_destroy(heap);
    MUST_END_FREEING(blocks[50]);
}

static void realloc_a_block_of_a_heap_that_is_gone(void)
{
    masu_heap_t *heap = masu_heap_new();
    char *block = masu_heap_malloc(heap, 1 << 20);
    CHECK(block);
    masu_heap_destroy(heap);
    MUST_END(realloc(block, 2 << 20));
}

/* --- What is not wrong --- */

/* Another malloc maps memory where an arena was: its blocks go to it. */
static void another_malloc_may_have_the_addresses_of_an_arena_that_is_gone(void)
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

static const struct group groups[] = {
    GROUP(free_inside_a_large_block),
    GROUP(free_far_inside_a_large_block),
    GROUP(realloc_inside_a_large_block),
    GROUP(realloc_far_inside_a_large_block),
    GROUP(grow_inside_a_large_block),
    GROUP(size_inside_a_large_block),
    GROUP(size_far_inside_a_large_block),
    GROUP(free_a_free_large_block),
    GROUP(realloc_a_free_large_block),
    GROUP(size_of_a_free_large_block),
    GROUP(free_a_merged_large_block),
    GROUP(free_a_parked_block),
    GROUP(realloc_a_parked_block),
    GROUP(shrink_a_parked_block),
    GROUP(size_of_a_parked_block),
    GROUP(free_inside_a_parked_block),
    GROUP(free_after_realloc_moved_it),
    GROUP(free_inside_a_huge_block),
    GROUP(free_far_inside_a_huge_block),
    GROUP(free_beyond_two_gib_of_a_huge_block),
    GROUP(realloc_far_inside_a_huge_block),
    GROUP(size_far_inside_a_huge_block),
    GROUP(free_a_block_of_a_page_that_is_gone),
    GROUP(free_of_memory_of_the_allocators_own),
    GROUP(free_of_memory_never_handed_out),
    GROUP(realloc_inside_a_small_block),
    GROUP(realloc_of_a_misaligned_pointer),
    GROUP(size_inside_a_small_block),
    GROUP(free_small_blocks_twice_in_a_row),
    GROUP(free_one_of_many_twice_in_a_row),
    GROUP(free_in_order_what_is_free),
    GROUP(free_in_reverse_what_is_free),
    GROUP(free_misaligned_pointers),
    GROUP(free_inside_small_blocks),
    GROUP(free_a_middle_block_twice),
    GROUP(free_inside_a_large_block_of_a_heap),
    GROUP(free_far_inside_a_large_block_of_a_heap),
    GROUP(realloc_far_inside_a_large_block_of_a_heap),
    GROUP(free_a_free_large_block_of_a_heap),
    GROUP(free_a_block_of_a_heap_that_is_gone),
    GROUP(realloc_a_block_of_a_heap_that_is_gone),
    GROUP(another_malloc_may_have_the_addresses_of_an_arena_that_is_gone),
};

int main(int count, char **arguments)
{
    return run_group(groups, count, arguments, 60);
}
