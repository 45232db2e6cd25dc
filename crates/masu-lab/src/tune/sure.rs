//! How sure it is that nothing better was passed over.
//!
//! A search drops candidates by few runs, so what it drops may have been unlucky. Relies on what each was last seen at
//! and on how much a ratio of one round varies. The idea: whether *any* of several was better is denied only where it
//! is denied of each by itself, so the least sure of these tests is as sure as all of them together, and no share
//! of the error is needed for each (Berger, "Multiparameter hypothesis testing and acceptance sampling", 1982).

use super::candidates::Candidate;
use super::search::Found;
use super::{Goal, Others, Tried};
use crate::statistics::normal_tail;

/// The relative difference by which something must be better to count as missed.
const MISSED: f64 = 0.03;

/// Surer than this is not claimed: the noise is not known that well.
const SUREST: f64 = 0.99;

/// How sure a claim must be to be made of a candidate.
const ENOUGH: f64 = 0.9;

/// What can be said of what `found` dropped on its way, where what was confirmed gains `best` (the ratio to the
/// program as it is, 1 where nothing gains). None where nothing was dropped or the noise is not known.
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
            let deviation = noise * (1.0 / small(tried.rounds) + 1.0 / small(rounds)).sqrt();
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

fn small(count: usize) -> f64 {
    count.max(1) as f64
}
