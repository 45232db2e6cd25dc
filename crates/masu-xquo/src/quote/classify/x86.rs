//! Classification on x86-64: AVX2 where the CPU has it, else SSE2, which each has.
//!
//! With AVX2 come BMI and POPCNT: finding the next special byte is one instruction.

use std::arch::x86_64::{
    _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
};

use super::{LANES, Quote, SPECIALS};
use crate::quote::quote_with;

pub(super) fn add(ways: &mut Vec<(&'static str, Quote)>) {
    let has_bits = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt");
    if has_bits && is_x86_feature_detected!("avx2") {
        ways.push(("AVX2", quote_avx2));
    }
    ways.push(("SSE2", quote_sse2));
}

/// # Safety
///
/// - The CPU has AVX2, BMI1 and POPCNT.
/// - `output` has room, as [`quote_with`] wants it.
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn quote_avx2(
    specials: &[u8; SPECIALS],
    words: &[u64; 256],
    input: &[u8],
    output: &mut Vec<u8>,
) {
    let wanted = specials.map(|byte| _mm256_set1_epi8(byte.cast_signed()));
    let mask_of_half = |half: *const u8| {
        // SAFETY: A half block of 32 bytes is there to be read, at any alignment.
        let bytes = unsafe { _mm256_loadu_si256(half.cast()) };
        let mut found = _mm256_cmpeq_epi8(bytes, wanted[0]);
        for special in &wanted[1..] {
            found = _mm256_or_si256(found, _mm256_cmpeq_epi8(bytes, *special));
        }
        u64::from(_mm256_movemask_epi8(found).cast_unsigned())
    };
    let mask_of = |block: &[u8; LANES]| {
        mask_of_half(block[..32].as_ptr()) | mask_of_half(block[32..].as_ptr()) << 32
    };
    // SAFETY: The caller made room, and the CPU has what the masks need.
    unsafe { quote_with(words, input, output, mask_of) };
}

/// # Safety
///
/// - The CPU has SSE2, as every one of this kind has.
/// - `output` has room, as [`quote_with`] wants it.
#[target_feature(enable = "sse2")]
unsafe fn quote_sse2(
    specials: &[u8; SPECIALS],
    words: &[u64; 256],
    input: &[u8],
    output: &mut Vec<u8>,
) {
    let wanted = specials.map(|byte| _mm_set1_epi8(byte.cast_signed()));
    let mask_of = |block: &[u8; LANES]| {
        let mut mask = 0;
        for quarter in 0..4 {
            // SAFETY: 16 bytes of the block are there to be read, at any alignment.
            let bytes = unsafe { _mm_loadu_si128(block[quarter * 16..].as_ptr().cast()) };
            let mut found = _mm_cmpeq_epi8(bytes, wanted[0]);
            for special in &wanted[1..] {
                found = _mm_or_si128(found, _mm_cmpeq_epi8(bytes, *special));
            }
            mask |= u64::from(_mm_movemask_epi8(found).cast_unsigned()) << (quarter * 16);
        }
        mask
    };
    // SAFETY: The caller made room, and every CPU of this kind has SSE2.
    unsafe { quote_with(words, input, output, mask_of) };
}
