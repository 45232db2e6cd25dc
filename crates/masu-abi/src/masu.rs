//! The functions of `masu.h` that are masu's own: `masu_…`.
//!
//! It relies on the crate `masu`, whose Rust interface these functions mirror, with one file for each section of the
//! header. The hard idea is the limits of such a function. It must not set `errno` (errors are results), dereference a
//! null that the header allows, or cost a request anything.
//!
//! COUPLING: `include/masu.h` declares every function of this folder; `tests/exports.rs` compares
//! them.

pub mod heap;
pub mod options;
pub mod profile;
pub mod statistics;

use core::ffi::{c_char, c_int};

use alloc_core::c;

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The library's version, such as `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn masu_version() -> *const c_char {
    VERSION.as_ptr().cast()
}

/// Returns free memory to the system but for about `keep` bytes; 1 where any memory was returned, else 0.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".text.masu_cold.trim")]
pub extern "C" fn masu_purge(keep: usize) -> c_int {
    c_int::from(c::trim(keep))
}
