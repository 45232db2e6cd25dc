//! The used part of freed memory, and so whether huge pages are worth it.
//!
//! Relies on slices. A program may allocate blocks for the worst case and write to little of each. With huge pages, the
//! first touch of such a block makes 2 MiB resident, and zeroes them again after each purge. The hard idea: memory that
//! was freed, or is about to be purged, belongs to nobody and can be read. A sample of OS pages suffices. An OS page of
//! zeros counts as unused: a program that fills pages with zeros loses huge pages, and nothing else.
//!
//! The first large blocks are sampled when they are freed, because a program that purges nothing yet may already hold
//! several times what it uses. Later ones are sampled when they are purged. A program may have protected its memory or
//! kept it from a forked child, so that each OS page is read only if it is readable.

use core::ptr::NonNull;
use core::slice;

use super::probes::{self, Use};
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::platform::kernel;
use crate::platform::sync::{AtomicBool, AtomicU32, Ordering};
use crate::settings;

/// Shorter runs are not sampled: a run that shares a huge page with others says little.
const SLICES_MIN: usize = (512 << 10) / SLICE_BYTES;
/// OS pages sampled in one run, each in another slice.
const SAMPLES: usize = 16;
/// No decision is made on fewer OS pages.
const SAMPLES_MIN: u32 = 512;
/// After so many OS pages, older ones count half.
const SAMPLES_MAX: u32 = 16 * SAMPLES_MIN;
/// Huge pages are not worth it where less than one part in this many is used.
const USED_SHARE: u32 = 8;
/// OS pages sampled in the run of a zeroed block: all must be unused.
const SAMPLES_UNUSED: usize = 64;
/// A block is filled if at most one part in this many is unused.
const FILLED_SHARE: u32 = 8;
/// A zeroed block is expected to be filled, too, if it is at most so many times as long as one that was.
const FILLED_AGAIN: usize = 4;

/// The smallest OS page.
pub(crate) const OS_PAGE: usize = 4 << 10;

/// The samples of this process.
pub(super) static USAGE: Usage = Usage::new();

/// The result of all samples. Threads that add samples at once may lose some. Every free of a large block reads it: on its
/// own cache line.
#[repr(align(64))]
pub(super) struct Usage {
    looked_at: AtomicU32,
    used: AtomicU32,
    is_sparse: AtomicBool,
    /// Whether large blocks have huge pages.
    has_begun: AtomicBool,
    /// Slices of the longest zeroed block that was filled.
    filled_slices: AtomicU32,
    /// Whether live memory has probes.
    has_probes: AtomicBool,
}

impl Usage {
    const fn new() -> Usage {
        Usage {
            looked_at: AtomicU32::new(0),
            used: AtomicU32::new(0),
            is_sparse: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
            filled_slices: AtomicU32::new(0),
            has_probes: AtomicBool::new(false),
        }
    }

    /// Whether so little of the memory is used that huge pages only cost, and the program does not say when they begin.
    pub(super) fn is_sparse(&self) -> bool {
        // ORDERING: Relaxed, here and below: all fields are hints, and no memory is read through them.
        self.is_sparse.load(Ordering::Relaxed) && settings::huge_pages_from().is_none()
    }

    /// The use of so many live bytes, as far as probes show it. The caller holds the lock of growth, and no other.
    pub(super) fn live_use(&self, live_bytes: usize) -> Use {
        // A small program touches neither the code of probes nor their addresses.
        // ORDERING: As above.
        if self.has_probes.load(Ordering::Relaxed) && settings::huge_pages_from().is_none() {
            probes::look(live_bytes)
        } else {
            Use::Unknown
        }
    }

    /// Notes that live memory has a probe.
    pub(super) fn begin_probes(&self) {
        // ORDERING: As above.
        self.has_probes.store(true, Ordering::Relaxed);
    }

    /// Notes that large blocks have huge pages from now on.
    pub(super) fn begin(&self) {
        // ORDERING: As above.
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// The bytes that a zeroed block may have and is expected to be filled, because others were.
    pub(super) fn filled_bytes(&self) -> usize {
        // ORDERING: As above.
        self.filled_slices.load(Ordering::Relaxed) as usize * SLICE_BYTES * FILLED_AGAIN
    }

    /// Whether to sample a run that is about to be purged and may be resident as a whole.
    pub(super) fn wants_look(&self, slices: usize) -> bool {
        // Where `mprotect` was refused, the hardened build has runs that cannot be read.
        !cfg!(feature = "secure")
            && slices >= SLICES_MIN
            && !self.is_sparse()
            && settings::huge_pages()
            && settings::huge_pages_from().is_none()
    }

    /// Whether to sample a large block that was freed.
    #[inline]
    fn wants_early_look(&self, slices: usize) -> bool {
        // ORDERING: As above.
        let is_early = || {
            self.has_begun.load(Ordering::Relaxed)
                && self.looked_at.load(Ordering::Relaxed) < SAMPLES_MIN
        };
        slices >= SLICES_MIN && is_early() && self.wants_look(slices)
    }

    /// Notes a zeroed block that was filled.
    fn note_zeroed(&self, first: &'static Slice, slices: usize) {
        // ORDERING: As above, in both.
        let longest = self.filled_slices.load(Ordering::Relaxed);
        if slices as u32 > longest && look(first, slices).is_filled() {
            self.filled_slices.store(slices as u32, Ordering::Relaxed);
        }
    }

    /// Adds a sample.
    pub(super) fn note(&self, look: Look) {
        // ORDERING: As above.
        let looked_at = self.looked_at.load(Ordering::Relaxed) + look.looked_at;
        // ORDERING: As above.
        let used = self.used.load(Ordering::Relaxed) + look.used;
        // Permanent: memory that has small pages is no longer sampled.
        if looked_at >= SAMPLES_MIN && used < looked_at / USED_SHARE {
            // ORDERING: As above.
            self.is_sparse.store(true, Ordering::Relaxed);
        }
        let halvings = u32::from(looked_at >= SAMPLES_MAX);
        // ORDERING: As above.
        self.looked_at.store(looked_at >> halvings, Ordering::Relaxed);
        // ORDERING: As above.
        self.used.store(used >> halvings, Ordering::Relaxed);
    }
}

/// Samples a large block that its program has freed, if it was zeroed by the kernel, or too little is known of the use of
/// huge pages. The caller owns the block, and holds no lock of ranges.
#[inline]
pub(crate) fn note_freed(first: &'static Slice, slices: usize) {
    let is_sampled = slices >= SLICES_MIN
        && (first.zero.get() || USAGE.wants_early_look(slices))
        && !cfg!(feature = "secure")
        // Only the first slice of a dedicated arena has a record.
        && !first.arena().is_dedicated();
    if is_sampled {
        note_sampled(first, slices);
    }
}

/// [`note_freed`] for a block that is sampled.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.usage_note_sampled")]
fn note_sampled(first: &'static Slice, slices: usize) {
    if USAGE.wants_early_look(slices) {
        USAGE.note(look(first, slices));
    }
    if first.zero.get() {
        USAGE.note_zeroed(first, slices);
    }
}

/// OS pages that were sampled, and those among them that were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    looked_at: u32,
    used: u32,
}

impl Look {
    fn is_filled(self) -> bool {
        self.used * FILLED_SHARE >= self.looked_at * (FILLED_SHARE - 1)
    }
}

/// Whether most of the end of a run was used, the last MiB or all of a shorter one: a block that only grows may be
/// mostly untouched, and a huge page would make all of it resident. The caller owns the run.
pub(super) fn is_end_used(first: &'static Slice, slices: usize) -> bool {
    let looked_at = slices.min(SAMPLES);
    // SAFETY: The end lies in the run.
    let look =
        look_from(unsafe { first.start().add((slices - looked_at) * SLICE_BYTES) }, looked_at);
    look.used * 2 > look.looked_at
}

/// Whether a run, without its start, seems unused. The caller owns it.
pub(super) fn seems_unused(first: &'static Slice, slices: usize) -> bool {
    // Where `mprotect` was refused, the hardened build has runs that cannot be read.
    !cfg!(feature = "secure")
        && !first.arena().is_dedicated()
        && (1..=SAMPLES_UNUSED).all(|sample| {
            // A program that uses one OS page in some power of two must not use all of these, or none.
            let os_page = sample.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - 4);
            // SAFETY: The slice lies in the run, to which no thread writes.
            !unsafe {
                is_used(first.ahead(slices * sample / (SAMPLES_UNUSED + 1)).start(), os_page)
            }
        })
}

/// Samples a run that no thread writes to now. Where nothing was written, this costs a few faults, which map the
/// kernel's zero page.
pub(super) fn look(first: &'static Slice, slices: usize) -> Look {
    look_from(first.start(), slices)
}

/// [`look`] at so many slices of a run from `start` on: in an arena of one block they have no records.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.usage_look")]
fn look_from(start: NonNull<u8>, slices: usize) -> Look {
    let step = slices.div_ceil(SAMPLES);
    let mut look = Look { looked_at: 0, used: 0 };
    let mut distance = 0;
    while distance < slices {
        look.looked_at += 1;
        // Not always the start: a block of which only the start is used must not count as used.
        // SAFETY: The slice lies in the run, to which no thread writes.
        let used = unsafe { is_used(start.add(distance * SLICE_BYTES), distance * 5 + 3) };
        look.used += u32::from(used);
        distance += step;
    }
    look
}

/// Whether an OS page of the slice at `slice` holds anything but zeros, or cannot be read; `os_page` is taken modulo those of
/// the slice.
///
/// # Safety
///
/// - No thread writes to the slice, or changes its protection.
unsafe fn is_used(slice: NonNull<u8>, os_page: usize) -> bool {
    let at = os_page % (SLICE_BYTES / OS_PAGE) * OS_PAGE;
    // SAFETY: The OS page lies in the slice.
    let start = unsafe { slice.add(at) };
    if !kernel::is_readable(start.addr().get()) {
        return true;
    }
    // SAFETY: The OS page is readable.
    unsafe { is_written(start.as_ptr()) }
}

/// Whether an OS page holds anything but zeros.
///
/// # Safety
///
/// - It is readable, and no thread writes to it.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.usage_is_written")]
pub(crate) unsafe fn is_written(os_page: *const u8) -> bool {
    // SAFETY: The caller's condition; any value is a valid number.
    let words = unsafe { slice::from_raw_parts(os_page.cast::<u64>(), OS_PAGE / size_of::<u64>()) };
    words.iter().any(|word| *word != 0)
}

// The hardened build never samples.
#[cfg(all(test, not(feature = "secure")))]
mod tests {
    use super::*;

    fn look_of(used: u32) -> Look {
        Look { looked_at: SAMPLES as u32, used }
    }

    #[test]
    fn huge_pages_are_called_off_only_after_enough_was_looked_at() {
        let usage = Usage::new();
        assert!(!usage.wants_early_look(SLICES_MIN), "nothing large has huge pages");
        usage.begin();
        for _ in 0..SAMPLES_MIN as usize / SAMPLES - 1 {
            assert!(usage.wants_look(SLICES_MIN) && usage.wants_early_look(SLICES_MIN));
            usage.note(look_of(1));
            assert!(!usage.is_sparse());
        }
        usage.note(look_of(1));
        assert!(usage.is_sparse() && !usage.wants_look(SLICES_MIN));
    }

    #[test]
    fn a_program_that_uses_its_memory_keeps_huge_pages_and_may_change() {
        let usage = Usage::new();
        for _ in 0..SAMPLES_MIN as usize / SAMPLES {
            usage.note(look_of(SAMPLES as u32 / 2));
        }
        assert!(!usage.is_sparse() && usage.wants_look(SLICES_MIN));
        assert!(!usage.wants_look(SLICES_MIN - 1));
        usage.begin();
        assert!(!usage.wants_early_look(SLICES_MIN), "later, what is purged suffices");
        let mut notes = 0;
        while !usage.is_sparse() {
            usage.note(look_of(0));
            notes += 1;
            assert!(notes < 8 * SAMPLES_MAX as usize / SAMPLES);
        }
    }
}
