/* Every kind of request, each checked: what `tests/faults` runs while the kernel refuses calls of the library's.
 *
 * A request gives a block, which then holds what was written, or null with ENOMEM. At the end nothing is alive that was
 * not alive before. */
#include "work.h"

#include <errno.h>
#include <masu.h>
#include <signal.h>
#include <sys/mman.h>

/* Requests that were refused, in all threads. */
static atomic_size_t refused;

static unsigned char mark_of(const void *block, size_t at)
{
    return (unsigned char)(((uintptr_t)block >> 4) * 31 + at * 7 + 1);
}

/* Where contents are written and looked at: ends, and a place in each OS page. */
static size_t step_of(size_t size)
{
    return size < 4096 ? 1 : 4093;
}

static void fill(unsigned char *block, size_t size)
{
    for (size_t at = 0; at < size; at += step_of(size))
        block[at] = mark_of(block, at);
    if (size)
        block[size - 1] = 0x5a;
}

static void expect_filled(const unsigned char *block, size_t size)
{
    for (size_t at = 0; at + 1 < size; at += step_of(size))
        CHECK(block[at] == mark_of(block, at));
    if (size)
        CHECK(block[size - 1] == 0x5a);
}

/* What a request gave: the block, filled, or null for want of memory. */
static void *given(void *block, size_t size, size_t align)
{
    if (!block) {
        CHECK(errno == ENOMEM);
        refused++;
        return NULL;
    }
    CHECK((uintptr_t)block % align == 0);
    fill(block, size);
    errno = 0;
    return block;
}

static void expect_zeros(const unsigned char *block, size_t size)
{
    for (size_t at = 0; block && at < size; at += step_of(size))
        CHECK(block[at] == 0);
}

/* A block by the way of asking that `way` says. */
static void *get(unsigned way, size_t size)
{
    void *block = NULL;
    errno = 0;
    switch (way % 6) {
    case 0:
        block = calloc(1, size);
        expect_zeros(block, size);
        return given(block, size, 16);
    case 1: {
        int error = posix_memalign(&block, 4096, size);
        CHECK(error == 0 || error == ENOMEM);
        errno = error;
        return given(error ? NULL : block, size, 4096);
    }
    case 2:
        return given(aligned_alloc(64, size), size, 64);
    default:
        return given(malloc(size), size, 16);
    }
}

static void drop(void *block, size_t size)
{
    if (block)
        expect_filled(block, size);
    free(block);
}

/* Random requests among a few live blocks, resized now and then. */
static void requests(unsigned seed, int steps)
{
    enum { LIVE = 48 };
    static const size_t sizes[] = {8, 24, 100, 500, 2000, 9000, 30000, 50000, 70000, 300000, 3 * MIB};
    unsigned char *blocks[LIVE] = {0};
    size_t lengths[LIVE] = {0};
    for (int step = 0; step < steps; step++) {
        seed = seed * 1103515245 + 12345;
        unsigned draw = seed >> 8, at = draw % LIVE;
        size_t size = sizes[(draw / LIVE) % (draw % 8 == 0 ? 11 : 6)] + draw % 7;
        if (blocks[at] && draw % 3 == 0) {
            /* A resize that is refused leaves the block as it is. */
            errno = 0;
            unsigned char *moved = realloc(blocks[at], size);
            if (!moved) {
                CHECK(errno == ENOMEM);
                refused++;
                expect_filled(blocks[at], lengths[at]);
                continue;
            }
            unsigned char *old = blocks[at];
            for (size_t i = 0; i + 1 < lengths[at] && i < size; i += step_of(lengths[at]))
                CHECK(moved[i] == mark_of(old, i));
            blocks[at] = moved;
            fill(moved, size);
        } else {
            drop(blocks[at], lengths[at]);
            blocks[at] = get(draw >> 4, size);
        }
        lengths[at] = blocks[at] ? size : 0;
    }
    for (int i = 0; i < LIVE; i++)
        drop(blocks[i], lengths[i]);
}

/* Many blocks of a size at once, freed in another order: pages come and go. */
static void crowd(size_t size, size_t count)
{
    unsigned char **blocks = calloc(count, sizeof *blocks);
    if (!blocks) {
        refused++;
        return;
    }
    for (size_t i = 0; i < count; i++)
        blocks[i] = get(3, size);
    for (size_t i = 0; i < count; i += 2)
        drop(blocks[i], size);
    for (size_t i = 1; i < count; i += 2)
        drop(blocks[i], size);
    free(blocks);
}

/* A few gigabytes of addresses, of which little is touched. */
static void huge(void)
{
    size_t size = 1500 * MIB;
    errno = 0;
    unsigned char *block = malloc(size);
    CHECK(block || errno == ENOMEM);
    if (!block) {
        refused++;
        return;
    }
    block[0] = block[size - 1] = 7;
    unsigned char *shorter = realloc(block, size / 2);
    CHECK(shorter || errno == ENOMEM);
    refused += !shorter;
    block = shorter ? shorter : block;
    CHECK(block[0] == 7);
    free(block);
}

/* Threads, on stacks of ours: glibc keeps its own, and with them memory that it asked for. */
static void *of_thread(void *argument)
{
    requests((unsigned)(uintptr_t)argument, 150);
    return NULL;
}

/* Pages of two sizes come and go at once in all threads, so they wait for each other's locks. */
static void *of_crowded_thread(void *argument)
{
    for (int round = 0; round < 6; round++) {
        crowd(2000, 150);
        crowd(100000, 4);
    }
    return of_thread(argument);
}

static void fork_and_exit(void)
{
    pid_t child = fork();
    if (child < 0)
        return;
    if (child == 0) {
        requests(8, 20);
        _exit(0);
    }
    expect_success(child);
}

/* `forks` times the locks are held for a fork while threads want them. */
static void threads(void *(*work)(void *), int forks)
{
    enum { COUNT = 3, STACK = 1 << 18 };
    pthread_t threads[COUNT];
    pthread_attr_t attributes;
    int started[COUNT];
    char *stacks = mmap(NULL, COUNT * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED)
        return;
    for (int i = 0; i < COUNT; i++) {
        CHECK(pthread_attr_init(&attributes) == 0);
        CHECK(pthread_attr_setstack(&attributes, stacks + i * STACK, STACK) == 0);
        int error = pthread_create(&threads[i], &attributes, work, (void *)(uintptr_t)(i + 1));
        CHECK(error == 0 || error == EAGAIN || error == ENOMEM);
        started[i] = error == 0;
        refused += error != 0;
        pthread_attr_destroy(&attributes);
    }
    work((void *)99);
    while (forks--)
        fork_and_exit();
    for (int i = 0; i < COUNT; i++)
        CHECK(!started[i] || pthread_join(threads[i], NULL) == 0);
    munmap(stacks, COUNT * STACK);
}

/* A child uses what it was left, and what is new. */
static void forked(void)
{
    unsigned char *kept = get(3, 5000);
    pid_t child = fork();
    if (child == 0) {
        drop(kept, 5000);
        requests(5, 100);
        threads(of_thread, 0);
        _exit(0);
    }
    if (child > 0)
        expect_success(child);
    drop(kept, 5000);
}

static void heaps(void)
{
    masu_heap_t *heap = masu_heap_new();
    if (!heap) {
        CHECK(errno == ENOMEM);
        refused++;
        return;
    }
    void *blocks[60];
    size_t size_of[] = {40, 700, 20000, 100000};
    for (int i = 0; i < 60; i++) {
        errno = 0;
        blocks[i] = given(masu_heap_malloc(heap, size_of[i % 4]), size_of[i % 4], 16);
        CHECK(!blocks[i] || masu_heap_of(blocks[i]) == heap);
    }
    for (int i = 0; i < 60; i += 3)
        drop(blocks[i], size_of[i % 4]);
    masu_heap_clear(heap);
    drop(given(masu_heap_calloc(heap, 3, 1000), 3000, 16), 3000);
    masu_heap_destroy(heap);
}

static void profile(void)
{
    char path[64];
    int error = masu_profile_start(4096);
    CHECK(error == 0 || error == ENOMEM);
    requests(17, 200);
    heaps();
    snprintf(path, sizeof path, "/tmp/masu-faulted.%d", (int)getpid());
    (void)masu_profile_write(path);
    unlink(path);
    masu_profile_stop();
    requests(18, 100);
}

static void options(void)
{
    CHECK(masu_option_set("retain", 0) == 0);
    crowd(3000, 200);
    requests(31, 100);
    CHECK(masu_option_set("retain", MASU_UNSET) == 0);
    CHECK(masu_option_set("shards", 4) == 0);
    CHECK(masu_option_set("statistics_page", 1) == 0);
    CHECK(masu_option_set("huge_pages", 1) == 0);
    requests(32, 100);
    CHECK(masu_option_set("purge_delay_ms", 1) == 0);
    crowd(3000, 200);
    crowd(200000, 12);
    requests(33, 100);
    CHECK(masu_option_set("purge_delay_ms", MASU_UNSET) == 0);
    CHECK(masu_option_set("memory_limit", 64 * MIB) == 0);
    requests(34, 100);
    CHECK(masu_option_set("memory_limit", MASU_UNSET) == 0);
    CHECK(masu_option_set("statistics_page", 0) == 0);
    CHECK(masu_option_set("huge_pages", MASU_UNSET) == 0);
}

/* Numbers that must agree with each other while nobody else allocates. */
static size_t live_by_the_books(void)
{
    static struct masu_class_statistics classes[100];
    struct masu_statistics all;
    size_t live, count = masu_statistics_classes(classes, sizeof classes[0], 100);
    CHECK(masu_statistics(&all, sizeof all) == sizeof all && count <= 100);
    live = all.large_bytes + all.heap_bytes + all.guarded_apart_bytes;
    for (size_t i = 0; i < count; i++) {
        live += classes[i].live_blocks * classes[i].size;
        CHECK((classes[i].live_blocks + classes[i].thread_cached_blocks + classes[i].transfer_blocks
               + classes[i].free_blocks) * classes[i].size <= classes[i].pages * classes[i].page_bytes);
    }
    CHECK(live == all.live_bytes);
    CHECK(all.live_bytes <= all.committed_bytes && all.committed_bytes <= all.reserved_bytes);
    CHECK(all.heaps == 0 && all.heap_bytes == 0);
    return live;
}

/* Maps OS pages that never merge until there are no more, but for a few. */
static void leave_mappings(size_t few)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 0, length = 200000 * page;
    char *start = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(start != MAP_FAILED);
    while (count < 100000 && mprotect(start + 2 * count * page, page, PROT_READ) == 0)
        count++;
    CHECK(errno == ENOMEM && count > few);
    /* Each page that is as its neighbors gives two mappings back. */
    for (size_t i = 1; i <= few / 2; i++)
        CHECK(mprotect(start + 2 * i * page, page, PROT_NONE) == 0);
}

/* The argument is `recovers` where no request may be refused at the end, or the number of mappings that are left. */
int main(int count, char **arguments)
{
    served_by_masu();
    int recovers = count > 1 && strcmp(arguments[1], "recovers") == 0;
    if (count > 1 && !recovers)
        leave_mappings((size_t)atol(arguments[1]));
    size_t before = live_by_the_books();
    requests(1, 400);
    crowd(100, 1500);
    crowd(40000, 40);
    crowd(200000, 12);
    huge();
    drop(get(3, 40 * MIB), 40 * MIB);
    threads(of_thread, 0);
    forked();
    malloc_trim(0);
    heaps();
    profile();
    options();
    crowd(5 * MIB, 6);
    masu_purge(0);
    requests(2, 200);
    CHECK(masu_option_set("shards", 1) == 0);
    threads(of_crowded_thread, 8);
    static char text[1 << 16];
    CHECK(masu_statistics_text(text, sizeof text) > 100);
    CHECK(live_by_the_books() == before);
    size_t by_now = refused;
    requests(3, 300);
    drop(get(3, 40 * MIB), 40 * MIB);
    if (recovers)
        CHECK(refused == by_now);
    CHECK(live_by_the_books() == before);
    printf("%zu refused\n", by_now);
    return 0;
}
