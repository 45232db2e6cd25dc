//! The heap profile, for C: `masu_profile_…`.

use core::ffi::{CStr, c_char, c_int};

use alloc_core::profile::{self, Refusal};

use crate::libc::{EBUSY, EINVAL, ENODATA, ENOMEM, EPERM};

/// Starts a profile with a sample every `interval` bytes on average, 0 for the option's; 0, or
/// `EBUSY`, `EPERM` or `ENOMEM`.
#[unsafe(no_mangle)]
pub extern "C" fn masu_profile_start(interval: usize) -> c_int {
    number(profile::start(Some(interval).filter(|interval| *interval > 0)))
}

/// Ends the profile, which can still be written.
#[unsafe(no_mangle)]
pub extern "C" fn masu_profile_stop() {
    profile::stop();
}

/// Writes the profile into a new file; 0, `ENODATA` where no profile was started, `EPERM`, or the error of the file.
///
/// # Safety
///
/// - `path` is a string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_profile_write(path: *const c_char) -> c_int {
    if path.is_null() {
        return EINVAL;
    }
    // SAFETY: The caller's condition.
    number(profile::write(unsafe { CStr::from_ptr(path) }))
}

fn number(result: Result<(), Refusal>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Refusal::Running) => EBUSY,
        Err(Refusal::None) => ENODATA,
        Err(Refusal::Memory) => ENOMEM,
        Err(Refusal::Secure) => EPERM,
        Err(Refusal::File(number)) => number,
        Err(_) => EINVAL,
    }
}
