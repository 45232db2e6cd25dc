//! First-class heaps for C: `masu_heap_…`.
//!
//! It relies on `masu::c::heap` for the rules of sizes and failure; these functions set `errno` as `malloc` does,
//! because they belong to its family. The hard idea is the missing function: none frees a block, because `free` finds
//! the block's heap itself.

use core::ptr::{self, NonNull};

use alloc_core::c;
use alloc_core::c::heap::{self, CHeap};

use super::statistics::copy;
use crate::count;
use crate::libc::{self, EINVAL};

/// A new heap; null and `ENOMEM` where there is no memory for it.
#[unsafe(no_mangle)]
pub extern "C" fn masu_heap_new() -> *mut CHeap {
    heap::new()
}

/// Frees every block of a heap, and the heap; null is ignored.
///
/// # Safety
///
/// - `heap` is null or a heap, and nothing uses the heap or its blocks any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_heap_destroy(heap: *mut CHeap) {
    if let Some(heap) = NonNull::new(heap) {
        // SAFETY: The caller's condition.
        unsafe { heap::destroy(heap) };
    }
}

/// Frees every block of a heap, which stays usable.
///
/// # Safety
///
/// - `heap` is a heap, and nothing uses any of its blocks any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_heap_clear(heap: NonNull<CHeap>) {
    // SAFETY: The caller's condition.
    unsafe { heap::clear(heap) };
}

/// `malloc` in a heap.
///
/// # Safety
///
/// - `heap` is a heap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_heap_malloc(heap: NonNull<CHeap>, size: usize) -> *mut u8 {
    count::request(size);
    // SAFETY: The caller's condition.
    unsafe { heap::malloc(heap, size) }
}

/// `calloc` in a heap.
///
/// # Safety
///
/// - As [`masu_heap_malloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_heap_calloc(
    heap: NonNull<CHeap>,
    count: usize,
    size: usize,
) -> *mut u8 {
    count::request(count.saturating_mul(size));
    // SAFETY: The caller's condition.
    unsafe { heap::calloc(heap, count, size) }
}

/// `aligned_alloc` in a heap; null and `EINVAL` where the alignment is not a power of two.
///
/// # Safety
///
/// - As [`masu_heap_malloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_heap_aligned_alloc(
    heap: NonNull<CHeap>,
    align: usize,
    size: usize,
) -> *mut u8 {
    count::request(size);
    if !align.is_power_of_two() {
        libc::set_errno(EINVAL);
        return ptr::null_mut();
    }
    // SAFETY: The caller's condition.
    unsafe { heap::aligned_alloc(heap, align, size) }
}

/// `realloc`; the block belongs to this heap afterwards.
///
/// # Safety
///
/// - As [`masu_heap_malloc`], and `block` as for `realloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_heap_realloc(
    heap: NonNull<CHeap>,
    block: *mut u8,
    size: usize,
) -> *mut u8 {
    count::request(size);
    // SAFETY: The caller's condition.
    unsafe { heap::realloc(heap, block, size) }
}

/// The heap that a block belongs to; null where it belongs to none.
#[unsafe(no_mangle)]
pub extern "C" fn masu_heap_of(block: *const u8) -> *mut CHeap {
    c::heap::of(block.cast_mut())
}

/// Writes up to `size` bytes of a heap's numbers to `*result`, zeros behind them; returns the length of all numbers in
/// bytes.
///
/// # Safety
///
/// - As [`masu_heap_malloc`], and `size` bytes may be written to `result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn masu_heap_statistics(
    heap: NonNull<CHeap>,
    result: *mut u8,
    size: usize,
) -> usize {
    // SAFETY: The caller's condition; a structure of plain numbers is bytes.
    unsafe { copy(&heap::statistics(heap), result, size) }
}
