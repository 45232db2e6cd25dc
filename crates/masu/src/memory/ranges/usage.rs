//! How much of the memory that goes back to the kernel was used, and so whether huge pages are worth it.
//!
//! Relies on slices. A program may ask for blocks sized for the worst case and write to little of each. The first
//! touch of such a block then costs the zeroing of 2 MiB, each time that it is purged and handed out again. The hard
//! idea: what is just about to be dropped is nobody's, and can be looked at. A sample of OS pages is enough. An
//! OS page of zeros counts as unused: a program that keeps whole pages of zeros loses huge pages, and no more.

use core::{ptr, slice};

use crate::memory::arena::Arena;
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::settings;

/// Shorter runs are not looked at: nothing that lies in one huge page with others tells much.
const SLICES_MIN: usize = (512 << 10) / SLICE_BYTES;
/// OS pages that are looked at in one run, each in another slice.
const SAMPLES: usize = 16;
/// Nothing is decided on fewer OS pages.
const SAMPLES_MIN: u32 = 2048;
/// After so many, what was found counts half.
const SAMPLES_MAX: u32 = 4 * SAMPLES_MIN;
/// Huge pages are not worth it where less than this share is used.
const USED_SHARE: u32 = 8;

/// What was found.
pub(super) struct Usage {
    looked_at: u32,
    used: u32,
    is_sparse: bool,
    /// The arena for which huge pages were called off last; it may be no more.
    plain: *const Arena,
}

impl Usage {
    pub(super) const fn new() -> Usage {
        Usage { looked_at: 0, used: 0, is_sparse: false, plain: ptr::null() }
    }

    /// Whether so little of what was handed out is used that huge pages only cost.
    pub(super) fn is_sparse(&self) -> bool {
        self.is_sparse
    }

    /// Whether a run that is about to go back, and may be resident as a whole, is to be looked at.
    pub(super) fn wants_look(&self, slices: usize) -> bool {
        // Where a mapping was refused, the hardened build has runs that cannot be read.
        !cfg!(feature = "secure")
            && !self.is_sparse
            && slices >= SLICES_MIN
            && settings::huge_pages()
            && settings::huge_pages_from().is_none()
    }

    /// Takes in what a look found.
    pub(super) fn note(&mut self, look: Look) {
        self.looked_at += look.looked_at;
        self.used += look.used;
        // For good, also where another thread's look ends after the decision.
        self.is_sparse |= self.looked_at >= SAMPLES_MIN && self.used < self.looked_at / USED_SHARE;
        if self.looked_at >= SAMPLES_MAX {
            self.looked_at /= 2;
            self.used /= 2;
        }
    }

    /// Whether huge pages are to be called off for an arena, of which memory goes back.
    pub(super) fn makes_plain(&mut self, arena: &'static Arena) -> bool {
        let makes = self.is_sparse && !ptr::eq(self.plain, arena);
        if makes {
            self.plain = arena;
        }
        makes
    }
}

/// OS pages that were looked at, and those among them that were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    looked_at: u32,
    used: u32,
}

/// Whether most of a run's end was used, the last MiB or all of a shorter one: a block that only ever grows may stay
/// untouched for the most part, and a huge page would make all of it resident. The caller has the run to itself.
pub(super) fn is_end_used(first: &'static Slice, slices: usize) -> bool {
    let looked_at = slices.min(SAMPLES);
    // SAFETY: The end lies in the run.
    let look = look(unsafe { first.ahead(slices - looked_at) }, looked_at);
    look.used * 2 > look.looked_at
}

/// Looks at a run that nobody writes to now. Where nothing was written this costs a few faults, which map the kernel's page of
/// zeros.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.usage_look")]
pub(super) fn look(first: &'static Slice, slices: usize) -> Look {
    /// The shortest OS page.
    const OS_PAGE: usize = 4 << 10;
    const WORDS: usize = OS_PAGE / size_of::<u64>();
    let step = slices.div_ceil(SAMPLES);
    let mut look = Look { looked_at: 0, used: 0 };
    let mut distance = 0;
    while distance < slices {
        // SAFETY: The slice lies in the run.
        let start = unsafe { first.ahead(distance) }.start();
        // Not always the start: a block of which only that is used must not look used.
        let at = (distance * 5 + 3) % (SLICE_BYTES / OS_PAGE) * OS_PAGE;
        // SAFETY: The OS page lies in the slice, which nobody writes to. Any value is a valid number.
        let words = unsafe { slice::from_raw_parts(start.add(at).cast::<u64>().as_ptr(), WORDS) };
        look.looked_at += 1;
        look.used += u32::from(words.iter().any(|word| *word != 0));
        distance += step;
    }
    look
}

// The hardened build never looks.
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
