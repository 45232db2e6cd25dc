/* What comes between: signals, programs started and replaced, rights dropped, blocks freed after main.
 * The name of a group, given as argument, runs that one. */
#include "work.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>

/* --- Signals --- */

static volatile sig_atomic_t rained;

static void count_rain(int signal)
{
    (void)signal;
    rained++;
}

GROUP(signals_rain_while_threads_allocate)
{
    /* Nothing of the library's is there: no handler, no signal that it blocks. */
    sigset_t blocked;
    work(1, 100);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0)
            CHECK(action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
        CHECK(sigismember(&blocked, number) != 1);
    }
    struct sigaction action = {.sa_handler = count_rain};
    struct itimerval often = {{0, 200}, {0, 200}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    start_workers(3, work_until_stopped);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (unsigned seed = 0; rained < 500; seed++)
        work(seed, 500);
    memset(&often, 0, sizeof often);
    setitimer(ITIMER_REAL, &often, NULL);
    join_workers(3);
}

/* --- Programs --- */

extern char **environ;

GROUP(spawned_while_threads_allocate)
{
    start_workers(3, work_until_stopped);
    for (int i = 0; i < 50; i++) {
        pid_t child;
        char *const arguments[] = {"true", NULL};
        CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0);
        expect_success(child);
        FILE *output = popen("echo spawned", "r");
        char line[20] = "";
        CHECK(output && fgets(line, sizeof line, output) && strcmp(line, "spawned\n") == 0);
        CHECK(pclose(output) == 0);
    }
    CHECK(system("exit 3") == 3 << 8);
    join_workers(3);
}

static const char *self;

static void *replace_program(void *unused)
{
    /* A descriptor that the library left open would be seen by the next program. */
    char *const arguments[] = {(char *)self, "was_replaced", NULL};
    execve(self, arguments, environ);
    return unused;
}

GROUP(exec_while_threads_allocate)
{
    start_workers(3, work_until_stopped);
    work(1, 1000);
    run_thread(replace_program, 0);
    CHECK(!"the program was replaced");
}

GROUP(was_replaced)
{
    /* The first descriptor that is free: none is left over. */
    int descriptor = dup(0);
    CHECK(descriptor == 3);
    work(1, 1000);
}

/* --- Rights --- */

GROUP(rights_are_dropped_while_threads_allocate)
{
    start_workers(3, work_until_stopped);
    uid_t user = getuid(), other = user == 0 ? 65534 : user;
    for (int i = 0; i < 20; i++) {
        /* The C library has every thread do it, by a signal. */
        CHECK(setresgid((gid_t)-1, user == 0 ? 65534 : getgid(), (gid_t)-1) == 0);
        CHECK(setresuid((uid_t)-1, other, (uid_t)-1) == 0);
        work((unsigned)i, 500);
        CHECK(setresuid((uid_t)-1, user, (uid_t)-1) == 0);
        CHECK(setresgid((gid_t)-1, getgid(), (gid_t)-1) == 0);
    }
    CHECK(setuid(other) == 0);
    work(99, 5000);
    join_workers(3);
}

/* --- After main --- */

static char *kept[300];
static pthread_key_t late_key;

static void free_kept(void)
{
    for (int i = 0; i < 300; i++) {
        CHECK(kept[i][i] == (char)i);
        free(kept[i]);
        kept[i] = NULL;
    }
    work(5, 1000);
    _exit(0);
}

__attribute__((destructor)) static void last_of_all(void)
{
    if (kept[0])
        free_kept();
}

static void allocate_at_exit(void)
{
    for (int i = 0; i < 300; i++)
        kept[i] = realloc(kept[i], (size_t)i * 30 + 301);
}

GROUP(frees_after_main)
{
    for (int i = 0; i < 300; i++) {
        kept[i] = malloc((size_t)i * 20 + 300);
        memset(kept[i], i, (size_t)i * 20 + 300);
    }
    CHECK(atexit(allocate_at_exit) == 0);
    exit(1);
}

/* A key's destructor that keeps on setting the key, so that it is called after the library's own. */
static void allocate_again(void *block)
{
    static _Thread_local int rounds;
    free(block);
    work(3, 200);
    if (rounds++ < 3)
        pthread_setspecific(late_key, malloc(700));
}

static void *leave_to_destructors(void *argument)
{
    work((unsigned)(uintptr_t)argument, 100);
    pthread_setspecific(late_key, malloc(100));
    return NULL;
}

GROUP(keys_free_late)
{
    CHECK(pthread_key_create(&late_key, allocate_again) == 0);
    for (size_t i = 0; i < 300; i++)
        run_thread(leave_to_destructors, i);
}

int main(int count, char **arguments)
{
    self = arguments[0];
    return run_group(count, arguments, 120);
}
