//! The used part of memory that is purged, and so whether huge pages are worth it.
//!
//! Relies on slices. A program may allocate blocks for the worst case and write to little of each. With huge pages, the
//! first touch of such a block zeroes 2 MiB, each time that it was purged and handed out again. The hard idea: memory
//! that is about to be purged belongs to nobody and can be read. A sample of OS pages suffices. An OS page of zeros
//! counts as unused: a program that fills pages with zeros loses huge pages, and nothing else.

use core::{ptr, slice};

use crate::memory::arena::Arena;
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::settings;

/// Shorter runs are not sampled: a run that shares a huge page with others says little.
const SLICES_MIN: usize = (512 << 10) / SLICE_BYTES;
/// OS pages sampled in one run, each in another slice.
const SAMPLES: usize = 16;
/// No decision is made on fewer OS pages.
const SAMPLES_MIN: u32 = 2048;
/// After so many OS pages, older ones count half.
const SAMPLES_MAX: u32 = 4 * SAMPLES_MIN;
/// Huge pages are not worth it where less than one part in this many is used.
const USED_SHARE: u32 = 8;

/// The result of all samples.
pub(super) struct Usage {
    looked_at: u32,
    used: u32,
    is_sparse: bool,
    /// The arena for which huge pages were cancelled last; it may no longer exist.
    plain: *const Arena,
}

impl Usage {
    pub(super) const fn new() -> Usage {
        Usage { looked_at: 0, used: 0, is_sparse: false, plain: ptr::null() }
    }

    /// Whether so little of the memory is used that huge pages only cost.
    pub(super) fn is_sparse(&self) -> bool {
        self.is_sparse
    }

    /// Whether to sample a run that is about to be purged and may be resident as a whole.
    pub(super) fn wants_look(&self, slices: usize) -> bool {
        // Where `mprotect` was refused, the hardened build has runs that cannot be read.
        !cfg!(feature = "secure")
            && !self.is_sparse
            && slices >= SLICES_MIN
            && settings::huge_pages()
            && settings::huge_pages_from().is_none()
    }

    /// Adds a sample.
    pub(super) fn note(&mut self, look: Look) {
        self.looked_at += look.looked_at;
        self.used += look.used;
        // Permanent, even if another thread's sample ends after the decision.
        self.is_sparse |= self.looked_at >= SAMPLES_MIN && self.used < self.looked_at / USED_SHARE;
        if self.looked_at >= SAMPLES_MAX {
            self.looked_at /= 2;
            self.used /= 2;
        }
    }

    /// Whether to cancel huge pages for an arena whose memory is purged.
    pub(super) fn makes_plain(&mut self, arena: &'static Arena) -> bool {
        let makes = self.is_sparse && !ptr::eq(self.plain, arena);
        if makes {
            self.plain = arena;
        }
        makes
    }
}

/// OS pages that were sampled, and those among them that were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    looked_at: u32,
    used: u32,
}

/// Whether most of the end of a run was used, the last MiB or all of a shorter one: a block that only grows may be
/// mostly untouched, and a huge page would make all of it resident. The caller owns the run.
pub(super) fn is_end_used(first: &'static Slice, slices: usize) -> bool {
    let looked_at = slices.min(SAMPLES);
    // SAFETY: The end lies in the run.
    let look = look(unsafe { first.ahead(slices - looked_at) }, looked_at);
    look.used * 2 > look.looked_at
}

/// Samples a run that no thread writes to now. Where nothing was written, this costs a few faults, which map the
/// kernel's zero page.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.usage_look")]
pub(super) fn look(first: &'static Slice, slices: usize) -> Look {
    /// The smallest OS page.
    const OS_PAGE: usize = 4 << 10;
    const WORDS: usize = OS_PAGE / size_of::<u64>();
    let step = slices.div_ceil(SAMPLES);
    let mut look = Look { looked_at: 0, used: 0 };
    let mut distance = 0;
    while distance < slices {
        // SAFETY: The slice lies in the run.
        let start = unsafe { first.ahead(distance) }.start();
        // Not always the start: a block of which only the start is used must not count as used.
        let at = (distance * 5 + 3) % (SLICE_BYTES / OS_PAGE) * OS_PAGE;
        // SAFETY: The OS page lies in the slice, which no thread writes to. Any value is a valid number.
        let words = unsafe { slice::from_raw_parts(start.add(at).cast::<u64>().as_ptr(), WORDS) };
        look.looked_at += 1;
        look.used += u32::from(words.iter().any(|word| *word != 0));
        distance += step;
    }
    look
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
        let mut usage = Usage::new();
        for _ in 0..SAMPLES_MIN as usize / SAMPLES - 1 {
            assert!(usage.wants_look(SLICES_MIN));
            usage.note(look_of(1));
            assert!(!usage.is_sparse());
        }
        usage.note(look_of(1));
        assert!(usage.is_sparse() && !usage.wants_look(SLICES_MIN));
    }

    #[test]
    fn a_program_that_uses_its_memory_keeps_huge_pages_and_may_change() {
        let mut usage = Usage::new();
        for _ in 0..SAMPLES_MIN as usize / SAMPLES {
            usage.note(look_of(SAMPLES as u32 / 2));
        }
        assert!(!usage.is_sparse() && usage.wants_look(SLICES_MIN));
        assert!(!usage.wants_look(SLICES_MIN - 1));
        let mut notes = 0;
        while !usage.is_sparse() {
            usage.note(look_of(0));
            notes += 1;
            assert!(notes < 8 * SAMPLES_MAX as usize / SAMPLES);
        }
    }
}
