/* crowd.c: a process of many threads, for a tracer to attach to.
 *
 * crowd turns: each line on standard input is a turn. Two more threads begin, one of those that were there from the
 * start makes a child, and then every thread there is, and the child, writes 100 times to /dev/null. "done CHILD" is
 * said when all have. Threads stay for all turns, children until this process is gone.
 *
 * crowd churn: four threads start threads and wait for their end, over and over, each of which writes a line. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 4, MORE = 2, TIMES = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static int turn, threads, at_work;
static pid_t child;
static int nowhere, until_the_end[2];

/* One call for one line. */
static void say(const char *line) {
    if (write(STDOUT_FILENO, line, strlen(line)) < 0) exit(1);
}

static void work(void) {
    for (int i = 0; i < TIMES; i++)
        if (write(nowhere, "abc", 3) != 3) abort();
}

static pid_t begin_child(void) {
    pid_t pid = fork();
    if (pid != 0) return pid;
    close(until_the_end[1]);
    work();
    char nothing;
    _exit(read(until_the_end[0], &nothing, 1) == 0 ? 0 : 1);
}

/* Takes part in every turn after `done`. */
static void *serve(int done, int makes_children) {
    for (pthread_mutex_lock(&lock);; done++) {
        while (turn == done) pthread_cond_wait(&moved, &lock);
        pthread_mutex_unlock(&lock);
        pid_t made = makes_children ? begin_child() : 0;
        work();
        pthread_mutex_lock(&lock);
        if (made != 0) child = made;
        at_work--;
        pthread_cond_broadcast(&moved);
    }
    return NULL;
}

static void *parent(void *done) { return serve((int)(intptr_t)done, 1); }
static void *member(void *done) { return serve((int)(intptr_t)done, 0); }

static pthread_t begin(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0) abort();
    return thread;
}

static void turns(void) {
    for (; threads < FIRST; threads++) begin(threads == 0 ? parent : member, NULL);
    say("begun\n");
    for (char line[16]; fgets(line, sizeof line, stdin) != NULL;) {
        for (int i = 0; i < MORE; i++, threads++) begin(member, (void *)(intptr_t)turn);
        pthread_mutex_lock(&lock);
        at_work = threads;
        turn++;
        pthread_cond_broadcast(&moved);
        while (at_work > 0) pthread_cond_wait(&moved, &lock);
        pthread_mutex_unlock(&lock);
        snprintf(line, sizeof line, "done %d\n", (int)child);
        say(line);
    }
}

static void *one_line(void *nothing) {
    say("line\n");
    return nothing;
}

static void *churn(void *nothing) {
    for (;;) pthread_join(begin(one_line, NULL), NULL);
    return nothing;
}

int main(int count, char **arguments) {
    nowhere = open("/dev/null", O_WRONLY);
    if (nowhere == -1 || pipe(until_the_end) != 0 || count != 2) return 2;
    if (strcmp(arguments[1], "turns") == 0) {
        turns();
        return 0;
    }
    for (int i = 1; i < FIRST; i++) begin(churn, NULL);
    churn(NULL);
}
