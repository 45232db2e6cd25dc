//! The constructor as glibc calls it: with the program's arguments and environment, in static
//! programs too.
//!
//! It relies on these arguments, because `environ` is still null when the first constructor runs.

use core::ffi::{c_char, c_int};

use alloc_core::c::Environment;

use crate::glibc;

/// Runs with the constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = at_start;

#[cold]
extern "C" fn at_start(
    _count: c_int,
    _arguments: *const *const c_char,
    variables: *const *const c_char,
) {
    // SAFETY: glibc passes the list it starts with, and no code of the program runs yet.
    let environment = unsafe { Environment::at(variables) };
    super::at_start(environment.as_ref());
}

/// Applies the settings of glibc's malloc.
pub(super) fn read_glibc_settings(environment: Option<&Environment>) {
    environment.into_iter().for_each(glibc::read);
}
