//! Whether the runs of a trial did the work of the diagnosed run.
//!
//! A program may refuse to overwrite its output, may have removed its input, or may find that all is done. Its further
//! runs are short, and say nothing about a malloc.

use super::super::facts::Facts;
use crate::prove::Proof;
use masu_run::quantity::seconds;

/// Runs with less than this share of the diagnosed run's CPU time did not do its work.
const SAME_WORK_SHARE: f64 = 0.5;

/// The reason why `proof` says nothing about the diagnosed run, if so.
pub(super) fn other_work(proof: &Proof, facts: &Facts) -> Option<String> {
    const WAY_OUT: &str = "; with `masu compare --prepare COMMAND` a command restores before each run what that needs";
    if let (Some(first), Some(further)) = (&facts.ending, &proof.ending)
        && first != further
    {
        let said = proof.said.as_ref().map_or(String::new(), |said| format!(" and said: {said}"));
        return Some(format!("the first run {first}, further ones {further}{said}{WAY_OUT}"));
    }
    let (first_s, further_s) = (facts.clock.own_cpu_s(), proof.reference.cpu_s?);
    (further_s < SAME_WORK_SHARE * first_s).then(|| {
        format!(
            "the first run took {} of CPU time, further ones {}: they found less to do{WAY_OUT}",
            seconds(first_s),
            seconds(further_s)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measure;
    use crate::diagnose::facts::Clock;

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
        let refused = Proof { said: Some("it exists".to_owned()), ..proof("returned 1", 0.9) };
        let reason = other_work(&refused, &facts("returned 0", 1.0)).unwrap();
        assert!(reason.contains("further ones returned 1 and said: it exists; "), "{reason}");
        let reason = other_work(&proof("returned 0", 0.07), &facts("returned 0", 0.95)).unwrap();
        assert!(reason.contains("950 ms of CPU time, further ones 70.0 ms: "), "{reason}");
    }
}
