//! First-class heaps under the oracle: those of Rust and those of C.
//!
//! It relies on [`Request`]: what a heap of Rust's hands out goes by its layout, what one of C's hands out by
//! its address.

use std::alloc::Layout;
use std::ptr::{self, NonNull};

use masu::Heap;
use masu::c::heap::{self, CHeap};

use crate::checked::{Door, Request};
use crate::random::Random;

/// A heap, ended when it is dropped.
pub(crate) enum AnyHeap {
    Rust(Heap),
    C(NonNull<CHeap>),
}

// SAFETY: Any thread may use a heap.
unsafe impl Send for AnyHeap {}
// SAFETY: As above.
unsafe impl Sync for AnyHeap {}

impl AnyHeap {
    /// A heap of either kind; `None` where there is no memory for it.
    pub(crate) fn draw(random: &mut Random) -> Option<AnyHeap> {
        match random.below(2) {
            0 => Some(AnyHeap::Rust(Heap::new())),
            _ => NonNull::new(heap::new()).map(AnyHeap::C),
        }
    }

    /// The request that this heap can be asked for in the place of `request`.
    pub(crate) fn can_be_asked(&self, request: Request) -> Request {
        let by_layout = matches!(request.door, Door::Layout | Door::LayoutZeroed);
        let door = match (self, request.door) {
            (AnyHeap::Rust(_), Door::Calloc { .. }) => Door::LayoutZeroed,
            (AnyHeap::Rust(_), _) if !by_layout => Door::Layout,
            (AnyHeap::C(_), Door::LayoutZeroed) => Door::Calloc { count: 1 },
            (AnyHeap::C(_), Door::Layout) if request.align > 16 => Door::AlignedAlloc,
            (AnyHeap::C(_), Door::Layout) => Door::Malloc,
            (_, door) => door,
        };
        let plain = matches!(door, Door::Malloc | Door::Calloc { .. });
        Request { door, align: if plain { 16 } else { request.align }, ..request }
    }

    /// Allocates a block; null where that is refused.
    pub(crate) fn allocate(&self, request: Request) -> *mut u8 {
        let Request { door, size, align } = request;
        match self {
            AnyHeap::Rust(heap) => {
                let layout = Layout::from_size_align(size, align).expect("sizes are small");
                let block = match door {
                    Door::LayoutZeroed => heap.alloc_zeroed(layout),
                    _ => heap.alloc(layout),
                };
                block.map_or(ptr::null_mut(), NonNull::as_ptr)
            }
            AnyHeap::C(heap) => match door {
                // SAFETY: The heap lives as long as this value.
                Door::Calloc { count } => unsafe { heap::calloc(*heap, count, size / count) },
                // SAFETY: As above.
                Door::AlignedAlloc => unsafe { heap::aligned_alloc(*heap, align, size) },
                // SAFETY: As above.
                _ => unsafe { heap::malloc(*heap, size) },
            },
        }
    }

    /// Frees a block by the heap itself where it can do that, else by C's `free`.
    ///
    /// # Safety
    ///
    /// - The block is of this heap and of this layout, and not used any more.
    pub(crate) unsafe fn free(&self, block: *mut u8, layout: Layout) {
        match self {
            // SAFETY: The caller's condition; a block is never null.
            AnyHeap::Rust(heap) => unsafe { heap.dealloc(NonNull::new_unchecked(block), layout) },
            // SAFETY: The caller's condition.
            AnyHeap::C(_) => unsafe { masu::c::free(block) },
        }
    }

    /// Changes the size of a block by the heap itself; null where that is refused.
    ///
    /// # Safety
    ///
    /// - The block is of this heap and of this layout; after success its old pointer is not used any more.
    pub(crate) unsafe fn resize(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match self {
            AnyHeap::Rust(heap) => {
                // SAFETY: The caller's condition; a block is never null.
                let new = unsafe { heap.realloc(NonNull::new_unchecked(block), layout, size) };
                new.map_or(ptr::null_mut(), NonNull::as_ptr)
            }
            // SAFETY: The caller's condition.
            AnyHeap::C(heap) => unsafe { heap::realloc(*heap, block, size) },
        }
    }

    /// Frees every block of the heap, which stays.
    ///
    /// # Safety
    ///
    /// - Nobody uses its blocks any more.
    pub(crate) unsafe fn clear(&mut self) {
        match self {
            AnyHeap::Rust(heap) => heap.clear(),
            // SAFETY: The caller's condition.
            AnyHeap::C(heap) => unsafe { heap::clear(*heap) },
        }
    }

    /// Whether a block lies in this heap.
    pub(crate) fn contains(&self, block: *mut u8) -> bool {
        match self {
            AnyHeap::Rust(heap) => heap.contains(block),
            AnyHeap::C(heap) => ptr::eq(heap::of(block), heap.as_ptr()),
        }
    }

    /// Blocks of the heap that are handed out, by its own books.
    pub(crate) fn live_blocks(&self) -> usize {
        match self {
            AnyHeap::Rust(heap) => heap.statistics().live_blocks,
            // SAFETY: The heap lives as long as this value.
            AnyHeap::C(heap) => unsafe { heap::statistics(*heap) }.live_blocks,
        }
    }
}

impl Drop for AnyHeap {
    fn drop(&mut self) {
        if let AnyHeap::C(heap) = self {
            // SAFETY: It was not ended before, and the code that drops it uses none of its blocks any more.
            unsafe { heap::destroy(*heap) };
        }
    }
}
