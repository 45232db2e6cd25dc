/* strangers.c: pointers that were never a block's, handed to free. Where the program has memory there, it holds plain
 * data or what looks like headers of glibc's. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "misuse.h"

enum { AREA = 1 << 16, INTO = 1 << 12 };

static const uintptr_t plain = 0x4141414141414141;
static _Alignas(4096) unsigned char global[AREA];

static void hand_in(void *pointer) {
    mark(BEFORE);
    free(launder(pointer));
    mark(AFTER);
}

static void hand_in_area(unsigned char *area, uintptr_t word) {
    fill(area, AREA, word);
    forbid(area, AREA);
    hand_in(area + INTO);
}

static void free_stack_of(size_t size, uintptr_t word) {
    _Alignas(4096) unsigned char area[AREA];
    hand_in_area(launder(area), word);
    /* While the frame is there. */
    go_on(size);
}

static void free_mapping_of(uintptr_t word) {
    /* As a malloc would have it: at a multiple of much. */
    size_t round = 1 << 26;
    unsigned char *area = mmap(NULL, 2 * round, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) _exit(9);
    hand_in_area((unsigned char *)(((uintptr_t)area + round) & ~(round - 1)), word);
}

static void free_stack(size_t size) { free_stack_of(size, plain); }
static void free_stack_forged(size_t size) { free_stack_of(size, FORGED); }
static void free_global(size_t size) { (void)size; hand_in_area(global, plain); }
static void free_global_forged(size_t size) { (void)size; hand_in_area(global, FORGED); }
static void free_mapping(size_t size) { (void)size; free_mapping_of(plain); }
static void free_mapping_forged(size_t size) { (void)size; free_mapping_of(FORGED); }
static void free_low(size_t size) { (void)size; hand_in((void *)0x10); }
static void free_nowhere(size_t size) { (void)size; hand_in((void *)0x100000000010); }
static void free_text(size_t size) { (void)size; hand_in((void *)0x4141414141414140); }
static void free_code(size_t size) { (void)size; hand_in((void *)(uintptr_t)&hand_in); }

static void free_library_of(size_t size) {
    if (is_library_malloc()) {
        mark(CANNOT);
        _exit(0);
    }
    unsigned char *start = library_malloc(size);
    if (!start) _exit(9);
    fill(start, size, plain);
    hand_in(start);
}

static void free_library(size_t size) { free_library_of(size); }
static void free_library_large(size_t size) { (void)size; free_library_of(4 << 20); }

const struct misuse stranger_cases[] = {
    {"free-low", 0, free_low, "address 0x10"},
    {"free-nowhere", 0, free_nowhere, "address where nothing is mapped"},
    {"free-text", 0, free_text, "eight letters taken for an address"},
    {"free-code", 0, free_code, "a function"},
    {"free-stack", 0, free_stack, "the stack"},
    {"free-stack-forged", 0, free_stack_forged, "the stack, with forged headers"},
    {"free-global", 0, free_global, "a global variable"},
    {"free-global-forged", 0, free_global_forged, "a global variable, with forged headers"},
    {"free-mapping", 0, free_mapping, "a mapping of the program's own"},
    {"free-mapping-forged", 0, free_mapping_forged, "a mapping of the program's own, with forged headers"},
    {"free-library", 0, free_library, "a block of the C library's malloc"},
    {"free-library-large", 0, free_library_large, "a large block of the C library's malloc"},
    {0},
};
