//! A value that shows whether it was dropped.

use std::sync::atomic::{AtomicI64, Ordering};

/// Counts its instances.
pub(crate) struct Counted<'a>(&'a AtomicI64, pub(crate) u64);

impl<'a> Counted<'a> {
    pub(crate) fn new(alive: &'a AtomicI64, number: u64) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Counted(alive, number)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
