//! Checks a page's counts and marks against its bitmap, for tests.
//!
//! Relies on the lock of the page, which the caller holds.

#[cfg(feature = "secure")]
use super::hardened::Record;
use super::{Page, index_in};
use crate::memory::class::Class;
use crate::memory::slice::{PIECE_BYTES, SLICE_BYTES};
use crate::platform::kernel;

impl Page {
    /// Checks what is recorded of this page; returns the number of its free blocks.
    pub(crate) fn audit(self, class: Class) -> usize {
        let (blocks, words) = (class.page_blocks(), self.words(class));
        let free = words.iter().map(|word| word.get().count_ones() as usize).sum();
        assert_eq!(self.0.free_blocks.get() as usize, free, "free blocks, by count and by bit");
        let lowest = words.iter().position(|word| word.get() != 0).unwrap_or(words.len());
        assert!(self.0.first_free.get() as usize <= lowest, "a free block before the first");
        if !blocks.is_multiple_of(64) {
            assert!(words[blocks / 64].get() >> (blocks % 64) == 0, "a block behind the last");
        }
        assert!(self.0.dirty.get() as usize <= free, "purged blocks are free");
        for distance in 0..class.page_slices() {
            // SAFETY: The slice lies in this page.
            let slice = unsafe { self.0.ahead(distance) };
            assert_eq!(slice.back.get() as usize, distance);
            assert_eq!(slice.kind.get(), self.0.kind.get());
        }
        let os_page = kernel::page_size();
        for index in (0..blocks).filter(|index| !self.is_free(class, *index)) {
            let (start, end) = (index * class.size(), (index + 1) * class.size());
            let pieces = start / os_page * os_page..end.next_multiple_of(os_page);
            for piece in pieces.step_by(PIECE_BYTES) {
                // SAFETY: As above.
                let slice = unsafe { self.0.ahead(piece / SLICE_BYTES) };
                let bit = slice.purged.get() >> (piece % SLICE_BYTES / PIECE_BYTES) & 1;
                assert!(bit == 0, "block {index} of {} bytes counts as purged", class.size());
            }
        }
        free
    }

    /// Blocks that were handed out, where so many are free. In the hardened build others are in quarantine.
    #[cfg(not(feature = "secure"))]
    pub(crate) fn audit_handed_out(self, class: Class, free: usize) -> usize {
        class.page_blocks() - free
    }

    /// The same, by the records.
    #[cfg(feature = "secure")]
    pub(crate) fn audit_handed_out(self, class: Class, _free: usize) -> usize {
        let is_live = |index: &usize| {
            let record = self.record(*index);
            let is_free = matches!(record, Record::Zeroed | Record::Unknown);
            assert_eq!(self.is_free(class, *index), is_free, "a block whose record is {record:?}");
            matches!(record, Record::Live(_))
        };
        (0..class.page_blocks()).filter(is_live).count()
    }

    fn is_free(self, class: Class, index: usize) -> bool {
        self.words(class)[index / 64].get() >> (index % 64) & 1 != 0
    }

    /// Checks that a block was taken from this page.
    pub(crate) fn audit_taken(self, class: Class, block: usize) {
        let index = index_in(class, block - self.0.address());
        assert!(!self.is_free(class, index), "a block in a cache is free in its page");
    }
}
