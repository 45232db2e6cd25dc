//! The primary measure of every run that counts, by variant and round.
//!
//! A proof compares remedies with the reference alone. To say which of two remedies is better, their own runs must be
//! paired, because a ratio of two ratios has the reference's noise twice. Relies on `statistics.rs` for the interval.

use std::collections::BTreeMap;

use crate::Measure;
use crate::statistics::{self, Level, Ratio};
use crate::summary::valid;
use masu_run::Run;

/// Values of the reference and of each remedy.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Values {
    /// The reference first, then the remedies in their order; by round.
    series: Vec<BTreeMap<usize, f64>>,
}

impl Values {
    /// The values of `primary` in `runs`, whose variants have the labels `there`, for the variants with `labels`.
    pub(crate) fn of(
        labels: &[String],
        there: &[String],
        primary: Measure,
        runs: &[Run],
    ) -> Values {
        Values::placed(labels.len(), primary, runs, |variant| {
            let label = there.get(variant);
            label.and_then(|label| labels.iter().position(|one| one == label))
        })
    }

    pub(crate) fn of_all(variants: usize, primary: Measure, runs: &[Run]) -> Values {
        Values::placed(variants, primary, runs, |variant| (variant < variants).then_some(variant))
    }

    fn placed(
        count: usize,
        primary: Measure,
        runs: &[Run],
        place: impl Fn(usize) -> Option<usize>,
    ) -> Values {
        let mut series = vec![BTreeMap::new(); count];
        for run in valid(runs) {
            let (Some(place), Some(round)) = (place(run.variant), run.round) else { continue };
            if let Some(value) = primary.of(run) {
                series[place].insert(round, value);
            }
        }
        Values { series }
    }

    pub(crate) fn rounds(&self) -> usize {
        let last = |series: &BTreeMap<usize, f64>| series.keys().next_back().copied();
        self.series.iter().filter_map(last).max().map_or(0, |last| last + 1)
    }

    pub(crate) fn pairs(&self, one: usize, rounds: usize) -> Vec<(f64, f64)> {
        let (Some(reference), Some(own)) = (self.series.first(), self.series.get(one + 1)) else {
            return Vec::new();
        };
        let early: BTreeMap<usize, f64> =
            reference.range(..rounds).map(|(round, value)| (*round, *value)).collect();
        paired(&early, own)
    }

    /// The ratio of remedy `one` to remedy `other`; `claims` such ratios err with 1 % together. None
    /// without a pair of runs.
    pub(crate) fn between(&self, one: usize, other: usize, claims: usize) -> Option<Ratio> {
        let (own, others) = (self.series.get(one + 1)?, self.series.get(other + 1)?);
        statistics::ratio(&paired(others, own), claims, Level::TABLE)
    }

    /// The standard deviation of the logarithm of a remedy's ratio to the reference in one round, over all remedies;
    /// none where no remedy has two rounds.
    pub(crate) fn noise(&self) -> Option<f64> {
        let (reference, remedies) = self.series.split_first()?;
        let (mut squares, mut degrees) = (0.0, 0);
        for remedy in remedies {
            let pairs = paired(reference, remedy);
            let is_whole = |(a, b): &&(f64, f64)| *a > 0.0 && *b > 0.0;
            let logs: Vec<f64> = pairs.iter().filter(is_whole).map(|(a, b)| (b / a).ln()).collect();
            if logs.len() < 2 {
                continue;
            }
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            squares += logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>();
            degrees += logs.len() - 1;
        }
        (degrees > 0).then(|| (squares / degrees as f64).sqrt())
    }
}

/// The values of both in every round that has both values.
fn paired(reference: &BTreeMap<usize, f64>, own: &BTreeMap<usize, f64>) -> Vec<(f64, f64)> {
    reference.iter().filter_map(|(round, value)| Some((*value, *own.get(round)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(variant: usize, round: usize, wall_s: f64) -> Run {
        Run { variant, round: Some(round), wall_s, ..Run::default() }
    }

    fn labels(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn remedies_are_paired_with_each_other_and_not_by_way_of_the_reference() {
        // The reference varies wildly, the two remedies go up and down together.
        let wild = [1.0, 7.0, 2.0, 9.0, 1.0, 5.0, 3.0, 8.0, 2.0, 6.0, 4.0, 9.0];
        let runs: Vec<Run> = (0..12)
            .zip(wild)
            .flat_map(|(round, wild)| {
                [run(0, round, wild), run(1, round, wild * 0.5), run(2, round, wild * 0.51)]
            })
            .collect();
        let all = labels(&["as it is", "left out", "a", "b"]);
        let values = Values::of(&all, &labels(&["as it is", "a", "b"]), Measure::Wall, &runs);
        let ratio = values.between(2, 1, 1).unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert!((low - 1.02).abs() < 1e-9 && (high - 1.02).abs() < 1e-9, "{ratio:?}");
        assert_eq!(values.between(0, 1, 1), None);
        assert!(values.noise().unwrap() < 1e-9);
    }

    #[test]
    fn noise_is_that_of_one_round_whatever_the_gains() {
        let at = |round: usize| if round.is_multiple_of(2) { 1.1 } else { 1.0 / 1.1 };
        let runs: Vec<Run> = (0..20)
            .flat_map(|round| {
                [run(0, round, 1.0), run(1, round, at(round)), run(2, round, 0.5 * at(round + 1))]
            })
            .collect();
        let all = labels(&["as it is", "a", "b"]);
        let noise = Values::of(&all, &all, Measure::Wall, &runs).noise().unwrap();
        assert!((noise - 1.1_f64.ln()).abs() < 0.005, "{noise}");
        assert_eq!(Values::of(&all, &all, Measure::Wall, &runs[..3]).noise(), None);
    }
}
