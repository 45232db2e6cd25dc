/* watch.c: the program's own books of what is live, and the life after a misuse. Nothing here allocates but what is
 * to be watched. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "misuse.h"

enum { LIVE_MAX = 1024, FORBIDDEN_MAX = 8, EDGE = 64, LURE = 1 << 16 };

static struct {
    unsigned char *start;
    size_t size;
    unsigned char tag;
} live[LIVE_MAX];
static size_t lives;

static struct {
    unsigned char *start;
    size_t length;
} forbidden[FORBIDDEN_MAX];
static size_t forbiddens;

static unsigned char *lure_start;

void mark(enum mark mark) {
    unsigned char letter = (unsigned char)mark;
    if (write(STDOUT_FILENO, &letter, 1) != 1) _exit(9);
}

static void end_handed(void) {
    mark(HANDED);
    _exit(0);
}

void fill(void *start, size_t length, uintptr_t word) {
    for (size_t i = 0; i + sizeof word <= length; i += sizeof word)
        memcpy((unsigned char *)start + i, &word, sizeof word);
}

unsigned char *lure(void) {
    if (!lure_start) {
        lure_start = mmap(NULL, LURE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (lure_start == MAP_FAILED) _exit(9);
        fill(lure_start, LURE, (uintptr_t)lure_start + LURE / 2);
        forbid(lure_start, LURE);
    }
    return lure_start + LURE / 2;
}

/* Someone wrote to where only a pointer in the program's data led. */
static int is_lure_touched(void) {
    for (size_t i = 0; lure_start && i < LURE; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, lure_start + i, sizeof word);
        if (word != (uintptr_t)lure_start + LURE / 2) return 1;
    }
    return 0;
}

static void *library(const char *name) {
    static void *handle;
    if (!handle) handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, name) : NULL;
    if (!found) _exit(9);
    return found;
}

void *library_malloc(size_t size) { return ((void *(*)(size_t))library("malloc"))(size); }

int is_library_malloc(void) {
    static int is_it = -1;
    if (is_it < 0) is_it = library("malloc") == dlsym(RTLD_DEFAULT, "malloc");
    return is_it;
}

static int overlaps(const unsigned char *start, size_t size, const unsigned char *other, size_t length) {
    return start < other + length && other < start + size;
}

/* Its first and its last bytes: a block of megabytes need not be written whole. */
static void put_tag(size_t index) {
    size_t edge = live[index].size < EDGE ? live[index].size : EDGE;
    memset(live[index].start, live[index].tag, edge);
    memset(live[index].start + live[index].size - edge, live[index].tag, edge);
}

static int has_tag(size_t index) {
    size_t edge = live[index].size < EDGE ? live[index].size : EDGE;
    const unsigned char *last = live[index].start + live[index].size - edge;
    for (size_t i = 0; i < edge; i++)
        if (live[index].start[i] != live[index].tag || last[i] != live[index].tag) return 0;
    return 1;
}

static void look(void) {
    static int is_said;
    if (is_lure_touched()) end_handed();
    for (size_t i = 0; i < lives; i++) {
        if (has_tag(i)) continue;
        if (!is_said) mark(DAMAGED);
        is_said = 1;
        put_tag(i);
    }
}

void watch(void *start, size_t size) {
    for (size_t i = 0; i < forbiddens; i++)
        if (overlaps(start, size, forbidden[i].start, forbidden[i].length)) end_handed();
    for (size_t i = 0; i < lives; i++)
        if (overlaps(start, size, live[i].start, live[i].size)) end_handed();
    if (lives == LIVE_MAX) _exit(9);
    static unsigned char tag = 0x80;
    /* Never a byte of what cases write. */
    tag = (unsigned char)(tag == 0xff ? 0x80 : tag + 1);
    live[lives].start = start;
    live[lives].size = size;
    live[lives].tag = tag;
    put_tag(lives++);
}

unsigned char *block(size_t size) {
    unsigned char *start = launder(malloc(size));
    if (start) watch(start, size);
    return start;
}

void forget(void *start) {
    for (size_t i = 0; i < lives; i++) {
        if (live[i].start != start) continue;
        live[i] = live[--lives];
        return;
    }
}

void forbid(void *start, size_t length) {
    if (forbiddens == FORBIDDEN_MAX) _exit(9);
    forbidden[forbiddens].start = start;
    forbidden[forbiddens++].length = length;
}

static void release(size_t index) {
    void *start = live[index].start;
    live[index] = live[--lives];
    free(start);
}

void go_on(size_t size) {
    size_t count = size <= 1024 ? 120 : size <= 65536 ? 40 : 8;
    look();
    for (int round = 0; round < 4; round++) {
        for (size_t i = 0; i < count; i++) block(size);
        for (size_t i = 0; i < 40; i++) block(100);
        /* Of every small size, for one whose size was overwritten. */
        for (size_t small = 8; small <= 1032; small += 16) block(small);
        for (size_t i = 0; i < 10 && !is_library_malloc(); i++) {
            /* For what the program's malloc may have handed on to it. Never freed: that would be another misuse. */
            void *start = library_malloc(100);
            if (!start) continue;
            watch(start, 100);
            forget(start);
        }
        look();
        /* Every other one, the oldest first. */
        for (size_t i = 0; i < lives; i++) release(i);
        look();
    }
    while (lives) release(lives - 1);
    if (is_lure_touched()) end_handed();
}
