/* Writes one block of each of as many size classes as its argument says, then prints what the kernel
   says of its memory: /proc/self/smaps and /proc/self/status. No stdio, which would allocate. */

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char buffer[1 << 16];

static int print(const char *path) {
    int file = open(path, O_RDONLY);
    if (file < 0) return 1;
    ssize_t length;
    while ((length = read(file, buffer, sizeof buffer)) > 0) {
        if (write(1, buffer, (size_t)length) != length) return 1;
    }
    return length < 0 || close(file) < 0;
}

int main(int count, char **arguments) {
    int classes = count > 1 ? atoi(arguments[1]) : 0;
    for (int i = 0; i < classes; i++) {
        /* 16 to 256 by 16, then 288 and on by 32: a class each. */
        size_t size = i < 16 ? 16 * (size_t)(i + 1) : 256 + 32 * (size_t)(i - 15);
        char *block = malloc(size);
        if (!block) return 1;
        *block = 1;
    }
    return print("/proc/self/smaps") || print("/proc/self/status");
}
