/* sites.c: two functions ask for memory, one twice as often as the other, by way of the C library and directly. */
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void copy_names(void) {
    for (int i = 0; i < 4000000; i++) free(strdup("a name that is some thirty bytes"));
}

__attribute__((noinline)) static void make_records(void) {
    for (int i = 0; i < 2000000; i++) {
        char *volatile record = malloc(32);
        free(record);
    }
}

int main(void) {
    copy_names();
    make_records();
}
