//! [`Masu`] where masu itself does not run: the system's allocator serves every request.
//!
//! Options are checked when the program is compiled, as everywhere, and then dropped.

extern crate std;

use core::alloc::{GlobalAlloc, Layout};

use std::alloc::System;

use super::Masu;

#[macro_use]
#[path = "../settings/table.rs"]
mod table;

pub(super) use table::{BYTES_MAX, Index, MILLISECONDS_MAX};

/// The options that masu has on Linux. Their values have no effect on this system.
pub mod options {
    pub use super::table::{ALL, Description, TEXTS, Text, Unit};
}

/// The options that a program chose when it was built: none of them has an effect here.
#[derive(Clone, Copy, Debug)]
pub(super) struct BuildOptions;

impl BuildOptions {
    pub(super) const NONE: BuildOptions = BuildOptions;

    pub(super) const fn with(self, _: Index, _: usize) -> BuildOptions {
        self
    }
}

impl Masu {
    /// The number of bytes of `block` that the program may use. The system's allocator does not say, so it is the
    /// layout's size.
    ///
    /// # Safety
    ///
    /// - `block` is a live block that this allocator returned for `layout`.
    #[inline]
    #[must_use]
    pub unsafe fn usable_size(&self, _block: *mut u8, layout: Layout) -> usize {
        layout.size()
    }
}

// SAFETY: The system's allocator keeps the contract for every request, and no block comes from elsewhere.
unsafe impl GlobalAlloc for Masu {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's conditions are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: As in `alloc`; the block came from the same allocator.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: As in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: As in `dealloc`.
        unsafe { System.realloc(block, layout, new_size) }
    }
}
