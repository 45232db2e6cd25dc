//! [`Masu`] on Linux: requests are served from masu's own heap.
//!
//! The fast paths are inlined into the program. The code that follows a cache miss stays in functions of this crate, so
//! that a program does not grow with each place where it allocates.

use core::alloc::{GlobalAlloc, Layout};

use super::Masu;
use crate::c;
use crate::platform::libc;
use crate::requests::front;
use crate::requests::reclaim::or_retry;

impl Masu {
    /// The number of bytes of `block` that the program may use: at least the size of its layout, and constant for its
    /// life.
    ///
    /// ```
    /// use std::alloc::{GlobalAlloc, Layout};
    ///
    /// let layout = Layout::from_size_align(100, 8)?;
    /// let masu = masu::Masu::new();
    /// // SAFETY: The layout is not empty; the block is used and freed with it.
    /// unsafe {
    ///     let block = masu.alloc(layout);
    ///     assert!(masu.usable_size(block, layout) >= 100);
    ///     masu.dealloc(block, layout);
    /// }
    /// # Ok::<(), std::alloc::LayoutError>(())
    /// ```
    ///
    /// # Safety
    ///
    /// - `block` is a live block that this allocator returned for this layout.
    #[inline]
    #[must_use]
    pub unsafe fn usable_size(&self, block: *mut u8, _layout: Layout) -> usize {
        // SAFETY: The caller's condition.
        unsafe { c::usable_size(block) }
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
        or_retry(size, || front::allocate_aligned(size, align, front::FreedBy::Layout))
    }

    #[cold]
    #[inline(never)]
    fn alloc_zeroed_slow(&self, size: usize, align: usize) -> *mut u8 {
        libc::pin();
        self.0.apply();
        or_retry(size, || front::allocate_zeroed(size, align, front::FreedBy::Layout))
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
