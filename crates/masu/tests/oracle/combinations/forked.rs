//! A process forked in the middle of everything: it goes on working, checks, and ends.
//!
//! It relies on nothing that other threads of the parent may have held when the process came to be, but the C
//! library's `malloc`, which may be used after `fork`. So the child has an oracle of its own, which knows
//! its walker's blocks only.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::finding::Finding;

/// How a child says that it found something.
const FOUND: i32 = 99;
/// How a child says that it panicked.
const PANICKED: i32 = 98;
/// Seconds until a child that hangs is ended by a signal.
const SECONDS: u32 = 200;

/// Runs `work` in a process forked here, and waits for its end.
pub(crate) fn run(work: impl FnOnce() -> Result<(), Finding>) -> Result<(), Finding> {
    // SAFETY: The child uses what may be used there, see above, and ends without returning from here.
    match unsafe { libc::fork() } {
        0 => {
            end_with_parent();
            // SAFETY: It has no condition; the signal ends the process.
            unsafe { libc::alarm(SECONDS) };
            let code = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(Ok(())) => 0,
                Ok(Err(finding)) => {
                    say(&format!("found by a forked process: {finding:x?}\n"));
                    FOUND
                }
                Err(_) => PANICKED,
            };
            // SAFETY: It has no condition.
            unsafe { libc::_exit(code) }
        }
        // There are no processes to be had, which is not the allocator's fault.
        -1 => Ok(()),
        child => {
            let mut wait_status = 0;
            // SAFETY: The status is this function's own.
            while unsafe { libc::waitpid(child, &raw mut wait_status, 0) } != child {}
            if wait_status == 0 { Ok(()) } else { Err(Finding::Child { wait_status }) }
        }
    }
}

/// Has the kernel end this process when the thread that started it is no more.
pub(crate) fn end_with_parent() {
    // SAFETY: It has no condition.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Writes to standard error without its lock.
fn say(text: &str) {
    // SAFETY: The text is that long.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}
