//! masu (枡): a fast and small memory allocator in pure Rust.
//!
//! ```
//! #[global_allocator]
//! static GLOBAL: masu::Masu = masu::Masu::new();
//!
//! let words: Vec<String> = ["rice", "box"].map(String::from).to_vec();
//! assert_eq!(words.concat(), "ricebox");
//! ```
//!
//! masu needs no C compiler and no set-up. It runs on Linux, x86-64 and aarch64, with glibc and musl. On all other
//! systems [`Masu`] hands every request to the system's allocator.
//!
//! A shared library that carries masu must never be unloaded: threads and `fork` call masu until the process ends. A
//! library with masu as its global allocator pins itself at its first allocation. A library that calls only [`c`] must
//! be linked with `-z nodelete`, as `libmasu.so` is. `docs/life.md` has the other rules for plug-ins.
#![no_std]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![cfg_attr(
    all(
        feature = "secure",
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ),
    expect(
        dead_code,
        reason = "in the hardened build no block is in a cache, and no large one parked"
    )
)]

// The layers, bottom up: a module imports from its own layer and from those above it in this list. The same holds inside
// each folder; `cargo xtask tidy` checks both.

// Atomics, the kernel, the C library.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod platform;

// Options, set by the program or by its environment.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[macro_use]
mod settings;

// Size classes, 64 KiB slices, runs of slices, arenas.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod memory;

// Call stacks, guarded blocks, the heap profile.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod diagnostics;

// Pages, the shards and first-class heaps that own them, stacks of free blocks.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod blocks;

// Thread caches; a thread's start and end.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod threads;

// Allocate, free, resize.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod requests;

// The public interface.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod c;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod options;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod profile;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod statistics;

// The allocator of a Rust program. On systems where masu itself does not run, the crate has no other module.
mod global;

// The whole allocator under loom.
#[cfg(all(test, loom))]
#[path = "../tests/models/models.rs"]
mod models;

#[cfg(all(
    feature = "allocator-api2",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub use allocator_api2;
pub use global::Masu;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub use global::options;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use requests::heap::{Heap, HeapStatistics};
