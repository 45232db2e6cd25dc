/* Memory as the system sees it: locked, limited, given back, and what the library reports of it.
 * The name of a group, given as argument, runs that one. */
#include "work.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* --- Locked memory --- */

#ifdef LOCK_FIRST
/* The executable's own pre-initializers run before any constructor: every page from here on is
 * locked. */
static void lock_first(void)
{
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        _exit(77);
}

__attribute__((section(".preinit_array"), used)) static void (*lock)(void) = lock_first;
#endif

GROUP(locked_memory)
{
#ifndef LOCK_FIRST
    work(1, 1000);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
        _exit(77);
#endif
    start_workers(4, work_once);
    work(2, 20000);
    join_workers(4);
    char *large = malloc(40 * MIB);
    CHECK(large);
    memset(large, 1, 40 * MIB);
    free(large);
    malloc_trim(0);
    /* Only what is committed may be locked, never what is merely reserved: the C library, the
     * stacks of the threads (8 MiB each) and the most that was live. */
    CHECK(resident() < 256 * MIB);
}

/* Under the limit on locked memory that users have. */
GROUP(locked_memory_of_a_user)
{
#ifndef LOCK_FIRST
    CHECK(malloc(1000));
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
#endif
    size_t count = 0;
    for (char *block; count < 1000 && (block = malloc(10000)); count++)
        memset(block, 1, 10000);
    fprintf(stderr, "%zu blocks of 10000 bytes\n", count);
    CHECK(count >= 200 && count < 1000);
    CHECK(errno == ENOMEM);
}

/* --- Memory that runs out --- */

/* Allocates blocks of `size` until there are no more, then frees all; returns how many. */
static size_t until_none_is_left(size_t size)
{
    struct link *first;
    errno = 0;
    size_t count = allocate_links(&first, size, SIZE_MAX);
    CHECK(errno == ENOMEM);
    CHECK(calloc(1, size) == NULL && errno == ENOMEM);
    if (size > 64) {
        /* A block that cannot grow is intact. */
        unsigned char *block = (unsigned char *)first;
        CHECK(realloc(block, 100 * size + 200 * MIB) == NULL && errno == ENOMEM);
        CHECK(block[size - 1] == 0x77);
    }
    free_links(first);
    return count;
}

/* Under a limit of 256 MiB on addresses, of which the program itself needs a part. */
GROUP(up_to_the_limit)
{
    static const size_t sizes[] = {1 << 16, 16, 200, 4000, 30000, 1 << 20, 5 << 20, 1 << 16};
    run_thread(work_once, 1);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t size = sizes[s], count = until_none_is_left(size);
        fprintf(stderr, "%zu blocks of %zu: %zu MiB\n", count, size, count * size / MIB);
        CHECK(count * size > 128 * MIB);
        work(3, 1000);
    }
}

GROUP(limit_that_comes_and_goes)
{
    struct rlimit limit, old;
    getrlimit(RLIMIT_AS, &old);
    for (int round = 0; round < 5; round++) {
        limit = old;
        limit.rlim_cur = 1;
        CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
        /* What is already there is still served. */
        size_t live = 0;
        while (malloc(100000))
            CHECK(++live < 100000);
        CHECK(errno == ENOMEM);
        CHECK(malloc(64 * MIB) == NULL);
        CHECK(setrlimit(RLIMIT_AS, &old) == 0);
        char *block = malloc(64 * MIB);
        CHECK(block);
        block[64 * MIB - 1] = 1;
        free(block);
        work((unsigned)round, 1000);
    }
}

/* Bytes of addresses that this process has, asked without memory. */
static size_t addresses(void)
{
    char text[100] = "";
    int file = open("/proc/self/statm", O_RDONLY);
    CHECK(file >= 0 && read(file, text, sizeof text - 1) > 0 && close(file) == 0);
    return (size_t)atol(text) * (size_t)sysconf(_SC_PAGESIZE);
}

static void limit_addresses(size_t bytes)
{
    struct rlimit limit = {bytes, bytes};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

/* Before its first allocation, a process limits itself. The program's own addresses are not counted. */
GROUP(most_of_a_limit_can_be_used)
{
    static const struct {
        size_t limit, percent;
    } cases[] = {{32 * MIB, 94}, {64 * MIB, 94}, {512 * MIB, 94}};
    static const size_t sizes[] = {16, 200, 4000, 1 << 16, 1 << 20};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            pid_t child = fork();
            if (child == 0) {
                size_t limit = cases[c].limit, size = sizes[s], count = 0;
                size_t left = limit - addresses();
                limit_addresses(limit);
                while (malloc(size))
                    count++;
                size_t percent = count * size * 100 / left;
                fprintf(stderr, "%zu MiB, blocks of %zu: %zu %%\n", limit / MIB, size, percent);
                _exit(percent < cases[c].percent);
            }
            expect_success(child);
        }
    }
}

GROUP(little_more_than_the_program_is_enough)
{
    limit_addresses(addresses() + 2 * MIB);
    void *block = malloc(1000000);
    CHECK(block);
    free(block);
    size_t count = 0;
    while (count < 100 && malloc(10000))
        count++;
    CHECK(count == 100);
    while (malloc(10000))
        ;
    CHECK(errno == ENOMEM);
}

/* What is freed may be mapped by others, and the other way round. */
GROUP(addresses_come_and_go_under_a_limit)
{
    enum { COUNT = 40 };
    static char *blocks[COUNT];
    limit_addresses(64 * MIB);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = calloc(1, MIB);
            CHECK(blocks[i] && blocks[i][MIB - 1] == 0);
            memset(blocks[i], 0x55, MIB);
        }
        for (int i = 0; i < COUNT; i++)
            free(blocks[i]);
        char *mapping = mmap(NULL, COUNT * MIB, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mapping != MAP_FAILED);
        CHECK(malloc(COUNT * MIB) == NULL && errno == ENOMEM);
        work((unsigned)round, 1000);
        CHECK(munmap(mapping, COUNT * MIB) == 0);
    }
}

static size_t until_the_end(size_t size)
{
    struct link *links;
    size_t count = allocate_links(&links, size, SIZE_MAX);
    free_links(links);
    return count;
}

/* Leaves an empty page of every size class behind, and blocks in the cache of its thread. */
static void *all_sizes(void *unused)
{
    static char *blocks[2000];
    for (size_t size = 16; size <= 8000; size += size < 128 ? 16 : size / 8) {
        for (size_t i = 0; i < 2000; i++)
            CHECK((blocks[i] = malloc(size)) != NULL);
        for (size_t i = 0; i < 2000; i++)
            free(blocks[i]);
    }
    return unused;
}

/* A limited arena has addresses that it has not reserved, which are anyone's. */
GROUP(a_foreign_block_between_ours_is_not_ours)
{
    limit_addresses(256 * MIB);
    uintptr_t arena = (uintptr_t)malloc(100) & ~(1024 * MIB - 1);
    const size_t distances[] = {512 << 10, 200 * MIB};
    for (size_t i = 0; i < 2; i++) {
        /* As glibc makes a block in a mapping of its own: the size before it, with the second bit set. */
        size_t *place = mmap((void *)(arena + distances[i]), 1 << 16, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        CHECK(place == (void *)(arena + distances[i]));
        place[1] = (1 << 16) | 2;
        CHECK(malloc_usable_size(place + 2) == (1 << 16) - 16);
        free(place + 2);
        CHECK(msync(place, 1 << 16, MS_ASYNC) != 0 && errno == ENOMEM);
    }
}

/* What empty pages and caches keep is there for whatever is asked for last. */
GROUP(what_is_kept_is_given_up_first)
{
    limit_addresses(64 * MIB);
    run_thread(work_once, 0);
    size_t large = until_the_end(200000), small = until_the_end(3000);
    for (int round = 0; round < 3; round++) {
        run_thread(all_sizes, 0);
        all_sizes(NULL);
        size_t left = round % 2 ? until_the_end(3000) : until_the_end(200000);
        size_t before = round % 2 ? small : large;
        fprintf(stderr, "%zu blocks, then %zu\n", before, left);
        CHECK(left >= before - before / 16);
    }
}

/* Of libmasu.so, which is preloaded. */
extern int masu_option_set(const char *name, size_t value) __attribute__((weak));

/* A block longer than all that is reserved: what is given up makes room for it, with what was never taken. */
GROUP(what_is_kept_makes_room_for_a_longer_block)
{
    enum { COUNT = 400 };
    static char *blocks[COUNT];
    limit_addresses(addresses() + 1000 * MIB);
    for (int i = 0; i < COUNT; i++)
        CHECK((blocks[i] = malloc(MIB)) != NULL);
    /* The page of this block lies behind them, and stays when it is empty. */
    void *small = malloc(3000);
    CHECK(small);
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
    free(small);
    blocks[0] = malloc(700 * MIB);
    CHECK(blocks[0]);
    free(blocks[0]);
    /* The same where an option keeps what is free, and something is live before it. */
    CHECK(masu_option_set && masu_option_set("retain", 512 * MIB) == 0);
    CHECK(malloc(MIB));
    for (int i = 0; i < COUNT; i++)
        CHECK((blocks[i] = malloc(MIB)) != NULL);
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
    CHECK(malloc(700 * MIB) != NULL);
}

/* The same where an option keeps all of it, and under a limit on data in place of addresses. */
GROUP(what_options_keep_makes_room_for_a_longer_block)
{
    enum { COUNT = 400 };
    static char *blocks[COUNT];
    struct rlimit limit = {1000 * MIB, 1000 * MIB};
    if (getenv("MASU_RETAIN"))
        limit_addresses(addresses() + 1000 * MIB);
    else
        CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++)
            CHECK((blocks[i] = malloc(MIB)) != NULL);
        for (int i = 0; i < COUNT; i++)
            free(blocks[i]);
        char *block = malloc(700 * MIB);
        CHECK(block);
        block[0] = block[700 * MIB - 1] = 1;
        free(block);
        work((unsigned)round, 1000);
    }
}

/* Nothing of the allocator's own lies amid the blocks for good, so what they leave is one piece. */
GROUP(addresses_of_small_blocks_are_one_piece_again)
{
    enum { COUNT = 420000 };
    limit_addresses(addresses() + 700 * MIB);
    char **blocks = malloc(COUNT * sizeof *blocks);
    CHECK(blocks);
    for (int i = 0; i < COUNT; i++)
        CHECK((blocks[i] = malloc(1000)) != NULL);
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
    CHECK(malloc(600 * MIB) != NULL);
}

/* Under a limit over 1 GiB there are several arenas. What lies at the start of each stays live. */
GROUP(every_arena_gives_its_end_back)
{
    enum { COUNT = 3000 };
    static char *blocks[COUNT];
    limit_addresses(addresses() + 4000 * MIB);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++)
            CHECK(blocks[i] || (blocks[i] = malloc(MIB)) != NULL);
        size_t full = addresses();
        for (int i = 0; i < COUNT; i++) {
            if ((uintptr_t)blocks[i] % (1024 * MIB) > 16 * MIB) {
                free(blocks[i]);
                blocks[i] = NULL;
            }
        }
        CHECK(addresses() + 2500 * MIB < full);
    }
    CHECK(malloc(3000 * MIB) != NULL);
}

/* --- Reports and settings --- */

GROUP(freed_memory_goes_back)
{
    enum { COUNT = 400000, FEW = 16000 };
    char **blocks = mmap(NULL, COUNT * sizeof *blocks, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(blocks != MAP_FAILED);
    memset(blocks, 0, COUNT * sizeof *blocks);
    for (size_t i = 0; i < FEW; i++) {
        blocks[i] = malloc(200);
        memset(blocks[i], 1, 200);
    }
    malloc_trim(0);
    /* Each page keeps a block, and what is free in it goes back. */
    for (size_t i = 0; i < FEW; i++)
        if (i % 100)
            free(blocks[i]);
    CHECK(malloc_trim(0) == 1);
    CHECK(malloc_trim(0) == 0);
    for (size_t i = 0; i < FEW; i += 100)
        free(blocks[i]);
    size_t before = resident();
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = malloc(200);
        memset(blocks[i], 1, 200);
    }
    size_t full = resident();
    CHECK(full > before + 70 * MIB);
    for (size_t i = 0; i < COUNT; i++)
        free(blocks[i]);
    CHECK(malloc_trim(0) == 1);
    size_t after = resident();
    fprintf(stderr, "%zu MiB, %zu MiB, %zu MiB\n", before / MIB, full / MIB, after / MIB);
    CHECK(after < before + 8 * MIB);
    work(1, 1000);
}

GROUP(numbers_follow_the_program)
{
    struct mallinfo2 before = mallinfo2();
    static char *small[10000];
    for (int i = 0; i < 10000; i++)
        small[i] = malloc(1000);
    char *large = malloc(30 * MIB);
    struct mallinfo2 during = mallinfo2();
    CHECK(during.uordblks >= before.uordblks + 10000 * 1000);
    CHECK(during.uordblks < before.uordblks + 10000 * 1200);
    CHECK(during.hblks == before.hblks + 1);
    CHECK(during.hblkhd >= before.hblkhd + 30 * MIB && during.hblkhd < before.hblkhd + 32 * MIB);
    struct mallinfo narrow = mallinfo();
    CHECK((size_t)narrow.uordblks == during.uordblks);
    for (int i = 0; i < 10000; i++)
        free(small[i]);
    free(large);
    struct mallinfo2 after = mallinfo2();
    CHECK(after.hblks == before.hblks && after.hblkhd == before.hblkhd);
    CHECK(after.uordblks <= before.uordblks + MIB);
    CHECK(after.arena == after.uordblks + after.fordblks);
}

GROUP(reports_are_printed)
{
    char text[4096] = "";
    FILE *file = tmpfile();
    CHECK(file);
    CHECK(malloc_info(1, file) == EINVAL);
    CHECK(malloc_info(0, file) == 0);
    rewind(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    CHECK(length > 100 && strncmp(text, "<malloc version=\"1\">\n", 21) == 0);
    CHECK(strcmp(text + length - 10, "</malloc>\n") == 0);
    CHECK(strstr(text, "<system type=\"current\" size=\""));
    /* To standard error, where the test looks. */
    malloc_stats();
}

RUN_GROUPS(300)
