//! First-class heaps under the oracle: heaps of Rust and heaps of C.
//!
//! It relies on [`Request`]: a block of a Rust heap is freed by layout, a block of a C heap by address.

use std::alloc::Layout;
use std::ptr::{self, NonNull};

use masu::Heap;
use masu::c::heap::{self, CHeap};

use crate::checked::{Function, Request};
use crate::random::Random;

/// A heap of either kind.
pub(crate) enum AnyHeap {
    Rust(Heap),
    C(NonNull<CHeap>),
}

// SAFETY: Any thread may use a heap.
unsafe impl Send for AnyHeap {}
// SAFETY: As above.
unsafe impl Sync for AnyHeap {}

impl AnyHeap {
    /// Makes a heap; `None` without memory.
    pub(crate) fn draw(random: &mut Random) -> Option<AnyHeap> {
        match random.below(2) {
            0 => Some(AnyHeap::Rust(Heap::new())),
            _ => NonNull::new(heap::new()).map(AnyHeap::C),
        }
    }

    /// The closest request to `request` that this heap serves.
    pub(crate) fn adapt(&self, request: Request) -> Request {
        let by_layout = matches!(request.function, Function::Layout | Function::LayoutZeroed);
        let function = match (self, request.function) {
            (AnyHeap::Rust(_), Function::Calloc { .. }) => Function::LayoutZeroed,
            (AnyHeap::Rust(_), _) if !by_layout => Function::Layout,
            (AnyHeap::C(_), Function::LayoutZeroed) => Function::Calloc { count: 1 },
            (AnyHeap::C(_), Function::Layout) if request.align > 16 => Function::AlignedAlloc,
            (AnyHeap::C(_), Function::Layout) => Function::Malloc,
            (_, function) => function,
        };
        let plain = matches!(function, Function::Malloc | Function::Calloc { .. });
        Request { function, align: if plain { 16 } else { request.align }, ..request }
    }

    /// Allocates a block; null if refused.
    pub(crate) fn allocate(&self, request: Request) -> *mut u8 {
        let Request { function, size, align } = request;
        match self {
            AnyHeap::Rust(heap) => {
                let layout = Layout::from_size_align(size, align).expect("sizes are small");
                let block = match function {
                    Function::LayoutZeroed => heap.alloc_zeroed(layout),
                    _ => heap.alloc(layout),
                };
                block.map_or(ptr::null_mut(), NonNull::as_ptr)
            }
            AnyHeap::C(heap) => match function {
                // SAFETY: The heap lives as long as this value.
                Function::Calloc { count } => unsafe { heap::calloc(*heap, count, size / count) },
                // SAFETY: As above.
                Function::AlignedAlloc => unsafe { heap::aligned_alloc(*heap, align, size) },
                // SAFETY: As above.
                _ => unsafe { heap::malloc(*heap, size) },
            },
        }
    }

    /// Frees a block through a Rust heap, or by C's `free`.
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

    /// Resizes a block in the heap; null if refused.
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
    /// - Nothing uses its blocks any more.
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

    /// Live blocks, by the heap's statistics.
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
            // SAFETY: The heap is live, and none of its blocks is used any more.
            unsafe { heap::destroy(*heap) };
        }
    }
}
