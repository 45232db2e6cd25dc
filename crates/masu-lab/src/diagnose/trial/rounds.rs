//! The rule that says when a trial has seen enough of a candidate.
//!
//! Relies on `prove/rounds.rs` for looks that share the error a table may have. A candidate is decided once it surely
//! gains something, or surely does not gain much, or surely gains less than another; then it takes no more of the time
//! that the others need.

use super::super::thresholds::{CAUSE_SHARE, GAIN_DENIED};
use super::NEARLY_ALL;
use crate::Measure;
use crate::prove::Rules;
use crate::statistics::{Level, Looks, Ratio, pairs_needed, ratio, ratio_of_few};
use masu_run::Run;

/// Rounds before the first look: with fewer, intervals are as wide as the gain that a trial looks for.
pub(super) const FIRST: usize = 5;

/// The rules for a trial's looks at its runs.
pub(super) const RULES: Rules =
    Rules { looks: |_| Looks::beginning_at(FIRST), ratio: ratio_of, decided };

/// The variants of which more must be known, as [`Open`](crate::compare::Open) asks.
pub(super) fn open(variants: usize, primary: Measure, runs: &[Run]) -> Vec<usize> {
    RULES.open(variants, primary, runs)
}

/// The ratio of these pairs. If there are enough pairs for ranks, the interval is the common part of Student's interval
/// and that of ranks, each with half of the error: one disturbed run widens Student's without bound, and that of ranks
/// by little.
fn ratio_of(pairs: &[(f64, f64)], others: usize, level: Level) -> Option<Ratio> {
    let half = level.divided(2);
    if pairs.len() < pairs_needed(others, half) {
        return ratio_of_few(pairs, others, level);
    }
    let student = ratio_of_few(pairs, others, half)?;
    let ranks = ratio(pairs, others, half).filter(|ranks| ranks.interval.is_some());
    let (Some(ranks), Some((low, high))) = (ranks, student.interval) else { return Some(student) };
    let (rank_low, rank_high) = ranks.interval.unwrap_or((low, high));
    let (low, high) = (low.max(rank_low), high.min(rank_high));
    if low > high {
        return Some(ranks);
    }
    Some(Ratio { estimate: ranks.estimate.clamp(low, high), interval: Some((low, high)), ..ranks })
}

fn decided(ratios: &[Option<Ratio>]) -> Vec<bool> {
    let interval = |one: &Option<Ratio>| one.and_then(|ratio| ratio.interval);
    let gain = |one: &Option<Ratio>| interval(one).map_or(0.0, |(_, high)| 1.0 - high);
    let surest = ratios.iter().map(gain).fold(0.0, f64::max);
    let is_decided = |(low, high): (f64, f64)| {
        let surely_gains = high <= 1.0 - CAUSE_SHARE;
        let gains_little = low >= 1.0 - GAIN_DENIED;
        let gains_less = surest >= CAUSE_SHARE && 1.0 - low < NEARLY_ALL * surest;
        surely_gains || gains_little || gains_less
    };
    ratios.iter().map(|one| interval(one).is_some_and(is_decided)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::{Proof, Shown, Values};
    use crate::summary::simulation::runs_off;

    #[test]
    fn what_is_decided_takes_no_more_of_the_time() {
        let open_after = |times: &[f64], rounds, noise| {
            open(times.len() + 1, Measure::Cpu, &runs_off(times, rounds, noise))
        };
        assert_eq!(open_after(&[0.7, 1.0], 4, 0.01), [1, 2], "nobody looked yet");
        assert_eq!(open_after(&[0.7, 1.0], 5, 0.01), Vec::<usize>::new());
        assert_eq!(open_after(&[0.7, 0.93], 5, 0.02), Vec::<usize>::new(), "it gains less");
        assert_eq!(open_after(&[1.0, 0.93], 5, 0.02), [2]);
        assert_eq!(open_after(&[1.0, 0.97], 5, 0.2), [1, 2]);
    }

    #[test]
    fn one_disturbed_run_hides_no_gain_where_there_are_many() {
        let noise = |round: usize| 1.0 + 0.01 * ((round * 7 % 11) as f64 - 5.0) / 5.0;
        let mut pairs: Vec<(f64, f64)> = (0..24).map(|round| (1.0, 0.9 * noise(round))).collect();
        pairs[3].1 = 5.0;
        let high = |ratio: Option<Ratio>| ratio.unwrap().interval.unwrap().1;
        assert!(high(ratio_of_few(&pairs, 4, Level::TABLE)) > 1.0);
        assert!(high(ratio_of(&pairs, 4, Level::TABLE)) < 0.95);
        // Ranks say nothing about few pairs.
        assert_eq!(
            ratio_of(&pairs[..8], 4, Level::TABLE),
            ratio_of_few(&pairs[..8], 4, Level::TABLE)
        );
    }

    #[test]
    fn what_the_looks_showed_is_what_the_proof_says() {
        let labels = ["as it is", "better", "same", "gone"].map(str::to_owned);
        let all = runs_off(&[0.7, 1.0], 8, 0.02);
        let values = Values::of(&labels, &labels[..3], Measure::Cpu, &all);
        let mut proof = Proof::of(&labels, Measure::Cpu, None, &[]);
        proof.remedies[0].shown = Shown::TooFewRuns { pairs: 8, needed: 9 };
        proof.remedies[1].shown = Shown::TooFewRuns { pairs: 8, needed: 9 };
        RULES.conclude(&mut proof, &values);
        assert_eq!(proof.remedies[0].shown, Shown::Gain);
        assert_eq!(proof.remedies[0].cpu.unwrap().pairs, 5, "decided at the first look");
        assert!(matches!(proof.remedies[1].shown, Shown::NoDifference { .. }), "{proof:?}");
        assert!(matches!(proof.remedies[2].shown, Shown::LeftOut { .. }), "{proof:?}");
    }
}
