//! The machine, the kernel and the C library; the program's start and end.
//!
//! System calls are made only in `kernel`, functions of the C library are declared only in `libc`, atomics are imported
//! only in `atomics`. Under loom (`tests/models`) atomics, the C library and system calls about threads are replaced.

// Atomics; the C library; system calls.
#[cfg_attr(all(test, loom), path = "../tests/models/atomics.rs")]
pub(crate) mod atomics;

#[cfg_attr(all(test, loom), path = "../tests/models/libc.rs")]
pub(crate) mod libc;

pub(crate) mod kernel;

// The one function that ends the program.
pub(crate) mod fault;

// Indexing that ends in it.
pub(crate) mod bounds;

// Locks and lock-free structures.
pub(crate) mod sync;

// Tests in a process of their own.
#[cfg(test)]
pub(crate) mod alone;

// The program's environment.
pub(crate) mod environment;

// `memcpy` and the like, which are slow on musl.
#[cfg(all(feature = "musl-memcpy", target_arch = "x86_64", any(target_env = "musl", test)))]
mod bytes;
