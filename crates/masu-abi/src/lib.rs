//! `libmasu.so` and `libmasu.a`: the malloc ABI of C, the operators of C++ and `masu.h` over `masu`.
//!
//! It relies on `masu::c` for every block and on the C library for `errno`, the OS page size, printing and finding
//! other allocators. The hard idea: these functions replace the C library's, so they run before any constructor, inside
//! the dynamic linker, and under C++ exceptions. So each is a thin wrapper that inlines the allocator's fast path, and
//! code that may unwind is assembly, without a Rust frame (see `new`).
//!
//! `cargo build --release` builds it for glibc. For musl, whose Rust target is static by default:
//!
//! ```text
//! RUSTFLAGS="-C target-feature=-crt-static" \
//!     cargo build --release -p masu-abi --target x86_64-unknown-linux-musl
//! ```
//!
//! A static C++ program that links `libmasu.a` needs `-Wl,-u,_ZSt17__throw_bad_allocv` to throw `std::bad_alloc`,
//! because a weak reference takes no object out of an archive. Without it, `operator new` ends the program with a
//! message.
//!
//! With the feature `count`, each function also counts its calls into a page shared with an observer.
//!
//! With the feature `secure` this is the hardened build, `libmasu-secure.so`: the same functions over
//! another front end.
//!
//! This crate does not hold state besides those counts, decide policy, or name a system call.
#![no_std]

#[cfg_attr(not(feature = "count"), path = "count/off.rs")]
mod count;
#[cfg(target_env = "gnu")]
pub mod deepbind;
mod foreign;
pub mod glibc;
pub mod jemalloc;
mod libc;
pub mod malloc;
pub mod masu;
pub mod new;
#[cfg(target_env = "gnu")]
mod oldest_glibc;
pub mod report;
mod sized;
mod start;

/// Ends the program: a panic is a bug.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    libc::die(c"masu: a bug in the allocator; the program cannot go on\n")
}

// The precompiled `core` names this function in its unwind tables; with `panic = "abort"` nothing
// calls it. Hidden, so that `libmasu.so` does not export it; weak, so that `libmasu.a` links into a
// Rust program, which brings its own.
core::arch::global_asm!(
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality, @function",
    "rust_eh_personality:",
    "ret",
    ".size rust_eh_personality, . - rust_eh_personality",
);
