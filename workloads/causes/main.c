/* main.c: runs one named cause with its parameters, and times it. */
#include <string.h>
#include <unistd.h>

#include "cause.h"

static const struct cause *const groups[] = {memory_causes, thread_causes, other_causes};
#define GROUPS (sizeof groups / sizeof *groups)

const char program[] = "causes";
const char arguments_told[] = "Usage: causes NAME [--threads T] [--size N] [--rounds N] [--libraries DIR]\n"
                              "       causes --list\n";

pthread_t start_thread(void *(*body)(void *), void *argument) { return start_thread_with(0, body, argument); }

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

static void list(void) {
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct cause *cause = groups[group]; cause->name; cause++)
            print(STDOUT_FILENO, "%-20s threads %-2u size %9zu %-11s rounds %-9llu %s\n", cause->name,
                  cause->threads, cause->size, cause->unit, (unsigned long long)cause->rounds,
                  cause->about);
}

static const struct cause *find(const char *name) {
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct cause *cause = groups[group]; cause->name; cause++)
            if (strcmp(cause->name, name) == 0) return cause;
    return NULL;
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
    uint64_t began_ns = now_ns();
    uint64_t sum = cause->run(&work);
    print(STDERR_FILENO, "%s ms %.0f rss_kb %llu\n", work.name, (double)(now_ns() - began_ns) / 1e6,
          (unsigned long long)status_kb("VmHWM:"));
    print(STDOUT_FILENO, "%s threads %u size %zu rounds %llu checksum %016llx\n", work.name, work.threads,
          work.size, (unsigned long long)work.rounds, (unsigned long long)mix(sum));
    return 0;
}
