//! The end of a proof: the result of each remedy after some rounds, and the remedies that are still open.
//!
//! Relies on looks that share the error a table may have, so that repeated looks find no difference that is not
//! there. The hard idea: a decided remedy takes no more of the time that the others need, and keeps the interval of
//! the look that decided it.

use super::{Proof, Shown, Values};
use crate::Measure;
use crate::statistics::{Level, Looks, Ratio, visible};
use masu_run::Run;

/// The times of looks at remedies, and the rule that decides them.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub looks: fn(remedies: usize) -> Looks,
    /// The function that makes a ratio of pairs.
    pub ratio: RatioOf,
    /// Whether each of the remedies with these ratios is decided; a remedy without a ratio has no pair of runs.
    pub decided: fn(&[Option<Ratio>]) -> Vec<bool>,
}

/// The ratio of the second to the first of each pair, in a table of `remedies` remedies that err at `level` together.
pub type RatioOf = fn(pairs: &[(f64, f64)], remedies: usize, level: Level) -> Option<Ratio>;

/// The result of one remedy.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Standing {
    /// None without a pair of runs.
    ratio: Option<Ratio>,
    is_decided: bool,
}

impl Rules {
    /// The variants that are still open, for [`Open`](crate::compare::Open).
    pub fn open(&self, variants: usize, primary: Measure, runs: &[Run]) -> Vec<usize> {
        let values = Values::of_all(variants, primary, runs);
        let standings = self.standings(&values, variants.saturating_sub(1), false);
        (1..variants).filter(|row| !standings[*row - 1].is_decided).collect()
    }

    /// Writes the results of the looks at `values` into `proof`.
    pub(crate) fn conclude(&self, proof: &mut Proof, values: &Values) {
        let standings = self.standings(values, proof.remedies.len(), true);
        let others = standings.iter().filter(|one| one.ratio.is_some()).count();
        let needed = (self.looks)(others).first();
        for (remedy, standing) in proof.remedies.iter_mut().zip(standings) {
            if matches!(remedy.shown, Shown::LeftOut { .. } | Shown::RunsFailed { .. }) {
                continue;
            }
            match proof.primary {
                Measure::Cpu => remedy.cpu = standing.ratio,
                _ => remedy.wall = standing.ratio,
            }
            let Some(Ratio { interval, pairs, .. }) = standing.ratio else { continue };
            remedy.shown = match interval {
                None => Shown::TooFewRuns { pairs, needed },
                Some((_, high)) if high < 1.0 => Shown::Gain,
                Some((low, _)) if low > 1.0 => Shown::Worse,
                Some((low, high)) => {
                    let could_have_seen = visible(low, high, others, Level::TABLE);
                    Shown::NoDifference { could_have_seen }
                }
            };
        }
    }

    /// The results of `remedies` remedies; `is_over` says that there are no more rounds, so that the last look may use
    /// the rest of the error.
    fn standings(&self, values: &Values, remedies: usize, is_over: bool) -> Vec<Standing> {
        let rounds = values.rounds();
        let others = (0..remedies).filter(|one| !values.pairs(*one, rounds).is_empty()).count();
        let mut all = vec![Standing::default(); remedies];
        let mut looks = (self.looks)(others);
        let look_at = |all: &mut [Standing], rounds: usize, level: Level| {
            for (one, standing) in all.iter_mut().enumerate().filter(|(_, one)| !one.is_decided) {
                standing.ratio = (self.ratio)(&values.pairs(one, rounds), others, level);
            }
        };
        for round in 1..=rounds {
            if let Some(look) = looks.due(round) {
                look_at(&mut all, round, look.level);
                let ratios: Vec<Option<Ratio>> = all.iter().map(|one| one.ratio).collect();
                for (standing, is_decided) in all.iter_mut().zip((self.decided)(&ratios)) {
                    standing.is_decided |= is_decided;
                }
            }
        }
        if is_over {
            look_at(&mut all, rounds, looks.last().level);
        }
        all
    }
}
