/* fork where the C library's own locks stand beside the library's: while handlers are registered, in a
 * signal handler, while other threads flush streams. The name of a group, given as argument, runs that one. */
#include "work.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

static void do_nothing(void)
{
}

/* The C library has room for so many of its own, and allocates for the next one, under its lock. */
GROUP(handlers_are_registered_before_the_first_malloc)
{
    for (int i = 0; i < 100; i++)
        CHECK(pthread_atfork(do_nothing, do_nothing, do_nothing) == 0);
    for (int i = 0; i < 3; i++) {
        IN_CHILD(work(1, 100));
        work(2, 100);
    }
}

/* --- A handler forks, wherever it interrupts the one thread there is. --- */

enum { FORKS = 400, BLOCKS = 64 };

/* Frees each block and makes another; nearly all of them take a lock, and hold it for long. */
static void replace_all(void **blocks, unsigned *seed)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        *seed = *seed * 1103515245 + 12345;
        free(blocks[i]);
        blocks[i] = malloc(*seed % 4 ? 20000 + *seed % 30000 : 70000 + *seed % 400000);
        CHECK(blocks[i]);
    }
}

static void free_all(void **blocks)
{
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
}

static pid_t children[FORKS];
static volatile sig_atomic_t forks, is_child;

static void fork_here(int signal)
{
    int before = errno;
    if (!is_child && forks < FORKS) {
        pid_t child = fork();
        if (child == 0) {
            is_child = 1;
            alarm(60);
        } else {
            children[forks++] = child;
        }
    }
    errno = before;
    (void)signal;
}

GROUP(a_handler_forks_in_the_midst_of_malloc)
{
    struct sigaction action = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
    /* In a process of its own the time is up as often as it allocates, however long a fork takes. */
    struct itimerval interval = {{0, 300}, {0, 300}};
    CHECK(sigaction(SIGVTALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_VIRTUAL, &interval, NULL) == 0);
    void *blocks[BLOCKS] = {0};
    unsigned seed = 1;
    while (forks < FORKS && !is_child)
        replace_all(blocks, &seed);
    if (is_child) {
        /* What was interrupted has gone on here too. */
        work((unsigned)getpid(), 500);
        free_all(blocks);
        run_thread(work_once, 1);
        _exit(0);
    }
    struct itimerval none = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_VIRTUAL, &none, NULL) == 0);
    for (int i = 0; i < FORKS; i++)
        expect_success(children[i]);
}

/* --- A stream's lock is held where memory is asked for, and all streams' where they are flushed. --- */

static char line[200000];

/* Every third thread flushes all streams, the others read lines, until they are stopped. */
static void *flush_or_read_lines(void *number)
{
    while (!stop) {
        if ((uintptr_t)number % 3 == 0) {
            fflush(NULL);
            continue;
        }
        FILE *stream = fmemopen(line, sizeof line, "r");
        CHECK(stream);
        char *read = NULL;
        size_t length = 0;
        CHECK(getline(&read, &length, stream) > 0);
        free(read);
        fclose(stream);
    }
    return NULL;
}

GROUP(fork_while_streams_are_flushed)
{
    memset(line, 'l', sizeof line - 1);
    start_workers(6, flush_or_read_lines);
    for (unsigned i = 0; i < 500; i++) {
        /* Nobody holds anything in the child. */
        IN_CHILD(fflush(NULL); work(i, 50); free(strdup(line)); fclose(fopen("/dev/null", "w")));
    }
    join_workers(6);
}

/* --- Handlers fork in several threads at a time, which all hold and want the same locks. --- */

static atomic_int forked;

static void fork_and_wait_here(int signal)
{
    int before = errno, status;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK(child > 0);
    while (waitpid(child, &status, 0) != child)
        CHECK(errno == EINTR);
    CHECK(status == 0);
    errno = before;
    forked++;
    (void)signal;
}

static void *allocate_until_stopped(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    void *blocks[BLOCKS] = {0};
    while (!stop)
        replace_all(blocks, &seed);
    free_all(blocks);
    return NULL;
}

GROUP(handlers_fork_beside_threads_that_allocate)
{
    struct sigaction action = {.sa_handler = fork_and_wait_here, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    start_workers(4, allocate_until_stopped);
    for (int round = 1; round <= 50; round++) {
        for (size_t i = 0; i < 4; i++)
            CHECK(pthread_kill(workers[i], SIGUSR1) == 0);
        while (forked < 4 * round)
            usleep(100);
    }
    join_workers(4);
}

/* --- A thread that searches for the next malloc is not there in the child. --- */

static volatile int searches, is_searched_for;
static char *foreign_block;
static const void *error_place;
static __thread int waits_in_search;

static void free_of_the_next_malloc(void *block)
{
    CHECK(block == foreign_block);
    is_searched_for = 1;
}

/* The library finds the next malloc's functions by this one. */
void *dlsym(void *handle, const char *name)
{
    (void)handle;
    if (waits_in_search) {
        searches = 1;
        for (;;)
            pause();
    }
    return strcmp(name, "__libc_free") == 0 ? (void *)free_of_the_next_malloc : NULL;
}

static void *free_a_foreign_block(void *waits)
{
    waits_in_search = waits != NULL;
    error_place = &errno;
    free(foreign_block);
    return NULL;
}

GROUP(a_search_is_interrupted_by_fork)
{
    static char stack[1 << 20] __attribute__((aligned(1 << 16)));
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, stack, sizeof stack) == 0);
    foreign_block = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(foreign_block != MAP_FAILED);
    CHECK(pthread_create(&thread, &attributes, free_a_foreign_block, foreign_block) == 0);
    while (!searches)
        usleep(100);
    const void *before = error_place;
    pid_t child = fork();
    if (child == 0) {
        /* The thread that is not there any more had the same stack, and so this one's addresses. */
        CHECK(pthread_create(&thread, &attributes, free_a_foreign_block, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(error_place == before && is_searched_for);
        _exit(0);
    }
    expect_success(child);
}

RUN_GROUPS(300)
