//! Classification without vectors: eight bytes at a time in a word.
//!
//! The hard part is a zero-byte test that is exact for every byte: adding 0x7f to the low seven bits carries into the
//! high bit of each byte that is not zero, and never into its neighbor.

use super::{LANES, SPECIALS};
use crate::quote::quote_with;

const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
const ONES: u64 = 0x0101_0101_0101_0101;

/// # Safety
///
/// - `output` has room, as [`quote_with`] wants it.
pub(super) unsafe fn quote(
    specials: &[u8; SPECIALS],
    words: &[u64; 256],
    input: &[u8],
    output: &mut Vec<u8>,
) {
    let repeated = specials.map(|byte| u64::from(byte) * ONES);
    // SAFETY: The caller made room, and masks need nothing of the CPU.
    unsafe { quote_with(words, input, output, |block| mask(&repeated, block)) };
}

#[inline(always)]
fn mask(specials: &[u64; SPECIALS], block: &[u8; LANES]) -> u64 {
    let mut mask = 0;
    for (at, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        let mut found = 0;
        for special in specials {
            let differing = word ^ special;
            found |= !(((differing & LOW) + LOW) | differing | LOW);
        }
        // The high bits of eight bytes, gathered into the top byte by one product.
        let bits = (found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (at * 8);
    }
    mask
}
