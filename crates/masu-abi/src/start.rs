//! The library's constructor, which runs before the program's own code.
//!
//! It relies on `-z initfirst` in `build.rs`, by which glibc runs this constructor before those of
//! all other libraries, so that options hold from the first allocation on. glibc and musl pass a
//! constructor different arguments, so each has its own file (`start/`). The hard idea is that it
//! allocates nothing: a program that never allocates pays for nothing but the library itself.

#[cfg_attr(target_env = "gnu", path = "start/glibc.rs")]
#[cfg_attr(not(target_env = "gnu"), path = "start/musl.rs")]
mod constructor;

use alloc_core::c::{self, Environment};

use crate::masu::statistics;
use crate::{count, foreign};

fn at_start(environment: Option<&Environment>) {
    // This runs before the program registers handlers, so masu's handlers are the last to take locks.
    c::prepare();
    foreign::announce();
    count::begin(environment);
    environment.into_iter().for_each(c::read_options);
    constructor::read_glibc_settings(environment);
    statistics::announce();
}
