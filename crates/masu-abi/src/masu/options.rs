//! Options at run time, for C: `masu_option_…`.
//!
//! It relies on `masu::options` for the table of names, and adds C's strings and error numbers.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;

use alloc_core::options::{self, Refusal};

use crate::libc::{EINVAL, ENOENT};

/// C's form of an absent value.
const UNSET: usize = usize::MAX;

/// The name of the option at `place`, from 0; null behind the last option.
#[unsafe(no_mangle)]
pub extern "C" fn masu_option_name(place: usize) -> *const c_char {
    options::c_name(place).map_or(ptr::null(), CStr::as_ptr)
}

/// Writes the current value of the option `name`, `MASU_UNSET` where it has none; 0 or `ENOENT`.
///
/// # Safety
///
/// - `name` is null or a string.
/// - `value` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_option_get(name: *const c_char, value: *mut usize) -> c_int {
    // SAFETY: The caller's first condition.
    let name = unsafe { text(name) };
    match options::get(name) {
        Ok(_) if value.is_null() => EINVAL,
        Ok(held) => {
            // SAFETY: The caller's second condition.
            unsafe { value.write(held.unwrap_or(UNSET)) };
            0
        }
        Err(refusal) => number(refusal),
    }
}

/// Sets the option `name`, to its default with `MASU_UNSET`; 0, `ENOENT` or `EINVAL`.
///
/// # Safety
///
/// - `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_option_set(name: *const c_char, value: usize) -> c_int {
    // SAFETY: The caller's condition.
    let name = unsafe { text(name) };
    let value = Some(value).filter(|value| *value != UNSET);
    options::set(name, value).map_or_else(number, |()| 0)
}

/// [`masu_option_set`] with a value in the environment's form.
///
/// # Safety
///
/// - `name` and `value` are null or strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_option_parse(name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: The caller's condition.
    let name = unsafe { text(name) };
    // SAFETY: As above.
    let value = unsafe { text(value) };
    options::parse(name, value).map_or_else(number, |()| 0)
}

/// The bytes of a string; null is the empty string, which names no option and is no value.
///
/// # Safety
///
/// - `string` is null, or a string that stays as long as the caller says.
unsafe fn text<'a>(string: *const c_char) -> &'a [u8] {
    if string.is_null() {
        return &[];
    }
    // SAFETY: The caller's condition.
    unsafe { CStr::from_ptr(string) }.to_bytes()
}

fn number(refusal: Refusal) -> c_int {
    match refusal {
        Refusal::Unknown => ENOENT,
        _ => EINVAL,
    }
}
