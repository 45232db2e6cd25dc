//! How much of its free memory a program is expected to want back soon.
//!
//! Relies on nothing. The hard idea is what it starts from: nothing is known of a program that begins, so the
//! first memory that it frees is expected back, lest it teach the opposite by faults; what it frees
//! for good uses that up.

/// What is expected of a program that begins.
const FIRST_BYTES: usize = 32 << 20;
/// The most that is expected until memory was purged too early.
const FIRST_BYTES_MAX: usize = 2 * FIRST_BYTES;

/// Both numbers are kept less what they are at first, so that they are zeros in the program's file.
pub(super) struct Demand {
    bytes_beyond_first: usize,
    bytes_max_beyond_first: usize,
}

impl Demand {
    pub(super) const FIRST: Demand = Demand { bytes_beyond_first: 0, bytes_max_beyond_first: 0 };
    pub(super) const NONE: Demand = Demand::of(0, 0);

    const fn of(bytes: usize, bytes_max: usize) -> Demand {
        Demand {
            bytes_beyond_first: bytes.wrapping_sub(FIRST_BYTES),
            bytes_max_beyond_first: bytes_max.wrapping_sub(FIRST_BYTES_MAX),
        }
    }

    /// Grows when free memory is used again, shrinks when memory is freed: what a program in full
    /// swing will soon want back, and one that is clearing up will not.
    pub(super) fn bytes(&self) -> usize {
        self.bytes_beyond_first.wrapping_add(FIRST_BYTES)
    }

    /// The most that it may be. Grows only when memory had been purged too early, and fades.
    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max_beyond_first.wrapping_add(FIRST_BYTES_MAX)
    }

    /// `bytes` of free memory are used again, `too_early` of which had just been purged; no more than
    /// `most` is ever wanted.
    pub(super) fn note_reuse(&mut self, bytes: usize, too_early: usize, most: usize) {
        let bytes_max = (self.bytes_max() + 2 * too_early).min(most);
        *self = Demand::of((self.bytes() + too_early + bytes).min(bytes_max), bytes_max);
    }

    pub(super) fn note_free(&mut self, bytes: usize) {
        *self = Demand::of(self.bytes().saturating_sub(bytes), self.bytes_max());
    }

    /// Lowers the most that it may be.
    pub(super) fn fade_to(&mut self, bytes_max: usize) {
        *self = Demand::of(self.bytes(), bytes_max);
    }
}
