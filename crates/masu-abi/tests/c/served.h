/* Shared by the test programs: the check that libmasu serves them, and a check that says where.
 *
 * A preload that does not take effect is silent, and a test of glibc's malloc would pass as one of
 * ours; so each program first calls `served_by_masu`. */
#ifndef SERVED_H
#define SERVED_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);     \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

/* Whether `function` lies in the library. */
static inline int is_masu(void *function)
{
    Dl_info info;
    if (!dladdr(function, &info) || !info.dli_fname)
        return 0;
    const char *name = strrchr(info.dli_fname, '/');
    return strcmp(name ? name + 1 : info.dli_fname, "libmasu.so") == 0;
}

/* Ends the program unless malloc and free are the library's. */
static inline void served_by_masu(void)
{
    if (!is_masu((void *)malloc) || !is_masu((void *)free)) {
        fprintf(stderr, "this program is not served by libmasu.so\n");
        abort();
    }
}

#endif
