//! System calls of x86-64 Linux: the instruction and the numbers, from the kernel's
//! `arch/x86/entry/syscalls/syscall_64.tbl` and the "Calling conventions" of `syscall(2)`.

use core::arch::asm;

pub(in crate::platform::kernel) mod number {
    pub(in crate::platform::kernel) const READ: usize = 0;
    pub(in crate::platform::kernel) const WRITE: usize = 1;
    pub(in crate::platform::kernel) const CLOSE: usize = 3;
    pub(in crate::platform::kernel) const FSTAT: usize = 5;
    pub(in crate::platform::kernel) const MMAP: usize = 9;
    pub(in crate::platform::kernel) const MPROTECT: usize = 10;
    pub(in crate::platform::kernel) const MUNMAP: usize = 11;
    pub(in crate::platform::kernel) const RT_SIGPROCMASK: usize = 14;
    pub(in crate::platform::kernel) const PREAD64: usize = 17;
    pub(in crate::platform::kernel) const MADVISE: usize = 28;
    pub(in crate::platform::kernel) const GETPID: usize = 39;
    pub(in crate::platform::kernel) const FCNTL: usize = 72;
    pub(in crate::platform::kernel) const FTRUNCATE: usize = 77;
    pub(in crate::platform::kernel) const GETCWD: usize = 79;
    pub(in crate::platform::kernel) const GETTID: usize = 186;
    pub(in crate::platform::kernel) const FUTEX: usize = 202;
    pub(in crate::platform::kernel) const SCHED_GETAFFINITY: usize = 204;
    pub(in crate::platform::kernel) const CLOCK_GETTIME: usize = 228;
    pub(in crate::platform::kernel) const OPENAT: usize = 257;
    pub(in crate::platform::kernel) const UNLINKAT: usize = 263;
    pub(in crate::platform::kernel) const FACCESSAT: usize = 269;
    pub(in crate::platform::kernel) const PRLIMIT64: usize = 302;
    #[cfg(feature = "secure")]
    pub(in crate::platform::kernel) const GETRANDOM: usize = 318;
    pub(in crate::platform::kernel) const MEMFD_CREATE: usize = 319;
    pub(in crate::platform::kernel) const PROCESS_MADVISE: usize = 440;
}

/// The thread pointer: the address of the C library's data of this thread, whose first word is that address.
#[inline(always)]
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: The word exists from the thread's start and never changes.
    unsafe {
        asm!(
            "mov {pointer}, qword ptr fs:[0]",
            pointer = out(reg) pointer,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    pointer
}

/// Makes a system call; a result from −4095 to −1 is an error number, negated.
///
/// # Safety
///
/// - The call changes no memory that other code relies on.
#[inline]
pub(super) unsafe fn call6(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> isize {
    let result;
    // SAFETY: The instruction clobbers rax, rcx and r11 only; the caller answers for what the kernel does.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}
