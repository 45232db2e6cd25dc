//! System calls of aarch64 Linux: the instruction and the numbers, from the kernel's
//! `include/uapi/asm-generic/unistd.h` and the "Calling conventions" of `syscall(2)`.

use core::arch::asm;

pub(in crate::platform::kernel) mod number {
    pub(in crate::platform::kernel) const GETCWD: usize = 17;
    pub(in crate::platform::kernel) const FCNTL: usize = 25;
    pub(in crate::platform::kernel) const UNLINKAT: usize = 35;
    pub(in crate::platform::kernel) const FTRUNCATE: usize = 46;
    pub(in crate::platform::kernel) const FACCESSAT: usize = 48;
    pub(in crate::platform::kernel) const OPENAT: usize = 56;
    pub(in crate::platform::kernel) const CLOSE: usize = 57;
    pub(in crate::platform::kernel) const READ: usize = 63;
    pub(in crate::platform::kernel) const WRITE: usize = 64;
    pub(in crate::platform::kernel) const PREAD64: usize = 67;
    pub(in crate::platform::kernel) const FSTAT: usize = 80;
    pub(in crate::platform::kernel) const FUTEX: usize = 98;
    pub(in crate::platform::kernel) const CLOCK_GETTIME: usize = 113;
    pub(in crate::platform::kernel) const SCHED_GETAFFINITY: usize = 123;
    pub(in crate::platform::kernel) const RT_SIGPROCMASK: usize = 135;
    pub(in crate::platform::kernel) const GETPID: usize = 172;
    pub(in crate::platform::kernel) const GETTID: usize = 178;
    pub(in crate::platform::kernel) const MUNMAP: usize = 215;
    pub(in crate::platform::kernel) const MMAP: usize = 222;
    pub(in crate::platform::kernel) const MPROTECT: usize = 226;
    pub(in crate::platform::kernel) const MADVISE: usize = 233;
    pub(in crate::platform::kernel) const PRLIMIT64: usize = 261;
    #[cfg(feature = "secure")]
    pub(in crate::platform::kernel) const GETRANDOM: usize = 278;
    pub(in crate::platform::kernel) const MEMFD_CREATE: usize = 279;
    pub(in crate::platform::kernel) const PROCESS_MADVISE: usize = 440;
}

/// The thread pointer: the address of the C library's data of this thread.
#[inline(always)]
pub(crate) fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: The register is constant during a thread's life.
    unsafe {
        asm!(
            "mrs {pointer}, tpidr_el0",
            pointer = out(reg) pointer,
            options(pure, nomem, nostack, preserves_flags),
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
    // SAFETY: The instruction clobbers x0 only; the caller answers for what the kernel does.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a as isize => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}
