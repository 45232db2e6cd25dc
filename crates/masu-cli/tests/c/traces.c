/* traces.c: traces a child of its own, as debuggers do, and fails where that is refused. */
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    pid_t child = fork();
    if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == -1);
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) return 0;
    fputs("traces: may not trace\n", stderr);
    return 1;
}
