//! The constructor as musl calls it: without arguments.
//!
//! It relies on musl to set `environ` before it does anything else.

use alloc_core::c::Environment;

/// Runs with the constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

#[cold]
extern "C" fn at_start() {
    super::at_start(Environment::current().as_ref());
}

/// Does nothing: musl's malloc has no settings.
pub(super) fn read_glibc_settings(_environment: Option<&Environment>) {}
