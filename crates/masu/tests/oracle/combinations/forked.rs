//! A process forked in the middle of a run: it continues, checks, and ends.
//!
//! It relies on no lock that other threads of the parent may have held at the fork, except the C library's `malloc`,
//! which may be used after `fork`. So the child has an oracle of its own, which knows only its walker's blocks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::finding::Finding;

/// The exit code of a child with a finding.
const FOUND: i32 = 99;
/// The exit code of a child that panicked.
const PANICKED: i32 = 98;
/// Seconds until a signal ends a hanging child.
const SECONDS: u32 = 200;

/// Runs `work` in a forked process, and waits for its end.
pub(crate) fn run(work: impl FnOnce() -> Result<(), Finding>) -> Result<(), Finding> {
    // SAFETY: The child takes no lock of other threads, see above, and does not return from here.
    match unsafe { libc::fork() } {
        0 => {
            end_with_parent();
            // SAFETY: It has no condition; the signal ends the process.
            unsafe { libc::alarm(SECONDS) };
            let code = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(Ok(())) => 0,
                Ok(Err(finding)) => {
                    print(&format!("found by a forked process: {finding:x?}\n"));
                    FOUND
                }
                Err(_) => PANICKED,
            };
            // SAFETY: It has no condition.
            unsafe { libc::_exit(code) }
        }
        // The system has no more processes.
        -1 => Ok(()),
        child => {
            let mut wait_status = 0;
            // SAFETY: The status is this function's own.
            while unsafe { libc::waitpid(child, &raw mut wait_status, 0) } != child {}
            if wait_status == 0 { Ok(()) } else { Err(Finding::Child { wait_status }) }
        }
    }
}

/// Makes the kernel kill this process when its starting thread ends.
pub(crate) fn end_with_parent() {
    // SAFETY: It has no condition.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Writes to standard error without its lock.
fn print(text: &str) {
    // SAFETY: The text is that long.
    unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}
