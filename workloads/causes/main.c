/* main.c: runs one named cause with its parameters, and what the causes need around them: threads, a clock,
 * tables from the kernel, and the ways a run fails. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cause.h"

enum { EXIT_CANNOT = 1, EXIT_USAGE = 2, EXIT_BLOCK = 3 };

static const struct cause *const groups[] = {memory_causes, thread_causes, other_causes};
#define GROUPS (sizeof groups / sizeof *groups)

/* For messages from any depth. */
static const char *running = "causes";

_Noreturn void contents_wrong(const void *block, size_t size) {
    dprintf(STDERR_FILENO, "causes: %s: the block of %zu bytes at %p does not hold what was written\n",
            running, size, block);
    _exit(EXIT_BLOCK);
}

_Noreturn void cannot(const char *what) {
    dprintf(STDERR_FILENO, "causes: %s: cannot %s\n", running, what);
    _exit(EXIT_CANNOT);
}

void *table_new(size_t count, size_t size) {
    void *table = mmap(NULL, count * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED) cannot("map a table");
    return table;
}

void table_drop(void *table, size_t count, size_t size) { munmap(table, count * size); }

pthread_t start_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0) cannot("start a thread");
    return thread;
}

void join_thread(pthread_t thread) { pthread_join(thread, NULL); }

struct member {
    const struct work *work;
    unsigned index;
    uint64_t (*body)(const struct work *, unsigned);
    uint64_t sum;
    pthread_t thread;
};

static void *run_member(void *argument) {
    struct member *member = argument;
    member->sum = member->body(member->work, member->index);
    return NULL;
}

uint64_t on_each(const struct work *work, uint64_t (*body)(const struct work *, unsigned index)) {
    struct member *members = table_new(work->threads, sizeof *members);
    uint64_t sum = 0;
    for (unsigned i = 0; i < work->threads; i++) {
        members[i] = (struct member){.work = work, .index = i, .body = body};
        members[i].thread = start_thread(run_member, &members[i]);
    }
    for (unsigned i = 0; i < work->threads; i++) {
        join_thread(members[i].thread);
        sum += members[i].sum;
    }
    table_drop(members, work->threads, sizeof *members);
    return sum;
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

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

static void list(void) {
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct cause *cause = groups[group]; cause->name; cause++)
            dprintf(STDOUT_FILENO, "%-20s threads %-2u size %9zu %-11s rounds %-9llu %s\n", cause->name,
                    cause->threads, cause->size, cause->unit, (unsigned long long)cause->rounds,
                    cause->about);
}

static const struct cause *find(const char *name) {
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct cause *cause = groups[group]; cause->name; cause++)
            if (strcmp(cause->name, name) == 0) return cause;
    return NULL;
}

__attribute__((format(printf, 1, 2))) static _Noreturn void usage(const char *format, ...) {
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO,
            "causes: %s\n"
            "Usage: causes NAME [--threads T] [--size N] [--rounds N] [--libraries DIR]\n"
            "       causes --list\n",
            reason);
    exit(EXIT_USAGE);
}

static uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most) {
    char *end = NULL;
    errno = 0;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || *text == '-' || value < least || value > most)
        usage("%s needs a number from %llu to %llu, not '%s'", option, (unsigned long long)least,
              (unsigned long long)most, text ? text : "");
    return value;
}

static struct work work_from(const struct cause *cause, char **arguments) {
    struct work work = {cause->name, cause->threads, cause->size, cause->rounds, NULL};
    for (; *arguments; arguments += 2) {
        const char *option = arguments[0], *text = arguments[1];
        if (strcmp(option, "--threads") == 0) {
            if (cause->threads == 0) usage("%s takes no --threads", cause->name);
            work.threads = (unsigned)number(option, text, cause->threads_min, cause->threads_max);
        } else if (strcmp(option, "--size") == 0) {
            work.size = (size_t)number(option, text, cause->size_min, cause->size_max);
        } else if (strcmp(option, "--rounds") == 0) {
            work.rounds = number(option, text, 1, UINT32_MAX);
        } else if (strcmp(option, "--libraries") == 0 && text) {
            work.libraries = text;
        } else {
            usage("'%s' is not an option, or lacks its value", option);
        }
    }
    return work;
}

int main(int count, char **arguments) {
    if (count < 2) usage("name a cause; --list shows them");
    if (strcmp(arguments[1], "--list") == 0) {
        list();
        return 0;
    }
    const struct cause *cause = find(arguments[1]);
    if (!cause) usage("'%s' is not a cause; --list shows them", arguments[1]);
    struct work work = work_from(cause, arguments + 2);
    running = work.name;
    double began_ms = now_ms();
    uint64_t sum = cause->run(&work);
    dprintf(STDERR_FILENO, "%s ms %.0f rss_kb %llu\n", work.name, now_ms() - began_ms,
            (unsigned long long)status_kb("VmHWM:"));
    dprintf(STDOUT_FILENO, "%s threads %u size %zu rounds %llu checksum %016llx\n", work.name, work.threads,
            work.size, (unsigned long long)work.rounds, (unsigned long long)mix(sum));
    return 0;
}
