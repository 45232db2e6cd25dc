//! Free memory that goes back after a time, where an option says so (`purge_delay_ms`).
//!
//! Relies on the books that the ranges keep, and on the kernel door for the time. The hard idea is to
//! need neither a thread that waits nor a time for each run: the fewest dirty bytes there were in a
//! period are bytes that nobody wanted in all of it, so that many go back at its end, whichever runs
//! they are. What was freed during a period may be wanted yet and waits for the end of the next one.
//! A program that neither frees nor allocates runs keeps what it has.

use super::{Ranges, kept};
use crate::platform::kernel::{self, Clock};

/// The clock is asked at every so many runs taken or freed: it costs more than those do.
const LOOKS_EVERY: u32 = 16;

/// A period of the delay's length.
pub(super) struct Period {
    /// When it began, in milliseconds.
    began: usize,
    /// The fewest dirty bytes since.
    fewest: usize,
}

impl Period {
    pub(super) const fn new() -> Period {
        Period { began: 0, fewest: 0 }
    }
}

impl Ranges {
    /// A run was taken or freed.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.options.delay_note_time")]
    pub(super) fn note_time(&mut self, delay: usize) {
        self.period.fewest = self.period.fewest.min(self.dirty_bytes);
        if self.ticks.is_multiple_of(LOOKS_EVERY) {
            self.pass_time(kernel::nanoseconds(Clock::Coarse) / 1_000_000, delay);
        }
    }

    /// It is `now`: ends the period if its time is over, and gives back what nobody wanted in it.
    pub(super) fn pass_time(&mut self, now: usize, delay: usize) {
        if now.wrapping_sub(self.period.began) < delay {
            return;
        }
        let unused = self.period.fewest.min(self.dirty_bytes);
        let kept = (self.dirty_bytes - unused).max(kept::retain_min().unwrap_or(0));
        self.owe_down_to(kept);
        self.period = Period { began: now, fewest: self.dirty_bytes.min(kept) };
    }
}
