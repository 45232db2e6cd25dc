/* main.c: runs one named pattern with its parameters on its threads, and times it. */
#include <unistd.h>

#include "pattern.h"

#define LIVE_BYTES_MAX ((uint64_t)1 << 30)

static const struct pattern *const groups[] = {small_patterns, large_patterns, thread_patterns,
                                               lifetime_patterns};
#define GROUPS (sizeof groups / sizeof *groups)

const char program[] = "patterns";
const char arguments_told[] =
    "Usage: patterns NAME [--threads T] [--size BYTES] [--live BLOCKS] [--seed N] [--ops N]\n"
    "       patterns --list\n";

static uint64_t worked_ns, resumed_ns;

void clock_resumes(void) { resumed_ns = now_ns(); }
void clock_pauses(void) { worked_ns += now_ns() - resumed_ns; }

pthread_t start_thread(void *(*body)(void *), void *argument) {
    return start_thread_with(256 << 10, body, argument);
}

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
