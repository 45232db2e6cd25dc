//! The confidence that nothing better was passed over.
//!
//! A search drops candidates by few runs, so a dropped candidate may have been unlucky. Relies on the last ratio of
//! each and on the variation of one round's ratio. The hard idea: the claim that *none* of several was better is made
//! only where it is made for each by itself, so the least sure of these tests is as sure as all of them together, and
//! none needs a share of the error (Berger, "Multiparameter hypothesis testing and acceptance sampling", 1982).

use super::candidates::Candidate;
use super::search::Found;
use super::{Goal, Others, Tried};
use crate::statistics::normal_tail;

/// The relative difference by which a candidate must be better to count as missed.
const MISSED: f64 = 0.03;

/// The highest confidence that is claimed: the noise is not known well enough for more.
const SUREST: f64 = 0.99;

/// The least confidence of a claim about a candidate.
const ENOUGH: f64 = 0.9;

/// The statement about the candidates that `found` dropped on its way, where the confirmed gain is `best` (the ratio
/// to the reference, 1 where nothing gains). None where nothing was dropped or the noise is not known.
pub(super) fn of_the_others(
    candidates: &[Candidate],
    found: &Found,
    goal: Goal,
    best: f64,
) -> Option<Others> {
    let confirming = found.noise?;
    let rounds = found.proof.as_ref()?.rounds.max(1);
    let is_other = |(index, _): &(usize, &Tried)| !found.confirmed.contains(index);
    let tried = found.tried.iter().enumerate();
    let others = tried.filter_map(|(index, tried)| Some((index, tried.as_ref()?))).filter(is_other);
    let mut chances: Vec<(usize, f64)> = others
        .filter_map(|(index, tried)| {
            let ratio = tried.gain(goal)?;
            let noise = tried.noise.unwrap_or(0.0).max(confirming);
            let deviation = noise * (1.0 / tried.rounds.max(1) as f64 + 1.0 / rounds as f64).sqrt();
            let distance = (ratio / (best * (1.0 - MISSED))).ln();
            Some((index, normal_tail(distance / deviation.max(1e-9))))
        })
        .collect();
    chances.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let (_, worst) = *chances.first()?;
    let is_doubtful = |(_, chance): &&(usize, f64)| *chance > 1.0 - ENOUGH;
    Some(Others {
        count: chances.len(),
        by: MISSED,
        sure: (1.0 - worst).min(SUREST),
        doubtful: chances
            .iter()
            .filter(is_doubtful)
            .map(|(one, _)| candidates[*one].label.clone())
            .collect(),
    })
}
