/* run.h: what surrounds a run of a program of workloads: its messages, the ways it fails, tables from the kernel,
 * and numbers among its arguments. Nothing here uses stdio's streams, whose buffers would come from the malloc
 * that is measured. */
#ifndef RUN_H
#define RUN_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { EXIT_CANNOT = 1, EXIT_USAGE = 2, EXIT_BLOCK = 3 };

/* What the program is called, and its arguments, a line each; the program says both. */
extern const char program[];
extern const char arguments_told[];

/* What of it is being run, for messages from any depth. */
extern const char *running;

__attribute__((format(printf, 2, 3))) void print(int fd, const char *format, ...);

/* The ways a run fails: exit code 3 when a block is not what it must be, 2 when an argument is wrong, 1 for the
 * rest. */
_Noreturn void contents_wrong(const void *block, size_t size);
_Noreturn void alignment_wrong(const void *block, size_t size, size_t align);
_Noreturn void cannot(const char *what);
__attribute__((format(printf, 1, 2))) _Noreturn void usage(const char *format, ...);

/* The number that `text`, the value of `option`, is; it must lie between `least` and `most`. */
uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most);

/* Zeroed memory straight from the kernel, for the program's own tables: the heap holds blocks alone. */
void *table_new(size_t count, size_t size);
void table_drop(void *table, size_t count, size_t size);

/* A field of /proc/self/status in KiB, such as "VmRSS:"; 0 where there is none. */
uint64_t status_kb(const char *field);

/* Nanoseconds of a clock that only goes forward. */
uint64_t now_ns(void);

/* Starts a thread, with a stack of so many bytes or, for 0, as large as usual; or ends the run. */
pthread_t start_thread_with(size_t stack, void *(*body)(void *), void *argument);
void join_thread(pthread_t thread);

#endif
