//! The kernel door: the one system call that this crate makes by itself.
//!
//! Relies on the C library, which Rust's standard library is linked with anyway. The one hard idea is
//! `membarrier(2)`: whoever calls it makes every other thread of the process pass a memory barrier,
//! so that only the side that seldom comes pays for an order between two.

use std::sync::atomic::{AtomicBool, Ordering};

/// Makes every running thread of the process pass a full memory barrier, and passes one itself.
/// `false`: this system has no such call or refuses it, and nothing is known of other threads.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn barrier_everywhere() -> bool {
    use std::ffi::{c_int, c_long, c_uint};

    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }

    const MEMBARRIER: c_long = if cfg!(target_arch = "x86_64") { 324 } else { 283 };
    /// What is asked for, and the leave to ask for it, `linux/membarrier.h`.
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;
    /// Asking again and again would only cost time.
    static REFUSED: AtomicBool = AtomicBool::new(false);

    let ask = |command: c_int| {
        // SAFETY: The call takes three numbers and touches no memory of the program.
        unsafe { syscall(MEMBARRIER, command, 0 as c_uint, 0 as c_int) == 0 }
    };
    // ORDERING: Relaxed, for it only saves calls.
    if REFUSED.load(Ordering::Relaxed) {
        return false;
    }
    // The leave holds for the process, and is asked for where it is first wanted.
    let passed =
        ask(PRIVATE_EXPEDITED) || (ask(REGISTER_PRIVATE_EXPEDITED) && ask(PRIVATE_EXPEDITED));
    if !passed {
        REFUSED.store(true, Ordering::Relaxed);
    }
    passed
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn barrier_everywhere() -> bool {
    false
}
