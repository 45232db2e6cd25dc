/* main.c: does one named misuse with blocks of a size, then goes on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "misuse.h"

/* Far more than any case takes: what is still there then hangs. */
enum { PATIENCE_S = 5 };

static const struct misuse *const tables[] = {block_cases, stranger_cases};

static int list(void) {
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++)
        for (const struct misuse *one = tables[table]; one->name; one++)
            printf("%s\t%zu\t%s\n", one->name, one->size_min, one->about);
    return 0;
}

int main(int count, char **words) {
    if (count == 2 && strcmp(words[1], "--list") == 0) return list();
    size_t size = count == 3 ? strtoul(words[2], NULL, 10) : 0;
    for (size_t table = 0; size && table < sizeof tables / sizeof *tables; table++)
        for (const struct misuse *one = tables[table]; one->name; one++) {
            if (strcmp(one->name, words[1]) != 0 || size < one->size_min) continue;
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            alarm(PATIENCE_S);
            one->run(size);
            go_on(size);
            mark(END);
            return 0;
        }
    fputs("Usage: misuse NAME SIZE | --list\n", stderr);
    return 2;
}
