//! Indexing that ends the program by [`fault`] where an index is out of bounds.
//!
//! Relies on `fault` alone. An index of the allocator's that is out of bounds means that its own data was overwritten. A
//! panic would format a message, which allocates. And each place that may panic costs every program its file's name, and
//! the code that releases locks while a panic unwinds.

use core::ptr;
use core::slice::SliceIndex;

use super::fault::{self, Fault};

/// Slices, indexed without a panic.
pub(crate) trait Bounded<T> {
    /// The entry at an index, or the entries of a range.
    fn at<I: SliceIndex<[T]>>(&self, index: I) -> &I::Output;

    /// [`Bounded::at`], to be changed.
    fn at_mut<I: SliceIndex<[T]>>(&mut self, index: I) -> &mut I::Output;

    /// Copies the entries from `from` on to the start.
    fn move_to_start(&mut self, from: usize)
    where
        T: Copy;

    /// Copies entries of another slice, at most as long, to the start.
    fn copy_from(&mut self, entries: &[T])
    where
        T: Copy;
}

impl<T> Bounded<T> for [T] {
    #[inline(always)]
    fn at<I: SliceIndex<[T]>>(&self, index: I) -> &I::Output {
        self.get(index).unwrap_or_else(|| is_out_of_bounds())
    }

    #[inline(always)]
    fn at_mut<I: SliceIndex<[T]>>(&mut self, index: I) -> &mut I::Output {
        self.get_mut(index).unwrap_or_else(|| is_out_of_bounds())
    }

    #[inline(always)]
    fn move_to_start(&mut self, from: usize)
    where
        T: Copy,
    {
        let moved = self.at(from..);
        let (first, count) = (moved.as_ptr(), moved.len());
        // SAFETY: Both places lie in this slice, and `ptr::copy` allows that they overlap.
        unsafe { ptr::copy(first, self.as_mut_ptr(), count) };
    }

    #[inline(always)]
    fn copy_from(&mut self, entries: &[T])
    where
        T: Copy,
    {
        self.at_mut(..entries.len()).copy_from_slice(entries);
    }
}

#[cold]
#[inline(never)]
extern "C" fn is_out_of_bounds() -> ! {
    fault::stop(Fault::OutOfBounds)
}

#[cfg(test)]
mod tests;
