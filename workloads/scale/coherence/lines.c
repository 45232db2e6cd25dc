/* lines.c: the directory: for each line which cores have it, and whether one has it alone.
 *
 * Lines are found by OS page: a hash table with open addressing, and the page that was found last before it. Pages are
 * never taken out, since memory that comes back lies at the same addresses. One thread at a time is in here
 * (plugin.c holds the lock). */
#include <stdlib.h>
#include <string.h>

#include "lines.h"

enum { WORDS = (CORES + 63) / 64, LINES_A_PAGE = 1 << (OS_PAGE_SHIFT - LINE_SHIFT), NOBODY = -1 };

struct line {
    uint64_t sharers[WORDS];
    int16_t owner; /* the one core that has it alone, or NOBODY */
    bool is_dirty; /* the owner has written it */
};

struct page {
    uint64_t number;
    struct line lines[LINES_A_PAGE];
};

static struct page **pages;
static size_t pages_size, pages_used;
static struct page *last;

static size_t place_of(uint64_t number) {
    size_t place = (number * 0x9e3779b97f4a7c15u) >> 20 & (pages_size - 1);
    while (pages[place] && pages[place]->number != number) place = (place + 1) & (pages_size - 1);
    return place;
}

static void make_room(void) {
    struct page **old = pages;
    size_t old_size = pages_size;
    pages_size = old_size ? 2 * old_size : 1 << 14;
    pages = calloc(pages_size, sizeof *pages);
    if (!pages) abort();
    for (size_t i = 0; i < old_size; i++)
        if (old[i]) pages[place_of(old[i]->number)] = old[i];
    free(old);
}

static void empty(struct line *line) {
    memset(line, 0, sizeof *line);
    line->owner = NOBODY;
}

static struct page *page_at(uint64_t number) {
    if (last && last->number == number) return last;
    if (2 * pages_used >= pages_size) make_room();
    size_t place = place_of(number);
    if (!pages[place]) {
        struct page *page = malloc(sizeof *page);
        if (!page) abort();
        page->number = number;
        for (unsigned i = 0; i < LINES_A_PAGE; i++) empty(&page->lines[i]);
        pages[place] = page;
        pages_used++;
    }
    return last = pages[place];
}

static bool anyone_but(const struct line *line, unsigned core) {
    uint64_t others = 0;
    for (unsigned word = 0; word < WORDS; word++) {
        uint64_t sharers = line->sharers[word];
        if (word == core / 64) sharers &= ~(1ull << core % 64);
        others |= sharers;
    }
    return others != 0;
}

enum came lines_access(uint64_t number, unsigned core, bool is_store) {
    struct page *page = page_at(number >> (OS_PAGE_SHIFT - LINE_SHIFT));
    struct line *line = &page->lines[number % LINES_A_PAGE];
    if (line->owner == (int)core) {
        line->is_dirty |= is_store;
        return CAME_HIT;
    }
    uint64_t mine = 1ull << core % 64;
    bool has = line->sharers[core / 64] & mine;
    if (!is_store && has) return CAME_HIT;
    bool others = anyone_but(line, core);
    enum came came = CAME_COLD;
    if (!is_store) {
        if (others) came = line->owner != NOBODY && line->is_dirty ? CAME_READ_DIRTY : CAME_READ_CLEAN;
        line->sharers[core / 64] |= mine;
        line->owner = others ? NOBODY : (int16_t)core;
        line->is_dirty = false;
    } else {
        if (others) came = has ? CAME_UPGRADE : CAME_WRITE;
        else if (has) came = CAME_HIT;
        memset(line->sharers, 0, sizeof line->sharers);
        line->sharers[core / 64] = mine;
        line->owner = (int16_t)core;
        line->is_dirty = true;
    }
    return came;
}

static void forget_page(struct page *page) {
    for (unsigned i = 0; i < LINES_A_PAGE; i++) empty(&page->lines[i]);
}

void lines_forget(uint64_t start, uint64_t bytes) {
    uint64_t first = start >> OS_PAGE_SHIFT, end = (start + bytes + (1 << OS_PAGE_SHIFT) - 1) >> OS_PAGE_SHIFT;
    if (pages_used == 0 || end <= first) return;
    if (end - first > pages_size) {
        for (size_t i = 0; i < pages_size; i++)
            if (pages[i] && pages[i]->number >= first && pages[i]->number < end) forget_page(pages[i]);
        return;
    }
    for (uint64_t number = first; number < end; number++) {
        size_t place = place_of(number);
        if (pages[place]) forget_page(pages[place]);
    }
}
