//! Numbers that only look random: the same for the same seed, so that every allocator does the same work.
//!
//! The same stream as in `workloads/patterns`: a Weyl sequence, mixed.

/// Spreads the bits of `value`: neighboring values give unrelated results.
pub fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(mix(seed.wrapping_add(1)))
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (self.0 ^ (self.0 >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
    }

    /// A number below `limit`, which is at most 2³².
    pub fn below(&mut self, limit: usize) -> usize {
        ((self.bits() * limit as u64) >> 32) as usize
    }
}
