//! A number that one thread at a time changes and anyone reads.
//!
//! Relies on its parent module for the atomics. The hard idea is what is left out: no exchange and
//! no order, so that adding costs what it costs in a plain cell. Readers get a number that was true a
//! moment ago.

use super::{AtomicUsize, Ordering};

/// The number.
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) const fn new(value: usize) -> Count {
        Count(AtomicUsize::new(value))
    }

    #[inline]
    pub(crate) fn get(&self) -> usize {
        // ORDERING: Relaxed: its own thread needs no order, and others only count.
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: usize) {
        // ORDERING: Relaxed, as above.
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds to the number, whose only writer the caller is now.
    #[inline]
    pub(crate) fn add(&self, more: usize) {
        self.set(self.get().wrapping_add(more));
    }
}
