//! A process forked in the middle of a run: it continues, checks, and ends.
//!
//! It relies on no lock that other threads of the parent may have held at the fork, except the C library's `malloc`,
//! which a child may use after `fork`. So the child has an oracle of its own, which knows only its walker's blocks, and
//! starts threads without `std`: there, a thread that starts or ends takes a lock of the list of all stacks.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::thread;

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
        // There is no room for another process.
        -1 => Ok(()),
        child => {
            let mut wait_status = 0;
            // SAFETY: The status is this function's own.
            while unsafe { libc::waitpid(child, &raw mut wait_status, 0) } != child {}
            if wait_status == 0 { Ok(()) } else { Err(Finding::Child { wait_status }) }
        }
    }
}

/// The work of a thread of a child, and then its result.
struct Call<F, T> {
    work: Option<F>,
    result: Option<thread::Result<T>>,
}

/// Runs `work` on a new thread of a child, and waits for its end.
pub(crate) fn on_thread<T: Send, F: FnOnce() -> T + Send>(work: F) -> T {
    extern "C" fn start<T, F: FnOnce() -> T>(call: *mut c_void) -> *mut c_void {
        // SAFETY: `on_thread` passes its own call, and leaves it to this thread until that has ended.
        let call: &mut Call<F, T> = unsafe { &mut *call.cast() };
        call.result = call.work.take().map(|work| catch_unwind(AssertUnwindSafe(work)));
        ptr::null_mut()
    }
    let mut call = Call { work: Some(work), result: None };
    let mut thread = MaybeUninit::uninit();
    let argument = (&raw mut call).cast();
    // SAFETY: `call` lives until the thread has ended, and is not touched before; its parts may be sent to a thread.
    let refusal =
        unsafe { libc::pthread_create(thread.as_mut_ptr(), ptr::null(), start::<T, F>, argument) };
    assert_eq!(refusal, 0, "a thread");
    // SAFETY: The call that started the thread wrote it.
    let thread = unsafe { thread.assume_init() };
    // SAFETY: The thread was started above, and nothing else waits for it.
    assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0, "the thread has ended");
    call.result.expect("the thread sets it").unwrap_or_else(|panic| resume_unwind(panic))
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
