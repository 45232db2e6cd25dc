//! What the library does when it is loaded, before the program's own code.
//!
//! It relies on `-z initfirst` in `build.rs`, by which glibc runs this constructor before those of
//! all other libraries. The hard idea: `fork` calls the handlers that were registered last first,
//! so the allocator's, which holds every lock from there on, must have been registered before any
//! handler that allocates.

use alloc_core::c;

use crate::foreign;

/// Runs with the constructors.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    foreign::announce();
    // The first allocation of a process registers the allocator's handlers for `fork`.
    // SAFETY: The block was handed out just now and is not used.
    unsafe { c::free(c::malloc(1)) };
}
