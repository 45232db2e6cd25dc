//! Options at run time, for C: `masu_option_…`.
//!
//! It relies on `masu::options`, whose table has the names, and adds C's strings and error numbers.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;

use alloc_core::options::{self, Refusal};

use crate::libc::{EINVAL, ENOENT};

/// Stands in C for a value that is not there.
const UNSET: usize = usize::MAX;

/// The name of the option at `place`, from 0 on; null behind the last.
#[unsafe(no_mangle)]
pub extern "C" fn masu_option_name(place: usize) -> *const c_char {
    options::c_name(place).map_or(ptr::null(), CStr::as_ptr)
}

/// Writes the value that holds of the option `name`, `MASU_UNSET` where its default follows the
/// program; 0 or `ENOENT`.
///
/// # Safety
///
/// - `name` is null or a string.
/// - `value` is null or may be written.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.options")]
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

/// Has `value` hold for the option `name`, or its default with `MASU_UNSET`; 0, `ENOENT` or
/// `EINVAL`.
///
/// # Safety
///
/// - `name` is null or a string.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.options")]
pub unsafe extern "C" fn masu_option_set(name: *const c_char, value: usize) -> c_int {
    // SAFETY: The caller's condition.
    let name = unsafe { text(name) };
    let value = Some(value).filter(|value| *value != UNSET);
    options::set(name, value).map_or_else(number, |()| 0)
}

/// As [`masu_option_set`], with a value as the environment has it.
///
/// # Safety
///
/// - `name` and `value` are null or strings.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.options")]
pub unsafe extern "C" fn masu_option_parse(name: *const c_char, value: *const c_char) -> c_int {
    // SAFETY: The caller's condition.
    let name = unsafe { text(name) };
    // SAFETY: As above.
    let value = unsafe { text(value) };
    options::parse(name, value).map_or_else(number, |()| 0)
}

/// The bytes of a string; none for null, which is the name of no option and the text of no value.
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
