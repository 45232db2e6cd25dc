//! A second run of the program as it is, among the candidates: it shows whether runs side by side can be compared.
//!
//! Relies on both being the same program. The idea: whatever makes two equal runs differ, be it the host of a virtual
//! machine or what one leaves behind for the other, makes candidates differ as well, and then nothing they show counts.

use super::super::finding::{Confidence, Finding, Id, less_sure_than_memory};
use super::super::thresholds::GAIN_DENIED;
use crate::Variant;
use crate::prove::{Proof, Proved, Shown};

/// What it is called.
const LABEL: &str = "the program as it is, again";

/// The control of a trial against `reference`.
pub(super) fn of(reference: &Variant) -> Variant {
    Variant { label: LABEL.to_owned(), ..reference.clone() }
}

/// `proof` without its control, if it has one.
///
/// # Errors
///
/// How far apart equal runs were, as a clause, where they differ or were not shown to be alike.
pub(super) fn taken_out(mut proof: Proof) -> Result<Proof, String> {
    let Some(place) = proof.remedies.iter().position(|one| one.medians.label == LABEL) else {
        return Ok(proof);
    };
    let control = proof.remedies.remove(place);
    let surely = |one: &Proved| {
        one.ratio(proof.primary)
            .and_then(|ratio| ratio.interval)
            .map_or(0.0, |(_, high)| 1.0 - high)
    };
    // A gain that is twice as large as any difference of equal runs is none of these.
    let surest = proof.remedies.iter().map(surely).fold(0.0, f64::max);
    let limit = GAIN_DENIED.max(surest / 2.0);
    match control.ratio(proof.primary).and_then(|ratio| ratio.interval) {
        Some((low, high)) => {
            let is_alike = matches!(control.shown, Shown::NoDifference { .. });
            if is_alike && low > 1.0 - limit && high < 1.0 + limit {
                return Ok(proof);
            }
            Err(format!("two equal ones took ×{low:.3} to ×{high:.3} of each other's CPU time"))
        }
        None => Err("too few of them could be made".to_owned()),
    }
}

/// Findings after a trial that says nothing: that memory is fine was not shown.
pub(super) fn unknown(mut findings: Vec<Finding>) -> Vec<Finding> {
    for one in findings.iter_mut().filter(|one| one.id == Id::MemoryIsFine) {
        one.confidence = Confidence::Low;
    }
    less_sure_than_memory(&mut findings);
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::{proof, remedy};
    use super::*;

    #[test]
    fn what_runs_show_counts_only_where_equal_ones_are_alike() {
        let beside = |low, high| {
            let control = remedy(LABEL, f64::midpoint(low, high), low, high);
            taken_out(proof(vec![remedy("masu", 0.8, 0.77, 0.83), control]))
        };
        assert_eq!(beside(0.97, 1.03).unwrap().remedies.len(), 1);
        for (low, high) in [(0.93, 0.97), (1.02, 1.06), (0.85, 1.02), (0.99, 1.2)] {
            assert!(beside(low, high).is_err_and(|why| why.contains("two equal ones")));
        }
        // Beside a gain of half of the time that is little.
        let control = remedy(LABEL, 1.0, 0.85, 1.15);
        assert!(taken_out(proof(vec![remedy("masu", 0.5, 0.45, 0.55), control])).is_ok());
        let without = proof(vec![remedy("masu", 0.8, 0.77, 0.83)]);
        assert_eq!(taken_out(without.clone()), Ok(without));
    }

    #[test]
    fn nothing_is_sure_after_a_trial_that_says_nothing() {
        let fine = Finding::new(Id::MemoryIsFine, Confidence::Medium, "No sign");
        let computes = Finding::new(Id::CpuBound, Confidence::High, "It computes");
        let left = unknown(vec![fine, computes]);
        assert!(left.iter().all(|one| one.confidence == Confidence::Low), "{left:?}");
    }
}
