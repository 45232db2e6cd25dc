/* Prints whether this process has a statistics page. Linked statically, for the dynamic linker takes no
   preload where a program has more rights than its user. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char line[512];
    int found = 0;
    FILE *maps;
    /* What refers to malloc takes it out of the archive. */
    free(malloc(1));
    maps = fopen("/proc/self/maps", "r");
    if (!maps)
        return 1;
    while (fgets(line, sizeof line, maps))
        found |= strstr(line, "/memfd:masu-statistics") != NULL;
    puts(found ? "page" : "none");
    return 0;
}
