//! Whether further runs did the work of the diagnosed run.
//!
//! A program may refuse to overwrite its output, may have removed its input, or may find that all is done. Its further
//! runs are short, and say nothing about the first one.

use super::facts::Facts;
use super::thresholds::CPU_MIN_S;
use crate::prove::Proof;
use masu_run::prices::Service;
use masu_run::quantity::seconds;
use masu_run::{Ending, Run};

/// Runs with less than this share of the diagnosed run's CPU time did not do its work.
const SAME_WORK_SHARE: f64 = 0.5;

/// A counted run has other times than one that is not counted, but as many page faults. A run with less than this share
/// of them did less.
const SAME_FAULTS_SHARE: f64 = 0.75;

/// Stops for counting take this many times their price beyond it, at most: four times in all, where the machine is busy.
const BEYOND_PRICE: f64 = 3.0;

/// The reason why `proof` says nothing about the diagnosed run, if so.
pub(super) fn other_work(proof: &Proof, facts: &Facts) -> Option<String> {
    if let (Some(first), Some(further)) = (&facts.ending, &proof.ending)
        && first != further
    {
        return Some(ended_otherwise(first, further, proof.said.as_deref()));
    }
    let (first_s, further_s) = (facts.clock.own_cpu_s(), proof.reference.cpu_s?);
    // Stops for counting take CPU time in the kernel, beside other work more than their price.
    let stops_s = facts.clock.stops as f64 * facts.price_s(Service::CountedCallCpu);
    let least_s = facts.clock.user_s + (facts.clock.own_sys_s - BEYOND_PRICE * stops_s).max(0.0);
    (further_s < SAME_WORK_SHARE * least_s).then(|| found_less(first_s, further_s))
}

/// The reason why the run `further` says nothing about the counted run `first`, if so.
pub(super) fn other_run(first: &Run, further: &Run) -> Option<String> {
    if first.ending != further.ending {
        let said = (further.ending != Ending::Exited(0)).then(|| further.stderr.said());
        let said = said.as_deref().filter(|said| !said.is_empty());
        return Some(ended_otherwise(&first.ending.to_string(), &further.ending.to_string(), said));
    }
    let is_less = first.user_s >= CPU_MIN_S
        && further.user_s < SAME_WORK_SHARE * first.user_s
        && (further.minor_faults as f64) < SAME_FAULTS_SHARE * first.minor_faults as f64;
    is_less.then(|| found_less(first.user_s, further.user_s))
}

const WAY_OUT: &str =
    "; with `masu compare --prepare COMMAND` a command restores before each run what that needs";

fn ended_otherwise(first: &str, further: &str, said: Option<&str>) -> String {
    let said = said.map_or(String::new(), |said| format!(" and said: {said}"));
    format!("the first run {first}, further ones {further}{said}{WAY_OUT}")
}

fn found_less(first_s: f64, further_s: f64) -> String {
    format!(
        "the first run took {} of CPU time, further ones {}: they found less to do, or each works for a set \
         time{WAY_OUT}",
        seconds(first_s),
        seconds(further_s)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measure;
    use crate::diagnose::facts::Clock;
    use crate::diagnose::judge::tests::reading;

    #[test]
    fn further_runs_do_the_work_of_the_first() {
        let facts = |ending: &str, user_s| Facts {
            ending: Some(ending.to_owned()),
            clock: Clock { user_s, ..Clock::default() },
            ..Facts::default()
        };
        let proof = |ending: &str, cpu_s| {
            let mut proof = Proof::of(&[], Measure::Wall, None, &[]);
            proof.ending = Some(ending.to_owned());
            proof.reference.cpu_s = Some(cpu_s);
            proof
        };
        let same = [("returned 0", 1.0, 0.6), ("returned 20", 1.0, 1.5), ("returned 0", 0.1, 0.09)];
        for (ending, first_s, further_s) in same {
            assert_eq!(other_work(&proof(ending, further_s), &facts(ending, first_s)), None);
        }
        let counted = |own_sys_s, stops, further_s| {
            let mut counted = reading::facts(
                "ending returned 0
                 price counted_call_cpu 2_000",
            );
            counted.clock = Clock { user_s: 0.07, own_sys_s, stops, ..Clock::default() };
            other_work(&proof("returned 0", further_s), &counted)
        };
        assert_eq!(counted(0.06, 10_000, 0.061), None, "counting took the rest");
        assert!(counted(0.06, 10_000, 0.03).is_some());
        // The kernel copies or unpacks in the first run, and later ones find all of it.
        assert!(counted(2.0, 10_000, 0.08).is_some());
        assert!(counted(0.1, 0, 0.08).is_some(), "nothing was counted");
        let refused = Proof { said: Some("it exists".to_owned()), ..proof("returned 1", 0.9) };
        let reason = other_work(&refused, &facts("returned 0", 1.0)).unwrap();
        assert!(reason.contains("further ones returned 1 and said: it exists; "), "{reason}");
        let reason = other_work(&proof("returned 0", 0.07), &facts("returned 0", 0.95)).unwrap();
        assert!(reason.contains("950 ms of CPU time, further ones 70.0 ms: "), "{reason}");
    }

    #[test]
    fn a_further_run_that_did_less_or_ended_otherwise_is_none() {
        let run = |code, user_s, minor_faults| Run {
            ending: Ending::Exited(code),
            user_s,
            minor_faults,
            ..Run::default()
        };
        let first = run(0, 1.0, 10_000);
        let reason = |further| other_run(&first, &further).unwrap_or_default();
        assert!(
            reason(run(1, 1.0, 10_000))
                .starts_with("the first run returned 0, further ones returned 1;")
        );
        assert!(reason(run(0, 0.1, 1_000)).contains("found less to do"));
        // Counting slows the program's own code, too, and another malloc saves page faults.
        assert_eq!(reason(run(0, 0.4, 9_900)) + &reason(run(0, 0.9, 1_000)), "");
        assert_eq!(other_run(&run(0, 0.01, 900), &run(0, 0.0, 100)), None, "too short to tell");
    }
}
