// Two arrays far larger than any cache, filled in order and then read across: what a program of matrices or of tables
// of a database does. Every read meets another page.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    size_t length = (size_t)(argc > 1 ? atoi(argv[1]) : 24) << 20;
    uint64_t *from = malloc(length * sizeof *from), *to = malloc(length * sizeof *to);
    if (!from || !to) return 1;
    for (size_t i = 0; i < length; i++) from[i] = i * 2654435761u, to[i] = 0;
    uint64_t at = 1, sum = 0;
    for (size_t i = 0; i < length / 4; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        size_t place = (at >> 32) % length;
        to[(place * 31) % length] += from[place];
        sum += from[place];
    }
    printf("%llu\n", (unsigned long long)(sum + to[length / 2]));
    free(from);
    free(to);
    return 0;
}
