//! A number that one thread at a time changes and any thread reads.
//!
//! Relies on its parent module for the atomics. It needs no read-modify-write instruction and no ordering, so adding
//! costs as much as in a plain cell. Readers may get a value that is no longer current.

use super::{AtomicUsize, Ordering};

pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) const fn new(value: usize) -> Count {
        Count(AtomicUsize::new(value))
    }

    #[inline]
    pub(crate) fn get(&self) -> usize {
        // ORDERING: Relaxed: the writer needs no order, and nothing is published with the number.
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: usize) {
        // ORDERING: Relaxed, as above.
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds to the number. The caller is its only writer now.
    #[inline]
    pub(crate) fn add(&self, more: usize) {
        self.set(self.get().wrapping_add(more));
    }
}
