/* Shared by the test programs: the check that libmasu serves them, a check that says where, and running
 * a group of checks by its name.
 *
 * A preload that does not take effect is silent, and a test of glibc's malloc would pass as one of
 * ours; so each program first calls `served_by_masu`. */
#ifndef SERVED_H
#define SERVED_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* `GROUP(name) { ... }` is a group of checks; its name, given as argument, runs it. The linker puts all groups of a
 * program side by side, between two symbols of its own. */
struct group {
    const char *name;
    void (*run)(void);
};
extern const struct group __start_groups[], __stop_groups[];
#define GROUP(name)                                                                                       \
    static void name(void);                                                                               \
    __attribute__((section("groups"), used)) static const struct group name##_group = {#name, name};     \
    static void name(void)

/* Runs the group that the first argument names, or `all`; what `main` returns. After `seconds` the program is
 * ended, 0 for never: a lock that is never given back shall end the test, not hold it for ever. */
static inline int run_group(int count, char **arguments, unsigned seconds)
{
    served_by_masu();
    alarm(seconds);
    const char *name = count > 1 ? arguments[1] : "";
    int found = 0;
    for (const struct group *group = __start_groups; group < __stop_groups; group++) {
        if (strcmp(name, "all") != 0 && strcmp(name, group->name) != 0)
            continue;
        group->run();
        found = 1;
    }
    if (!found)
        fprintf(stderr, "no group of that name\n");
    return found ? 0 : 2;
}

/* The `main` of a program that does nothing else. */
#define RUN_GROUPS(seconds) \
    int main(int count, char **arguments) { return run_group(count, arguments, seconds); }

#endif
