//! The constructor as musl calls it: without arguments.
//!
//! It relies on musl to set `environ` before it does anything else.

use alloc_core::c::{self, Environment};

/// Runs with the constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

#[cold]
extern "C" fn at_start() {
    super::at_start(Environment::current().as_ref());
    // The first allocation of a process registers the allocator's handlers for `fork`. musl starts
    // threads without an allocation, and another thread's first one may be cut in two by a `fork`.
    // SAFETY: The block was handed out just now and is not used.
    unsafe { c::free(c::malloc(1)) };
}

/// Nothing: musl's malloc has no settings.
pub(super) fn read_others(_environment: Option<&Environment>) {}
