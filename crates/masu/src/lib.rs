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
//! No C compiler is needed to build it, and no set-up to use it. Linux, x86-64 and aarch64, glibc
//! and musl.
//!
//! A shared library that carries masu must never be unloaded: threads and `fork` call masu until the process ends. A
//! library with masu as its global allocator pins itself at its first allocation. A library that calls only [`c`] must
//! be linked with `-z nodelete`, as `libmasu.so` is. `docs/life.md` says what else holds for plug-ins.
#![no_std]
#![cfg_attr(
    feature = "secure",
    expect(
        dead_code,
        reason = "in the hardened build no block is in a cache, and no large one parked"
    )
)]

// The layers, bottom up: a module imports from its own layer and from those above it in this list. The same holds inside
// each folder; `cargo xtask tidy` checks both.

// Atomics, the kernel, the C library.
mod platform;

// Options, set by the program or by its environment.
mod settings;

// Size classes, 64 KiB slices, runs of slices, arenas.
mod memory;

// Call stacks, guarded blocks, the heap profile.
mod diagnostics;

// Pages, the shards and first-class heaps that own them, stacks of free blocks.
mod blocks;

// Thread caches; a thread's start and end.
mod threads;

// Allocate, free, resize.
mod requests;
// The public interface.
// What programs call.
pub mod c;
pub mod options;
pub mod profile;
pub mod statistics;

// The whole allocator under loom.
#[cfg(all(test, loom))]
#[path = "../tests/models/models.rs"]
mod models;

use core::alloc::{GlobalAlloc, Layout};

use platform::libc;
pub use requests::heap::{Heap, HeapStatistics};
use requests::{front, scarce};

/// The allocator, to be a program's `#[global_allocator]`.
///
/// All values share one heap. The options of the first value that is used hold.
///
/// ```
/// #[global_allocator]
/// static GLOBAL: masu::Masu = masu::Masu::new().cache_size(128 << 10).huge_pages(false);
/// # let one = Box::new(1);
/// # assert_eq!(*one, 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Masu(settings::Chosen);

impl Masu {
    /// The allocator; it needs no set-up. The functions named in [`options::ALL`] set options.
    #[must_use]
    pub const fn new() -> Masu {
        Masu(settings::Chosen::NONE)
    }

    /// Takes the path that counts requests for a profile or a guard, then the slow path.
    #[cold]
    #[inline(never)]
    fn alloc_slow(&self, size: usize, align: usize) -> *mut u8 {
        let block = front::cached_layout_counted(size, align);
        if block.is_null() { self.alloc_slower(size, align) } else { block }
    }

    /// The slow path: nothing is cached, or the request is one to sample.
    #[cold]
    #[cfg_attr(any(feature = "profile", feature = "guards"), inline(never))]
    fn alloc_slower(&self, size: usize, align: usize) -> *mut u8 {
        libc::pin();
        self.0.apply();
        had(size, || front::allocate_aligned(size, align, front::FreedBy::Layout))
    }

    #[cold]
    #[inline(never)]
    fn alloc_zeroed_slow(&self, size: usize, align: usize) -> *mut u8 {
        libc::pin();
        self.0.apply();
        had(size, || front::allocate_zeroed(size, align, front::FreedBy::Layout))
    }
}

/// The block that `ask` returns; where it is null, reclaims memory and asks again.
fn had(size: usize, ask: impl Fn() -> *mut u8) -> *mut u8 {
    let block = ask();
    if block.is_null() { scarce::ask_again(size, &ask) } else { block }
}

impl Default for Masu {
    fn default() -> Masu {
        Masu::new()
    }
}

// Without optimization these must be functions of this crate: a program's manifest can have this crate optimized, but
// not copies inlined into the program.
// SAFETY: Blocks are at least as long and as aligned as their layout asks, distinct while live, and
// keep their contents when resized; nothing here unwinds.
unsafe impl GlobalAlloc for Masu {
    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = front::cached_layout(layout);
        if block.is_null() { self.alloc_slow(layout.size(), layout.align()) } else { block }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: The block was allocated with this layout.
        unsafe { front::free_layout(block, layout) }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = front::cached_layout(layout);
        if block.is_null() {
            return self.alloc_zeroed_slow(layout.size(), layout.align());
        }
        // SAFETY: The block is at least that long and the caller's.
        unsafe { block.write_bytes(0, layout.size()) };
        block
    }

    #[cfg_attr(not(debug_assertions), inline)]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: The block was allocated with this layout.
        unsafe { front::resize_layout(block, layout, new_size) }
    }
}
