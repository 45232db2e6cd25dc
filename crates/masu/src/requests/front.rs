//! The front: allocate, free, resize. It joins the fast paths of the layers below, each with one slow path beside it.
//!
//! Relies on everything below. Nothing here formats, panics or sets `errno`, and the fast paths take no lock.

mod counted;

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use crate::blocks::slot;
use crate::diagnostics::guards::{self, Request};
use crate::diagnostics::sampling;
use crate::memory::arena::code_of;
use crate::memory::class::{
    Class, LARGEST_ALWAYS_SMALL, LARGEST_SMALL, MIN_ALIGN, SAMPLED, TABLE_LIMIT, grows_large,
    is_in_table,
};
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::memory::{map, ranges};
use crate::platform::fault::{self, Fault};
use crate::requests::pointer::Pointer;
use crate::requests::{heap, large, reclaim};
use crate::threads::cache::all;
use crate::threads::statistics::page;
use crate::threads::thread;

/// The pointer is not masu's; the caller decides what to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign;

/// A cached block for `size` bytes, aligned to 16; null where there is none, or where the size is beyond the tables: then
/// [`allocate`] is next.
#[inline(always)]
pub(crate) fn cached(size: usize) -> *mut u8 {
    if size > TABLE_LIMIT { ptr::null_mut() } else { slot::get().pop_for_size(size) }
}

/// The same while requests are counted for a profile or guards; null where they are not.
#[inline(always)]
pub(crate) fn cached_counted(size: usize) -> *mut u8 {
    if size > TABLE_LIMIT { ptr::null_mut() } else { counted::cached(size) }
}

/// Allocates `size` bytes aligned to 16; null without memory.
#[inline]
pub(crate) fn allocate(size: usize) -> *mut u8 {
    allocate_in(size, size)
}

/// The same in a block of a class for `room` bytes, which are more than `size` only where it is small. A guarded block is as
/// long as `size` all the same.
#[inline]
fn allocate_in(room: usize, size: usize) -> *mut u8 {
    if room <= TABLE_LIMIT {
        allocate_class(Class::of_size(room), size, MIN_ALIGN, FreedBy::Map)
    } else if room <= LARGEST_SMALL {
        allocate_class(Class::of_size(room), size, MIN_ALIGN, FreedBy::MapPlain)
    } else {
        large::allocate(size, MIN_ALIGN, false)
    }
}

/// How the caller frees its blocks, which decides the stack that free ones are kept on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreedBy {
    /// By their layout: [`free_layout`] reads nothing else.
    Layout,
    /// By the class map: [`free_cached`]. The map also has the lane of blocks of laned classes.
    Map,
    /// The same, where the size shows that the class is not laned.
    MapPlain,
}

/// Allocates a block of `class` for `size` bytes; null without memory.
#[inline(always)]
fn allocate_class(class: Class, size: usize, align: usize, freed_by: FreedBy) -> *mut u8 {
    let stacks = slot::get();
    if stacks.counts() {
        let is_exact = freed_by != FreedBy::Layout;
        return counted::allocate(Request { class, size, align, is_exact });
    }
    let laned = class.laned();
    if freed_by == FreedBy::Map && laned != class {
        let block = stacks.pop_for_size(laned.size());
        return if block.is_null() { allocate_class_slow(laned) } else { block };
    }
    let block = stacks.pop(class);
    if block.is_null() { allocate_class_slow(class) } else { block }
}

#[cold]
#[inline(never)]
fn allocate_class_slow(class: Class) -> *mut u8 {
    page::refresh_if_stale();
    match thread::cache() {
        Some(cache) => cache.pop_slow(class),
        None => all::take_uncached(class),
    }
}

/// A cached block for a layout; null where there is none, or where size or alignment are beyond the tables: then
/// [`allocate_aligned`] is next.
#[inline(always)]
pub(crate) fn cached_layout(layout: Layout) -> *mut u8 {
    if !is_in_table(layout.size(), layout.align()) {
        return ptr::null_mut();
    }
    slot::get().pop_for_layout(layout.size())
}

/// The same while requests are counted for a profile or guards; null where they are not.
#[inline(always)]
pub(crate) fn cached_layout_counted(size: usize, align: usize) -> *mut u8 {
    if is_in_table(size, align) { counted::cached_layout(size) } else { ptr::null_mut() }
}

/// Allocates `size` bytes aligned to `align`, a power of two; null without memory.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.several.front_allocate_aligned")]
pub(crate) fn allocate_aligned(size: usize, align: usize, freed_by: FreedBy) -> *mut u8 {
    match Class::of(size, align) {
        Some(class) => allocate_class(class, size, align, freed_by),
        None => large::allocate(size, align, false),
    }
}

/// Allocates `size` zero bytes aligned to `align`, a power of two; null without memory. Not inlined: each caller has a second
/// call of it, for a request that is made again.
#[inline(never)]
pub(crate) fn allocate_zeroed(size: usize, align: usize, freed_by: FreedBy) -> *mut u8 {
    // Slices may be known to be zero; blocks of a class must be cleared.
    let class = Class::of(size, align).filter(|_| size <= LARGEST_ALWAYS_SMALL);
    let Some(class) = class else {
        return large::allocate(size, align, true);
    };
    let block = allocate_class(class, size, align, freed_by);
    if !block.is_null() {
        // SAFETY: The block is at least `size` long and the caller's.
        unsafe { block.write_bytes(0, size) };
    }
    block
}

/// Puts a block onto its stack; false where that is full, or where the block has none (null, large, foreign): then [`free`]
/// is next.
///
/// # Safety
///
/// - As [`free`].
#[inline(always)]
pub(crate) unsafe fn free_cached(block: *mut u8) -> bool {
    slot::get().push(map::double_code(block.addr()), block)
}

/// Frees a block that did not fit its stack; null is ignored. A pointer that is not masu's is passed to `foreign`.
///
/// # Safety
///
/// - If `block` is masu's, it was handed out, is not free, and is not used any more.
// Inlined, so that the function that frees the block is a tail call.
#[inline(always)]
pub(crate) unsafe fn free(block: *mut u8, foreign: impl FnOnce(*mut u8)) {
    let Some(start) = NonNull::new(block) else { return };
    match Pointer::of(start, Fault::FreedTwice) {
        Pointer::Foreign => foreign(block),
        Pointer::Small(..) if !block.addr().is_multiple_of(MIN_ALIGN) => {
            fault::stop(Fault::NotABlock)
        }
        // SAFETY: The caller's condition, and the pointer's kind; the same holds below.
        Pointer::Small(class, code) => unsafe { free_code_slow(block, code, class) },
        // SAFETY: As above.
        Pointer::Large(first) => unsafe { large::free(first) },
        // SAFETY: As above.
        Pointer::Heap => unsafe { heap::free(start) },
        // SAFETY: As above.
        Pointer::Sampled(_) | Pointer::Guarded => unsafe { counted::free_sampled(block) },
    }
}

/// Frees a block that was allocated with `layout`.
///
/// # Safety
///
/// - `block` was allocated with `layout`, is not free, and is not used any more.
#[inline(always)]
pub(crate) unsafe fn free_layout(block: *mut u8, layout: Layout) {
    let (size, align) = (layout.size(), layout.align());
    if is_in_table(size, align) && slot::get().push_for_layout(size, block) {
        return;
    }
    // SAFETY: The caller's condition.
    unsafe { free_layout_slow(block, size, align) };
}

/// # Safety
///
/// - As [`free_layout`], `size` and `align` being the layout's.
#[inline(never)]
unsafe fn free_layout_slow(block: *mut u8, size: usize, align: usize) {
    if counted::frees_by_map() {
        if !counted::keeps(block) {
            // SAFETY: The caller's condition.
            unsafe { free_by_map(block) };
        }
        return;
    }
    // SAFETY: The caller's condition.
    unsafe { free_layout_slower(block, size, align) };
}

/// # Safety
///
/// - As [`free_layout_slow`].
#[inline(never)]
unsafe fn free_layout_slower(block: *mut u8, size: usize, align: usize) {
    if counted::sees_layouts_free() && code_of(block.addr()) == SAMPLED {
        // SAFETY: The caller's condition, and this is what the class map says.
        return unsafe { counted::free_sampled(block) };
    }
    if size > LARGEST_ALWAYS_SMALL {
        // SAFETY: The caller's condition.
        return unsafe { free_by_map(block) };
    }
    match Class::of(size, align) {
        // The stack of a class beyond the table may have room.
        Some(class) if slot::get().push_class(class, block) => {}
        // SAFETY: The block was allocated with this layout, so it has this class.
        Some(class) => unsafe { free_class_slow(block, class) },
        // SAFETY: The caller's condition. Without a class the block is large, or not masu's.
        None => unsafe { free_by_map(block) },
    }
}

/// Frees a block whose layout does not identify its class. Ends the program where it is not masu's.
///
/// # Safety
///
/// - As [`free`].
#[inline(never)]
unsafe fn free_by_map(block: *mut u8) {
    // SAFETY: The caller's condition.
    if !unsafe { free_cached(block) } {
        // SAFETY: As above.
        unsafe { free(block, |_| fault::stop(Fault::ForeignPointer)) };
    }
}

/// # Safety
///
/// - `block` is a block of `class` that was handed out, is not free, and is not used any more.
#[cold]
#[inline(never)]
unsafe fn free_class_slow(block: *mut u8, class: Class) {
    page::refresh_if_stale();
    match thread::cache() {
        Some(cache) => cache.push_slow(class, block),
        None => all::put_uncached(class, block),
    }
}

/// # Safety
///
/// - As [`free`]; the class map has `code` for the block, which stands for `class`.
#[inline(always)]
unsafe fn free_code_slow(block: *mut u8, code: u8, class: Class) {
    page::refresh_if_stale();
    match thread::cache() {
        Some(cache) => cache.push_code_slow(code, class, block),
        None => all::put_uncached(class, block),
    }
}

/// The usable size of a block in bytes.
///
/// # Errors
///
/// [`Foreign`] for a pointer that is not masu's.
///
/// # Safety
///
/// - If `block` is masu's, it was handed out and is not free.
pub(crate) unsafe fn usable_size(block: NonNull<u8>) -> Result<usize, Foreign> {
    Pointer::checked(block, Fault::UsedFreed).usable_size(block).ok_or(Foreign)
}

/// Changes a block's size, keeping its contents up to the smaller size and an alignment of 16. Null without memory; the
/// block is then intact.
///
/// # Errors
///
/// [`Foreign`] for a pointer that is not masu's; nothing was done.
///
/// # Safety
///
/// - As [`free`]; after success the old pointer is not used any more.
pub(crate) unsafe fn resize(block: NonNull<u8>, size: usize) -> Result<*mut u8, Foreign> {
    let what = Pointer::checked(block, Fault::UsedFreed);
    let old_size = match what {
        Pointer::Foreign => return Err(Foreign),
        // SAFETY: The block is a heap's; the rest is the caller's condition.
        Pointer::Heap => return Ok(unsafe { heap::resize(block, size, MIN_ALIGN) }),
        Pointer::Large(first) if size > LARGEST_ALWAYS_SMALL => {
            // SAFETY: The block is large; the rest is the caller's condition.
            return Ok(unsafe { resize_large(first, size) });
        }
        Pointer::Large(first) => ranges::large::usable_size(first),
        // It always moves, so a guarded block keeps its exact end.
        Pointer::Guarded => guards::usable_size(block.addr().get()),
        Pointer::Small(class, _) | Pointer::Sampled(class) => {
            if size <= class.size() && size >= class.size() / 2 {
                if matches!(what, Pointer::Sampled(_)) {
                    sampling::resize(block.addr().get(), size, 0);
                }
                return Ok(block.as_ptr());
            }
            class.size()
        }
    };
    let new = if grows_large(old_size, size) {
        large::allocate_copy(size, MIN_ALIGN, old_size)
    } else {
        allocate_in(with_room(old_size, size), size)
    };
    if !new.is_null() {
        // SAFETY: Both blocks are that long and do not overlap.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), new, size.min(old_size)) };
        // SAFETY: The caller's condition; the block is masu's, because its size is known.
        unsafe { free_by_map(block.as_ptr()) };
    }
    Ok(new)
}

/// The size of a small block that takes the place of one of `old_size` bytes, for `size`: a block that grew by less than an
/// eighth will grow again, and classes are so close together that it would be copied each time.
fn with_room(old_size: usize, size: usize) -> usize {
    if size <= old_size || size - old_size >= old_size / 8 {
        return size;
    }
    size.max((old_size + old_size / 4).min(LARGEST_ALWAYS_SMALL))
}

/// Changes the size of a large block to one that needs a large block. Null without memory; the block is then intact.
///
/// # Safety
///
/// - The block starts with this slice; the rest as [`resize`].
unsafe fn resize_large(first: &'static Slice, size: usize) -> *mut u8 {
    // SAFETY: The caller's condition.
    if unsafe { large::resize(first, size) } {
        return first.start().as_ptr();
    }
    // SAFETY: As above; it could not grow in place, so `size` is more than it holds.
    unsafe { large::move_to_larger(first, size) }
}

/// Changes the size of a block that was allocated with `layout`. Null without memory; the block is then intact.
///
/// The new block must have the class of the new layout, by which it will be freed. So unlike [`resize`], this moves a block
/// that shrinks into another class.
///
/// # Safety
///
/// - `block` was allocated with `layout`, is not free, and after success its old pointer is not
///   used any more.
/// - `new_size`, rounded up to the alignment, is no more than `isize::MAX`.
#[inline]
pub(crate) unsafe fn resize_layout(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    let (old_size, align) = (layout.size(), layout.align());
    if is_in_table(old_size, align) && is_in_table(new_size, align) {
        if slot::share_stack(old_size, new_size) {
            counted::note_resized_layout(block, new_size);
            return block;
        }
        let new = slot::get().pop_for_layout(new_size);
        if !new.is_null() {
            // SAFETY: Both blocks are that long and do not overlap.
            unsafe { copy_small(block, new, old_size.min(new_size)) };
            // SAFETY: The caller's condition.
            unsafe { free_layout(block, layout) };
            return new;
        }
    }
    // SAFETY: The caller's condition.
    unsafe { resize_layout_slow(block, layout, new_size) }
}

/// Copies at least `size` bytes, not 0, in whole units of 16, of which blocks consist. Short copies make no call, because
/// growing vectors are mostly short.
///
/// # Safety
///
/// - As [`ptr::copy_nonoverlapping`], for `size` rounded up to 16.
#[inline(always)]
unsafe fn copy_small(from: *const u8, to: *mut u8, size: usize) {
    let size = size.next_multiple_of(MIN_ALIGN);
    match size {
        // SAFETY: The caller's condition.
        1..=32 => unsafe { copy_halves::<16>(from, to, size) },
        // SAFETY: As above.
        33..=64 => unsafe { copy_halves::<32>(from, to, size) },
        // SAFETY: As above.
        65..=128 => unsafe { copy_halves::<64>(from, to, size) },
        // SAFETY: As above.
        _ => unsafe { ptr::copy_nonoverlapping(from, to, size) },
    }
}

/// Copies the first and the last `HALF` bytes, which may overlap.
///
/// # Safety
///
/// - As [`ptr::copy_nonoverlapping`], and `size` is `HALF` to twice that.
#[inline(always)]
unsafe fn copy_halves<const HALF: usize>(from: *const u8, to: *mut u8, size: usize) {
    // SAFETY: `size` is at least `HALF`.
    unsafe { ptr::copy_nonoverlapping(from, to, HALF) };
    let (from, to) = (from.wrapping_add(size - HALF), to.wrapping_add(size - HALF));
    // SAFETY: These are the last `HALF` bytes of `size`.
    unsafe { ptr::copy_nonoverlapping(from, to, HALF) };
}

/// # Safety
///
/// - As [`resize_layout`].
#[inline(never)]
unsafe fn resize_layout_slow(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    // SAFETY: The caller's condition: until the resize succeeds, the block is intact.
    let resize = || unsafe { resize_layout_by_moving(block, layout, new_size) };
    reclaim::or_retry(new_size, resize)
}

/// # Safety
///
/// - As [`resize_layout`].
#[inline]
unsafe fn resize_layout_by_moving(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    let (old_size, align) = (layout.size(), layout.align());
    let stays = old_size.max(new_size) <= LARGEST_ALWAYS_SMALL
        && Class::of(old_size, align).is_some_and(|old| Class::of(new_size, align) == Some(old));
    if stays {
        counted::note_resized_layout(block, new_size);
        return block;
    }
    if old_size.min(new_size) > LARGEST_ALWAYS_SMALL && align <= SLICE_BYTES {
        // SAFETY: The caller's condition.
        if let Some(resized) = unsafe { resize_by_map(block, new_size) } {
            return resized;
        }
    }
    let new = if grows_large(old_size, new_size) {
        large::allocate_copy(new_size, align, old_size)
    } else {
        match cached_layout_counted(new_size, align) {
            block if !block.is_null() => block,
            _ => allocate_aligned(new_size, align, FreedBy::Layout),
        }
    };
    if !new.is_null() {
        // SAFETY: Both blocks are that long and do not overlap.
        unsafe { ptr::copy_nonoverlapping(block, new, old_size.min(new_size)) };
        // SAFETY: The caller's condition.
        unsafe { free_layout(block, layout) };
    }
    new
}

/// Resizes a block over [`LARGEST_ALWAYS_SMALL`] to another such size, if its kind can; `None` where it must be allocated
/// again. Null without memory; the block is then intact.
///
/// # Safety
///
/// - As [`resize`], and `block` is aligned to no more than a slice.
unsafe fn resize_by_map(block: *mut u8, new_size: usize) -> Option<*mut u8> {
    match Pointer::of(NonNull::new(block)?, Fault::UsedFreed) {
        Pointer::Small(class, _) => (new_size <= class.size()).then_some(block),
        // It moves, and is freed as its kind.
        Pointer::Sampled(_) | Pointer::Guarded => None,
        // SAFETY: The block is large; the rest is the caller's condition.
        Pointer::Large(first) => Some(unsafe { resize_large(first, new_size) }),
        Pointer::Heap => fault::stop(Fault::NotTheHeaps),
        Pointer::Foreign => fault::stop(Fault::ForeignPointer),
    }
}
