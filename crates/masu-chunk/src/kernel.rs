//! The kernel door: this crate's one system call.
//!
//! Relies on the C library, which Rust's standard library links anyway. The one hard idea is
//! `membarrier(2)`: its caller makes every other thread of the process pass a memory barrier, so
//! that the rare side alone pays for an order between two. A process must register for it first,
//! which costs nothing while it has one thread, and some ten milliseconds later, because the kernel
//! then waits for every CPU. So the first job registers before its first helper starts; if there are
//! threads already, a thread of its own does so while work goes on without.

pub(crate) use membarrier::{barrier_everywhere, prepare_barrier};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod membarrier {
    use std::ffi::{c_int, c_long, c_uint};
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicU8, Ordering};
    use std::thread;

    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }

    const MEMBARRIER: c_long = if cfg!(target_arch = "x86_64") { 324 } else { 283 };
    /// The command, and the one that registers for it, `linux/membarrier.h`.
    const PRIVATE_EXPEDITED: c_int = 1 << 3;
    const REGISTER_PRIVATE_EXPEDITED: c_int = 1 << 4;

    /// The state of the registration: one of the following.
    static LEAVE: AtomicU8 = AtomicU8::new(UNASKED);
    const UNASKED: u8 = 0;
    const ASKED: u8 = 1;
    const GRANTED: u8 = 2;
    const REFUSED: u8 = 3;

    fn ask(command: c_int) -> bool {
        // SAFETY: The call takes three numbers and touches no memory of the program.
        unsafe { syscall(MEMBARRIER, command, 0 as c_uint, 0 as c_int) == 0 }
    }

    /// Registers, and waits for that.
    fn ask_for_leave() {
        let answer = if ask(REGISTER_PRIVATE_EXPEDITED) { GRANTED } else { REFUSED };
        // ORDERING: Relaxed: it only saves calls; the kernel knows who is registered.
        LEAVE.store(answer, Ordering::Relaxed);
    }

    /// Registers for [`barrier_everywhere`] before its first use, without waiting.
    pub(crate) fn prepare_barrier() {
        // ORDERING: Relaxed, as above.
        let known = LEAVE.compare_exchange(UNASKED, ASKED, Ordering::Relaxed, Ordering::Relaxed);
        if known.is_err() {
            return;
        }
        // A folder has two links, and one more for each folder in it.
        let alone = fs::metadata("/proc/self/task").is_ok_and(|tasks| tasks.nlink() == 3);
        if alone {
            return ask_for_leave();
        }
        let asks = thread::Builder::new().name("masu-chunk-leave".to_owned()).spawn(ask_for_leave);
        if asks.is_err() {
            // ORDERING: Relaxed, as above.
            LEAVE.store(UNASKED, Ordering::Relaxed);
        }
    }

    /// Makes every running thread of the process pass a full memory barrier, and passes one itself.
    /// `false`: this system lacks or refuses the call, or the registration is not done; nothing is
    /// known of other threads.
    pub(crate) fn barrier_everywhere() -> bool {
        // ORDERING: Relaxed, as above.
        if LEAVE.load(Ordering::Relaxed) == UNASKED {
            ask_for_leave();
        }
        if LEAVE.load(Ordering::Relaxed) != GRANTED {
            return false;
        }
        let passed = ask(PRIVATE_EXPEDITED);
        if !passed {
            // Another try would only cost time.
            LEAVE.store(REFUSED, Ordering::Relaxed);
        }
        passed
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod membarrier {
    pub(crate) fn prepare_barrier() {}

    pub(crate) fn barrier_everywhere() -> bool {
        false
    }
}
