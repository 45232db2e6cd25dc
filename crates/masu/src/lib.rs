//! masu (枡): a fast and small memory allocator in pure Rust.
//!
//! ```
//! #[global_allocator]
//! static GLOBAL: masu::Masu = masu::Masu::new();
//!
//! let words: Vec<String> = ["rice", "box"].map(String::from).to_vec();
//! assert_eq!(words.concat(), "ricebox");
//! ```
#![no_std]

pub mod c;
mod kernel;

use core::alloc::{GlobalAlloc, Layout};

/// The allocator, to be a program's `#[global_allocator]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masu(());

impl Masu {
    /// The allocator; it needs no set-up.
    #[must_use]
    pub const fn new() -> Masu {
        Masu(())
    }
}

unsafe impl GlobalAlloc for Masu {
    #[inline(always)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        c::aligned_alloc(layout.align(), layout.size())
    }
    #[inline(always)]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        unsafe { c::free(block) }
    }
}
