/* large.c: blocks that most mallocs hand straight to the kernel: buffers, and blocks that grow. What
 * counts is how often memory is given back and faulted in again, and whether growth copies. */
#include "pattern.h"

#define MIB ((size_t)1 << 20)

/* Nothing is written, so nothing but the address can be checked: C's alignment of 16 bytes. */
static uint64_t pair_untouched(const struct share *share) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        void *block = take(share->size);
        if ((uintptr_t)block % 16 != 0) alignment_wrong(block, share->size, 16);
        free(block);
        sum += i;
    }
    return sum;
}

static uint64_t pair_touched(const struct share *share) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        void *block = take(share->size);
        touch_pages(block, 0, share->size, i);
        sum += check_pages(block, share->size, i, 16);
        free(block);
    }
    return sum;
}

uint64_t buffers_replaced(const struct share *share, size_t part, size_t check_every) {
    struct held *held = table_new(share->live, sizeof *held);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops + share->live; i++) {
        struct held *slot = &held[i < share->ops ? rng_below(&rng, share->live) : i - share->ops];
        if (slot->block) sum += check_pages(slot->block, slot->size, slot->stamp, check_every);
        free(slot->block);
        slot->block = NULL;
        if (i >= share->ops) continue;
        size_t size = rng_between(&rng, share->size / part, share->size);
        *slot = (struct held){take(size), (uint32_t)size, (uint32_t)i};
        touch_pages(slot->block, 0, size, slot->stamp);
    }
    table_drop(held, share->live, sizeof *held);
    return sum;
}

static uint64_t large_buffers(const struct share *share) { return buffers_replaced(share, 50, 16); }

/* One word in sixteen OS pages is checked to be zero and written: a malloc that knows its memory to be
 * zero need not write the rest. */
static uint64_t calloc_large(const struct share *share) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        char *block = calloc(share->size, 1);
        if (!block) cannot("allocate: calloc returned NULL");
        keep(block);
        for (size_t offset = 0; offset + 8 <= share->size; offset += 16 * TOUCH_STEP) {
            if (word_at(block, offset) != 0) contents_wrong(block, share->size);
            set_word_at(block, offset, mix(i));
            sum += mix(i + offset);
        }
        keep(block);
        free(block);
    }
    return sum;
}

/* Makes a block grow; checks that what it held at both ends came along. */
static uint64_t grow(struct held *held, size_t size) {
    void *block = realloc(held->block, size);
    if (!block) cannot("allocate: realloc returned NULL");
    uint64_t sum = check_block(block, held->size, held->stamp);
    *held = (struct held){block, (uint32_t)size, held->stamp + 1};
    stamp_block(block, size, held->stamp);
    return sum;
}

/* Vectors that double side by side, as in a program that reads many things at once. */
static uint64_t realloc_double(const struct share *share) {
    struct held *held = table_new(share->live, sizeof *held);
    struct rng rng = rng_new(share->seed);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        struct held *vector = &held[rng_below(&rng, share->live)];
        size_t size_old = vector->size;
        if (!vector->block) {
            *vector = held_new(16, (uint32_t)i);
        } else if (size_old * 2 <= share->size) {
            sum += grow(vector, size_old * 2);
            /* The new half is used; its last word stays the stamp. */
            touch_pages(vector->block, size_old, vector->size - 8, i);
        } else {
            sum += held_free(vector);
        }
    }
    sum += held_free_all(held, share->live);
    table_drop(held, share->live, sizeof *held);
    return sum;
}

#define PINS 16

/* Two texts that grow in turn by 1 KiB, with a small block now and then that may end up behind one of
 * them and bar its way. */
static uint64_t realloc_1k(const struct share *share) {
    struct held texts[2] = {{0}}, pins[PINS] = {{0}};
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        struct held *text = &texts[i % 2];
        if (!text->block) {
            *text = held_new(1024, (uint32_t)i);
        } else if (text->size + 1024u <= share->size) {
            sum += grow(text, text->size + 1024u);
        } else {
            sum += held_free(text);
        }
        if (i % 32 == 0) {
            struct held *pin = &pins[i / 32 % PINS];
            sum += held_free(pin);
            *pin = held_new(64, (uint32_t)i);
        }
    }
    return sum + held_free_all(texts, 2) + held_free_all(pins, PINS);
}

/* One block that grows by 1 MiB, used at the given step. */
static uint64_t realloc_1m_used(const struct share *share, size_t step) {
    char *block = NULL;
    size_t size = 0;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < share->ops; i++) {
        if (size + MIB > share->size) {
            free(block);
            block = NULL;
            size = 0;
        }
        block = realloc(block, size + MIB);
        if (!block) cannot("allocate: realloc returned NULL");
        keep(block);
        for (size_t offset = size; offset < size + MIB; offset += step)
            set_word_at(block, offset, mix(share->seed) + offset);
        size += MIB;
        for (size_t offset = 0; offset < size; offset += 4 * MIB) {
            if (word_at(block, offset) != mix(share->seed) + offset) contents_wrong(block, size);
            sum += word_at(block, offset);
        }
    }
    free(block);
    return sum;
}

static uint64_t realloc_1m(const struct share *share) { return realloc_1m_used(share, MIB); }
static uint64_t realloc_1m_touched(const struct share *share) { return realloc_1m_used(share, TOUCH_STEP); }

#define LARGE(NAME, SIZE_MIN, SIZE, LIVE, OPS, BODY, ABOUT)                                              \
    {.name = NAME, .group = "large", .threads = 1, .threads_min = 1, .size_min = SIZE_MIN,               \
     .size = SIZE, .live = LIVE, .ops = OPS, .each = BODY, .about = ABOUT}

const struct pattern large_patterns[] = {
    LARGE("pair-64k-untouched", 16, 65536, 1, 40000000, pair_untouched, "a buffer larger than what is used of it"),
    LARGE("pair-64k-touched", 4096, 65536, 1, 20000000, pair_touched, "a buffer for one call, used"),
    LARGE("pair-1m-untouched", 16, MIB, 1, 15000000, pair_untouched, "a buffer larger than what is used of it"),
    LARGE("pair-16m-touched", 4096, 16 * MIB, 1, 1500, pair_touched, "a frame or a file at a time"),
    LARGE("large-buffers", 4096 * 50, 25 * MIB, 10, 1500, large_buffers, "buffers of size/50 to size, ten live, touched"),
    LARGE("calloc-large", 4096, 4 * MIB, 1, 30000, calloc_large, "zeroed tables that are sparsely used"),
    LARGE("realloc-double", 1024, MIB, 16, 180000, realloc_double, "sixteen vectors that grow by doubling"),
    LARGE("realloc-1k", 4096, 256 << 10, 2, 1000000, realloc_1k, "two texts that grow by 1 KiB"),
    LARGE("realloc-1m", 2 * MIB, 64 * MIB, 1, 1920, realloc_1m, "a block that grows by 1 MiB, sparsely used"),
    LARGE("realloc-1m-touched", 2 * MIB, 64 * MIB, 1, 1280, realloc_1m_touched, "a block that grows by 1 MiB, every OS page used"),
    {0},
};
