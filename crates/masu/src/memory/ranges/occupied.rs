//! A bit set of the lists of free runs that hold one.
//!
//! Relies on nothing. Two words instead of a `u128`, which takes twice the instructions to shift, in a set that is read
//! whenever a run is taken or freed.

use super::LISTS;

/// The lists that hold a run.
pub(super) struct Occupied([u64; LISTS / 64]);

impl Occupied {
    pub(super) const fn new() -> Occupied {
        Occupied([0; LISTS / 64])
    }

    #[inline]
    pub(super) fn insert(&mut self, list: usize) {
        self.0[list / 64] |= 1 << (list % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, list: usize) {
        self.0[list / 64] &= !(1 << (list % 64));
    }

    /// The first list from `list` on.
    #[inline]
    pub(super) fn first_from(&self, list: usize) -> Option<usize> {
        let mut word = list / 64;
        let mut left = self.0.get(word)? >> (list % 64) << (list % 64);
        while left == 0 {
            word += 1;
            left = *self.0.get(word)?;
        }
        Some(word * 64 + left.trailing_zeros() as usize)
    }

    /// The last list.
    pub(super) fn last(&self) -> Option<usize> {
        let word = self.0.iter().rposition(|word| *word != 0)?;
        Some(word * 64 + self.0[word].ilog2() as usize)
    }
}

const _: () = assert!(LISTS.is_multiple_of(64));
