/* main.c: runs one named cause, and times it. */
#include <string.h>
#include <unistd.h>

#include "cause.h"

static const struct cause *const groups[] = {memory_causes, thread_causes, other_causes};
#define GROUPS (sizeof groups / sizeof *groups)

const char program[] = "causes";
const char arguments_told[] = "Usage: causes NAME [--libraries DIR]\n"
                              "       causes --list\n";

const char *libraries;

pthread_t start_thread(void *(*body)(void *), void *argument) { return start_thread_with(0, body, argument); }

struct member {
    unsigned index;
    uint64_t (*body)(unsigned);
    uint64_t sum;
    pthread_t thread;
};

static void *run_member(void *argument) {
    struct member *member = argument;
    member->sum = member->body(member->index);
    return NULL;
}

uint64_t on_each(unsigned threads, uint64_t (*body)(unsigned index)) {
    struct member *members = table_new(threads, sizeof *members);
    uint64_t sum = 0;
    for (unsigned i = 0; i < threads; i++) {
        members[i] = (struct member){.index = i, .body = body};
        members[i].thread = start_thread(run_member, &members[i]);
    }
    for (unsigned i = 0; i < threads; i++) {
        join_thread(members[i].thread);
        sum += members[i].sum;
    }
    table_drop(members, threads, sizeof *members);
    return sum;
}

static void list(void) {
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct cause *cause = groups[group]; cause->name; cause++)
            print(STDOUT_FILENO, "%-20s %s\n", cause->name, cause->about);
}

static const struct cause *find(const char *name) {
    for (size_t group = 0; group < GROUPS; group++)
        for (const struct cause *cause = groups[group]; cause->name; cause++)
            if (strcmp(cause->name, name) == 0) return cause;
    return NULL;
}

int main(int count, char **arguments) {
    if (count < 2) usage("name a cause; --list shows them");
    if (strcmp(arguments[1], "--list") == 0) {
        list();
        return 0;
    }
    const struct cause *cause = find(arguments[1]);
    if (!cause) usage("'%s' is not a cause; --list shows them", arguments[1]);
    if (count == 4 && strcmp(arguments[2], "--libraries") == 0)
        libraries = arguments[3];
    else if (count > 2)
        usage("'%s' is not an option, or lacks its value", arguments[2]);
    running = cause->name;
    uint64_t began_ns = now_ns();
    uint64_t sum = cause->run();
    print(STDERR_FILENO, "%s ms %.0f rss_kb %llu\n", cause->name, (double)(now_ns() - began_ns) / 1e6,
          (unsigned long long)status_kb("VmHWM:"));
    print(STDOUT_FILENO, "%s checksum %016llx\n", cause->name, (unsigned long long)mix(sum));
    return 0;
}
