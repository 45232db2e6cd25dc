//! Runs that are freed together, as a heap's are when it is destroyed: taken back one by one, and
//! given to the kernel once, when all of them are merged. One by one, a heap of 1 GiB would make
//! thousands of system calls for pieces that lie side by side.

use super::Ranges;
use crate::options;
use crate::slice::{SLICE_BYTES, Slice};

impl Ranges {
    /// Takes a run back as [`Ranges::free`] does, but leaves what is too much of free memory for
    /// [`Ranges::end_together`], which is next.
    ///
    /// # Safety
    ///
    /// - As [`Ranges::free`].
    pub(crate) unsafe fn free_together(
        &mut self,
        first: &'static Slice,
        slices: usize,
        dirty: usize,
    ) {
        self.live_slices -= slices;
        let arena = first.arena();
        if arena.is_dedicated() {
            // SAFETY: A dedicated arena holds one run only.
            unsafe { arena.release() };
            return;
        }
        let run = self.insert(first, slices, dirty, false);
        self.note_free(slices * SLICE_BYTES);
        if options::retain().is_none() {
            self.release_whole(run);
        }
    }

    /// Gives back to the kernel what is more than may stay.
    pub(crate) fn end_together(&mut self) {
        let budget = self.budget_bytes();
        if self.dirty_bytes > budget {
            self.purge_below(budget);
        }
    }
}
