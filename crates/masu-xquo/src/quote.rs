//! Quoting of bytes, such that bash reads the same bytes back.
//!
//! Relies on [`classify`] for the special bytes among 64. A special byte always costs the same few instructions, and
//! other bytes cost no more than a copy. The bytes before it are copied as one vector, however few; then its
//! replacement is stored as one word that holds its own length, and the next store begins at its end.

mod classify;
#[cfg(test)]
mod tests;

use classify::{Classifier, LANES};

/// Special bytes: delimiter, quote, backspace, line feed, carriage return.
pub(crate) const SPECIALS: usize = 5;

/// The longest replacement of a special byte, in bytes.
const LONGEST: usize = 7;

/// Bytes copied at once, needed or not.
const STRIDE: usize = 32;

/// Space after the output, for stores longer than their contents.
const SLACK: usize = STRIDE + 8;

/// The settings of quoting.
pub(crate) struct Quoter {
    /// The replacement of each byte: up to 7 bytes, and their number in the last byte.
    words: [u64; 256],
    classifier: Classifier,
    delimiter: u8,
    end: [u8; 2],
}

impl Quoter {
    /// A quoter for records that end with `delimiter`, each to end with `line_end`.
    pub(crate) fn new(delimiter: u8, line_end: u8, escape: bool) -> Self {
        let mut words: [u64; 256] = std::array::from_fn(|byte| word(&[byte as u8]));
        let mut specials = vec![delimiter, b'\''];
        words[usize::from(b'\'')] = word(br#"'"'"'"#);
        if escape {
            for (byte, escaped) in [(8, br"'$'\b''"), (b'\n', br"'$'\n''"), (b'\r', br"'$'\r''")] {
                words[usize::from(byte)] = word(escaped);
                specials.push(byte);
            }
        }
        // Last, because a delimiter stays a delimiter even if it is another special byte too.
        words[usize::from(delimiter)] = word(&[b'\'', line_end, b'\'']);
        let padded = std::array::from_fn(|at| *specials.get(at).unwrap_or(&delimiter));
        let classifier = Classifier::new(padded);
        Self { words, classifier, delimiter, end: [b'\'', line_end] }
    }

    /// The end of a record without a delimiter.
    pub(crate) fn end(&self) -> [u8; 2] {
        self.end
    }

    /// Appends `input`, quoted, to `output`. `begins`: a record begins with the first byte. From the last byte the
    /// caller sees whether the next piece begins one: no quote is opened after a delimiter that may be the end.
    pub(crate) fn quote(&self, input: &[u8], begins: bool, output: &mut Vec<u8>) {
        let Some(&last) = input.last() else { return };
        if begins {
            output.push(b'\'');
        }
        output.reserve(input.len() * LONGEST + SLACK);
        self.classifier.quote(&self.words, input, output);
        if last == self.delimiter {
            output.pop();
        }
    }
}

/// Up to 7 bytes and their number.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    word[7] = bytes.len() as u8;
    u64::from_le_bytes(word)
}

/// The loop of every classifier, inlined into each so that it is compiled for its CPU: `mask_of` marks
/// the special ones among [`LANES`] bytes.
///
/// # Safety
///
/// - `output` has room for [`LONGEST`] times the input and [`SLACK`].
/// - `mask_of` may be called: the CPU has what it needs.
#[inline(always)]
unsafe fn quote_with(
    words: &[u64; 256],
    input: &[u8],
    output: &mut Vec<u8>,
    mask_of: impl Fn(&[u8; LANES]) -> u64,
) {
    // SAFETY: The end of the filled part lies in the buffer.
    let mut to = unsafe { output.as_mut_ptr().add(output.len()) };
    let mut copied = 0;
    let mut at = 0;
    // A stride may be read from before every special byte of a block, so the last blocks are left to
    // the loop below, which reads no further than the input.
    while at + LANES + STRIDE <= input.len() {
        let (_, rest) = input.split_at(at);
        let Some((block, _)) = rest.split_first_chunk::<LANES>() else { break };
        let mut mask = mask_of(block);
        while mask != 0 {
            let special = at + mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let plain = special - copied;
            // SAFETY: `copied` is at most `special`, and a stride from there lies in the input.
            let from = unsafe { input.as_ptr().add(copied) };
            if plain <= STRIDE {
                // SAFETY: Both sides have a stride: see above, and the output its slack.
                unsafe { std::ptr::copy_nonoverlapping(from, to, STRIDE) };
            } else {
                // SAFETY: So many bytes are in the input, and each has its room in the output.
                unsafe { std::ptr::copy_nonoverlapping(from, to, plain) };
            }
            // SAFETY: `special` lies inside the input.
            let word = words[usize::from(unsafe { *input.get_unchecked(special) })];
            // SAFETY: Each byte before has its room in the output.
            to = unsafe { to.add(plain) };
            // SAFETY: So has this one, and the slack takes what the word has too many.
            unsafe { to.cast::<u64>().write_unaligned(word.to_le()) };
            // SAFETY: At most `LONGEST` further.
            to = unsafe { to.add((word >> 56) as usize) };
            copied = special + 1;
        }
        at += LANES;
    }
    let plain = at - copied;
    // SAFETY: The blocks lie in the input, and `copied` in the blocks.
    let from = unsafe { input.as_ptr().add(copied) };
    // SAFETY: So many bytes are left of the blocks, and each has its room in the output.
    unsafe { std::ptr::copy_nonoverlapping(from, to, plain) };
    // SAFETY: As above.
    to = unsafe { to.add(plain) };
    for &byte in &input[at..] {
        let word = words[usize::from(byte)];
        // SAFETY: Each byte has room for the longest that it can become, and there is slack.
        unsafe { to.cast::<u64>().write_unaligned(word.to_le()) };
        // SAFETY: As above.
        to = unsafe { to.add((word >> 56) as usize) };
    }
    // SAFETY: Both lie in the same buffer.
    let len = unsafe { to.offset_from(output.as_ptr()) };
    // SAFETY: All bytes up to there were written above.
    unsafe { output.set_len(len as usize) };
}
