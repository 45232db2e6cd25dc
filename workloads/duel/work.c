/* A program whose work is known: `work AMOUNT[:NAME]` does AMOUNT equal parts of it, a tenth of a
 * millisecond or so each, in which blocks are allocated, written and freed. Three per cent more parts are
 * three per cent more time, but for the start. NAME is not read: it lets the same command be told apart. */
#include <stdio.h>
#include <stdlib.h>

enum { KEPT = 256, STEPS = 2000 };

static unsigned long state = 88172645463325252ul;

/* xorshift: the same numbers in every run. */
static unsigned long drawn(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static unsigned long part(void)
{
    static unsigned long *kept[KEPT];
    unsigned long sum = 0;
    for (int step = 0; step < STEPS; step++) {
        unsigned long **place = &kept[drawn() % KEPT];
        size_t words = 1 + drawn() % 64;
        if (*place != NULL)
            sum += **place;
        free(*place);
        *place = malloc(words * sizeof **place);
        if (*place == NULL)
            abort();
        for (size_t word = 0; word < words; word++)
            (*place)[word] = drawn();
    }
    return sum;
}

int main(int argc, char **argv)
{
    unsigned long sum = 0;
    long amount = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    if (amount <= 0) {
        fprintf(stderr, "usage: work AMOUNT[:NAME]\n");
        return 2;
    }
    for (long done = 0; done < amount; done++)
        sum += part();
    /* Not the sum: 3 % more work is to have the same output. */
    printf("%s\n", sum != 0 ? "done" : "nothing");
    return 0;
}
