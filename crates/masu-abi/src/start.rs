//! What the library does when it is loaded, before the program's own code.
//!
//! It relies on `-z initfirst` in `build.rs`, by which glibc runs this constructor before those of
//! all other libraries, so that options hold from the first allocation on; which arguments a
//! constructor gets is the C library's to say, so each has its own (`start/`). The hard idea is what
//! is not done here: nothing is allocated, so a program that never allocates pays for
//! nothing but the library itself.

#[cfg_attr(target_env = "gnu", path = "start/glibc.rs")]
#[cfg_attr(not(target_env = "gnu"), path = "start/musl.rs")]
mod constructor;

use alloc_core::c::{self, Environment};

use crate::masu::statistics;
use crate::{count, foreign};

fn at_start(environment: Option<&Environment>) {
    // Before the program's own handlers, and so the last to take locks.
    c::watch_forks();
    foreign::announce();
    count::begin(environment);
    environment.into_iter().for_each(c::read_options);
    constructor::read_others(environment);
    statistics::announce();
}
