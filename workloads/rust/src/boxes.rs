//! Patterns of single boxes. The compiler knows the layout of some both where they are made and where they are
//! dropped; the others are trait objects, whose layout comes from their vtable when they are dropped.

use std::hint::black_box;

use crate::random::Random;
use crate::work::Work;

/// Boxes of one word, dropped at once.
pub fn pair(work: Work) -> u64 {
    let mut sum = 0_u64;
    for op in 0..work.ops {
        let number = Box::new(op ^ work.seed);
        // Without this the compiler would leave out the box.
        black_box(&*number);
        sum = sum.wrapping_add(*number);
    }
    sum
}

/// A million boxes that live together, then dropped in the order in which they were made. One operation is one box.
pub fn many(work: Work) -> u64 {
    const LIVE: u64 = 1_000_000;
    let (mut sum, mut left) = (0_u64, work.ops);
    while left > 0 {
        let count = left.min(LIVE);
        let live: Vec<Box<u64>> = (0..count).map(|at| Box::new(left ^ at)).collect();
        sum = black_box(live).iter().fold(sum, |sum, number| sum.wrapping_add(**number));
        left -= count;
    }
    sum
}

/// The trait of all trait objects here.
pub trait Checked: Send + Sync {
    fn checksum(&self) -> u64;
}

pub struct Object<const WORDS: usize>(pub [u64; WORDS]);

impl<const WORDS: usize> Checked for Object<WORDS> {
    fn checksum(&self) -> u64 {
        self.0[0].wrapping_add(self.0[WORDS - 1])
    }
}

fn object(kind: usize, stamp: u64) -> Box<dyn Checked> {
    match kind {
        0 => Box::new(Object([stamp; 1])),
        1 => Box::new(Object([stamp; 3])),
        2 => Box::new(Object([stamp; 4])),
        3 => Box::new(Object([stamp; 7])),
        4 => Box::new(Object([stamp; 12])),
        _ => Box::new(Object([stamp; 31])),
    }
}

/// A thousand objects, replaced at random.
pub fn objects(work: Work) -> u64 {
    const LIVE: usize = 1000;
    let mut random = Random::new(work.seed);
    let mut live: Vec<Box<dyn Checked>> = (0..LIVE).map(|n| object(n % 6, n as u64)).collect();
    let mut sum = 0_u64;
    for op in 0..work.ops {
        let place = &mut live[random.below(LIVE)];
        sum = sum.wrapping_add(place.checksum());
        *place = object(random.below(6), op);
    }
    live.iter().fold(sum, |sum, object| sum.wrapping_add(object.checksum()))
}
