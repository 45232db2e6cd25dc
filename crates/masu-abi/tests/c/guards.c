/* Misuse of guarded blocks, one kind a run, and everything else that a program may do with them, for
 * tests/guards.rs. The first line printed says where the functions lie that must stand in the report. */

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "masu.h"

#define CHECK(condition)                                                                             \
    do {                                                                                             \
        if (!(condition)) {                                                                          \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                          \
            exit(1);                                                                                 \
        }                                                                                            \
    } while (0)

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

static size_t os_page(void) { return (size_t)sysconf(_SC_PAGESIZE); }

/* A block that ends where its OS page does, and one that begins there. */
static char *last_of_a_page(void) {
    for (int i = 0; i < 64; i++) {
        char *block = make_block();
        if (((uintptr_t)block + size) % os_page() == 0) return block;
    }
    CHECK(!"one of so many lies there");
    return NULL;
}
static char *first_of_a_page(void) {
    for (int i = 0; i < 64; i++) {
        char *block = make_block();
        if ((uintptr_t)block % os_page() == 0) return block;
    }
    CHECK(!"one of so many lies there");
    return NULL;
}

static void write_over(void) { write_at(last_of_a_page() + size); }
static void read_over(void) { read_at(last_of_a_page() + size); }
static void write_under(void) { write_at(first_of_a_page() - 1); }
static void read_under(void) { read_at(first_of_a_page() - 1); }
static void far_over(void) { write_at(last_of_a_page() + size + 10000); }
static void write_freed(void) { char *block = make_block(); drop_block(block); write_at(block + 3); }
static void read_freed(void) { char *block = make_block(); drop_block(block); read_at(block + 3); }
static void read_freed_by_another(void) {
    char *block = make_block();
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, drop_in_thread, block));
    CHECK(!pthread_join(thread, NULL));
    read_at(block);
}
static void free_twice(void) { char *block = make_block(); drop_block(block); drop_block(block); }
static void free_inside(void) { drop_block(make_block() + 16); }
static void free_misaligned(void) { drop_block(make_block() + 1); }
static void free_beyond(void) { drop_block(last_of_a_page() + size); }
static void realloc_freed(void) {
    char *block = make_block();
    drop_block(block);
    CHECK(!realloc(block, 2 * size));
}
static void size_of_freed(void) {
    char *block = make_block();
    drop_block(block);
    CHECK(!malloc_usable_size(block));
}
static void freed_by_realloc(void) {
    char *block = make_block();
    CHECK(realloc(block, 3 * size));
    read_at(block);
}
/* Where the block does not end at its OS page's end, what is written there is seen when it is freed. */
static void written_behind(void) { char *block = first_of_a_page(); write_at(block + size); drop_block(block); }
static void written_before(void) { char *block = last_of_a_page(); write_at(block - 1); drop_block(block); }

/* Faults that are nobody's but the program's. */
static void elsewhere(void) {
    drop_block(make_block());
    write_at(mmap(NULL, os_page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
static void sent(void) {
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
static char *closed(void) {
    return mmap(NULL, os_page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
/* The option is set when the program's handler is there already. */
static void handler_before(void) {
    set_handler();
    CHECK(!masu_option_set("guard_rate", 1));
    for (int i = 0; i < 1000; i++) drop_block(make_block());
    struct masu_statistics now;
    CHECK(masu_statistics(&now, sizeof now) && now.guarded_made > 900);
    for (int i = 0; i < 3; i++) fault_at(closed());
    CHECK(caught == 3);
    fault_at(last_of_a_page() + size);
    CHECK(caught == 4);
}
static void plain_handler_before(void) {
    CHECK(signal(SIGSEGV, catch_plainly) != SIG_ERR);
    CHECK(!masu_option_set("guard_rate", 1));
    drop_block(make_block());
    fault_at(closed());
    fault_at(last_of_a_page() + size);
    CHECK(caught == 2);
}
/* The later handler stands in the place of masu's, which says nothing then. */
static void handler_after(void) {
    char *block = last_of_a_page();
    set_handler();
    fault_at(block + size);
    CHECK(caught == 1);
}

/* A block that realloc moves is as long as was asked, however little it grows. */
static void exact_after_realloc(void) {
    char *block = malloc(300);
    CHECK(block);
    for (size_t wanted = 301; wanted < 6000; wanted += wanted / 16 + 1) {
        CHECK(block = realloc(block, wanted));
        CHECK(malloc_usable_size(block) == wanted);
    }
    free(block);
}

/* What is right. */
static void *churn(void *argument) {
    unsigned random = (unsigned)(uintptr_t)argument;
    char *kept[64] = {0};
    for (int i = 0; i < 20000; i++) {
        random = random * 1103515245 + 12345;
        char **place = &kept[random >> 16 & 63];
        size_t wanted = 1 + (random >> 8) % ((random & 7) == 0 ? 80000 : 700);
        if (*place && random & 1) {
            unsigned char first = (unsigned char)**place;
            *place = realloc(*place, wanted);
            CHECK(*place && (unsigned char)**place == first);
        } else {
            free(*place);
            size_t align = (size_t)16 << (random >> 22 & 7);
            switch (random >> 26 & 3) {
                case 0: *place = calloc(1, wanted); for (size_t at = 0; at < wanted; at++) CHECK(!(*place)[at]); break;
                case 1: *place = aligned_alloc(align, wanted); CHECK((uintptr_t)*place % align == 0); break;
                default: *place = malloc(wanted);
            }
        }
        CHECK(*place && (uintptr_t)*place % 16 == 0 && malloc_usable_size(*place) >= wanted);
        memset(*place, (int)random, malloc_usable_size(*place));
    }
    for (int i = 0; i < 64; i++) free(kept[i]);
    return NULL;
}
static void exercise(void) {
    for (int round = 0; round < 3; round++) {
        pthread_t threads[4];
        for (uintptr_t i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, churn, (void *)(i + 1)));
        for (int i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
    }
    struct masu_statistics now;
    CHECK(masu_statistics(&now, sizeof now));
    printf("%zu %zu %zu\n", now.guarded_made, now.guarded_blocks, now.guarded_skipped);
}
/* How many of so many are guarded. */
static void count(void) {
    for (size_t i = 0; i < size; i++) free(malloc(i % 1500));
    struct masu_statistics now;
    CHECK(masu_statistics(&now, sizeof now));
    printf("%zu %zu %zu\n", now.guarded_made, now.guarded_blocks, now.guarded_skipped);
}
static size_t made(void) {
    struct masu_statistics now;
    CHECK(masu_statistics(&now, sizeof now));
    return now.guarded_made;
}
static void on_and_off(void) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, churn, (void *)9));
    size_t before = made();
    for (int round = 0; round < 4; round++) {
        CHECK(!masu_option_set("guard_rate", 2));
        churn((void *)6);
        CHECK(made() > before);
        CHECK(!masu_option_set("guard_rate", 0));
        churn((void *)5);
        before = made();
    }
    CHECK(!pthread_join(thread, NULL));
    before = made();
    churn((void *)5);
    CHECK(made() == before);
}
static void full(void) {
    /* More than there are slots, and none of them is lost. */
    char *blocks[1000];
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 1000; i++) blocks[i] = make_block();
        for (int i = 0; i < 1000; i++) drop_block(blocks[i]);
    }
    struct masu_statistics now;
    CHECK(masu_statistics(&now, sizeof now));
    CHECK(now.guarded_made >= 500 && now.guarded_skipped > 1000 && now.guarded_blocks < 10);
}
static void forks(void) {
    char *block = make_block(), *freed = make_block();
    drop_block(freed);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(block[5] == 1);
        drop_block(block);
        churn((void *)3);
        read_at(freed + 1);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK(block[5] == 1);
    drop_block(block);
    churn((void *)4);
}
static void slots_come_late(void) {
    struct rlimit all, few;
    pthread_t thread;
    size_t before = made();
    CHECK(!getrlimit(RLIMIT_AS, &all));
    few = all;
    few.rlim_cur = 1;
    CHECK(!setrlimit(RLIMIT_AS, &few));
    CHECK(!masu_option_set("guard_rate", 1));
    churn((void *)1);
    CHECK(made() == before);
    CHECK(!setrlimit(RLIMIT_AS, &all));
    CHECK(!pthread_create(&thread, NULL, churn, (void *)2) && !pthread_join(thread, NULL));
    CHECK(made() > before);
}
static void forks_beside_threads(void) {
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++) CHECK(!pthread_create(&threads[i], NULL, churn, (void *)(i + 1)));
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) { for (int j = 0; j < 300; j++) drop_block(make_block()); _exit(0); }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    for (int i = 0; i < 2; i++) CHECK(!pthread_join(threads[i], NULL));
}

#define RUN(name) if (!strcmp(argv[1], #name)) name(); else

int main(int argc, char **argv) {
    CHECK(argc > 1);
    if (argc > 2) size = (size_t)atoi(argv[2]);
    printf("%p %p %p %p\n", (void *)(uintptr_t)make_block, (void *)(uintptr_t)drop_block,
           (void *)(uintptr_t)write_at, (void *)(uintptr_t)read_at);
    fflush(stdout);
    /* A thread's first request is not counted. */
    for (int i = 0; i < 10; i++) free(malloc(100));
    RUN(write_over) RUN(read_over) RUN(write_under) RUN(read_under) RUN(far_over)
    RUN(write_freed) RUN(read_freed) RUN(read_freed_by_another) RUN(free_twice) RUN(free_inside)
    RUN(free_misaligned) RUN(free_beyond) RUN(realloc_freed) RUN(size_of_freed) RUN(freed_by_realloc)
    RUN(written_behind) RUN(written_before) RUN(elsewhere) RUN(sent)
    RUN(handler_before) RUN(plain_handler_before) RUN(handler_after)
    RUN(exact_after_realloc) RUN(exercise) RUN(count) RUN(on_and_off) RUN(slots_come_late) RUN(full) RUN(forks) RUN(forks_beside_threads)
    return 3;
    return 0;
}
