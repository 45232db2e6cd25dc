/* drawn.c: a program whose use of malloc is drawn from a seed, to compare mallocs on work that nobody has tuned them to:
 * sizes, how much of a block is written, calloc, realloc, alignment, the order of frees, threads, and whether blocks
 * wander between them.
 *
 * The same seed makes the same calls. Each block begins with a stamp, which is checked when it is freed, and calloc's zeros
 * are checked at both ends and in the middle; a wrong block ends the run with exit code 3. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

#define THREADS_MOST 4
#define SHARED 256
#define OS_PAGE ((size_t)4096)

const char program[] = "drawn";
const char arguments_told[] = "Usage: drawn SEED [--bytes N]\n";

enum touch { ALL, THIRD, EACH_PAGE, EACH_16_PAGES, ENDS, END_AND_ONE, TOUCHES };
static const char *const touches[] = {"all", "a third", "each page", "each 16th page", "both ends", "the start and one byte"};
enum order { RANDOM, OLDEST_FIRST, NEWEST_FIRST, ALL_AT_ONCE, ORDERS };
static const char *const orders[] = {"random", "oldest first", "newest first", "all at once"};

static struct {
    double log_low, log_high; /* of sizes, whose logarithms are uniform */
    enum touch touch;
    double calloc, realloc, aligned; /* shares of requests */
    size_t live;                     /* most blocks at once */
    enum order order;
    unsigned threads;
    bool exchange;
    uint64_t bytes; /* what ends the run: see `cost` */
} shape;

struct rng {
    uint64_t state;
};

static uint64_t next(struct rng *rng) {
    uint64_t value = rng->state += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

static double fraction(struct rng *rng) { return (double)(next(rng) >> 11) * 0x1p-53; }
static size_t below(struct rng *rng, size_t limit) { return next(rng) % limit; }

struct block {
    unsigned char *start;
    size_t size;
};

static struct {
    pthread_mutex_t lock;
    struct block block;
} shared[SHARED];

static void write_to(struct block block, struct rng *rng) {
    unsigned char *start = block.start;
    size_t size = block.size;
    switch (shape.touch) {
    case ALL: memset(start, 1, size); break;
    case THIRD: memset(start, 1, size / 3 + 1); break;
    case EACH_PAGE: for (size_t at = 0; at < size; at += OS_PAGE) start[at] = 1; break;
    case EACH_16_PAGES: for (size_t at = 0; at < size; at += 16 * OS_PAGE) start[at] = 1; break;
    case END_AND_ONE: start[below(rng, size)] = 1; break;
    case ENDS: case TOUCHES: break;
    }
    start[size - 1] = 1;
    uint64_t stamp = size ^ 0x6d617375;
    memcpy(start, &stamp, sizeof stamp);
}

static uint64_t check(struct block block) {
    uint64_t stamp;
    memcpy(&stamp, block.start, sizeof stamp);
    if (stamp != (block.size ^ 0x6d617375)) contents_wrong(block.start, block.size);
    return stamp;
}

static uint64_t release(struct block *block) {
    if (!block->start) return 0;
    uint64_t sum = check(*block);
    free(block->start);
    *block = (struct block){0};
    return sum;
}

static size_t drawn_size(struct rng *rng) {
    return (size_t)exp(shape.log_low + (shape.log_high - shape.log_low) * fraction(rng));
}

static struct block request(struct rng *rng) {
    struct block block = {NULL, drawn_size(rng)};
    double kind = fraction(rng);
    if (kind < shape.calloc) {
        block.start = calloc(1, block.size);
        const unsigned char *zeros = block.start;
        if (zeros && (zeros[0] || zeros[block.size / 2] || zeros[block.size - 1]))
            contents_wrong(zeros, block.size);
    } else if (kind < shape.calloc + shape.aligned) {
        size_t align = (size_t)16 << below(rng, 9);
        block.start = aligned_alloc(align, (block.size + align - 1) / align * align);
    } else {
        block.start = malloc(block.size);
    }
    if (!block.start) cannot("allocate: there is no memory");
    write_to(block, rng);
    return block;
}

static void resize(struct block *block, struct rng *rng) {
    if (block->start) check(*block);
    size_t size = drawn_size(rng);
    unsigned char *start = realloc(block->start, size);
    if (!start) cannot("allocate: there is no memory");
    *block = (struct block){start, size};
    write_to(*block, rng);
}

/* What a request costs of the run's bytes: about what is written, and something for the call. */
static uint64_t cost(size_t size) { return 128 + (shape.touch <= THIRD ? size / 8 : size / 64); }

/* Where the next block goes, or, as true, which one goes away without another in its place. */
static bool frees_next(uint64_t step, size_t live, struct rng *rng, size_t *at) {
    uint64_t turn = step % (2 * live);
    switch (shape.order) {
    case OLDEST_FIRST: *at = step % live; return false;
    case NEWEST_FIRST: *at = turn < live ? turn : 2 * live - 1 - turn; return turn >= live;
    case ALL_AT_ONCE: *at = turn % live; return turn >= live;
    case RANDOM: case ORDERS: break;
    }
    *at = below(rng, live);
    return false;
}

static void *work(void *argument) {
    struct rng rng = {(uint64_t)(uintptr_t)argument * 7919};
    size_t live = shape.live / shape.threads;
    struct block *blocks = table_new(live, sizeof *blocks);
    uint64_t sum = 0, spent = 0;
    for (uint64_t step = 0; spent < shape.bytes / shape.threads; step++) {
        size_t at;
        if (frees_next(step, live, &rng, &at)) {
            sum += release(&blocks[at]);
            spent += 64;
            continue;
        }
        bool resizes = fraction(&rng) < shape.realloc;
        if (shape.exchange && below(&rng, 4) == 0) {
            size_t other = below(&rng, SHARED);
            pthread_mutex_lock(&shared[other].lock);
            struct block theirs = shared[other].block;
            shared[other].block = blocks[at];
            blocks[at] = theirs;
            pthread_mutex_unlock(&shared[other].lock);
        }
        if (resizes) {
            resize(&blocks[at], &rng);
        } else {
            release(&blocks[at]);
            blocks[at] = request(&rng);
        }
        sum += check(blocks[at]);
        spent += cost(blocks[at].size);
    }
    for (size_t at = 0; at < live; at++) release(&blocks[at]);
    table_drop(blocks, live, sizeof *blocks);
    return (void *)(uintptr_t)sum;
}

static void draw(uint64_t seed) {
    static const double limits[] = {16, 64, 256, 1024, 4096, 32768, 131072, 1 << 20, 4 << 20, 32 << 20};
    static const double shares[] = {0, 0, 0.1, 0.5, 1};
    struct rng rng = {seed * 1000003};
    size_t low = below(&rng, 9), high = low + 1 + below(&rng, 4);
    double from = limits[low], to = limits[high < 9 ? high : 9];
    shape.log_low = log(from);
    shape.log_high = log(to);
    shape.touch = (enum touch)below(&rng, TOUCHES);
    shape.calloc = shares[below(&rng, 5)];
    shape.realloc = shares[below(&rng, 4)];
    shape.aligned = shares[below(&rng, 3)] / 2;
    shape.order = (enum order)below(&rng, ORDERS);
    shape.threads = below(&rng, 2) ? 1 : 1u << below(&rng, 3);
    shape.exchange = shape.threads > 1 && below(&rng, 2);
    double most = exp(log(1 << 20) + fraction(&rng) * (log(400 << 20) - log(1 << 20)));
    double mean = (to - from) / (shape.log_high - shape.log_low);
    shape.live = (size_t)fmin(most / mean, 2e6);
    if (shape.live < shape.threads) shape.live = shape.threads;
}

int main(int count, char **arguments) {
    if (count != 2 && (count != 4 || strcmp(arguments[2], "--bytes") != 0)) usage("name a seed");
    draw(number("SEED", arguments[1], 0, UINT64_MAX));
    shape.bytes = count == 4 ? number("--bytes", arguments[3], 1, UINT64_MAX) : 200000000;
    print(STDOUT_FILENO,
          "sizes %.0f to %.0f, written %s, calloc %.0f %%, realloc %.0f %%, aligned %.0f %%, %zu live, freed %s, threads %u%s\n",
          exp(shape.log_low), exp(shape.log_high), touches[shape.touch], 100 * shape.calloc, 100 * shape.realloc,
          100 * shape.aligned, shape.live, orders[shape.order], shape.threads, shape.exchange ? ", which exchange blocks" : "");
    for (size_t at = 0; at < SHARED; at++) pthread_mutex_init(&shared[at].lock, NULL);
    uint64_t sum = 0;
    if (shape.threads == 1) {
        sum = (uintptr_t)work((void *)1);
    } else {
        pthread_t threads[THREADS_MOST];
        for (uintptr_t at = 0; at < shape.threads; at++)
            threads[at] = start_thread_with(0, work, (void *)(at + 1));
        for (unsigned at = 0; at < shape.threads; at++) {
            void *part;
            pthread_join(threads[at], &part);
            sum += (uintptr_t)part;
        }
    }
    for (size_t at = 0; at < SHARED; at++) release(&shared[at].block);
    print(STDOUT_FILENO, "checksum %016llx\n", (unsigned long long)sum);
    return 0;
}
