//! The purged part of a page: whole OS pages of free blocks, several at once, and the record of them.
//!
//! Relies on its parent for the bitmap of free blocks. A page has a bit for each piece that was purged and not handed
//! out since, so that nothing is purged twice.

use super::Page;
use crate::memory::class::{Class, PAGE_SLICES_MAX};
use crate::memory::slice::{PIECE_BYTES, SLICE_BYTES, Slice};
use crate::platform::bounds::Bounded;
use crate::platform::kernel::{self, Span};
use crate::platform::sync::Cell;

/// Fewer free OS pages in a row are not purged.
const PURGE_OS_PAGES_MIN: usize = 2;

/// The most ranges of OS pages in one purge: at least as many as one page may have, with an OS page between any two of
/// them.
const SPANS_MAX: usize = 64;

const _: () = {
    let pieces = PAGE_SLICES_MAX * SLICE_BYTES / PIECE_BYTES;
    assert!(pieces.div_ceil(PURGE_OS_PAGES_MIN + 1) <= SPANS_MAX);
};

/// Memory of one page or more, to be purged together.
pub(crate) struct Purge {
    /// Ranges of whole OS pages of free blocks.
    spans: [Span; SPANS_MAX],
    count: usize,
    bytes: usize,
}

impl Purge {
    pub(crate) const fn new() -> Purge {
        Purge { spans: [Span::NONE; SPANS_MAX], count: 0, bytes: 0 }
    }

    /// Whether one more page of `class` fits.
    pub(crate) fn has_room_for(&self, class: Class) -> bool {
        let pieces = class.page_slices() * (SLICE_BYTES / PIECE_BYTES);
        self.count + pieces.div_ceil(PURGE_OS_PAGES_MIN + 1) <= SPANS_MAX
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.bytes = 0;
    }

    /// The number of ranges.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Their bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Purges them.
    ///
    /// # Safety
    ///
    /// - No block of the pages was handed out since it was planned, and none is in between.
    pub(crate) unsafe fn run(&self) {
        // SAFETY: The blocks there are free (the caller's condition), so their contents are not needed.
        let _ = unsafe { kernel::drop_contents(self.spans.at(..self.count)) };
    }
}

impl Page {
    /// Counts blocks taken; returns how many of them may lie in purged memory.
    pub(crate) fn note_taken(self) -> usize {
        let (purged, free) = (self.0.dirty.get(), self.0.free_blocks.get());
        self.0.dirty.set(purged.min(free));
        purged.saturating_sub(free) as usize
    }

    /// Whether the page is mostly free, and a good part of that was not purged before.
    pub(crate) fn is_worth_purging(self, class: Class) -> bool {
        let (blocks, free) = (class.page_blocks(), self.0.free_blocks.get() as usize);
        let before = self.0.dirty.get() as usize;
        free >= blocks / 4 * 3 && free - before >= (blocks / 8).max(1)
    }

    /// Adds whole OS pages of free blocks to a purge, if they are worth it, and records them as purged.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.page_plan_purge")]
    pub(crate) fn plan_purge(self, class: Class, purge: &mut Purge) {
        let (blocks, size) = (class.page_blocks(), class.size());
        self.0.dirty.set(self.0.free_blocks.get());
        let words = self.words(class);
        let mut start = next_bit(words, 0, 0);
        while start < blocks {
            let end = next_bit(words, start, u64::MAX).min(blocks);
            self.plan_between(purge, start * size, end * size);
            start = next_bit(words, end, 0);
        }
    }

    /// Adds whole OS pages between two offsets, if they are worth it.
    fn plan_between(self, purge: &mut Purge, start: usize, end: usize) {
        let os_page = kernel::page_size();
        let (start, end) = ((start + os_page - 1) & !(os_page - 1), end & !(os_page - 1));
        if end < start + PURGE_OS_PAGES_MIN * os_page {
            return;
        }
        // If the kernel refuses, they only stay resident, and are not tried again until they were reused.
        let mut is_new = false;
        for (slice, bits) in self.pieces(start, end) {
            is_new |= slice.purged.get() & bits != bits;
            slice.purged.set(slice.purged.get() | bits);
        }
        if !is_new {
            return;
        }
        // SAFETY: The offsets lie inside the page.
        let first = unsafe { self.0.start().add(start) };
        *purge.spans.at_mut(purge.count) = Span::new(first, end - start);
        purge.count += 1;
        purge.bytes += end - start;
    }

    /// Whether the page is in no list because its free memory is being purged. No block of it is handed out then;
    /// blocks are returned to it as always.
    pub(crate) fn is_away(self) -> bool {
        self.0.zero.get()
    }

    /// Changes that.
    pub(crate) fn set_away(self, away: bool) {
        self.0.zero.set(away);
    }

    /// Records that blocks between two offsets were handed out: OS pages that they touch are resident as a whole.
    #[cold]
    #[inline(never)]
    pub(super) fn mark_used(self, start: usize, end: usize) {
        let os_page = kernel::page_size();
        let (start, end) = (start & !(os_page - 1), end.next_multiple_of(os_page));
        self.pieces(start, end)
            .for_each(|(slice, bits)| slice.purged.set(slice.purged.get() & !bits));
    }

    /// The slices between two offsets, which are multiples of a piece, with the bits of the pieces in between.
    fn pieces(self, start: usize, end: usize) -> impl Iterator<Item = (&'static Slice, u16)> {
        (start / SLICE_BYTES..end.div_ceil(SLICE_BYTES)).map(move |distance| {
            let first = start.saturating_sub(distance * SLICE_BYTES) / PIECE_BYTES;
            let last = (end - distance * SLICE_BYTES).min(SLICE_BYTES) / PIECE_BYTES;
            let bits = (((1_u32 << last) - 1) >> first << first) as u16;
            // SAFETY: The slice lies in this page.
            (unsafe { self.0.ahead(distance) }, bits)
        })
    }
}

/// The index of the first set bit from `index` on, with `flipped` applied to its word; behind the last word if there is
/// none.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.page_next_bit")]
fn next_bit(words: &[Cell<u64>], index: usize, flipped: u64) -> usize {
    let mut word = index / 64;
    let Some(first) = words.get(word) else { return index };
    let mut left = (first.get() ^ flipped) >> (index % 64) << (index % 64);
    while left == 0 {
        word += 1;
        let Some(next) = words.get(word) else { return word * 64 };
        left = next.get() ^ flipped;
    }
    word * 64 + left.trailing_zeros() as usize
}
