// Makes system calls whose numbers do not depend on luck: of memory, threads one after another, processes,
// programs that are there and are not, writes of known sizes. Compiled and counted by tests/calls.rs.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static char text[8192];

static void writes(int count) {
    for (int i = 0; i < count; i++)
        if (write(1, text, 10) != 10) _exit(2);
}

static void *in_thread(void *count) {
    writes((int)(long)count);
    for (int i = 0; i < 4; i++) sched_yield();
    return 0;
}

static void memory(void) {
    for (int i = 0; i < 50; i++) {
        sbrk(4096);
        sbrk(-4096);
    }
    for (int i = 0; i < 30; i++) {
        char *p = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        p[0] = 1;
        madvise(p, 65536, MADV_DONTNEED);
        mprotect(p, 4096, PROT_READ);
        p = mremap(p, 65536, 131072, MREMAP_MAYMOVE);
        munmap(p, 131072);
    }
}

static void child(char *const *arguments) {
    pid_t pid = fork();
    if (pid == 0) {
        writes(5);
        if (arguments) {
            char *none[] = {0};
            execve("/no/such/program", arguments, none);
            execve(arguments[0], arguments, none);
        }
        _exit(3);
    }
    waitpid(pid, 0, 0);
}

int main(int count, char **arguments) {
    if (count > 1 && arguments[1][0] == 'd') kill(getpid(), SIGKILL);
    if (count > 1) {
        writes(7);
        return 0;
    }
    int word = 1;
    for (int i = 0; i < 6; i++) syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    // Returns at once, for the word is another.
    for (int i = 0; i < 3; i++) syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    memory();
    struct iovec two[] = {{text, 100}, {text, 900}};
    if (writev(1, two, 2) != 1000 || write(1, text, 4096) != 4096) return 2;
    pwrite(1, text, 20, 0);
    for (int i = 0; i < 9; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, in_thread, (void *)(long)i);
        pthread_join(thread, 0);
    }
    child(0);
    char *again[] = {arguments[0], "again", 0};
    child(again);
    return 0;
}
