/* cases.c: what a program must not do with a block that it has, or had. Each case leaves the heap as the program
 * that knows nothing of its fault would believe it to be: a block that was freed twice is forgotten once. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "misuse.h"

enum { PLAIN = 0x41 };

/* C++'s, by the names that compilers give them. */
void *_Znwm(size_t size);
void _ZdlPvm(void *block, size_t size);

/* A block among others of its size, in a heap that was used before. */
static unsigned char *in_use(size_t size) {
    unsigned char *used[4], *middle = NULL;
    size_t around = size > 65536 ? 2 : 6;
    for (int i = 0; i < 4; i++) used[i] = block(size);
    for (size_t i = 0; i <= 2 * around; i++) {
        unsigned char *made = block(size);
        if (i == around) middle = made;
    }
    for (int i = 0; i < 4; i++) {
        forget(used[i]);
        free(used[i]);
    }
    if (!middle) _exit(9);
    return middle;
}

/* The same, no longer tagged but full of `word`. */
static unsigned char *in_use_of(size_t size, uintptr_t word) {
    unsigned char *start = in_use(size);
    forget(start);
    fill(start, size, word);
    return start;
}

/* The block at `start` is live for the program whatever became of it; only its place is watched. */
static void still_live(unsigned char *start, size_t size) { watch(start, size); }

static void free_twice(size_t size) {
    unsigned char *start = in_use(size);
    forget(start);
    free(start);
    mark(BEFORE);
    free(launder(start));
    mark(AFTER);
}

static void free_twice_between(size_t size) {
    unsigned char *start = in_use(size), *other = block(size);
    forget(start);
    free(start);
    forget(other);
    free(other);
    mark(BEFORE);
    free(launder(start));
    mark(AFTER);
}

/* The first free's memory has a new owner, if the malloc gives it one at all soon. */
static void free_twice_reused(size_t size) {
    unsigned char *start = in_use(size);
    forget(start);
    free(start);
    for (int tries = size > 65536 ? 8 : 256; tries > 0; tries--)
        if (block(size) == start) break;
    mark(BEFORE);
    free(launder(start));
    mark(AFTER);
}

static void free_at(size_t size, size_t offset, uintptr_t word) {
    unsigned char *start = in_use_of(size, word);
    mark(BEFORE);
    free(launder(start + offset));
    mark(AFTER);
    still_live(start, size);
}

#define PLAIN_WORD ((uintptr_t)0x4141414141414141)
static void free_in_1(size_t size) { free_at(size, 1, PLAIN_WORD); }
static void free_in_8(size_t size) { free_at(size, 8, PLAIN_WORD); }
static void free_in_16(size_t size) { free_at(size, 16, PLAIN_WORD); }
static void free_in_16_forged(size_t size) { free_at(size, 16, FORGED); }
static void free_in_page(size_t size) { free_at(size, (size_t)getpagesize(), PLAIN_WORD); }
static void free_in_page_forged(size_t size) { free_at(size, (size_t)getpagesize(), FORGED); }

static void overflow(size_t size, size_t at, unsigned char byte) {
    unsigned char *start = in_use(size);
    mark(TOUCHING);
    /* Never what stood there: a canary may have any byte. */
    start[at] = byte ? start[at] ^ byte : 0;
    mark(WRITTEN);
    forget(start);
    free(start);
    mark(AFTER);
}

static void overflow_1(size_t size) { overflow(size, size, PLAIN); }
static void overflow_nul(size_t size) { overflow(size, size, 0); }
static void underflow_1(size_t size) { overflow(size, (size_t)-1, PLAIN); }

static void overflow_usable(size_t size) {
    /* Blocks of one size have one usable size; the block itself is not asked, for a malloc may note it. */
    unsigned char *other = block(size);
    overflow(size, malloc_usable_size(other), PLAIN);
}

/* As a copy of something long does, and on the way over neighbors whatever there is. */
static void overflow_run(size_t size) {
    enum { LONG = 256 << 10 };
    uintptr_t word = (uintptr_t)lure();
    unsigned char *start = in_use(size);
    mark(TOUCHING);
    fill(start, size + LONG, word);
    mark(WRITTEN);
    forget(start);
    free(start);
    mark(AFTER);
}

static void read_freed(size_t size) {
    unsigned char *start = in_use_of(size, PLAIN_WORD);
    free(start);
    size_t kept = 0;
    mark(TOUCHING);
    for (size_t i = 0; i < size; i++) kept += ((volatile unsigned char *)launder(start))[i] == PLAIN;
    mark(AFTER);
    if (kept < 8) mark(WIPED);
}

static void write_freed(size_t size) {
    uintptr_t word = (uintptr_t)lure();
    unsigned char *start = in_use(size);
    forget(start);
    free(start);
    mark(TOUCHING);
    fill(launder(start), size, word);
    mark(AFTER);
}

static void free_after_realloc(size_t size) {
    unsigned char *start = in_use(size), *moved;
    size_t larger = size;
    forget(start);
    do {
        larger *= 2;
        moved = launder(realloc(start, larger));
        if (!moved || larger > (size_t)1 << 26) {
            mark(CANNOT);
            _exit(0);
        }
    } while (moved == start);
    watch(moved, larger);
    mark(BEFORE);
    free(launder(start));
    mark(AFTER);
}

static void resize(unsigned char *start, size_t size) {
    mark(BEFORE);
    unsigned char *made = launder(realloc(launder(start), size));
    mark(AFTER);
    if (made)
        watch(made, size);
    else
        mark(REFUSED);
}

static void realloc_freed(size_t size) {
    unsigned char *start = in_use(size);
    forget(start);
    free(start);
    resize(start, size);
}

static void realloc_freed_larger(size_t size) {
    unsigned char *start = in_use(size);
    forget(start);
    free(start);
    resize(start, size * 4);
}

static void realloc_in_16(size_t size) { resize(in_use(size) + 16, size); }
static void realloc_in_page(size_t size) { resize(in_use(size) + getpagesize(), size); }

static void ask(unsigned char *start) {
    mark(BEFORE);
    size_t usable = malloc_usable_size(launder(start));
    mark(AFTER);
    if (usable == 0) mark(REFUSED);
}

static void ask_freed(size_t size) {
    unsigned char *start = in_use(size);
    forget(start);
    free(start);
    ask(start);
}

static void ask_in_16(size_t size) { ask(in_use(size) + 16); }

static void delete_as(size_t size, size_t said) {
    in_use(size);
    unsigned char *start = launder(_Znwm(size));
    watch(start, size);
    forget(start);
    mark(BEFORE);
    _ZdlPvm(start, said);
    mark(AFTER);
}

static void delete_smaller(size_t size) { delete_as(size, size / 2); }
static void delete_larger(size_t size) { delete_as(size, size * 4); }

const struct misuse block_cases[] = {
    {"free-twice", 1, free_twice, "double free, at once"},
    {"free-twice-between", 1, free_twice_between, "double free, another free between"},
    {"free-twice-reused", 1, free_twice_reused, "double free, after more `malloc`s that may have reused it"},
    {"free-after-realloc", 1, free_after_realloc, "free of the old block after `realloc` moved it"},
    {"free-in-1", 17, free_in_1, "free, 1 byte into the block"},
    {"free-in-8", 17, free_in_8, "free, 8 bytes in"},
    {"free-in-16", 17, free_in_16, "free, 16 bytes in"},
    {"free-in-16-forged", 17, free_in_16_forged, "the same, the block holds forged headers"},
    {"free-in-page", 4097, free_in_page, "free, an OS page in"},
    {"free-in-page-forged", 4097, free_in_page_forged, "the same, the block holds forged headers"},
    {"realloc-freed", 1, realloc_freed, "`realloc` of a freed block to its size"},
    {"realloc-freed-larger", 1, realloc_freed_larger, "`realloc` of a freed block to four times its size"},
    {"realloc-in-16", 17, realloc_in_16, "`realloc`, 16 bytes in"},
    {"realloc-in-page", 4097, realloc_in_page, "`realloc`, an OS page in"},
    {"size-freed", 1, ask_freed, "`malloc_usable_size` of a freed block"},
    {"size-in-16", 17, ask_in_16, "`malloc_usable_size`, 16 bytes in"},
    {"overflow-1", 1, overflow_1, "a byte written behind what was asked for, then free"},
    {"overflow-nul", 1, overflow_nul, "the same, a zero byte"},
    {"overflow-usable", 1, overflow_usable, "a byte written behind the usable size, then free"},
    {"overflow-run", 1, overflow_run, "256 KiB of pointers written behind the block, then free"},
    {"underflow-1", 1, underflow_1, "a byte written before the block, then free"},
    {"read-freed", 1, read_freed, "freed block read"},
    {"write-freed", 1, write_freed, "freed block written full of pointers"},
    {"delete-smaller", 24, delete_smaller, "sized `delete`, half its size"},
    {"delete-larger", 1, delete_larger, "sized `delete`, four times its size"},
    {0},
};
