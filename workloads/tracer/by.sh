#!/bin/sh
# by.sh TARGET TRACER PROGRAM [ARGS]: the program by itself, or with its system calls counted by a tracer.
set -eu
target=$1 tracer=$2
shift 2

# What masu counts, for a strace that is asked for no more than that.
counted=brk,mmap,munmap,mremap,madvise,mprotect,futex,sched_yield,clone,clone3,fork,vfork,execve,execveat
counted=$counted,write,pwrite64,writev,pwritev,pwritev2,sendto,sendmsg,sendmmsg

case $tracer in
alone) exec "$@" ;;
masu) exec "$target/release/examples/calls" "$@" ;;
strace) exec strace -f -c "$@" ;;
strace-bpf) exec strace --seccomp-bpf -f -c "$@" ;;
strace-same) exec strace --seccomp-bpf -f -c -e "trace=$counted" "$@" ;;
*)
    echo "by.sh: no tracer is called $tracer" >&2
    exit 2
    ;;
esac
