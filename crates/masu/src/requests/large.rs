//! Large blocks: whole slices, for sizes over 64 KiB, and for blocks over 32 KiB that grew or were requested zeroed.
//!
//! Relies on ranges. The class map marks a block's first slice; its size is the length of its run. A block grows into free
//! neighbors, or is copied.

use core::ptr::{self, NonNull};

use crate::blocks::{shard, slot};
use crate::diagnostics::sampling;
use crate::memory::class::LARGE;
use crate::memory::map;
use crate::memory::ranges::large::{self, slices_if_possible, usable_size, zeroed_if};
use crate::memory::ranges::usage::OS_PAGE;
use crate::memory::ranges::{Filling, Run, stripes, usage};
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Advice};
use crate::threads::cache::ThreadCache;
use crate::threads::statistics::page;
use crate::threads::thread;

/// Allocates `size` bytes aligned to `align`, a power of two. Null without memory, and where `size` is over 128 TiB or
/// `align` over 512 MiB.
pub(crate) fn allocate(size: usize, align: usize, zeroed: bool) -> *mut u8 {
    allocate_for(Filling::of_new(size, zeroed), size, align, zeroed)
}

/// Allocates `size` bytes that take the place of a block of `old_size` bytes. Null as [`allocate`].
pub(crate) fn allocate_copy(size: usize, align: usize, old_size: usize) -> *mut u8 {
    allocate_for(Filling::of_moved(size, old_size), size, align, false)
}

#[inline]
fn allocate_for(filling: Filling, size: usize, align: usize, zeroed: bool) -> *mut u8 {
    let Some(slices) = slices_if_possible(size, align) else { return ptr::null_mut() };
    // Makes the cache if need be: a thread that allocates large blocks alone parks them from the first on.
    let parked = thread::cache().map(|cache| &cache.parked);
    if align <= SLICE_BYTES
        && let Some(first) = parked.and_then(|parked| parked.take(slices))
    {
        first.kind.set(Kind::Large);
        count(first, size);
        return zeroed_if(zeroed, Run { first, zero: false }, size);
    }
    let mut ranges = slot::ranges().lock();
    ranges.bring_home(parked);
    let Some(run) = ranges.allocate_for(filling, slices, align, Kind::Large) else {
        return ptr::null_mut();
    };
    let first = run.first;
    if let Some(parked) = parked {
        ranges.note_handed_out(parked, first);
    }
    drop(ranges);
    map::set(first.address(), 1, LARGE);
    page::refresh_for_large(slices);
    count(first, size);
    zeroed_if(zeroed, run, size)
}

/// Counts `size` new bytes, of a new block or of a block that grew, where requests are counted.
#[inline(always)]
fn count(first: &'static Slice, size: usize) {
    if slot::get().counts() {
        count_slow(first, size, size);
    }
}

/// The same for `more` new bytes of a block of `size` bytes.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile.large_count_slow")]
fn count_slow(first: &'static Slice, size: usize, more: usize) {
    if first.sampled.get() != 0 {
        if sampling::resize(first.address(), size, more) {
            return;
        }
        // It was in an earlier profile.
        first.sampled.set(0);
    }
    if let Some(cache) = slot::get().cache()
        && !cache.passes(more)
        && cache.is_hit(more)
    {
        first.sampled.set(1);
        cache.sample(first.address(), size);
    }
}

/// Frees the large block that starts with this slice.
///
/// # Safety
///
/// - The block was allocated here and not freed, and nothing uses it any more.
#[inline(never)]
pub(crate) unsafe fn free(first: &'static Slice) {
    debug_assert!(first.kind.is(Kind::Large), "a pointer's kind is looked at first");
    if first.sampled.replace(0) != 0 {
        sampling::remove(first.address());
    }
    let (slices, cache) = (first.count.get() as usize, slot::get().cache());
    if let Some(cache) = cache {
        if cache.parked.wants(first, slices) {
            first.kind.set(Kind::Parked);
            cache.parked.park(first, slices);
            return;
        }
        cache.count_slow_call(None);
        shard::purge_step();
    }
    // SAFETY: The run is the block's, which nothing uses.
    unsafe { free_run(first, slices, cache) };
}

/// Frees the run of a large block. Separate from [`free`], whose parking path stays short.
///
/// # Safety
///
/// - Nothing uses the block any more.
#[inline(never)]
unsafe fn free_run(first: &'static Slice, slices: usize, cache: Option<&'static ThreadCache>) {
    usage::note_freed(first, slices);
    let mut ranges = stripes::of(first).lock();
    ranges.bring_home(cache.map(|cache| &cache.parked));
    // SAFETY: The caller's condition.
    unsafe { ranges.free_large(first) };
    drop(ranges);
    page::refresh_for_large(slices);
}

/// Resizes the large block that starts with this slice in place; returns whether that was possible. Frees the unused
/// slices, if they are more than half.
///
/// # Safety
///
/// - The block was allocated here and not freed, and nothing uses the bytes behind its first `size` bytes.
pub(crate) unsafe fn resize(first: &'static Slice, size: usize) -> bool {
    let before = usable_size(first);
    // SAFETY: The caller's condition.
    if !unsafe { large::resize(first, size, slot::parked()) } {
        return false;
    }
    let more = usable_size(first).saturating_sub(before);
    if more > 0 && slot::get().counts() {
        // The unused rest of the last slice was never counted, so count it now as used.
        count_slow(first, size, more);
    } else if more == 0 && first.sampled.get() != 0 {
        sampling::resize(first.address(), size, 0);
    }
    true
}

/// Copies a large block into a new one of `size` bytes, more than the old one holds. Null without memory; the old block is
/// then intact.
///
/// The function does not use `mremap`, although `mremap` is faster from 1 MiB on: moved mappings never merge with their
/// neighbors again. A program of growing buffers reached 22,893 of the 65,530 mappings that a process may have, and at
/// the limit `mremap` fails after it has unmapped the destination.
///
/// # Safety
///
/// - The block starts with this slice, was allocated here and not freed; after success nothing uses it any more.
pub(crate) unsafe fn move_to_larger(first: &'static Slice, size: usize) -> *mut u8 {
    let old_size = usable_size(first);
    debug_assert!(size > old_size);
    let new = allocate_copy(size, 1, old_size);
    if !new.is_null() {
        // SAFETY: Both blocks are at least that long and do not overlap, and the old one is freed now.
        unsafe { move_contents(first, new, old_size) };
        // SAFETY: The contents are in the new block.
        unsafe { free(first) };
    }
    new
}

/// Moves the contents of a large block, `bytes` bytes, to a larger one.
///
/// # Safety
///
/// - Both are large blocks of the caller's, which keeps nothing in the old one and has written nothing to the new one.
unsafe fn move_contents(first: &'static Slice, new: *mut u8, bytes: usize) {
    let from = first.start().as_ptr();
    // SAFETY: A large block begins in the first GiB of its arena.
    if unsafe { Slice::at(new.addr()) }.arena().is_dedicated() {
        // SAFETY: The caller's condition.
        unsafe { move_long(from, new, bytes, first.arena().is_dedicated()) };
    } else {
        // SAFETY: As above.
        unsafe { ptr::copy_nonoverlapping(from, new, bytes) };
    }
}

/// [`move_contents`] into an arena of its own, which is new and reads as zero. Leaves zeros out, so that no more becomes
/// resident, and gives the old block's memory back step by step if it `is_given_back`, so that the two blocks together are
/// never resident.
///
/// # Safety
///
/// - As [`move_contents`].
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.refused.large_move_long")]
unsafe fn move_long(from: *mut u8, new: *mut u8, bytes: usize, is_given_back: bool) {
    /// A power of two.
    const STEP: usize = 32 << 20;
    let mut at = 0;
    while at < bytes {
        // SAFETY: The block consists of whole slices; the rest is the caller's condition.
        unsafe {
            if usage::is_written(from.add(at)) {
                ptr::copy_nonoverlapping(from.add(at), new.add(at), OS_PAGE);
            }
        }
        at += OS_PAGE;
        if at % STEP == 0 && is_given_back {
            // SAFETY: A block is at no null address.
            let done = unsafe { NonNull::new_unchecked(from.add(at - STEP)) };
            // SAFETY: The contents are in the new block. If refused, they stay resident until the block is unmapped.
            let _ = unsafe { kernel::advise(done, STEP, Advice::DontNeed) };
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_thread_that_asks_for_large_blocks_only_parks_them() {
        const SLICES: usize = 16;
        let asking = std::thread::spawn(|| {
            for _ in 0..3 {
                let block = NonNull::new(allocate(SLICES * SLICE_BYTES, 1, false)).expect("memory");
                // SAFETY: The block was handed out just now, as a large one.
                unsafe { free(Slice::at(block.addr().get())) };
            }
            let parked = slot::parked().expect("the thread has begun");
            let run = parked.take(SLICES).expect("the last block is parked");
            parked.park(run, SLICES);
        });
        asking.join().expect("nothing panicked there");
    }
}
