//! The library's constructor, which runs before the program's own code.
//!
//! It relies on `-z initfirst` in `build.rs`, by which glibc runs this constructor before those of
//! all other libraries, so that options hold from the first allocation on. glibc passes the arguments of `main`, in
//! static programs too; `environ` is still null there. musl passes nothing, and sets `environ` before it does anything
//! else. The hard idea is that the constructor allocates nothing: a program that never allocates pays for nothing but
//! the library itself.

use alloc_core::c::{self, Environment};

use crate::masu::statistics;
use crate::{count, foreign};

#[cfg(target_env = "gnu")]
mod constructor {
    use core::ffi::{c_char, c_int};

    use super::Environment;

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
}

#[cfg(not(target_env = "gnu"))]
mod constructor {
    /// Runs with the constructors.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static AT_START: extern "C" fn() = at_start;

    #[cold]
    extern "C" fn at_start() {
        super::at_start(super::Environment::current().as_ref());
    }
}

fn at_start(environment: Option<&Environment>) {
    // This runs before the program registers handlers, so masu's handlers are the last to take locks.
    c::prepare();
    foreign::announce();
    count::begin(environment);
    environment.into_iter().for_each(c::read_options);
    #[cfg(target_env = "gnu")]
    environment.into_iter().for_each(crate::glibc::read);
    statistics::announce();
}
