//! The order of runs: every round has each variant once, in random order, and over as many rounds
//! as there are variants each stands once at every place.
//!
//! Rounds make pairs: what drifts (heat, neighbours, caches) hits the variants of a round alike.
//! Balance keeps a place in the round from favouring anyone, for instance the run that follows the
//! lab's longest pause. Both come from a Latin square whose rows and names are shuffled anew each
//! time it is used up.

use crate::random::Random;

/// Endless rounds over `variants` variants.
#[derive(Debug)]
pub(crate) struct Rounds {
    random: Random,
    variants: usize,
    coming: Vec<Vec<usize>>,
}

impl Rounds {
    /// The rounds that belong to `seed`.
    pub(crate) fn new(seed: u64, variants: usize) -> Rounds {
        Rounds { random: Random::new(seed), variants, coming: Vec::new() }
    }

    /// The next round: each variant's index once, in the order to run them.
    pub(crate) fn round(&mut self) -> Vec<usize> {
        if self.coming.is_empty() {
            let mut names: Vec<usize> = (0..self.variants).collect();
            self.random.shuffle(&mut names);
            let row = |shift: usize| {
                let mut row = names.clone();
                row.rotate_left(shift);
                row
            };
            self.coming = (0..self.variants).map(row).collect();
            self.random.shuffle(&mut self.coming);
        }
        self.coming.pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_each_variant_once() {
        let mut rounds = Rounds::new(1, 7);
        for _ in 0..50 {
            let mut round = rounds.round();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4, 5, 6]);
        }
    }

    #[test]
    fn each_variant_stands_equally_often_at_every_place() {
        let mut rounds = Rounds::new(2, 4);
        let mut counts = [[0; 4]; 4];
        for _ in 0..20 {
            for (place, variant) in rounds.round().into_iter().enumerate() {
                counts[variant][place] += 1;
            }
        }
        assert_eq!(counts, [[5; 4]; 4]);
    }

    #[test]
    fn a_seed_gives_one_order_and_another_seed_another() {
        let order = |seed| {
            let mut rounds = Rounds::new(seed, 5);
            (0..10).map(|_| rounds.round()).collect::<Vec<_>>()
        };
        assert_eq!(order(3), order(3));
        assert_ne!(order(3), order(4));
    }
}
