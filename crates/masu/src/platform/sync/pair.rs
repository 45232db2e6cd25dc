//! A pointer and a number that are published once, together, and read without a lock.
//!
//! Relies on its parent module for the atomics; `tests/loom.rs` supplies modelled ones. The hard idea is the order: the
//! number is written last and read first, so a reader that sees the new number sees the new pointer. It may see the old
//! number with the new pointer, which must do no harm.

use super::{AtomicPtr, AtomicUsize, Ordering};

/// The pair; aligned so that both lie in one cache line.
#[repr(C, align(16))]
pub(crate) struct Pair<T> {
    /// Written once, by the publisher; any thread reads. The same holds for `pointer`.
    number: AtomicUsize,
    pointer: AtomicPtr<T>,
}

impl<T> Pair<T> {
    /// A pair of these. The caller makes the atomics, because a model checker's are not `const`.
    pub(crate) const fn of(number: AtomicUsize, pointer: AtomicPtr<T>) -> Pair<T> {
        Pair { number, pointer }
    }

    /// The number and a pointer at least as new.
    #[inline(always)]
    pub(crate) fn read(&self) -> (usize, *mut T) {
        // ORDERING: Acquire pairs with the Release in `publish`.
        let number = self.number.load(Ordering::Acquire);
        // ORDERING: Relaxed, ordered by the number.
        (number, self.pointer.load(Ordering::Relaxed))
    }

    /// Replaces both. Called once.
    pub(crate) fn publish(&self, number: usize, pointer: *mut T) {
        // ORDERING: Relaxed, published by the number.
        self.pointer.store(pointer, Ordering::Relaxed);
        // ORDERING: Release publishes the pointer, and the data behind it.
        self.number.store(number, Ordering::Release);
    }
}
