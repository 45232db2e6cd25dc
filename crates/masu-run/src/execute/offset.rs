//! The environment's offset: a variable of random length that moves the stack of each run.
//!
//! The length of the environment decides where the stack begins, and so how data share cache lines and pages. One
//! layout may be luckier than another by more than the variants differ (Mytkowicz and others, "Producing wrong data
//! without doing anything obviously wrong!", 2009). A random length for each run spreads the luck over all variants.

use crate::random::Random;
use crate::{Variant, Workload};

/// The variable's name. It does not begin with `MASU_`: those are options of the allocator.
const NAME: &str = "ENVIRONMENT_OFFSET";
/// The seed of masu's placement.
const SEED: &str = "MASU_SHUFFLE";

/// The bound of the lengths: one page moves the stack through every place within a page.
const BYTES: usize = 4096;

/// Offsets of run after run, the same for the same seed.
#[derive(Debug, Clone)]
pub struct Offsets(Random);

impl Offsets {
    pub fn random(seed: u64) -> Offsets {
        // The order of runs is drawn from the same seed and must not go along with the offsets.
        Offsets(Random::new(seed ^ u64::from_be_bytes(*b"OFFSETS!")))
    }

    /// The offset of the next run in bytes.
    pub fn draw(&mut self) -> u32 {
        u32::try_from(1 + self.0.below(BYTES - 1)).unwrap_or(0)
    }
}

/// The variables of a run: one makes the environment longer by `bytes` beyond its name; if the heap is shuffled,
/// `bytes` are also the seed, unless the variant has its own. None for zero.
pub fn variables(
    workload: &Workload,
    variant: &Variant,
    bytes: u32,
) -> Vec<(&'static str, String)> {
    if bytes == 0 {
        return Vec::new();
    }
    let mut variables = vec![(NAME, "x".repeat(bytes as usize))];
    if workload.shuffles_heap && variant.variables.iter().all(|(name, _)| name != SEED) {
        variables.push((SEED, bytes.to_string()));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Input;

    #[test]
    fn offsets_fill_a_page_and_repeat_with_their_seed() {
        let draw = |mut offsets: Offsets| (0..1000).map(|_| offsets.draw()).collect::<Vec<u32>>();
        let one = draw(Offsets::random(1));
        assert_eq!(one, draw(Offsets::random(1)));
        assert_ne!(one, draw(Offsets::random(2)));
        assert!(one.iter().all(|bytes| (1..4096).contains(bytes)));
        assert!(one.iter().any(|bytes| *bytes < 400) && one.iter().any(|bytes| *bytes > 3600));
    }

    #[test]
    fn a_run_has_a_longer_environment_and_a_seed_where_the_heap_is_shuffled() {
        let mut workload = Workload::new(["true"], Input::Empty).unwrap();
        let mut variant = Variant::default();
        assert_eq!(variables(&workload, &variant, 3), [(NAME, "xxx".to_owned())]);
        workload.shuffles_heap = true;
        assert_eq!(variables(&workload, &variant, 3)[1..], [(SEED, "3".to_owned())]);
        assert_eq!(variables(&workload, &variant, 0), []);
        variant.variables.push((SEED.to_owned(), "7".to_owned()));
        assert_eq!(variables(&workload, &variant, 3).len(), 1);
    }
}
