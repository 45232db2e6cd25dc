//! The runs of large blocks: their length, and resizing in place.
//!
//! Relies on its parent for the runs. Large blocks of first-class heaps have the same runs; only their counts differ.

use super::{Parked, Run, stripes, usage};
use crate::memory::slice::{ARENA_BYTES, SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Advice};

/// No block is longer than the address space.
const BYTES_MAX: usize = 1 << 47;

fn slices_for(size: usize) -> usize {
    size.max(1).div_ceil(SLICE_BYTES)
}

/// The slices of a block of `size` bytes aligned to `align`; `None` where `size` is over 128 TiB or `align` over 512 MiB.
pub(crate) fn slices_if_possible(size: usize, align: usize) -> Option<usize> {
    (size <= BYTES_MAX && align <= ARENA_BYTES / 2).then(|| slices_for(size))
}

/// Zeroed blocks of so many bytes and more, for which glibc always maps new memory, get their zeros from the kernel where
/// their run seems unused: to write zeros is a fault for each OS page that is not resident, and makes all of a table
/// resident. Zeros may be resident too, and then faults replace them at a higher price, which in a shorter block a program
/// may not expect.
const UNUSED_BYTES_MIN: usize = 32 << 20;

/// The block of `size` bytes in this run, zeroed if `zeroed`.
pub(crate) fn zeroed_if(zeroed: bool, run: Run, size: usize) -> *mut u8 {
    let block = run.first.start();
    let by_kernel =
        zeroed && (run.zero || (size >= UNUSED_BYTES_MIN && discard_unused(run.first, size)));
    if zeroed && !by_kernel {
        // SAFETY: The block is that long, and nothing else uses it.
        unsafe { block.write_bytes(0, size) };
    }
    // The hardened build keeps something else there, and samples nothing.
    if !cfg!(feature = "secure") {
        run.first.zero.set(by_kernel);
    }
    block.as_ptr()
}

/// Returns the memory of a new block to the kernel, if it seems unused; returns whether it reads as zero now.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.large_discard")]
fn discard_unused(first: &'static Slice, size: usize) -> bool {
    let slices = slices_for(size);
    // SAFETY: The block is that long and nothing else uses it; its last slice is its own as a whole.
    usage::seems_unused(first, slices)
        && unsafe { kernel::discard(first.start(), slices * SLICE_BYTES) }
}

/// The usable size of the large block that starts with this slice.
pub(crate) fn usable_size(first: &'static Slice) -> usize {
    first.count.get() as usize * SLICE_BYTES
}

/// Resizes the large block that starts with this slice in place; whether that was possible. Frees the unused slices, if they
/// are more than half. `parked` is the calling thread's.
///
/// # Safety
///
/// - It was handed out and not freed, and nothing uses what lies behind its first `size` bytes.
pub(crate) unsafe fn resize(
    first: &'static Slice,
    size: usize,
    parked: Option<&'static Parked>,
) -> bool {
    if size > BYTES_MAX {
        return false;
    }
    let (slices, wanted) = (first.count.get() as usize, slices_for(size));
    if wanted <= slices {
        // Shrinking frees the tail only if it is long, because the block may grow again.
        if wanted * 2 < slices {
            // SAFETY: The tail belongs to this block.
            unsafe { shrink(first, slices, wanted) };
        }
        return true;
    }
    let mut ranges = stripes::of(first).lock();
    ranges.bring_home(parked);
    let grown = ranges.grow(first, slices, wanted);
    if grown {
        ranges.count_large(0, wanted.cast_signed() - slices.cast_signed());
    }
    grown
}

/// Frees the slices of a run from the `wanted`th on.
///
/// # Safety
///
/// - The run is a large block of `slices` slices, whose tail nothing uses.
unsafe fn shrink(first: &'static Slice, slices: usize, wanted: usize) {
    let is_dedicated = first.arena().is_dedicated();
    let less = slices - wanted;
    if is_dedicated {
        // SAFETY: The tail lies in the block, whose slices may reach beyond the first GiB.
        let tail = unsafe { first.start().add(wanted * SLICE_BYTES) };
        // Before it is unmapped, which is fast then: other threads may wait for a lock that is held there.
        // SAFETY: Nothing uses the tail. If refused, it stays resident until it is unmapped.
        let _ = unsafe { kernel::advise(tail, less * SLICE_BYTES, Advice::DontNeed) };
    }
    let mut ranges = stripes::of(first).lock();
    if is_dedicated {
        return ranges.cut_dedicated(first, less);
    }
    first.count.set(wanted as u32);
    // SAFETY: The tail lies in this run.
    let tail = unsafe { first.ahead(wanted) };
    ranges.count_large(0, -less.cast_signed());
    // SAFETY: The caller's condition.
    unsafe { ranges.free(tail, less, less * SLICE_BYTES) };
}
