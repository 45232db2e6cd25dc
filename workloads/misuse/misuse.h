/* misuse.h: what every case is written with. A case does one thing that no program may do, and the program then
 * goes on as if nothing were. What came of it is not asked of the allocator: the program writes a mark to its
 * standard output before and after, and at whatever it sees; `cargo xtask misuse` reads the marks and how the
 * process ended. Marks are written by write(2) alone, so that one that was written stays. */
#ifndef MISUSE_H
#define MISUSE_H

#include <stddef.h>
#include <stdint.h>

enum mark {
    BEFORE = 'b',   /* the next thing is the misuse: a call */
    TOUCHING = 't', /* the next thing is the misuse: a read or a write */
    WRITTEN = 'w',  /* of a write out of bounds: it is done, the free of its block comes now */
    AFTER = 'a',    /* the misuse is done */
    REFUSED = 'r',  /* the call said that it failed: null, or a size of 0 */
    WIPED = 'z',    /* nothing of what stood in a freed block can be read */
    DAMAGED = 'd',  /* a live block no longer holds what was written to it */
    HANDED = 'o',   /* memory in use was handed out, or the program's data was followed as a pointer */
    CANNOT = 'n',   /* the case cannot be set up under this malloc */
    END = 'e',      /* main returns; handlers of exit may still end the program */
};

void mark(enum mark mark);

/* One line of a table, which ends with a line without a name. */
struct misuse {
    const char *name;
    size_t size_min; /* of blocks for which it means something; 0: it has nothing to do with blocks */
    void (*run)(size_t size);
    const char *about;
};

extern const struct misuse block_cases[];
extern const struct misuse stranger_cases[];

/* Hides from the compiler where a pointer comes from. */
static inline unsigned char *launder(void *pointer) {
    __asm__ volatile("" : "+r"(pointer));
    return pointer;
}

/* What a header of glibc's says of a free block for 100 bytes: data that a program may well be made to hold. */
#define FORGED ((uintptr_t)0x71)

/* Makes every word of `length` bytes the same. */
void fill(void *start, size_t length, uintptr_t word);

/* Memory of the program's own, which pointers written into freed blocks lead to: it holds pointers to itself. */
unsigned char *lure(void);

/* The C library's own malloc and free, also where others stand before them. */
void *library_malloc(size_t size);

/* Whether they are the ones that the program calls anyway. */
int is_library_malloc(void);

/* A new block that is watched from now on: no other may overlap it, and it must keep what is written to it. */
unsigned char *block(size_t size);

/* Takes `start` for a live block of `size` bytes, of any malloc. Ends the program with HANDED if it overlaps
 * another. */
void watch(void *start, size_t size);

/* The block at `start` is live no more. */
void forget(void *start);

/* A range that no block may lie in. */
void forbid(void *start, size_t length);

/* Goes on as a program would, with blocks of `size` bytes and small ones, and looks whether all is well. */
void go_on(size_t size);

#endif
