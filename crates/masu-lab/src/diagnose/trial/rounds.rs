//! When a trial has seen enough: what each candidate comes to after some rounds, and which are still open.
//!
//! Relies on looks that share the error a table may have, so that looking again and again finds nothing that is not
//! there. The idea: a candidate is decided once it surely gains something, or surely does not gain much, or surely
//! gains less than another; then it takes no more of the time that the others need.

use super::super::thresholds::{CAUSE_SHARE, GAIN_DENIED};
use super::NEARLY_ALL;
use crate::prove::{Proof, Shown, Values};
use crate::statistics::{Level, Looks, Ratio, pairs_needed, ratio, ratio_of_few, visible};
use crate::{Measure, Run};

/// Rounds before the first look: fewer have intervals as wide as what is looked for.
pub(super) const FIRST: usize = 5;

/// What one candidate came to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Standing {
    /// None without a pair of runs.
    ratio: Option<Ratio>,
    is_decided: bool,
}

/// The variants of which more must be known, as [`Open`](crate::compare::Open) asks.
pub(super) fn open(variants: usize, primary: Measure, runs: &[Run]) -> Vec<usize> {
    let values = Values::of_all(variants, primary, runs);
    let standings = standings(&values, variants.saturating_sub(1), values.rounds(), false);
    (1..variants).filter(|row| !standings[*row - 1].is_decided).collect()
}

/// Has `proof` say what these looks at its `values` showed.
pub(super) fn conclude(proof: &mut Proof, values: &Values) {
    let standings = standings(values, proof.remedies.len(), values.rounds(), true);
    let others = standings.iter().filter(|one| one.ratio.is_some()).count();
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
            None => Shown::TooFewRuns { pairs, needed: FIRST },
            Some((_, high)) if high < 1.0 => Shown::Gain,
            Some((low, _)) if low > 1.0 => Shown::Worse,
            Some((low, high)) => {
                let could_have_seen = visible(low, high, others, Level::TABLE);
                Shown::NoDifference { could_have_seen }
            }
        };
    }
}

/// What `candidates` candidates came to in so many rounds; `is_over` is whether there are no more, so that the last
/// look may use what is left of the error.
fn standings(values: &Values, candidates: usize, rounds: usize, is_over: bool) -> Vec<Standing> {
    let others = (0..candidates).filter(|one| !values.pairs(*one, rounds).is_empty()).count();
    let mut all = vec![Standing::default(); candidates];
    let mut looks = Looks::beginning_at(FIRST);
    for round in 1..=rounds {
        if let Some(look) = looks.due(round) {
            look_at(&mut all, |one| ratio_of(&values.pairs(one, round), others, look.level));
            decide(&mut all);
        }
    }
    if is_over {
        let level = looks.last().level;
        look_at(&mut all, |one| ratio_of(&values.pairs(one, rounds), others, level));
    }
    all
}

/// The ratio of these pairs. Where ranks can speak, the interval is what Student's and theirs have in common, each with half
/// of the error: one run that was disturbed widens Student's without bound, and that of ranks by little.
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

fn look_at(all: &mut [Standing], ratio: impl Fn(usize) -> Option<Ratio>) {
    for (one, standing) in all.iter_mut().enumerate().filter(|(_, one)| !one.is_decided) {
        standing.ratio = ratio(one);
    }
}

fn decide(all: &mut [Standing]) {
    let interval = |one: &Standing| one.ratio.and_then(|ratio| ratio.interval);
    let gain = |one: &Standing| interval(one).map_or(0.0, |(_, high)| 1.0 - high);
    let surest = all.iter().map(gain).fold(0.0, f64::max);
    for standing in all.iter_mut() {
        let Some((low, high)) = interval(standing) else { continue };
        let surely_gains = high <= 1.0 - CAUSE_SHARE;
        let gains_little = low >= 1.0 - GAIN_DENIED;
        let gains_less = surest >= CAUSE_SHARE && 1.0 - low < NEARLY_ALL * surest;
        standing.is_decided |= surely_gains || gains_little || gains_less;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of a program that takes a second, beside variants that take `times` seconds; each run but the first's is
    /// off by up to `noise`.
    fn runs(times: &[f64], rounds: usize, noise: f64) -> Vec<Run> {
        let off = |round: usize, variant: usize| {
            let turn = (round * (variant + 2) * 7 + variant * 3) % 11;
            1.0 + noise * (f64::from(u32::try_from(turn).unwrap()) - 5.0) / 5.0
        };
        let all: Vec<f64> = std::iter::once(1.0).chain(times.iter().copied()).collect();
        let run = |round: usize, variant: usize| Run {
            variant,
            round: Some(round),
            user_s: all[variant] * if variant == 0 { 1.0 } else { off(round, variant) },
            ..Run::default()
        };
        let rows = 0..all.len();
        (0..rounds)
            .flat_map(|round| rows.clone().map(move |row| (round, row)))
            .map(|(a, b)| run(a, b))
            .collect()
    }

    #[test]
    fn what_is_decided_takes_no_more_of_the_time() {
        let open_after = |times: &[f64], rounds, noise| {
            open(times.len() + 1, Measure::Cpu, &runs(times, rounds, noise))
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
        // From few pairs ranks say nothing.
        assert_eq!(
            ratio_of(&pairs[..8], 4, Level::TABLE),
            ratio_of_few(&pairs[..8], 4, Level::TABLE)
        );
    }

    #[test]
    fn what_the_looks_showed_is_what_the_proof_says() {
        let labels = ["as it is", "better", "same", "gone"].map(str::to_owned);
        let all = runs(&[0.7, 1.0], 8, 0.02);
        let values = Values::of(&labels, &labels[..3], Measure::Cpu, &all);
        let mut proof = Proof::of(&labels, Measure::Cpu, None, &[]);
        proof.remedies[0].shown = Shown::TooFewRuns { pairs: 8, needed: 9 };
        proof.remedies[1].shown = Shown::TooFewRuns { pairs: 8, needed: 9 };
        conclude(&mut proof, &values);
        assert_eq!(proof.remedies[0].shown, Shown::Gain);
        assert_eq!(proof.remedies[0].cpu.unwrap().pairs, 5, "decided at the first look");
        assert!(matches!(proof.remedies[1].shown, Shown::NoDifference { .. }), "{proof:?}");
        assert!(matches!(proof.remedies[2].shown, Shown::LeftOut { .. }), "{proof:?}");
    }
}
