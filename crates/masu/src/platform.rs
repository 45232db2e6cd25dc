//! What the machine, the kernel and the C library offer, and the program's start and end.
//!
//! System calls are made in `kernel`, the C library's functions declared in `libc`, atomics taken from `atomics`: nowhere else.
//! Imports no other folder. `atomics`, the C library and the system calls about threads are others under loom (`tests/models`).

// Atomics; the C library; system calls; locks, and what is read without one.
#[cfg_attr(all(test, loom), path = "../tests/models/atomics.rs")]
pub(crate) mod atomics;

#[cfg_attr(all(test, loom), path = "../tests/models/libc.rs")]
pub(crate) mod libc;

pub(crate) mod kernel;

pub(crate) mod sync;

// The program's variables and arguments, and the one way to end it.
pub(crate) mod environment;
pub(crate) mod fault;

// `memcpy` and its like, which are slow on musl.
#[cfg(all(feature = "musl-memcpy", target_arch = "x86_64", any(target_env = "musl", test)))]
mod bytes;
