//! First-class heaps: memory that a program allocates apart and gives back at once.
//!
//! Relies on owners for a heap's pages and large blocks, on thread caches to keep some of its blocks at
//! hand. Here their fast paths are put together as in [`crate::requests::front`], each with a slow one beside
//! it. The hard idea is who may say what a block is: a small layout says so itself, so its block is
//! kept without a look at it; everything else, and every plain `free`, asks the block's slice, which
//! knows its heap.

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
use crate::requests::scarce;
use crate::threads::cache::near::{self, Near};
use crate::threads::thread;
pub(crate) use blocks::{allocate, free, heap_of, resize};

/// A heap of its own: its blocks come from pages that no other block lies in, and all of them are free
/// at once when it is dropped, whatever is still in use.
///
/// Any thread may allocate and free, whichever made the heap. A heap takes memory when the first block
/// is asked for, and making one is as cheap as a few allocations: one for each request or query, or for
/// each part of a program whose memory is to be counted or bounded in its life.
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
/// With the feature `allocator-api2` a heap is an allocator for collections, which own it or borrow it.
/// What borrows a heap keeps it from being dropped or cleared:
///
/// ```compile_fail
/// let heap = masu::Heap::new();
/// let numbers = allocator_api2::vec::Vec::<u64, _>::new_in(&heap);
/// drop(heap);
/// drop(numbers);
/// ```
///
/// A block goes back by [`Heap::dealloc`] of its own heap, or by C's `free` where masu is the program's
/// malloc. To hand it to the global allocator, as `Box::from_raw` does when the box is dropped, is
/// wrong; where that is noticed, the program ends with a message.
#[derive(Debug)]
pub struct Heap {
    /// Null until the first block is asked for.
    owner: AtomicPtr<Owner>,
}

/// Counts of one heap. While other threads use it they are close, not exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub struct HeapStatistics {
    /// Bytes in blocks handed out, each counted with its whole usable size.
    pub live_bytes: usize,
    /// Blocks handed out.
    pub live_blocks: usize,
    /// Bytes of large blocks (over 64 KiB, or over 32 KiB and grown or zeroed) among them.
    pub large_bytes: usize,
    /// Large blocks among them.
    pub large_blocks: usize,
    /// Bytes of free blocks that threads keep at hand.
    pub cached_bytes: usize,
    /// Bytes of the heap's pages and large blocks: what comes back when it is destroyed.
    pub committed_bytes: usize,
}

impl Heap {
    /// A heap that owns nothing yet.
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
        // ORDERING: Acquire pairs with the Release in `begin`: the owner's number is seen.
        let owner = self.owner.load(Ordering::Acquire);
        // SAFETY: It is null or leads to an owner, and owners are never unmapped.
        unsafe { owner.as_ref() }
    }

    /// The owner, made where there is none yet; `None` for want of memory.
    fn owner_or_new(&self) -> Option<&'static Owner> {
        match self.owner() {
            None => self.begin(),
            made => made,
        }
    }

    #[cold]
    #[inline(never)]
    fn begin(&self) -> Option<&'static Owner> {
        let _ = thread::cache();
        let made = Owner::create()?;
        let pointer = ptr::from_ref(made).cast_mut();
        // ORDERING: Release publishes the owner to the Acquire in `owner`; Acquire sees that of
        // another thread that was faster.
        let exchanged = self.owner.compare_exchange(
            ptr::null_mut(),
            pointer,
            Ordering::Release,
            Ordering::Acquire,
        );
        if exchanged.is_err() {
            // SAFETY: Nobody but this function knows of it.
            unsafe { made.destroy() };
        }
        self.owner()
    }

    /// Allocates a block for `layout`; `None` for want of memory. A size of 0 gives a block of its own.
    #[inline]
    pub fn alloc(&self, layout: Layout) -> Option<NonNull<u8>> {
        if is_in_table(layout.size(), layout.align())
            && let Some(owner) = self.owner()
            && let Some(near) = Near::of(owner)
            && let Some(block) = NonNull::new(near.pop(layout.size()))
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
        let block = NonNull::new(allocate(self.owner_or_new()?, size, align, zeroed));
        if block.is_none() {
            scarce::out_of_memory();
        }
        block
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
            && let Some(near) = Near::of(owner)
            && near.push(layout.size(), block.as_ptr())
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
        // SAFETY: It is a block of this heap, and the caller's condition.
        unsafe { free(block) };
    }

    /// Ends the program where `block` is none of this heap, or is free as far as can be seen, which `freed` is about.
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

    /// Changes the size of a block, keeping its contents up to the smaller size. It stays in this heap,
    /// and goes by `layout` with its new size from then on. `None` for want of memory; the block is
    /// intact then.
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
            let resized = unsafe { blocks::resize_aligned(block, new_size, align) };
            return NonNull::new(resized);
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

    /// Frees everything at once; the heap is as new, and nobody else can be using it.
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
        if let Some(owner) = self.owner() {
            // SAFETY: Nobody else has a reference to the heap. Blocks are used by raw pointers only,
            // whose users have promised so by `unsafe`, or borrow the heap.
            unsafe { owner.clear() };
        }
    }

    /// Whether `block` lies in a block of this heap, or in one that is free again.
    #[must_use]
    pub fn contains(&self, block: *const u8) -> bool {
        let owner = self.owner().map(ptr::from_ref);
        owner.is_some() && heap_of(block.cast_mut()).map(ptr::from_ref) == owner
    }

    /// Counts of this heap now.
    #[must_use]
    pub fn statistics(&self) -> HeapStatistics {
        self.owner().map(statistics_of).unwrap_or_default()
    }
}

/// Counts of the heap that `owner` owns for.
#[inline(never)]
pub(crate) fn statistics_of(owner: &'static Owner) -> HeapStatistics {
    let (cached_blocks, cached_bytes) = near::held_by_all(|of| ptr::eq(of, owner));
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
        if let Some(owner) = self.owner() {
            // SAFETY: As in `clear`.
            unsafe { owner.destroy() };
        }
    }
}
