//! What the library does when it is loaded, before the program's own code.
//!
//! It relies on `-z initfirst` in `build.rs`, by which glibc runs this constructor before those of
//! all other libraries; which arguments a constructor gets is the C library's to say, so each has its
//! own (`start/`). The hard idea: `fork` calls the handlers that were registered last first,
//! so the allocator's, which holds every lock from there on, must have been registered before any
//! handler that allocates.

#[cfg_attr(target_env = "gnu", path = "start/glibc.rs")]
#[cfg_attr(not(target_env = "gnu"), path = "start/musl.rs")]
mod constructor;

use alloc_core::c::{self, Environment};

use crate::{count, foreign};

fn at_start(environment: Option<&Environment>) {
    foreign::announce();
    count::begin(environment);
    environment.into_iter().for_each(c::read_options);
    // The first allocation of a process registers the allocator's handlers for `fork`.
    // SAFETY: The block was handed out just now and is not used.
    unsafe { c::free(c::malloc(1)) };
}
