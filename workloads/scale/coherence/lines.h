/* lines.h: private caches that a directory keeps coherent: MESI, one cache a core, none of them ever full. */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>
#include <stdint.h>

enum { CORES = 320, LINE_SHIFT = 6, OS_PAGE_SHIFT = 12 };

/* How a core came by a line that it did not have, or not alone. */
enum came {
    CAME_HIT,        /* it had the line */
    CAME_COLD,       /* no core had it */
    CAME_READ_DIRTY, /* to read, from the core that had written it */
    CAME_READ_CLEAN, /* to read, from cores that had not */
    CAME_WRITE,      /* to write, and others lost it */
    CAME_UPGRADE,    /* it had the line to read, and others lost it */
    CAMES
};

/* What happens to the caches when `core` reads or writes a byte of the line. */
enum came lines_access(uint64_t line, unsigned core, bool is_store);

/* The kernel gave or took the memory of these bytes: no core has lines of it. */
void lines_forget(uint64_t start, uint64_t bytes);

#endif
