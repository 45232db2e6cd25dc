/* run.c: what run.h promises. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "run.h"

const char *running = program;

void print(int fd, const char *format, ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t left = length < (int)sizeof line ? (size_t)length : sizeof line - 1;
    for (char *from = line; left > 0;) {
        ssize_t written = write(fd, from, left);
        if (written < 0 && errno != EINTR) _exit(EXIT_CANNOT);
        if (written < 0) continue;
        from += written;
        left -= (size_t)written;
    }
}

_Noreturn void contents_wrong(const void *block, size_t size) {
    print(STDERR_FILENO, "%s: %s: the block of %zu bytes at %p does not hold what was written\n", program,
          running, size, block);
    _exit(EXIT_BLOCK);
}

_Noreturn void alignment_wrong(const void *block, size_t size, size_t align) {
    print(STDERR_FILENO, "%s: %s: the block of %zu bytes at %p is not aligned to %zu\n", program, running,
          size, block, align);
    _exit(EXIT_BLOCK);
}

_Noreturn void cannot(const char *what) {
    print(STDERR_FILENO, "%s: %s: cannot %s\n", program, running, what);
    _exit(EXIT_CANNOT);
}

void *table_new(size_t count, size_t size) {
    void *table = mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) cannot("map a table");
    return table;
}

void table_drop(void *table, size_t count, size_t size) { munmap(table, count * size); }

uint64_t status_kb(const char *field) {
    char text[8192];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) return 0;
    text[length] = '\0';
    const char *found = strstr(text, field);
    return found ? strtoull(found + strlen(field), NULL, 10) : 0;
}

_Noreturn void usage(const char *format, ...) {
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    print(STDERR_FILENO, "%s: %s\n%s", program, reason, arguments_told);
    exit(EXIT_USAGE);
}

uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || *text == '-' || value < least || value > most)
        usage("%s needs a number from %llu to %llu, not '%s'", option, (unsigned long long)least,
              (unsigned long long)most, text ? text : "");
    return value;
}

uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

pthread_t start_thread_with(size_t stack, void *(*body)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    if (stack != 0) pthread_attr_setstacksize(&attributes, stack);
    if (pthread_create(&thread, &attributes, body, argument) != 0) cannot("start a thread");
    pthread_attr_destroy(&attributes);
    return thread;
}

void join_thread(pthread_t thread) { pthread_join(thread, NULL); }
