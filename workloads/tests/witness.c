// Preloaded before masu, or alone: writes into the file WITNESS which program runs here and which file's `malloc` it calls. That
// is the next one: the address itself may be that of a jump in the program.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void sign(void) {
    int error = errno;
    char program[PATH_MAX] = "", line[3 * PATH_MAX];
    const char *file = getenv("WITNESS");
    Dl_info found;
    if (file && readlink("/proc/self/exe", program, sizeof program - 1) > 0 && dladdr(dlsym(RTLD_NEXT, "malloc"), &found)) {
        int length = snprintf(line, sizeof line, "%s\t%s\n", program, found.dli_fname);
        int opened = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (opened >= 0) {
            // One write, so that processes do not mix their lines.
            if (write(opened, line, length) != length) _exit(125);
            close(opened);
        }
    }
    errno = error;
}
