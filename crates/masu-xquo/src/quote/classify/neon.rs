//! Classification on aarch64, where every CPU has NEON.
//!
//! NEON has no instruction that gathers a bit of each lane: each lane keeps the bit of its own
//! position, and three rounds of adding neighbors make eight lanes one byte.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8, vpaddq_u8,
    vreinterpretq_u64_u8,
};

use super::{LANES, Quote, SPECIALS};
use crate::quote::quote_with;

/// The bit of each lane in its byte.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

pub(super) fn add(ways: &mut Vec<(&'static str, Quote)>) {
    ways.push(("NEON", quote));
}

/// # Safety
///
/// - The CPU has NEON, as every one of this kind has.
/// - `output` has room, as [`quote_with`] wants it.
#[target_feature(enable = "neon")]
unsafe fn quote(specials: &[u8; SPECIALS], words: &[u64; 256], input: &[u8], output: &mut Vec<u8>) {
    let wanted = specials.map(|byte| vdupq_n_u8(byte));
    // SAFETY: There are 16 bytes, at any alignment.
    let bits = unsafe { vld1q_u8(BITS.as_ptr()) };
    let of_quarter = |quarter: *const u8| -> uint8x16_t {
        // SAFETY: A quarter block of 16 bytes is there to be read, at any alignment.
        let bytes = unsafe { vld1q_u8(quarter) };
        let mut found = vceqq_u8(bytes, wanted[0]);
        for special in &wanted[1..] {
            found = vorrq_u8(found, vceqq_u8(bytes, *special));
        }
        vandq_u8(found, bits)
    };
    let mask_of = |block: &[u8; LANES]| {
        let first = vpaddq_u8(of_quarter(block[..16].as_ptr()), of_quarter(block[16..32].as_ptr()));
        let second =
            vpaddq_u8(of_quarter(block[32..48].as_ptr()), of_quarter(block[48..].as_ptr()));
        let pairs = vpaddq_u8(first, second);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(pairs, pairs)))
    };
    // SAFETY: The caller made room, and the CPU has what the masks need.
    unsafe { quote_with(words, input, output, mask_of) };
}
