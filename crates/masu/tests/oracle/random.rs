//! Random numbers that a seed repeats exactly: SplitMix64 (Steele, Lea, Flood, 2014).
//!
//! It relies on nothing. Each walker has its own generator, so that threads do not disturb each other's sequence.
#![allow(dead_code, reason = "each test program uses its own part of this")]

/// A generator of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The generator that `seed` names.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number under `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let product = u128::from(self.bits()) * end as u128;
        (product >> 64) as usize
    }

    /// A number from `low` to `high`, both included, every doubling equally likely.
    pub(crate) fn doubling(&mut self, low: usize, high: usize) -> usize {
        let exponent = self.below((high / low).ilog2() as usize + 1);
        let start = low << exponent;
        let end = (2 * start).min(high + 1);
        start + self.below(end - start)
    }

    /// Takes one of `from`: half the time the newest, else any.
    pub(crate) fn take<T>(&mut self, from: &mut Vec<T>) -> Option<T> {
        match from.len() {
            0 => None,
            _ if self.below(2) == 0 => from.pop(),
            count => Some(from.swap_remove(self.below(count))),
        }
    }

    /// The index of one of `weights`, each as likely as its weight; their sum is not 0.
    pub(crate) fn weighted(&mut self, weights: &[u32]) -> usize {
        let sum: u32 = weights.iter().sum();
        let mut left = self.below(sum as usize) as u32;
        for (index, &weight) in weights.iter().enumerate() {
            if left < weight {
                return index;
            }
            left -= weight;
        }
        unreachable!("the remainder lies under the sum of the weights")
    }
}
