//! Arrays of a thread's stacks, out of memory that the thread took for several of them.
//!
//! Relies on metadata. Threads that start open many stacks and lengthen them soon after; were each array taken by
//! itself, they would all meet at the lock of metadata. So each time a thread takes as much as it has, up to a bound: a
//! thread that does little has no more than it needs. Short arrays that it frees stay its own, so that it takes no
//! more, however often its stacks grow and shrink. The first thread takes its arrays one by one, as it meets nobody.

use core::ptr::{self, NonNull};

use crate::blocks::{ownership, slot};
use crate::memory::metadata::{self, WORDS_MIN};
use crate::platform::bounds::Bounded;
use crate::platform::sync::Cell;

/// The most words taken at a time for several arrays.
const CHUNK_WORDS_MAX: usize = 256;
/// The longest array out of them.
const WORDS_MAX: usize = 64;
/// The lengths of such arrays: powers of two.
const LENGTHS: usize = (WORDS_MAX / WORDS_MIN).ilog2() as usize + 1;
/// The length of the arrays that the rest of the words taken last is cut into; most stacks begin with it.
const REST_WORDS: usize = 16;

/// A thread's memory for arrays.
pub(super) struct Arrays {
    /// The pool of metadata that they come from where many threads run at once.
    pool: u8,
    /// The rest of the words taken last.
    next: Cell<usize>,
    left_words: Cell<usize>,
    /// Words ever taken.
    taken_words: Cell<usize>,
    /// Free arrays of this thread, by length; each holds the address of the next one.
    kept: [Cell<usize>; LENGTHS],
}

impl Arrays {
    pub(super) const fn new(pool: u8) -> Arrays {
        Arrays {
            pool,
            next: Cell::new(0),
            left_words: Cell::new(0),
            taken_words: Cell::new(0),
            kept: [const { Cell::new(0) }; LENGTHS],
        }
    }

    /// An array of `count` words or more; its contents are unspecified. `None` without memory.
    #[inline(always)]
    pub(super) fn take(&self, count: usize) -> Option<&'static mut [usize]> {
        if slot::are_several() { self.take_short(count) } else { metadata::words(count) }
    }

    /// The same where there are several threads.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.several.arrays_take_short")]
    fn take_short(&self, count: usize) -> Option<&'static mut [usize]> {
        let count = count.next_power_of_two().max(WORDS_MIN);
        if count > WORDS_MAX {
            return metadata::words_of(self.pool(), count);
        }
        let kept = self.kept(count);
        let start = if kept.get() != 0 { take_kept(kept) } else { self.cut(count)? };
        // SAFETY: The array is `count` words long, aligned to its line, and nothing else uses it.
        Some(unsafe { core::slice::from_raw_parts_mut(start, count) })
    }

    /// Few threads share one pool, which takes less memory.
    fn pool(&self) -> u8 {
        if ownership::are_many() { self.pool } else { 0 }
    }

    /// The free arrays of `count` words, a power of two up to [`WORDS_MAX`].
    fn kept(&self, count: usize) -> &Cell<usize> {
        self.kept.at((count / WORDS_MIN).trailing_zeros() as usize)
    }

    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.several.arrays_keep")]
    fn keep(&self, array: *mut usize, count: usize) {
        let kept = self.kept(count);
        // SAFETY: The array is at least a line long, and nothing uses it.
        unsafe { array.write(kept.get()) };
        kept.set(array.expose_provenance());
    }

    /// The next words of those taken last.
    fn cut(&self, count: usize) -> Option<*mut usize> {
        if self.left_words.get() < count {
            while self.left_words.get() > 0 {
                let count = self.left_words.get().min(REST_WORDS);
                self.keep(self.advance(count), count);
            }
            let taken = self.taken_words.get();
            let chunk = metadata::words_of(self.pool(), taken.clamp(count, CHUNK_WORDS_MAX))?;
            self.next.set(chunk.as_mut_ptr().expose_provenance());
            self.left_words.set(chunk.len());
            self.taken_words.set(taken + chunk.len());
        }
        Some(self.advance(count))
    }

    fn advance(&self, count: usize) -> *mut usize {
        let start = self.next.get();
        self.next.set(start + count * size_of::<usize>());
        self.left_words.set(self.left_words.get() - count);
        ptr::with_exposed_provenance_mut(start)
    }

    /// Frees an array.
    ///
    /// # Safety
    ///
    /// - `array` came from [`Arrays::take`] with this length, and nothing refers to it any more.
    pub(super) unsafe fn give_back(&self, array: NonNull<usize>, count: usize) {
        if count <= WORDS_MAX && slot::are_several() {
            self.keep(array.as_ptr(), count);
        } else {
            // SAFETY: The array is metadata of this length, or a part of such that is free by itself; the caller's
            // condition.
            unsafe { metadata::give_back_to(self.pool(), array, count) };
        }
    }
}

/// Takes the first of some free arrays.
fn take_kept(kept: &Cell<usize>) -> *mut usize {
    let array = ptr::with_exposed_provenance_mut::<usize>(kept.get());
    // SAFETY: `keep` wrote the next one's address there.
    kept.set(unsafe { array.read() });
    array
}

#[cfg(test)]
#[path = "arrays/tests.rs"]
mod tests;
