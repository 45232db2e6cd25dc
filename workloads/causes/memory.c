/* memory.c: causes that lie in where memory comes from and in how it is given back. */
#include <sys/mman.h>

#include "cause.h"

#define MIB ((size_t)1 << 20)

/* ---- brk-storm: a stack of buffers at the top of the heap, put up and taken down again ---- */

#define PIECES 4
/* Below 128 KiB, from which on glibc maps each by itself. */
#define PIECE_BYTES ((size_t)100 << 10)

static uint64_t brk_storm(void) {
    struct held pieces[PIECES];
    uint64_t sum = 0;
    for (uint64_t round = 0; round < 60000; round++) {
        for (uint32_t i = 0; i < PIECES; i++)
            pieces[i] = held_new(PIECE_BYTES, (uint32_t)round * PIECES + i);
        /* The last one first: each lies at the top when it is freed, and the top is given back. */
        for (uint32_t i = PIECES; i-- > 0;) sum += held_free(&pieces[i]);
    }
    return sum;
}

/* ---- eager-return: a large buffer for each round, a mapping of its own, new every time ---- */

/* Above 32 MiB glibc never learns to keep a mapping. */
#define BUFFER_BYTES (40 * MIB)

static uint64_t eager_return(void) {
    uint64_t sum = 0;
    for (uint64_t round = 0; round < 60; round++) {
        char *buffer = take(BUFFER_BYTES);
        touch_pages(buffer, 0, BUFFER_BYTES, round);
        sum += check_pages(buffer, BUFFER_BYTES, round, 1);
        free(buffer);
    }
    return sum;
}

/* ---- phase-change: many records, few of which stay, all over the heap; then other work ---- */

#define RECORD_MIN ((size_t)64)
#define RECORD_MAX ((size_t)1024)
#define KEPT_EVERY 64
#define WORKING_BYTES ((size_t)8192)

static uint64_t phase_change(void) {
    size_t count = 240 * MIB / ((RECORD_MIN + RECORD_MAX) / 2);
    struct held *records = table_new(count, sizeof *records);
    struct rng rng = rng_new(1);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        records[i] = held_new(rng_between(&rng, RECORD_MIN, RECORD_MAX), (uint32_t)i);
    for (size_t i = 0; i < count; i++)
        if (i % KEPT_EVERY != 0) sum += held_free(&records[i]);
    for (uint64_t round = 0; round < 10000; round++) {
        struct held working = held_new(WORKING_BYTES, (uint32_t)round);
        for (size_t i = 0; i < count; i += KEPT_EVERY)
            sum += check_block(records[i].block, records[i].size, records[i].stamp);
        sum += held_free(&working);
    }
    sum += held_free_all(records, count);
    table_drop(records, count, sizeof *records);
    return sum;
}

/* ---- huge-page-waste: huge pages asked for, one word in each used ---- */

#define HUGE_PAGE ((size_t)2 << 20)

static uint64_t huge_page_waste(void) {
    size_t count = 256 * MIB / HUGE_PAGE;
    char *ground = aligned_alloc(HUGE_PAGE, count * HUGE_PAGE);
    if (!ground) cannot("allocate: aligned_alloc returned NULL");
    /* Where the kernel has no huge pages there is no waste either. */
    madvise(ground, count * HUGE_PAGE, MADV_HUGEPAGE);
    for (size_t i = 0; i < count; i++) set_word_at(ground, i * HUGE_PAGE, mix(i));
    struct rng rng = rng_new(1);
    uint64_t sum = 0;
    keep(ground);
    for (uint64_t round = 0; round < 60000000; round++) {
        size_t i = rng_below(&rng, count);
        uint64_t word = word_at(ground, i * HUGE_PAGE);
        if (word != mix(i)) contents_wrong(ground + i * HUGE_PAGE, HUGE_PAGE);
        sum += word;
    }
    free(ground);
    return sum;
}

/* ---- growth: each request leaves something behind that nobody frees ---- */

#define REQUESTS 110000
#define LEFT_BEHIND ((size_t)4 << 10)
#define STEPS_A_REQUEST 25000

static uint64_t growth(void) {
    struct held *left = table_new(REQUESTS, sizeof *left);
    uint64_t sum = 0;
    for (size_t made = 0; made < REQUESTS; made++) {
        left[made] = held_new(LEFT_BEHIND, (uint32_t)made);
        uint64_t value = made;
        for (int i = 0; i < STEPS_A_REQUEST; i++) value = mix(value);
        sum += value;
    }
    /* Only here, so that it can be checked. */
    sum += held_free_all(left, REQUESTS);
    table_drop(left, REQUESTS, sizeof *left);
    return sum;
}

const struct cause memory_causes[] = {
    {"brk-storm", brk_storm, "the top of the heap given back and asked for again"},
    {"eager-return", eager_return, "a large buffer mapped, touched and unmapped each round"},
    {"phase-change", phase_change, "one record in 64 outlives a phase and holds the heap"},
    {"huge-page-waste", huge_page_waste, "huge pages for memory that is used sparsely"},
    {"growth", growth, "each request leaves something behind, 430 MiB in all"},
    {0},
};
