#include <masu.h>
#include <string.h>
int main(void) {
    void *block = malloc(100);
    size_t usable = malloc_usable_size(block);
    free(block);
    printf("%s %d %d\n", masu_version(), usable == 112, strcmp(masu_version(), MASU_VERSION));
    malloc_stats();
    return 0;
}
