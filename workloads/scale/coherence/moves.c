/* moves.c: a table that grows, of (phase, line, instruction) with how often. Moves are rare beside accesses, so it is
 * sorted only when it is written. */
#include <stdlib.h>

#include "moves.h"

enum { SHOWN_LINES = 40, SHOWN_SITES = 4 };

struct move {
    uint64_t line, instruction;
    uint32_t phase, count; /* a count of 0: no entry */
};

static struct move *table;
static size_t size, used;

static struct move *place_of(const struct move *wanted) {
    uint64_t hash = (wanted->line * 0x9e3779b97f4a7c15u ^ wanted->instruction ^ wanted->phase) * 0xd6e8feb86659fd93u;
    size_t place = hash >> 24 & (size - 1);
    for (;; place = (place + 1) & (size - 1)) {
        struct move *move = &table[place];
        if (move->count == 0) return move;
        if (move->line == wanted->line && move->instruction == wanted->instruction && move->phase == wanted->phase)
            return move;
    }
}

static void make_room(void) {
    struct move *old = table;
    size_t old_size = size;
    size = old_size ? 2 * old_size : 1 << 14;
    table = calloc(size, sizeof *table);
    if (!table) abort();
    for (size_t i = 0; i < old_size; i++)
        if (old[i].count) *place_of(&old[i]) = old[i];
    free(old);
}

void moves_add(unsigned phase, uint64_t line, uint64_t instruction) {
    if (2 * used >= size) make_room();
    struct move wanted = {line, instruction, phase, 0};
    struct move *move = place_of(&wanted);
    if (move->count == 0) {
        *move = wanted;
        used++;
    }
    move->count++;
}

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

static int by_line(const void *one, const void *other) {
    const struct move *a = one, *b = other;
    int order = ORDER(a->phase, b->phase);
    if (order == 0) order = ORDER(a->line, b->line);
    return order ? order : ORDER(b->count, a->count);
}

static int by_instruction(const void *one, const void *other) {
    const struct move *a = one, *b = other;
    int order = ORDER(a->phase, b->phase);
    return order ? order : ORDER(a->instruction, b->instruction);
}

/* All moves of one line in one phase. */
struct total {
    size_t from, moves;
    uint64_t count;
};

static int by_count(const void *one, const void *other) {
    const struct total *a = one, *b = other;
    int order = ORDER(b->count, a->count);
    return order ? order : ORDER(a->from, b->from);
}

static void write_lines(FILE *to, unsigned phase) {
    struct total *totals = calloc(used + 1, sizeof *totals);
    size_t lines = 0;
    if (!totals) abort();
    for (size_t i = 0; i < used; i++) {
        if (table[i].phase != phase) continue;
        if (lines == 0 || table[totals[lines - 1].from].line != table[i].line) totals[lines++].from = i;
        totals[lines - 1].moves++;
        totals[lines - 1].count += table[i].count;
    }
    qsort(totals, lines, sizeof *totals, by_count);
    for (size_t i = 0; i < lines && i < SHOWN_LINES; i++) {
        const struct move *moves = &table[totals[i].from];
        fprintf(to, "line %u %lx %lu\n", phase, (unsigned long)moves->line, (unsigned long)totals[i].count);
        for (size_t k = 0; k < totals[i].moves && k < SHOWN_SITES; k++)
            fprintf(to, "by %lx %u\n", (unsigned long)moves[k].instruction, moves[k].count);
    }
    free(totals);
}

void moves_write(FILE *to) {
    size_t kept = 0;
    for (size_t i = 0; i < size; i++)
        if (table[i].count) table[kept++] = table[i];
    qsort(table, kept, sizeof *table, by_line);
    /* Phases are few; 0 is none. */
    for (unsigned phase = 1; phase < 8; phase++) write_lines(to, phase);
    qsort(table, kept, sizeof *table, by_instruction);
    for (size_t i = 0; i < kept;) {
        const struct move *first = &table[i];
        uint64_t count = 0;
        for (; i < kept && table[i].phase == first->phase && table[i].instruction == first->instruction; i++)
            count += table[i].count;
        fprintf(to, "site %u %lx %lu\n", first->phase, (unsigned long)first->instruction, (unsigned long)count);
    }
    size = used = 0;
}
