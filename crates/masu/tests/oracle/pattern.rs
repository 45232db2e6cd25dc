//! The contents of blocks, written and checked.
//!
//! Each block has its own sequence of words, derived from its number, so bytes of another block, of
//! an earlier use of the memory, or zeros of an OS page purged too early differ. Blocks up to
//! [`WHOLE`] bytes are written whole; larger ones at both ends and in one word of every 4 KiB, so that
//! a lost OS page shows and a block of 64 MiB does not cost a second.

use std::iter;
use std::ops::Range;

/// Blocks up to this many bytes are written and checked whole.
const WHOLE: usize = 64 << 10;

/// Bytes written at either end of a larger block; a multiple of 8.
const EDGE: usize = 1 << 10;

/// Distance of the words written between the ends; no OS page is smaller.
const STRIDE: usize = 4 << 10;

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The contents of one block: `length` bytes, distinguished by `id`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    pub(crate) id: u64,
    pub(crate) length: usize,
}

impl Pattern {
    /// Writes the pattern at `start`.
    ///
    /// # Safety
    ///
    /// - `length` bytes at `start` may be written, and nothing else uses them.
    pub(crate) unsafe fn fill(self, start: *mut u8) {
        for range in self.ranges() {
            // SAFETY: The ranges lie inside the block.
            unsafe { self.fill_range(start, range) };
        }
    }

    /// The offset of the first byte under `end` that differs from the pattern.
    ///
    /// # Safety
    ///
    /// - `min(length, end)` bytes at `start` may be read, and nothing writes them.
    pub(crate) unsafe fn first_difference(self, start: *const u8, end: usize) -> Option<usize> {
        self.ranges()
            .map(|range| range.start..range.end.min(end))
            .filter(|range| !range.is_empty())
            // SAFETY: The ranges lie inside the block and under `end`.
            .find_map(|range| unsafe { self.difference_in(start, range) })
    }

    /// The ranges that are written; each starts at a multiple of 8.
    fn ranges(self) -> impl Iterator<Item = Range<usize>> {
        let whole = self.length <= WHOLE;
        let head = 0..if whole { self.length } else { EDGE };
        let tail_start = if whole { self.length } else { (self.length - EDGE) & !7 };
        // The offset varies with the block's number, so that it reaches every word of an OS page.
        let first = EDGE + (self.id as usize % (STRIDE / 8)) * 8;
        let between = (first..tail_start.saturating_sub(8)).step_by(STRIDE).map(|o| o..o + 8);
        iter::once(head).chain(between).chain(iter::once(tail_start..self.length))
    }

    fn word(self, index: usize) -> u64 {
        self.id
            .wrapping_mul(0xd6e8_feb8_6659_fd93)
            .wrapping_add((index as u64 + 1).wrapping_mul(STEP))
    }

    unsafe fn fill_range(self, start: *mut u8, range: Range<usize>) {
        let (words, rest) = split(&range);
        for index in words {
            let word = self.word(index);
            // SAFETY: The word lies inside the range.
            unsafe { start.add(8 * index).cast::<u64>().write_unaligned(word) };
        }
        for offset in rest {
            // SAFETY: The byte lies inside the range.
            unsafe { start.add(offset).write(self.byte(offset)) };
        }
    }

    unsafe fn difference_in(self, start: *const u8, range: Range<usize>) -> Option<usize> {
        let (words, rest) = split(&range);
        let mut difference = 0;
        for index in words {
            // SAFETY: The word lies inside the range.
            let found = unsafe { start.add(8 * index).cast::<u64>().read_unaligned() };
            difference |= found ^ self.word(index);
        }
        for offset in rest {
            // SAFETY: The byte lies inside the range.
            let found = unsafe { start.add(offset).read() };
            difference |= u64::from(found ^ self.byte(offset));
        }
        if difference == 0 {
            return None;
        }
        // SAFETY: The byte lies inside the range.
        range.into_iter().find(|&offset| unsafe { start.add(offset).read() } != self.byte(offset))
    }

    fn byte(self, offset: usize) -> u8 {
        self.word(offset / 8).to_ne_bytes()[offset % 8]
    }
}

/// The indices of the whole words of a range that starts at a multiple of 8, and the bytes left.
fn split(range: &Range<usize>) -> (Range<usize>, Range<usize>) {
    let words_end = range.start / 8 + range.len() / 8;
    (range.start / 8..words_end, 8 * words_end..range.end)
}

/// The offset of the first byte that is not zero.
///
/// # Safety
///
/// - `length` bytes at `start` may be read, and nothing writes them.
pub(crate) unsafe fn first_not_zero(start: *const u8, length: usize) -> Option<usize> {
    // SAFETY: The caller lends the bytes.
    let bytes = unsafe { std::slice::from_raw_parts(start, length) };
    let chunk = 512;
    let any = |bytes: &[u8]| bytes.iter().fold(0, |all, &byte| all | byte) != 0;
    let dirty = bytes.chunks(chunk).position(any)?;
    bytes[dirty * chunk..].iter().position(|&byte| byte != 0).map(|at| dirty * chunk + at)
}

#[test]
fn a_changed_byte_is_found_in_a_small_block_and_a_lost_os_page_in_a_large_one() {
    let pattern = Pattern { id: 7, length: 1021 };
    let mut bytes = vec![0; 1 << 20];
    for changed in [0, 5, 1015, 1020] {
        // SAFETY: The vector is longer than either pattern.
        unsafe { pattern.fill(bytes.as_mut_ptr()) };
        bytes[changed] ^= 1;
        // SAFETY: As above.
        let found = unsafe { pattern.first_difference(bytes.as_ptr(), usize::MAX) };
        assert_eq!(found, Some(changed));
    }
    let pattern = Pattern { id: 8, length: bytes.len() };
    for page in [0, 1, 100, 255] {
        // SAFETY: As above.
        unsafe { pattern.fill(bytes.as_mut_ptr()) };
        bytes[page * 4096..][..4096].fill(0);
        // SAFETY: As above.
        let found = unsafe { pattern.first_difference(bytes.as_ptr(), usize::MAX) };
        assert_eq!(found.map(|offset| offset / 4096), Some(page));
    }
}
