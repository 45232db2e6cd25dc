// Allocates 192 MiB, more than has a grace, frees it, and prints how many MiB stay resident of it.
//
// Relies on `tests/options.rs`, which sets how much may.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long resident_mib(void) {
    FILE *statm = fopen("/proc/self/statm", "r");
    long pages = 0;
    if (statm == NULL || fscanf(statm, "%*d %ld", &pages) != 1) exit(2);
    fclose(statm);
    return pages * sysconf(_SC_PAGESIZE) >> 20;
}

int main(void) {
    enum { MANY = 192, MIB = 1 << 20 };
    static char *blocks[MANY];
    long before = resident_mib();
    for (int n = 0; n < MANY; n++) {
        blocks[n] = malloc(MIB);
        if (blocks[n] == NULL) return 3;
        memset(blocks[n], 1, MIB);
    }
    for (int n = 0; n < MANY; n++) free(blocks[n]);
    printf("%ld\n", resident_mib() - before);
    return 0;
}
