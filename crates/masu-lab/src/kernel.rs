//! The lab's one door to the kernel: every `unsafe` block of the crate is in this file and its
//! folder, each behind a safe function that says what it does.
#![expect(unsafe_code, reason = "this is the door; the rest of the crate has none")]

use std::ffi::CString;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Turns a system call's −1 into the error it stands for.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The effective user and group of this process.
pub(crate) fn effective_ids() -> (u32, u32) {
    // SAFETY: Both calls only return numbers and cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Whether the file carries capabilities the kernel would grant on exec.
pub(crate) fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: Both strings end in NUL and live through the call; a length of zero asks only for
    // the size, so nothing is written.
    let size = unsafe {
        libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0)
    };
    size > 0
}

/// A second descriptor for the same open file, closed on exec.
pub(crate) fn duplicate(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: The call takes numbers only.
    let new = checked(unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: The kernel just made this descriptor for us and no one else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(new) })
}

/// Whether `descriptor` is not open.
pub(crate) fn is_closed(descriptor: RawFd) -> bool {
    // SAFETY: The call takes numbers only.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == -1 }
}

/// Raised by [`on_stop_signal`].
static STOP: AtomicBool = AtomicBool::new(false);

/// Installs handlers for SIGINT, SIGTERM and SIGHUP that raise the returned flag. A signal that
/// comes while the flag is up ends the process as if there were no handler.
pub(crate) fn catch_stop_signals() -> io::Result<&'static AtomicBool> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: All-zero is a valid `sigaction`: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_stop_signal as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: The action is initialised, its handler is async-signal-safe.
        checked(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })?;
    }
    Ok(&STOP)
}

extern "C" fn on_stop_signal(signal: libc::c_int) {
    // ORDERING: Relaxed: the flag guards no other data.
    if STOP.swap(true, Ordering::Relaxed) {
        // SAFETY: `signal` and `raise` are async-signal-safe; the default action ends the process.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}
