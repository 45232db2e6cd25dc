/* small.c: blocks up to 64 KiB on threads that share nothing. What differs between the patterns is how
 * long a block lives and in which order blocks are freed, which is what a free list feels. */
#include "pattern.h"

static uint64_t pair(const struct share *share) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        void *block = take(share->size);
        stamp_block(block, share->size, i);
        sum += check_block(block, share->size, i);
        free(block);
    }
    return sum;
}

static uint64_t pair_mixed(const struct share *share) {
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        size_t size = rng_between(&rng, 16, share->size);
        void *block = take(size);
        stamp_block(block, size, i);
        sum += check_block(block, size, i);
        free(block);
    }
    return sum;
}

/* Allocates `live` blocks and frees them in the order given by `orders`, which holds 16 orders so that
 * a random one costs no random numbers while the clock runs. */
static uint64_t batches(const struct share *share, const uint32_t *orders) {
    struct held *held = table_new(share->live, sizeof *held);
    uint64_t sum = 0, left = share->ops;
    for (unsigned round = 0; left > 0; round++) {
        const uint32_t *order = orders + round % 16 * share->live;
        size_t count = left < share->live ? (size_t)left : share->live;
        for (size_t i = 0; i < count; i++) held[i] = held_new(share->size, (uint32_t)(round + i));
        for (size_t i = 0; i < share->live; i++) sum += held_free(&held[order[i]]);
        left -= count;
    }
    table_drop(held, share->live, sizeof *held);
    return sum;
}

enum order { IN_ORDER, REVERSE, RANDOM };

static uint64_t batches_in(const struct share *share, enum order wanted) {
    uint32_t *orders = table_new(16 * share->live, sizeof *orders);
    struct rng rng = rng_new(share->seed);
    for (size_t round = 0; round < 16; round++) {
        uint32_t *order = orders + round * share->live;
        for (size_t i = 0; i < share->live; i++)
            order[i] = (uint32_t)(wanted == REVERSE ? share->live - 1 - i : i);
        if (wanted == RANDOM) shuffle(order, share->live, &rng);
    }
    uint64_t sum = batches(share, orders);
    table_drop(orders, 16 * share->live, sizeof *orders);
    return sum;
}

static uint64_t batch_in_order(const struct share *share) { return batches_in(share, IN_ORDER); }
static uint64_t batch_reverse(const struct share *share) { return batches_in(share, REVERSE); }
static uint64_t batch_random(const struct share *share) { return batches_in(share, RANDOM); }

/* A number of many limbs, each result a fresh block, as in factoring programs. `residue` is the number
 * modulo 2^32 - 1, kept beside it: arithmetic itself is the check of the contents. */
struct number {
    uint32_t *limbs;
    uint32_t count;
    uint64_t residue;
};

#define NUMBERS 64
#define RESIDUE_MODULUS 0xffffffffu

static uint64_t number_free(struct number *number) {
    uint64_t residue = 0;
    /* 2^32 is 1 modulo 2^32 - 1, so the limbs simply add up. */
    keep(number->limbs);
    for (uint32_t i = 0; i < number->count; i++) residue += number->limbs[i];
    residue %= RESIDUE_MODULUS;
    if (residue != number->residue) contents_wrong(number->limbs, number->count * sizeof(uint32_t));
    free(number->limbs);
    return residue;
}

static struct number number_small(uint32_t value) {
    struct number number = {take(sizeof(uint32_t)), 1, value % RESIDUE_MODULUS};
    number.limbs[0] = value;
    return number;
}

/* a * factor + b */
static struct number number_multiply_add(const struct number *a, uint32_t factor, const struct number *b) {
    uint32_t longest = a->count > b->count ? a->count : b->count;
    struct number result = {take((longest + 1) * sizeof(uint32_t)), longest + 1, 0};
    uint64_t carry = 0;
    for (uint32_t i = 0; i < longest; i++) {
        carry += (uint64_t)(i < a->count ? a->limbs[i] : 0) * factor;
        uint64_t low = (carry & 0xffffffffu) + (i < b->count ? b->limbs[i] : 0);
        result.limbs[i] = (uint32_t)low;
        carry = (carry >> 32) + (low >> 32);
    }
    result.limbs[longest] = (uint32_t)carry;
    if (carry == 0) result.count--;
    result.residue = (a->residue * (factor % RESIDUE_MODULUS) + b->residue) % RESIDUE_MODULUS;
    return result;
}

static uint64_t tiny(const struct share *share) {
    struct rng rng = rng_new(share->seed);
    struct number numbers[NUMBERS];
    uint64_t sum = 0;
    size_t limbs_max = share->size / sizeof(uint32_t) - 1;
    for (size_t i = 0; i < NUMBERS; i++) numbers[i] = number_small(rng_next(&rng));
    for (uint64_t i = 0; i < share->ops; i++) {
        uint32_t r = rng_next(&rng);
        struct number *a = &numbers[r % NUMBERS], *b = &numbers[r / NUMBERS % NUMBERS];
        struct number *replaced = &numbers[r / NUMBERS / NUMBERS % NUMBERS];
        struct number result = a->count < limbs_max && b->count < limbs_max
                                   ? number_multiply_add(a, r | 1, b)
                                   : number_small(r);
        sum += number_free(replaced);
        *replaced = result;
    }
    for (size_t i = 0; i < NUMBERS; i++) sum += number_free(&numbers[i]);
    return sum;
}

/* Twice what 8 GiB of blocks of 1 to 1,024 B are. */
#define RANDOM_LIVE_MAX ((size_t)32 << 20)

/* Fills the table first and then replaces at random; both count as operations. */
static uint64_t random_replacement(const struct share *share) {
    struct held *held = table_new(share->live, sizeof *held);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        size_t at = i < share->live ? (size_t)i : rng_below(&rng, share->live);
        sum += held_free(&held[at]);
        held[at] = held_new(rng_between(&rng, 1, share->size), (uint32_t)i);
    }
    sum += held_free_all(held, share->live);
    table_drop(held, share->live, sizeof *held);
    return sum;
}

/* Each round allocates all blocks, visits them in the order of their allocation, and frees them in a
 * random one. From the second round on, the visit feels where the malloc took the blocks from. */
static uint64_t fill_random_free_refill(const struct share *share) {
    struct held *held = table_new(share->live, sizeof *held);
    uint32_t *order = table_new(share->live, sizeof *order);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0, left = share->ops;
    for (size_t i = 0; i < share->live; i++) order[i] = (uint32_t)i;
    while (left > 0) {
        size_t count = left < share->live ? (size_t)left : share->live;
        for (size_t i = 0; i < count; i++)
            held[i] = held_new(rng_between(&rng, 16, share->size), (uint32_t)i);
        for (size_t i = 0; i < count; i++)
            sum += check_block(held[i].block, held[i].size, held[i].stamp);
        shuffle(order, share->live, &rng);
        for (size_t i = 0; i < share->live; i++) sum += held_free(&held[order[i]]);
        left -= count;
    }
    table_drop(order, share->live, sizeof *order);
    table_drop(held, share->live, sizeof *held);
    return sum;
}

static uint64_t churn(const struct share *share) { return buffers_replaced(share, 8, 4); }

/* Every byte is checked to be zero and then written, so that a block that comes back dirty shows. */
static uint64_t calloc_small(const struct share *share) {
    struct held *held = table_new(share->live, sizeof *held);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        struct held *slot = &held[rng_below(&rng, share->live)];
        size_t words = rng_between(&rng, 2, share->size / 8);
        sum += held_free(slot);
        uint64_t *block = calloc(words, 8), found = 0;
        if (!block) cannot("allocate: calloc returned NULL");
        keep(block);
        for (size_t word = 0; word < words; word++) found |= block[word];
        if (found) contents_wrong(block, words * 8);
        memset(block, 0xa5, words * 8);
        *slot = (struct held){block, (uint32_t)(words * 8), (uint32_t)i};
        stamp_block(block, slot->size, slot->stamp);
    }
    sum += held_free_all(held, share->live);
    table_drop(held, share->live, sizeof *held);
    return sum;
}

/* Alignments of 16 to 4,096 bytes, small ones more often, through both of the C library's doors. */
static uint64_t aligned(const struct share *share) {
    struct held *held = table_new(share->live, sizeof *held);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        struct held *slot = &held[rng_below(&rng, share->live)];
        size_t align = (size_t)16 << __builtin_ctz(rng_next(&rng) | 1u << 8);
        size_t size = rng_between(&rng, 1, share->size);
        sum += held_free(slot);
        void *block = NULL;
        if (i % 2) {
            size = (size + align - 1) / align * align;
            block = aligned_alloc(align, size);
        } else if (posix_memalign(&block, align, size) != 0) {
            block = NULL;
        }
        if (!block) cannot("allocate: aligned allocation returned NULL");
        keep(block);
        if ((uintptr_t)block % align != 0) alignment_wrong(block, size, align);
        *slot = (struct held){block, (uint32_t)size, (uint32_t)i};
        stamp_block(block, size, slot->stamp);
    }
    sum += held_free_all(held, share->live);
    table_drop(held, share->live, sizeof *held);
    return sum;
}

#define SMALL(NAME, SIZE_MIN, SIZE, LIVE, OPS, BODY, ABOUT)                                              \
    {.name = NAME, .group = "small", .threads = 1, .threads_min = 1, .size_min = SIZE_MIN,               \
     .size = SIZE, .live = LIVE, .ops = OPS, .each = BODY, .about = ABOUT}

const struct pattern small_patterns[] = {
    SMALL("pair-16", 16, 16, 1, 200000000, pair, "malloc and free at once"),
    SMALL("pair-32", 16, 32, 1, 200000000, pair, "malloc and free at once"),
    SMALL("pair-64", 16, 64, 1, 200000000, pair, "malloc and free at once"),
    SMALL("pair-mixed", 16, 64, 1, 150000000, pair_mixed, "malloc and free at once, 16 B to size"),
    SMALL("pair-8k", 16, 8192, 1, 80000000, pair, "a buffer for one call"),
    SMALL("pair-32k", 16, 32768, 1, 80000000, pair, "a large buffer for one call"),
    SMALL("batch-in-order", 16, 64, 1000, 100000000, batch_in_order, "a list built, then freed from its head"),
    SMALL("batch-reverse", 16, 64, 1000, 100000000, batch_reverse, "a list built, then freed from its tail"),
    SMALL("batch-random", 16, 64, 1000, 100000000, batch_random, "a set built, then freed in random order"),
    SMALL("batch-4k", 16, 4096, 100, 16000000, batch_in_order, "buffers filled one after the other, then freed"),
    SMALL("batch-16k", 16, 16384, 100, 16000000, batch_random, "larger buffers filled, then freed in random order"),
    SMALL("tiny", 16, 64, NUMBERS, 30000000, tiny, "arithmetic on numbers of a few limbs"),
    {.name = "random-100k", .group = "small", .threads = 1, .threads_min = 1, .size_min = 16, .size = 1024, .live = 100000,
     .live_max = RANDOM_LIVE_MAX, .ops = 25000000, .each = random_replacement, .about = "a cache with random replacement, 1 B to size"},
    SMALL("random-4m", 16, 128, 4000000, 8000000, random_replacement, "a large heap with random replacement, 1 B to size"),
    SMALL("fill-random-free-refill", 16, 128, 500000, 5000000, fill_random_free_refill, "fill, visit, free in random order, again"),
    SMALL("churn-8-64k", 4096, 65536, 512, 5000000, churn, "buffers of size/8 to size, touched"),
    SMALL("calloc", 16, 512, 1000, 20000000, calloc_small, "zeroed blocks, 16 B to size, recycled dirty"),
    SMALL("aligned", 16, 1024, 1000, 16000000, aligned, "aligned_alloc and posix_memalign, alignment 16 to 4,096"),
    {0},
};
