//! Heaps as allocators of collections: the trait `Allocator` of the crate `allocator-api2`.
//!
//! Relies on that crate for the trait, which other crates share until the standard library's trait is stable. A
//! collection owns its heap, or borrows one, which then cannot be dropped or cleared before the collection. Both are
//! sound: a block is valid until its heap is dropped or cleared, moving a heap moves no block, and a heap has no
//! clones.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use allocator_api2::alloc::{AllocError, Allocator};

use super::Heap;

/// The block with the requested length.
fn sized(block: Option<NonNull<u8>>, size: usize) -> Result<NonNull<[u8]>, AllocError> {
    block.map(|block| NonNull::slice_from_raw_parts(block, size)).ok_or(AllocError)
}

impl Heap {
    /// Changes a block's size and alignment.
    ///
    /// # Safety
    ///
    /// - As [`Heap::realloc`], `old` being the block's layout.
    unsafe fn change(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        if old.align() == new.align() {
            // SAFETY: The caller's condition; a layout's size fits when rounded up.
            return sized(unsafe { self.realloc(block, old, new.size()) }, new.size());
        }
        let moved = self.allocate(new)?;
        let length = old.size().min(new.size());
        // SAFETY: Both blocks are that long and do not overlap.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), moved.as_ptr().cast(), length) };
        // SAFETY: The caller's condition.
        unsafe { self.dealloc(block, old) };
        Ok(moved)
    }
}

// SAFETY: Blocks stay valid until the heap is dropped or cleared, which needs the heap or the only reference to it; moving
// the heap moves no block. It cannot be cloned.
unsafe impl Allocator for Heap {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        sized(self.alloc(layout), layout.size())
    }

    #[inline]
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        sized(self.alloc_zeroed(layout), layout.size())
    }

    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: The caller's condition is the same.
        unsafe { self.dealloc(block, layout) };
    }

    unsafe fn grow(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: The caller's condition is the same.
        unsafe { self.change(block, old, new) }
    }

    unsafe fn grow_zeroed(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: The caller's condition is the same.
        let grown = unsafe { self.change(block, old, new) }?;
        // SAFETY: The block is as long as its new layout, which is no less than the old one.
        let rest = unsafe { grown.cast::<u8>().add(old.size()) };
        // SAFETY: As above.
        unsafe { rest.write_bytes(0, new.size() - old.size()) };
        Ok(grown)
    }

    unsafe fn shrink(
        &self,
        block: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: The caller's condition is the same.
        unsafe { self.change(block, old, new) }
    }
}
