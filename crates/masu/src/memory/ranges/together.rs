//! Runs that are freed together, as a heap's are when it is destroyed: taken back one by one, and
//! given to the kernel once, when all of them are merged. One by one, a heap of 1 GiB would make
//! thousands of system calls for pieces that lie side by side.

use super::Ranges;
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::settings;

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
            // It holds one run only.
            return self.release(arena);
        }
        let run = self.insert(first, slices, dirty, false);
        self.note_free(slices * SLICE_BYTES);
        if settings::retain().is_none() {
            self.release_whole(run);
        }
    }

    /// Has given back what is more than may stay, at once: `slices` were taken back together.
    pub(crate) fn end_together(&mut self, slices: usize) {
        self.moved_bytes = slices * SLICE_BYTES;
        self.owe_below(self.budget_bytes());
    }
}
