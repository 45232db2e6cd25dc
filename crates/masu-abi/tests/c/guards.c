/* Misuse of guarded blocks, one kind a run, and everything else that a program may do with them, for
 * tests/guards.rs. The first line printed says where the functions lie that must stand in the report. */

#include "work.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "masu.h"

/* No function here is inlined or ends in a jump to another: their callers are looked for in stacks. */
#define APART __attribute__((noinline, noclone))

static size_t size = 32;
static volatile char seen;

APART static char *make_block(void) {
    char *block = malloc(size);
    CHECK(block);
    memset(block, 1, size);
    return block;
}

APART static void drop_block(char *block) {
    free(block);
    seen = 0;
}

APART static void write_at(volatile char *place) { *place = 7; seen = 0; }
APART static void read_at(volatile char *place) { seen = *place; }

static void *drop_in_thread(void *block) { drop_block(block); return NULL; }

static struct masu_statistics statistics(void) {
    struct masu_statistics now;
    CHECK(masu_statistics(&now, sizeof now));
    return now;
}
static size_t made(void) { return statistics().guarded_made; }

static size_t os_page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* A block with this offset inside it, its start or its end, where an OS page begins. */
static char *at_an_edge(size_t offset) {
    for (int i = 0; i < 64; i++) {
        char *block = make_block();
        if (((uintptr_t)block + offset) % os_page() == 0) return block;
    }
    CHECK(!"one of so many lies there");
    return NULL;
}
static char *last_of_a_page(void) { return at_an_edge(size); }
static char *first_of_a_page(void) { return at_an_edge(0); }

GROUP(write_over) { write_at(last_of_a_page() + size); }
GROUP(read_over) { read_at(last_of_a_page() + size); }
GROUP(write_under) { write_at(first_of_a_page() - 1); }
GROUP(read_under) { read_at(first_of_a_page() - 1); }
GROUP(far_over) { write_at(last_of_a_page() + size + 10000); }
GROUP(write_freed) { char *block = make_block(); drop_block(block); write_at(block + 3); }
GROUP(read_freed) { char *block = make_block(); drop_block(block); read_at(block + 3); }
GROUP(read_freed_by_another) {
    char *block = make_block();
    run_thread(drop_in_thread, (uintptr_t)block);
    read_at(block);
}
GROUP(free_twice) { char *block = make_block(); drop_block(block); drop_block(block); }
GROUP(free_inside) { drop_block(make_block() + 16); }
GROUP(free_misaligned) { drop_block(make_block() + 1); }
GROUP(free_beyond) { drop_block(last_of_a_page() + size); }
GROUP(realloc_freed) {
    char *block = make_block();
    drop_block(block);
    CHECK(!realloc(block, 2 * size));
}
GROUP(size_of_freed) {
    char *block = make_block();
    drop_block(block);
    CHECK(!malloc_usable_size(block));
}
GROUP(freed_by_realloc) {
    char *block = make_block();
    CHECK(realloc(block, 3 * size));
    read_at(block);
}
/* Where the block does not end at its OS page's end, what is written there is seen when it is freed. */
GROUP(written_behind) { char *block = first_of_a_page(); write_at(block + size); drop_block(block); }
GROUP(written_before) { char *block = last_of_a_page(); write_at(block - 1); drop_block(block); }

static char *closed(void) {
    return mmap(NULL, os_page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Faults that are nobody's but the program's. */
GROUP(elsewhere) {
    drop_block(make_block());
    write_at(closed());
}
GROUP(sent) {
    drop_block(make_block());
    raise(SIGSEGV);
    CHECK(!"it was sent");
}

static sigjmp_buf back;
static volatile sig_atomic_t caught;
static char *volatile expected;
static void catch_with(int signal, siginfo_t *information, void *context) {
    char here;
    stack_t stack;
    CHECK(signal == SIGSEGV && context && !sigaltstack(NULL, &stack));
    CHECK(information->si_addr == expected && information->si_code > 0);
    CHECK(stack.ss_flags & SS_ONSTACK);
    CHECK(&here > (char *)stack.ss_sp && &here < (char *)stack.ss_sp + stack.ss_size);
    sigset_t mask;
    CHECK(!sigprocmask(SIG_BLOCK, NULL, &mask) && sigismember(&mask, SIGUSR1));
    caught++;
    siglongjmp(back, 1);
}
static void catch_plainly(int signal) {
    CHECK(signal == SIGSEGV);
    caught++;
    siglongjmp(back, 1);
}
static void fault_at(char *place) {
    expected = place;
    if (!sigsetjmp(back, 1)) write_at(place);
}
static void set_handler(void) {
    static char room[1 << 16];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    CHECK(!sigaltstack(&stack, NULL));
    struct sigaction action = {.sa_sigaction = catch_with, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaddset(&action.sa_mask, SIGUSR1);
    CHECK(!sigaction(SIGSEGV, &action, NULL));
}
/* The option is set when the program's handler is there already. */
GROUP(handler_before) {
    set_handler();
    CHECK(!masu_option_set("guard_rate", 1));
    for (int i = 0; i < 1000; i++) drop_block(make_block());
    CHECK(made() > 900);
    for (int i = 0; i < 3; i++) fault_at(closed());
    CHECK(caught == 3);
    fault_at(last_of_a_page() + size);
    CHECK(caught == 4);
}
GROUP(plain_handler_before) {
    CHECK(signal(SIGSEGV, catch_plainly) != SIG_ERR);
    CHECK(!masu_option_set("guard_rate", 1));
    drop_block(make_block());
    fault_at(closed());
    fault_at(last_of_a_page() + size);
    CHECK(caught == 2);
}
/* The later handler stands in the place of masu's, which says nothing then. */
GROUP(handler_after) {
    char *block = last_of_a_page();
    set_handler();
    fault_at(block + size);
    CHECK(caught == 1);
}

/* A block that realloc moves is as long as was asked, however little it grows. */
GROUP(exact_after_realloc) {
    char *block = malloc(300);
    CHECK(block);
    for (size_t wanted = 301; wanted < 6000; wanted += wanted / 16 + 1) {
        CHECK(block = realloc(block, wanted));
        CHECK(malloc_usable_size(block) == wanted);
    }
    free(block);
}

/* What is right. */
static void print_counts(void) {
    struct masu_statistics now = statistics();
    printf("%zu %zu %zu\n", now.guarded_made, now.guarded_blocks, now.guarded_skipped);
}
GROUP(all_functions) {
    for (int round = 0; round < 3; round++) {
        start_workers(4, exercise);
        join_workers(4);
    }
    print_counts();
}
/* How many of so many are guarded. */
GROUP(count) {
    for (size_t i = 0; i < size; i++) free(malloc(i % 1500));
    print_counts();
}
GROUP(on_and_off) {
    start_workers(1, exercise);
    size_t before = made();
    for (int round = 0; round < 4; round++) {
        CHECK(!masu_option_set("guard_rate", 2));
        exercise((void *)6);
        CHECK(made() > before);
        CHECK(!masu_option_set("guard_rate", 0));
        exercise((void *)5);
        before = made();
    }
    join_workers(1);
    before = made();
    exercise((void *)5);
    CHECK(made() == before);
}
GROUP(full) {
    /* More than there are slots, and none of them is lost. */
    char *blocks[1000];
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 1000; i++) blocks[i] = make_block();
        for (int i = 0; i < 1000; i++) drop_block(blocks[i]);
    }
    struct masu_statistics now = statistics();
    CHECK(now.guarded_made >= 500 && now.guarded_skipped > 1000 && now.guarded_blocks < 10);
}
GROUP(forks) {
    char *block = make_block(), *freed = make_block();
    drop_block(freed);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(block[5] == 1);
        drop_block(block);
        exercise((void *)3);
        read_at(freed + 1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(block[5] == 1);
    drop_block(block);
    exercise((void *)4);
}
GROUP(slots_come_late) {
    struct rlimit all, few;
    size_t before = made();
    CHECK(!getrlimit(RLIMIT_AS, &all));
    few = all;
    few.rlim_cur = 1;
    CHECK(!setrlimit(RLIMIT_AS, &few));
    CHECK(!masu_option_set("guard_rate", 1));
    exercise((void *)1);
    CHECK(made() == before);
    CHECK(!setrlimit(RLIMIT_AS, &all));
    run_thread(exercise, 2);
    CHECK(made() > before);
}
GROUP(forks_beside_threads) {
    start_workers(2, exercise);
    for (int i = 0; i < 50; i++)
        IN_CHILD(for (int j = 0; j < 300; j++) drop_block(make_block()));
    join_workers(2);
}

int main(int argc, char **argv) {
    if (argc > 2) size = (size_t)atoi(argv[2]);
    printf("%p %p %p %p\n", (void *)(uintptr_t)make_block, (void *)(uintptr_t)drop_block,
           (void *)(uintptr_t)write_at, (void *)(uintptr_t)read_at);
    fflush(stdout);
    /* A thread's first request is not counted. */
    for (int i = 0; i < 10; i++) free(malloc(100));
    return run_group(argc, argv, 600);
}
