/* main.c: runs one named pattern with its parameters, and what the patterns need around them: threads,
 * a clock, tables from the kernel, and the ways a run fails. Nothing here uses stdio's streams, whose
 * buffers would come from the malloc that is measured. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "pattern.h"

#define LIVE_BYTES_MAX ((uint64_t)1 << 30)

enum { EXIT_CANNOT = 1, EXIT_USAGE = 2, EXIT_BLOCK = 3 };

static const struct pattern *const groups[] = {small_patterns, large_patterns, thread_patterns,
                                               lifetime_patterns};
#define GROUPS (sizeof groups / sizeof *groups)

/* For messages from any depth. */
static const char *running = "patterns";

__attribute__((format(printf, 2, 3))) static void print(int fd, const char *format, ...) {
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
    print(STDERR_FILENO, "patterns: %s: the block of %zu bytes at %p does not hold what was written\n",
          running, size, block);
    _exit(EXIT_BLOCK);
}

_Noreturn void alignment_wrong(const void *block, size_t size, size_t align) {
    print(STDERR_FILENO, "patterns: %s: the block of %zu bytes at %p is not aligned to %zu\n", running, size,
          block, align);
    _exit(EXIT_BLOCK);
}

_Noreturn void cannot(const char *what) {
    print(STDERR_FILENO, "patterns: %s: cannot %s\n", running, what);
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

static uint64_t worked_ns, resumed_ns;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void clock_resumes(void) { resumed_ns = now_ns(); }
void clock_pauses(void) { worked_ns += now_ns() - resumed_ns; }

pthread_t start_thread(void *(*body)(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10);
    if (pthread_create(&thread, &attributes, body, argument) != 0) cannot("start a thread");
    pthread_attr_destroy(&attributes);
    return thread;
}

void join_thread(pthread_t thread) { pthread_join(thread, NULL); }

struct starter {
    struct share share;
    uint64_t (*body)(const struct share *);
    uint64_t sum;
    pthread_t thread;
};

static void *run_share(void *argument) {
    struct starter *starter = argument;
    starter->sum = starter->body(&starter->share);
    return NULL;
}

uint64_t on_threads(const struct plan *plan, uint64_t (*body)(const struct share *), void *context) {
    struct starter *starters = table_new(plan->threads, sizeof *starters);
    uint64_t sum = 0;
    for (unsigned i = 0; i < plan->threads; i++) {
        struct share *share = &starters[i].share;
        *share = (struct share){i, plan->threads, plan->size, plan->live / plan->threads,
                                mix(plan->seed + i), plan->ops / plan->threads, context};
        if (share->live == 0) share->live = 1;
        if (i < plan->ops % plan->threads) share->ops++;
        starters[i].body = body;
    }
    if (plan->threads == 1) {
        run_share(&starters[0]);
    } else {
        for (unsigned i = 0; i < plan->threads; i++)
            starters[i].thread = start_thread(run_share, &starters[i]);
        for (unsigned i = 0; i < plan->threads; i++) join_thread(starters[i].thread);
    }
    for (unsigned i = 0; i < plan->threads; i++) sum += starters[i].sum;
    table_drop(starters, plan->threads, sizeof *starters);
    return sum;
}

static void list(void) {
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct pattern *pattern = groups[group]; pattern->name; pattern++)
            print(STDOUT_FILENO, "%-24s %-9s threads %-4u size %-9zu live %-8zu ops %-10llu %s\n",
                  pattern->name, pattern->group, pattern->threads, pattern->size, pattern->live,
                  (unsigned long long)pattern->ops, pattern->about);
}

static const struct pattern *find(const char *name) {
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct pattern *pattern = groups[group]; pattern->name; pattern++)
            if (strcmp(pattern->name, name) == 0) return pattern;
    return NULL;
}

__attribute__((format(printf, 1, 2))) static _Noreturn void usage(const char *format, ...) {
    char reason[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    print(STDERR_FILENO,
          "patterns: %s\n"
          "Usage: patterns NAME [--threads T] [--size BYTES] [--live BLOCKS] [--seed N] [--ops N]\n"
          "       patterns --list\n",
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

static struct plan plan_from(const struct pattern *pattern, char **arguments) {
    struct plan plan = {pattern->name, pattern->threads, pattern->size, pattern->live, 1, pattern->ops};
    for (; *arguments; arguments += 2) {
        const char *option = arguments[0], *text = arguments[1];
        if (strcmp(option, "--threads") == 0) {
            plan.threads = (unsigned)number(option, text, pattern->threads_min, THREADS_MAX);
        } else if (strcmp(option, "--size") == 0) {
            if (pattern->size == 0) usage("%s takes no --size", pattern->name);
            uint64_t most = LIVE_BYTES_MAX / pattern->live;
            plan.size = (size_t)number(option, text, pattern->size_min, most);
        } else if (strcmp(option, "--live") == 0) {
            if (pattern->live_max == 0) usage("%s takes no --live", pattern->name);
            plan.live = (size_t)number(option, text, 1, pattern->live_max);
        } else if (strcmp(option, "--seed") == 0) {
            plan.seed = number(option, text, 0, UINT64_MAX);
        } else if (strcmp(option, "--ops") == 0) {
            plan.ops = number(option, text, 1, UINT64_MAX);
        } else {
            usage("'%s' is not an option", option);
        }
    }
    return plan;
}

int main(int count, char **arguments) {
    if (count < 2) usage("name a pattern; --list shows them");
    if (strcmp(arguments[1], "--list") == 0) {
        list();
        return 0;
    }
    const struct pattern *pattern = find(arguments[1]);
    if (!pattern) usage("'%s' is not a pattern; --list shows them", arguments[1]);
    struct plan plan = plan_from(pattern, arguments + 2);
    running = plan.name;
    clock_resumes();
    uint64_t sum = pattern->each ? on_threads(&plan, pattern->each, NULL) : pattern->whole(&plan);
    clock_pauses();
    print(STDERR_FILENO, "%s ns_per_op %.2f rss_kb %llu\n", plan.name,
          (double)worked_ns / (double)plan.ops, (unsigned long long)status_kb("VmHWM:"));
    print(STDOUT_FILENO, "%s threads %u size %zu live %zu seed %llu ops %llu checksum %016llx\n", plan.name,
          plan.threads, plan.size, plan.live, (unsigned long long)plan.seed, (unsigned long long)plan.ops,
          (unsigned long long)mix(sum));
    return 0;
}
