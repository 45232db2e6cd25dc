//! First-class heaps: memory that a program allocates separately and frees at once.
//!
//! Relies on owners for a heap's pages and large blocks, and on heap caches to keep some of its blocks per thread. It joins
//! their fast paths as [`crate::requests::front`] does, each with a slow path beside it. The hard idea is how a block's
//! class is known: a small layout determines it, so such a block is cached without a check. Everything else, including plain
//! `free`, reads the block's slice, which knows its heap.

#[cfg(feature = "allocator-api2")]
mod api2;
mod blocks;

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use crate::blocks::owner::Owner;
use crate::memory::class::{Class, is_in_table};
use crate::platform::fault::{self, Fault};
use crate::platform::sync::{AtomicPtr, Ordering};
use crate::requests::pointer::{OfHeap, Pointer};
use crate::requests::reclaim::or_retry;
use crate::threads::cache::heap_cache::{self, HeapCache};
pub(crate) use blocks::{allocate, free, owner_at, owner_of_block, register, resize};

/// A separate heap: no other block lies in its pages, and dropping it frees all its blocks at once, even those in use.
///
/// Any thread may allocate and free in it. A heap takes memory at its first allocation, and making one costs as much as a
/// few allocations. Use one for each request or query, or for each part of a program whose memory you want to count or bound.
///
/// ```
/// use std::alloc::Layout;
///
/// let heap = masu::Heap::new();
/// let block = heap.alloc(Layout::new::<[u64; 4]>()).expect("there is memory");
/// assert_eq!(heap.statistics().live_blocks, 1);
/// // SAFETY: The block is this heap's, of this layout, and not used any more.
/// unsafe { heap.dealloc(block, Layout::new::<[u64; 4]>()) };
/// heap.alloc(Layout::new::<[u8; 100]>());
/// drop(heap); // and that block with it
/// ```
///
/// With the feature `allocator-api2` a heap is an allocator for collections, which own it or borrow it:
///
/// ```
/// # #[cfg(feature = "allocator-api2")] {
/// let heap = masu::Heap::new();
/// let mut numbers = masu::allocator_api2::vec::Vec::new_in(&heap);
/// numbers.push(7);
/// # }
/// ```
///
/// A collection that borrows a heap keeps it from being dropped or cleared:
///
/// ```compile_fail
/// let heap = masu::Heap::new();
/// let numbers = masu::allocator_api2::vec::Vec::<u64, _>::new_in(&heap);
/// drop(heap);
/// drop(numbers);
/// ```
///
/// Free a block with [`Heap::dealloc`] of its own heap, or with C's `free` where masu is the program's malloc. The global
/// allocator must not free it, as `Box::from_raw` would; where masu notices, it ends the program with a message.
#[derive(Debug)]
pub struct Heap {
    /// Null until the first allocation.
    owner: AtomicPtr<Owner>,
}

/// Statistics of one heap. While other threads use it they are approximate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// Bytes in live blocks, each counted with its usable size.
    pub live_bytes: usize,
    /// Live blocks.
    pub live_blocks: usize,
    /// Bytes of live large blocks (over 64 KiB, or over 32 KiB and grown or zeroed).
    pub large_bytes: usize,
    /// Live large blocks.
    pub large_blocks: usize,
    /// Bytes of free blocks in thread caches.
    pub cached_bytes: usize,
    /// Bytes of the heap's pages and large blocks, which destroying it frees.
    pub committed_bytes: usize,
}

impl Heap {
    /// A heap without memory.
    ///
    /// ```
    /// static SESSIONS: masu::Heap = masu::Heap::new();
    /// assert!(SESSIONS.alloc(std::alloc::Layout::new::<u64>()).is_some());
    /// ```
    #[must_use]
    pub const fn new() -> Heap {
        Heap { owner: AtomicPtr::new(ptr::null_mut()) }
    }

    #[inline(always)]
    fn owner(&self) -> Option<&'static Owner> {
        // ORDERING: Acquire pairs with the Release in `begin`, which publishes the owner.
        let owner = self.owner.load(Ordering::Acquire);
        // SAFETY: The pointer is null or leads to an owner, and owners are never unmapped.
        unsafe { owner.as_ref() }
    }

    /// Makes the owner; `None` without memory.
    #[cold]
    #[inline(never)]
    fn begin(&self) -> Option<&'static Owner> {
        register();
        let made = Owner::create()?;
        let pointer = ptr::from_ref(made).cast_mut();
        // ORDERING: Release publishes the owner to the Acquire in `owner`; Acquire sees that of another thread that was
        // faster.
        let exchanged = self.owner.compare_exchange(
            ptr::null_mut(),
            pointer,
            Ordering::Release,
            Ordering::Acquire,
        );
        if exchanged.is_err() {
            // SAFETY: Only this function knows of the new owner.
            unsafe { made.destroy() };
        }
        self.owner()
    }

    /// Allocates a block for `layout`; `None` without memory. A size of 0 gives a block of its own.
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        if is_in_table(layout.size(), layout.align())
            && let Some(owner) = self.owner()
            && let Some(cached) = HeapCache::of(owner)
            && let Some(block) = NonNull::new(cached.pop(layout.size()))
        {
            return Some(block);
        }
        self.alloc_slow(layout.size(), layout.align(), false)
    }

    /// As [`Heap::alloc`], and the first `layout.size()` bytes are zero.
    #[inline]
    pub fn alloc_zeroed(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.alloc_slow(layout.size(), layout.align(), true)
    }

    #[inline(never)]
    fn alloc_slow(&self, size: usize, align: usize, zeroed: bool) -> Option<NonNull<u8>> {
        let ask = || {
            let owner = self.owner().or_else(|| self.begin());
            owner.map_or(ptr::null_mut(), |owner| allocate(owner, size, align, zeroed))
        };
        NonNull::new(or_retry(size, ask))
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// - `block` is a block of this heap, allocated with `layout`, and is not used any more.
    #[inline]
    pub unsafe fn dealloc(&self, block: NonNull<u8>, layout: Layout) {
        if is_in_table(layout.size(), layout.align())
            && let Some(owner) = self.owner()
            && let Some(cached) = HeapCache::of(owner)
            && cached.push(layout.size(), block.as_ptr())
        {
            return;
        }
        // SAFETY: The caller's condition.
        unsafe { self.dealloc_slow(block) };
    }

    /// # Safety
    ///
    /// - As [`Heap::dealloc`].
    #[inline(never)]
    unsafe fn dealloc_slow(&self, block: NonNull<u8>) {
        self.expect(block, Fault::FreedTwice);
        // SAFETY: The block is of this heap, and the caller's condition.
        unsafe { free(block) };
    }

    /// Ends the program where `block` is not of this heap, or is found to be free, with `freed` as the reason.
    fn expect(&self, block: NonNull<u8>, freed: Fault) {
        let is_mine = match Pointer::checked(block, freed) {
            Pointer::Heap => {
                let owner = OfHeap::at(block, freed).owner();
                self.owner().is_some_and(|mine| ptr::eq(mine, owner))
            }
            Pointer::Foreign => fault::stop(Fault::ForeignPointer),
            _ => false,
        };
        if !is_mine {
            fault::stop(Fault::NotTheHeaps);
        }
    }

    /// Changes the size of a block, keeping its contents up to the smaller size. The block stays in this heap, and must
    /// be freed by `layout` with the new size. `None` without memory; the block is then intact.
    ///
    /// # Safety
    ///
    /// - As [`Heap::dealloc`]; after success the old pointer is not used any more.
    /// - `new_size`, rounded up to the alignment, is no more than `isize::MAX`.
    #[inline(never)]
    pub unsafe fn realloc(
        &self,
        block: NonNull<u8>,
        layout: Layout,
        new_size: usize,
    ) -> Option<NonNull<u8>> {
        let (old_size, align) = (layout.size(), layout.align());
        let by_table = (is_in_table(old_size, align), is_in_table(new_size, align));
        if by_table == (false, false) {
            self.expect(block, Fault::UsedFreed);
            // SAFETY: The caller's condition.
            let resize = || unsafe { resize(block, new_size, align) };
            return NonNull::new(or_retry(new_size, resize));
        }
        if by_table == (true, true) && Class::of_size(old_size) == Class::of_size(new_size) {
            return Some(block);
        }
        let new_layout = Layout::from_size_align(new_size, align).ok()?;
        let new = self.alloc(new_layout)?;
        // SAFETY: Both blocks are that long and do not overlap.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), new.as_ptr(), old_size.min(new_size)) };
        // SAFETY: The caller's condition.
        unsafe { self.dealloc(block, layout) };
        Some(new)
    }

    /// Frees all blocks at once; the heap can be used again.
    ///
    /// ```
    /// # use std::alloc::Layout;
    /// let mut scratch = masu::Heap::new();
    /// for request in 1..4 {
    ///     scratch.alloc(Layout::array::<u8>(request * 100).unwrap());
    ///     scratch.clear();
    /// }
    /// assert_eq!(scratch.statistics().live_bytes, 0);
    /// ```
    pub fn clear(&mut self) {
        register();
        if let Some(owner) = self.owner() {
            // SAFETY: This is the only reference to the heap. Users of its blocks either use raw pointers, and promised
            // that by `unsafe`, or borrow the heap.
            unsafe { owner.clear() };
        }
    }

    /// Whether `block` points into this heap's memory, live or free. For a large block, only its first 64 KiB count.
    #[must_use]
    pub fn contains(&self, block: *const u8) -> bool {
        self.owner().is_some_and(|mine| ptr::eq(mine, owner_at(block.addr())))
    }

    /// The statistics of this heap now.
    #[must_use]
    pub fn statistics(&self) -> HeapStatistics {
        self.owner().map(statistics_of).unwrap_or_default()
    }
}

/// The statistics of the heap of `owner`.
#[inline(never)]
pub(crate) fn statistics_of(owner: &'static Owner) -> HeapStatistics {
    let (cached_blocks, cached_bytes) = heap_cache::cached_by_all(|of| ptr::eq(of, owner));
    register();
    let counts = owner.counts();
    HeapStatistics {
        live_bytes: counts.block_bytes.saturating_sub(cached_bytes) + counts.large_bytes,
        live_blocks: counts.blocks.saturating_sub(cached_blocks) + counts.large_blocks,
        large_bytes: counts.large_bytes,
        large_blocks: counts.large_blocks,
        cached_bytes,
        committed_bytes: counts.page_bytes + counts.large_bytes,
    }
}

impl Default for Heap {
    fn default() -> Heap {
        Heap::new()
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        register();
        if let Some(owner) = self.owner() {
            // SAFETY: As in `clear`.
            unsafe { owner.destroy() };
        }
    }
}
