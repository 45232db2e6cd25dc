/* marks.h: what the program says to the plugin that watches it: system calls of a number that no kernel has.
 * Outside the emulator the program makes none of them. */
#ifndef MARKS_H
#define MARKS_H

enum {
    MARK_CALL = 0x6d617375,

    /* The calling thread is in this phase from now on, and so are threads that it starts: PHASE_*. */
    MARK_PHASE = 1,
    /* It did so many operations in its phase. */
    MARK_OPERATIONS,
    /* It waits for other threads of the program (1), which is not counted, or no longer does (0). */
    MARK_WAITS,
    /* The program's own code lies from the first address to the second. */
    MARK_CODE,
    /* What lies from the first address to the second, by the name at the third. */
    MARK_NAME,
};

enum { PHASE_NONE, PHASE_START, PHASE_STEADY, PHASES };

#endif
