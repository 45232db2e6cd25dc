//! First-class heaps with C's meaning: heaps are pointers, and `errno` is `ENOMEM` where a function returns null.
//!
//! Relies on owners. A heap's pointer is its owner, which is never unmapped, so the use of a destroyed heap is noticed
//! until another heap takes the same owner.

use core::ptr::{self, NonNull};

use super::{or_errno, or_retry};
use crate::blocks::owner::Owner;
use crate::memory::class::{MIN_ALIGN, TABLE_LIMIT};
use crate::requests::heap::{self, HeapStatistics};
use crate::threads::cache::heap_cache::HeapCache;

/// An opaque heap.
///
/// ```
/// use masu::c::heap;
/// use std::ptr::NonNull;
///
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// unsafe { heap::destroy(heap) };
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct CHeap {
    _opaque: [u8; 0],
}

/// The owner that a heap's pointer leads to.
///
/// # Safety
///
/// - `heap` came from [`new`].
unsafe fn owner_of(heap: NonNull<CHeap>) -> &'static Owner {
    // SAFETY: The pointer leads to an owner, and owners are never unmapped.
    unsafe { heap.cast().as_ref() }
}

/// A new heap; null and `ENOMEM` where there is no memory for it.
///
/// ```
/// use masu::c::heap;
/// use std::ptr::NonNull;
///
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// unsafe { heap::destroy(heap) };
/// ```
#[must_use]
pub fn new() -> *mut CHeap {
    heap::register();
    let create =
        || Owner::create().map_or(ptr::null_mut(), |owner| ptr::from_ref(owner).cast_mut());
    or_retry(size_of::<Owner>(), || create().cast()).cast()
}

/// Destroys a heap and frees all its blocks.
///
/// ```
/// # use masu::c::heap;
/// # use std::ptr::NonNull;
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// let _block = unsafe { heap::malloc(heap, 100) };
/// unsafe { heap::destroy(heap) }; // and the block with it
/// ```
///
/// # Safety
///
/// - `heap` came from [`new`] and was not destroyed; nothing uses it or its blocks afterwards.
pub unsafe fn destroy(heap: NonNull<CHeap>) {
    heap::register();
    // SAFETY: The caller's condition.
    unsafe { owner_of(heap).destroy() };
}

/// Frees all blocks of a heap; the heap stays.
///
/// ```
/// # use masu::c::heap;
/// # use std::ptr::NonNull;
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// let _block = unsafe { heap::malloc(heap, 100) };
/// unsafe { heap::clear(heap) };
/// assert_eq!(unsafe { heap::statistics(heap) }.live_blocks, 0);
/// # unsafe { heap::destroy(heap) };
/// ```
///
/// # Safety
///
/// - `heap` came from [`new`] and was not destroyed; nothing uses its blocks afterwards.
pub unsafe fn clear(heap: NonNull<CHeap>) {
    heap::register();
    // SAFETY: The caller's condition.
    unsafe { owner_of(heap).clear() };
}

/// Allocates `size` bytes of a heap, aligned to 16. Null and `ENOMEM` as `malloc`.
///
/// ```
/// # use masu::c::heap;
/// # use std::ptr::NonNull;
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// let block = unsafe { heap::malloc(heap, 100) };
/// unsafe { masu::c::free(block) }; // finds the heap by itself
/// # unsafe { heap::destroy(heap) };
/// ```
///
/// # Safety
///
/// - `heap` came from [`new`] and was not destroyed.
#[inline(always)]
#[must_use]
pub unsafe fn malloc(heap: NonNull<CHeap>, size: usize) -> *mut u8 {
    // SAFETY: The caller's condition.
    let owner = unsafe { owner_of(heap) };
    if size <= TABLE_LIMIT
        && let Some(cached) = HeapCache::of(owner)
        && let Some(block) = NonNull::new(cached.pop(size))
    {
        return block.as_ptr();
    }
    allocate(owner, size, MIN_ALIGN, false)
}

#[inline(never)]
fn allocate(owner: &'static Owner, size: usize, align: usize, zeroed: bool) -> *mut u8 {
    or_retry(size, || heap::allocate(owner, size, align, zeroed))
}

/// Allocates `count` × `size` zero bytes of a heap. Null and `ENOMEM` as `calloc`.
///
/// ```
/// # use masu::c::heap;
/// # use std::ptr::NonNull;
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// let block = unsafe { heap::calloc(heap, 10, 8) };
/// assert_eq!(unsafe { block.add(79).read() }, 0);
/// # unsafe { heap::destroy(heap) };
/// ```
///
/// # Safety
///
/// - As [`malloc`].
#[must_use]
pub unsafe fn calloc(heap: NonNull<CHeap>, count: usize, size: usize) -> *mut u8 {
    let Some(bytes) = count.checked_mul(size) else { return or_errno(ptr::null_mut()) };
    // SAFETY: The caller's condition.
    allocate(unsafe { owner_of(heap) }, bytes, MIN_ALIGN, true)
}

/// Allocates `size` bytes of a heap aligned to `align`, a power of two (0 counts as 1). Null and
/// `ENOMEM` as `aligned_alloc`.
///
/// ```
/// # use masu::c::heap;
/// # use std::ptr::NonNull;
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// let block = unsafe { heap::aligned_alloc(heap, 4096, 100) };
/// assert_eq!(block.addr() % 4096, 0);
/// # unsafe { heap::destroy(heap) };
/// ```
///
/// # Safety
///
/// - As [`malloc`].
#[must_use]
pub unsafe fn aligned_alloc(heap: NonNull<CHeap>, align: usize, size: usize) -> *mut u8 {
    // SAFETY: The caller's condition.
    allocate(unsafe { owner_of(heap) }, size, align.max(1), false)
}

/// Changes the size of a block; the new block belongs to this heap, and the old block to any heap or to none. Null for
/// `block` allocates. Null and `ENOMEM` on failure: the old block is then intact.
///
/// ```
/// # use masu::c::heap;
/// # use std::ptr::NonNull;
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// let block = masu::c::malloc(100);
/// let block = unsafe { heap::realloc(heap, block, 200) };
/// assert_eq!(heap::of(block), heap.as_ptr());
/// # unsafe { heap::destroy(heap) };
/// ```
///
/// # Safety
///
/// - As [`malloc`], and `block` as for [`super::realloc`].
#[must_use]
pub unsafe fn realloc(heap: NonNull<CHeap>, block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: The caller's condition.
    let owner = unsafe { owner_of(heap) };
    let Some(old) = NonNull::new(block) else {
        return allocate(owner, size, MIN_ALIGN, false);
    };
    // SAFETY: The caller's condition.
    if ptr::eq(unsafe { heap::owner_of_block(old) }, owner) {
        // SAFETY: The block is a heap's, and the caller's condition.
        return or_retry(size, || unsafe { heap::resize(old, size, MIN_ALIGN) });
    }
    // SAFETY: The caller's condition.
    let old_size = unsafe { super::usable_size(block) };
    let new = allocate(owner, size, MIN_ALIGN, false);
    if !new.is_null() {
        // SAFETY: Both blocks are that long and do not overlap.
        unsafe { ptr::copy_nonoverlapping(block, new, size.min(old_size)) };
        // SAFETY: The caller's condition.
        unsafe { super::free(block) };
    }
    new
}

/// The heap of `block`; null where the block belongs to no heap.
///
/// ```
/// # use masu::c::heap;
/// # use std::ptr::NonNull;
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// let block = unsafe { heap::malloc(heap, 100) };
/// assert_eq!(heap::of(block), heap.as_ptr());
/// assert!(heap::of(std::ptr::null_mut()).is_null());
/// # unsafe { heap::destroy(heap) };
/// ```
#[must_use]
pub fn of(block: *mut u8) -> *mut CHeap {
    heap::owner_at(block.addr()).cast_mut().cast()
}

/// The statistics of a heap now.
///
/// ```
/// # use masu::c::heap;
/// # use std::ptr::NonNull;
/// let heap = NonNull::new(heap::new()).expect("there is memory");
/// let _block = unsafe { heap::malloc(heap, 100) };
/// assert_eq!(unsafe { heap::statistics(heap) }.live_blocks, 1);
/// # unsafe { heap::destroy(heap) };
/// ```
///
/// # Safety
///
/// - As [`malloc`].
#[must_use]
pub unsafe fn statistics(heap: NonNull<CHeap>) -> HeapStatistics {
    // SAFETY: The caller's condition.
    heap::statistics_of(unsafe { owner_of(heap) })
}
