/* refuse.c: runs a program in a sandbox that refuses some system calls, as containers do.
 *
 *     refuse CALL... -- PROGRAM ARGUMENTS
 *
 * CALL is `perf_event_open`, `ptrace` or `seccomp`; refused calls fail with EPERM. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int number_of(const char *name) {
    if (strcmp(name, "perf_event_open") == 0) return SYS_perf_event_open;
    if (strcmp(name, "seccomp") == 0) return SYS_seccomp;
    if (strcmp(name, "ptrace") == 0) return SYS_ptrace;
    return -1;
}

static int refuse(int call) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int count, char **arguments) {
    int at = 1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 2;
    for (; at < count && strcmp(arguments[at], "--") != 0; at++) {
        int call = number_of(arguments[at]);
        if (call < 0 || refuse(call) != 0) {
            perror("refuse: cannot refuse a call");
            return 2;
        }
    }
    if (at + 1 >= count) return 2;
    execvp(arguments[at + 1], arguments + at + 1);
    perror("refuse: cannot start the program");
    return 2;
}
