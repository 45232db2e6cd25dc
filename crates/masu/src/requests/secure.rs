//! The hardened build's front, with the feature `secure`.
//!
//! Relies on all that the front relies on except for caches: a block goes from its page to the program and back, under
//! a lock, so that each wrong free is detected at the call. It has the front's functions by the same names;
//! `requests.rs` chooses one at compile time, and the front has no line for this build.
//!
//! The hard idea: nothing that a program can write is trusted. A block's size and whether it is live are in the
//! allocator's own memory ([`crate::blocks::page::hardened`]); the canary behind the block ([`canary`]) only shows that
//! the program wrote beyond the block. docs/hardening.md has the promises.

mod canary;
mod guarded;
mod report;

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use crate::blocks::ownership::Shard;
use crate::blocks::page::hardened::LIVE_MAX;
use crate::blocks::shard::hardened::{self, Held, Wrong};
use crate::blocks::slot;
use crate::diagnostics::sampling;
use crate::memory::arena::code_of;
use crate::memory::class::{Class, HEAP, LARGE, LARGEST_ALWAYS_SMALL, MIN_ALIGN, grows_large};
use crate::platform::fault::{self, Fault};
use crate::requests::pointer::OfHeap;
use crate::requests::{heap, reclaim};
use crate::threads::statistics::page;
use crate::threads::thread;
use report::{Call, Reason};

/// The front's error for pointers of other mallocs. Here they end the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Foreign;

/// The way in which the caller frees its blocks. This build looks up all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreedBy {
    Layout,
    Map,
}

/// Nothing is cached.
#[inline(always)]
pub(crate) fn cached(_size: usize) -> *mut u8 {
    ptr::null_mut()
}

/// As above.
#[inline(always)]
pub(crate) fn cached_layout(_layout: Layout) -> *mut u8 {
    ptr::null_mut()
}

/// As above.
#[inline(always)]
pub(crate) fn cached_counted(_size: usize) -> *mut u8 {
    ptr::null_mut()
}

/// As above.
#[inline(always)]
pub(crate) fn cached_layout_counted(_size: usize, _align: usize) -> *mut u8 {
    ptr::null_mut()
}

/// The class of blocks with room for `size` bytes and a canary; `None` for a large block.
#[inline(always)]
fn class_of(size: usize, align: usize) -> Option<Class> {
    if size > LIVE_MAX { None } else { Class::of(size + canary::BYTES_MIN, align) }
}

/// Allocates `size` bytes aligned to 16; null without memory.
#[inline]
pub(crate) fn allocate(size: usize) -> *mut u8 {
    allocate_aligned(size, MIN_ALIGN, FreedBy::Map)
}

/// Allocates `size` bytes aligned to `align`, a power of two; null without memory.
pub(crate) fn allocate_aligned(size: usize, align: usize, _freed_by: FreedBy) -> *mut u8 {
    match class_of(size, align) {
        Some(class) => allocate_class(class, size).0,
        None => guarded::allocate(size, align, false),
    }
}

/// Allocates `size` zero bytes aligned to `align`, a power of two; null without memory.
pub(crate) fn allocate_zeroed(size: usize, align: usize, _freed_by: FreedBy) -> *mut u8 {
    let Some(class) = class_of(size, align) else { return guarded::allocate(size, align, true) };
    let (block, zeroed) = allocate_class(class, size);
    if !block.is_null() && !zeroed {
        // SAFETY: The block is at least `size` long and the caller's.
        unsafe { block.write_bytes(0, size) };
    }
    block
}

/// A block of `class` for `size` bytes, and whether these are zero; null without memory.
#[inline]
fn allocate_class(class: Class, size: usize) -> (*mut u8, bool) {
    let cache = thread::cache();
    let shard = cache.map_or(Shard::default(), |cache| cache.shard);
    let taken = hardened::take(shard, class, size).or_else(|| {
        // The quarantine takes addresses, which may be limited.
        guarded::forget_quarantined().then(|| hardened::take(shard, class, size))?
    });
    let Some(taken) = taken else { return (ptr::null_mut(), false) };
    let block: *mut u8 = ptr::with_exposed_provenance_mut(taken.address);
    if taken.zeroed
        && let Some(offset) = hardened::first_written(taken.address, class.size())
    {
        let wrong = Wrong::Written { block: taken.address, offset, size: class.size() };
        report::stop(Call::Malloc, taken.address, Reason::Wrong(wrong));
    }
    // SAFETY: The block is that long and belongs to this thread.
    unsafe { canary::write(block, size, class.size()) };
    count(taken.address, size);
    (block, taken.zeroed)
}

/// Counts a block, if a heap profile is taken.
#[inline(always)]
fn count(address: usize, size: usize) {
    if slot::get().counts() {
        count_slow(address, size);
    }
}

#[cold]
#[inline(never)]
fn count_slow(address: usize, size: usize) {
    if let Some(cache) = slot::get().cache()
        && !cache.passes(size)
        && cache.is_hit(size)
    {
        cache.sample(address, size);
    }
}

/// Removes a block from the profile, if one is taken.
#[inline(always)]
fn uncount(address: usize) {
    if sampling::is_running() {
        sampling::remove(address);
    }
}

/// No cache takes a block: [`free`] is next.
///
/// # Safety
///
/// - None.
#[inline(always)]
pub(crate) unsafe fn free_cached(_block: *mut u8) -> bool {
    false
}

/// Frees a block; null is ignored. Ends the program where `block` is no live block.
///
/// # Safety
///
/// - `block` is not used any more.
#[inline]
pub(crate) unsafe fn free(block: *mut u8, _foreign: impl FnOnce(*mut u8)) {
    // SAFETY: The caller's condition.
    unsafe { free_expected(block, Expected::ANY, Call::Free) };
}

/// Frees a block that was allocated with `layout`. Ends the program where the block was allocated otherwise.
///
/// # Safety
///
/// - `block` is not used any more.
#[inline]
pub(crate) unsafe fn free_layout(block: *mut u8, layout: Layout) {
    let expected = Expected { size: Some(layout.size()), align: layout.align() };
    // SAFETY: The caller's condition.
    unsafe { free_expected(block, expected, Call::Dealloc) };
}

/// Frees a block, which must have the size and alignment of `expected`.
///
/// # Safety
///
/// - `block` is not used any more.
unsafe fn free_expected(block: *mut u8, expected: Expected, call: Call) {
    let Some(start) = NonNull::new(block) else { return };
    let _ = thread::cache();
    let address = block.addr();
    match hardened::hold(address) {
        Ok(held) => {
            let checked = check(&held, address, expected);
            if let Err(reason) = checked {
                drop(held);
                report::stop(call, address, reason);
            }
            uncount(address);
            match held.quarantine() {
                // No slow path follows that would update the statistics page.
                Ok(true) => page::refresh(),
                Ok(false) => {}
                Err(wrong) => report::stop(call, address, Reason::Wrong(wrong)),
            }
        }
        Err(Wrong::NoPage) => match code_of(address) {
            // As in the ordinary build: `free` accepts heaps' blocks, a global allocator's layout does not.
            HEAP if matches!(call, Call::Dealloc) => fault::stop(Fault::NotTheHeaps),
            // SAFETY: The class map says that the block is a heap's; the rest is the caller's condition.
            HEAP => unsafe { heap::free(start) },
            // SAFETY: As above, for a large block.
            LARGE => unsafe { guarded::free(start, expected, call) },
            _ => report::stop(call, address, Reason::Wrong(Wrong::NoPage)),
        },
        Err(wrong) => report::stop(call, address, Reason::Wrong(wrong)),
    }
}

/// Frees a block with the alignment that the caller states, and the size if the caller knows it. Ends the program where
/// they are wrong.
///
/// # Safety
///
/// - `block` is not used any more.
#[inline]
pub(crate) unsafe fn free_sized(block: *mut u8, size: Option<usize>, align: usize) {
    // SAFETY: The caller's condition.
    unsafe { free_expected(block, Expected { size, align }, Call::Delete) };
}

/// A block's size and alignment as the caller states them.
#[derive(Clone, Copy)]
struct Expected {
    size: Option<usize>,
    align: usize,
}

impl Expected {
    const ANY: Expected = Expected { size: None, align: 1 };

    /// Checks this size and alignment against a block of `size` bytes at `address`.
    #[inline]
    fn admits(self, address: usize, size: usize) -> Result<(), Reason> {
        let expected = self.size.unwrap_or(size);
        if expected == size && address & self.align.wrapping_sub(1) == 0 {
            return Ok(());
        }
        Err(Reason::OtherSize { size, expected })
    }
}

/// Checks a block against `expected`, and its canary.
#[inline]
fn check(held: &Held, address: usize, expected: Expected) -> Result<(), Reason> {
    let size = held.size();
    expected.admits(address, size)?;
    // SAFETY: The block is that long, and live.
    let is_intact = unsafe {
        canary::is_intact(ptr::with_exposed_provenance(address), size, held.class.size())
    };
    if is_intact { Ok(()) } else { Err(Reason::Overrun { size }) }
}

/// The size of a live block of no heap, and its room, 0 for a large one. Ends the program where no such block starts at
/// `address`, or its canary was overwritten.
fn inspect(address: usize, expected: Expected, call: Call) -> (usize, usize) {
    match hardened::hold(address) {
        Ok(held) => {
            let (size, room) = (held.size(), held.class.size());
            let checked = check(&held, address, expected);
            drop(held);
            if let Err(reason) = checked {
                report::stop(call, address, reason);
            }
            (size, room)
        }
        Err(Wrong::NoPage) if code_of(address) == LARGE => {
            (guarded::size(address, expected, call), 0)
        }
        Err(wrong) => report::stop(call, address, Reason::Wrong(wrong)),
    }
}

/// The usable size of a block, which is the requested size.
///
/// # Errors
///
/// None: the program ends where `block` is no live block.
///
/// # Safety
///
/// - None.
pub(crate) unsafe fn usable_size(block: NonNull<u8>) -> Result<usize, Foreign> {
    let address = block.addr().get();
    let _ = thread::cache();
    if code_of(address) == HEAP {
        return Ok(OfHeap::at(block, Fault::UsedFreed).usable_size());
    }
    Ok(inspect(address, Expected::ANY, Call::UsableSize).0)
}

/// Changes a block's size, keeping its contents up to the smaller size and an alignment of 16. Null without memory; the block
/// is then intact.
///
/// # Errors
///
/// None: the program ends where `block` is no live block.
///
/// # Safety
///
/// - After success the old pointer is not used any more.
pub(crate) unsafe fn resize(block: NonNull<u8>, size: usize) -> Result<*mut u8, Foreign> {
    if code_of(block.addr().get()) == HEAP {
        // SAFETY: The class map says that the block is a heap's; the rest is the caller's condition.
        return Ok(unsafe { heap::resize(block, size, MIN_ALIGN) });
    }
    // SAFETY: The caller's condition.
    Ok(unsafe { resize_expected(block, size, Expected::ANY, MIN_ALIGN, Call::Realloc) })
}

/// Changes the size of a block that was allocated with `layout`. Null without memory; the block is then intact.
///
/// # Safety
///
/// - After success the old pointer is not used any more.
/// - `new_size`, rounded up to the alignment, is no more than `isize::MAX`.
pub(crate) unsafe fn resize_layout(block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    let Some(start) = NonNull::new(block) else { return ptr::null_mut() };
    let expected = Expected { size: Some(layout.size()), align: layout.align() };
    // SAFETY: The caller's condition: until the resize succeeds, the block is intact.
    let resize =
        || unsafe { resize_expected(start, new_size, expected, layout.align(), Call::Dealloc) };
    reclaim::or_retry(new_size, resize)
}

/// # Safety
///
/// - As [`resize`].
unsafe fn resize_expected(
    block: NonNull<u8>,
    size: usize,
    expected: Expected,
    align: usize,
    call: Call,
) -> *mut u8 {
    let _ = thread::cache();
    let address = block.addr().get();
    let (old_size, room) = inspect(address, expected, call);
    let stays = if room == 0 {
        size > LARGEST_ALWAYS_SMALL && guarded::resize(address, size)
    } else {
        let fits = size <= room - canary::BYTES_MIN;
        let stays = fits
            && (size >= room / 2
                || class_of(size, align).is_some_and(|class| class.size() == room));
        stays && resize_small(address, size, call)
    };
    if stays {
        if sampling::is_running() {
            sampling::resize(address, size, size.saturating_sub(old_size));
        }
        return block.as_ptr();
    }
    let new = if grows_large(old_size, size) {
        guarded::allocate_to_grow(size, align)
    } else {
        allocate_aligned(size, align, FreedBy::Map)
    };
    if !new.is_null() {
        // SAFETY: Both blocks are that long and do not overlap.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), new, size.min(old_size)) };
        // SAFETY: The caller's condition.
        unsafe { free_expected(block.as_ptr(), Expected::ANY, call) };
    }
    new
}

/// Changes the size of a live small block within its room.
fn resize_small(address: usize, size: usize, call: Call) -> bool {
    match hardened::hold(address) {
        Ok(mut held) => {
            held.set_size(size);
            let block = ptr::with_exposed_provenance_mut(address);
            // SAFETY: The block is that long and the caller's.
            unsafe { canary::write(block, size, held.class.size()) };
            true
        }
        // Another thread freed the block just now.
        Err(wrong) => report::stop(call, address, Reason::Wrong(wrong)),
    }
}
