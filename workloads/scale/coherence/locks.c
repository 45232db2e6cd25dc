/* locks.c: what locks.h promises. One thread at a time is in here (plugin.c holds the lock). */
#include <stdlib.h>

#include "lines.h"
#include "locks.h"

enum { HELD_AT_ONCE = 8, SHOWN = 24, PHASES_HERE = 4, NOBODY = -1 };

struct word {
    uint64_t address;
    int holder;
    struct came_to since; /* the holder's */
    struct {
        uint64_t holds, attempts, held, longest, calls, moves;
    } in[PHASES_HERE];
};

static struct word **table;
static size_t size, used;
/* What each core's thread seems to hold, the oldest first. */
static struct word *held[CORES][HELD_AT_ONCE];
static unsigned held_count[CORES];

static size_t place_of(uint64_t address) {
    size_t place = (address * 0x9e3779b97f4a7c15u) >> 24 & (size - 1);
    while (table[place] && table[place]->address != address) place = (place + 1) & (size - 1);
    return place;
}

static void make_room(void) {
    struct word **old = table;
    size_t old_size = size;
    size = old_size ? 2 * old_size : 1 << 12;
    table = calloc(size, sizeof *table);
    if (!table) abort();
    for (size_t i = 0; i < old_size; i++)
        if (old[i]) table[place_of(old[i]->address)] = old[i];
    free(old);
}

static struct word *word_at(uint64_t address) {
    if (2 * used >= size) make_room();
    size_t place = place_of(address);
    if (!table[place]) {
        table[place] = calloc(1, sizeof **table);
        if (!table[place]) abort();
        table[place]->address = address;
        table[place]->holder = NOBODY;
        used++;
    }
    return table[place];
}

static void drop(unsigned core, unsigned index) {
    held[core][index]->holder = NOBODY;
    held_count[core]--;
    for (unsigned i = index; i < held_count[core]; i++) held[core][i] = held[core][i + 1];
}

static void take(struct word *word, unsigned core, struct came_to now) {
    /* A counter, most likely. */
    if (held_count[core] == HELD_AT_ONCE) drop(core, 0);
    held[core][held_count[core]++] = word;
    word->holder = (int)core;
    word->since = now;
}

static void give_back(struct word *word, unsigned phase, struct came_to now) {
    uint64_t span = now.instructions - word->since.instructions;
    word->in[phase].holds++;
    word->in[phase].held += span;
    word->in[phase].calls += now.calls - word->since.calls;
    word->in[phase].moves += now.moves - word->since.moves;
    if (span > word->in[phase].longest) word->in[phase].longest = span;
}

bool locks_any(unsigned core) { return held_count[core] > 0; }

void locks_write(unsigned core, unsigned phase, uint64_t address, uint64_t value, bool is_atomic, struct came_to now) {
    for (unsigned i = 0; i < held_count[core]; i++) {
        if (held[core][i]->address != address) continue;
        if (value == 0) {
            give_back(held[core][i], phase, now);
            drop(core, i);
        }
        return;
    }
    if (!is_atomic) return;
    struct word *word = word_at(address);
    if (word->holder != NOBODY) word->in[phase].attempts++;
    else if (value != 0) take(word, core, now);
}

void locks_end(unsigned core) {
    while (held_count[core] > 0) drop(core, held_count[core] - 1);
}

struct shown {
    const struct word *word;
    uint64_t held;
};

static int by_held(const void *one, const void *other) {
    uint64_t a = ((const struct shown *)one)->held, b = ((const struct shown *)other)->held;
    return (a < b) - (a > b);
}

void locks_write_report(FILE *to) {
    struct shown *all = calloc(used + 1, sizeof *all);
    if (!all) abort();
    for (unsigned phase = 1; phase < PHASES_HERE; phase++) {
        size_t count = 0;
        for (size_t i = 0; i < size; i++)
            if (table[i] && table[i]->in[phase].holds > 0)
                all[count++] = (struct shown){table[i], table[i]->in[phase].held};
        qsort(all, count, sizeof *all, by_held);
        for (size_t i = 0; i < count && i < SHOWN; i++) {
            const struct word *word = all[i].word;
            fprintf(to, "lock %u %lx %lu %lu %lu %lu %lu %lu\n", phase, (unsigned long)word->address,
                    (unsigned long)word->in[phase].holds, (unsigned long)word->in[phase].attempts,
                    (unsigned long)word->in[phase].held, (unsigned long)word->in[phase].longest,
                    (unsigned long)word->in[phase].calls, (unsigned long)word->in[phase].moves);
        }
    }
    free(all);
}
