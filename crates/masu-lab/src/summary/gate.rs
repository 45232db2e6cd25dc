//! A gate for continuous integration: is any variant surely worse than the reference by more than is allowed?
//!
//! *Failed* only if the whole interval is beyond the allowed limit, *passed* only if the whole interval is within it,
//! else *undecided*. The intervals hold together with the table's confidence: at most one table in a hundred fails a
//! variant that is within the limit, and at most one passes a variant that is beyond.

use crate::results::{Row, Summary};
use crate::statistics::{self, Verdict};

/// The result of a gate for a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Gate {
    /// No variant is worse than the reference by more than is allowed.
    Passed,
    /// These variants surely are worse. Others may be undecided: a failure names what must be fixed.
    Failed(Vec<Standing>),
    /// No variant surely is worse, but for these the runs cannot decide: their intervals reach over the limit, there
    /// are too few runs for one, or too many of them failed.
    Undecided(Vec<Standing>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub variant: String,
    /// The amount by which a variant must be worse, relative to the reference, for nine of ten series like this one to
    /// fail it: 0.05 is five per cent. None if there is no verdict.
    pub could_have_seen: Option<f64>,
}

/// Whether any variant of `summary` is worse than the reference by more than `percent` per cent in the primary measure:
/// it takes that much longer, or that much more of the measured resource; for a throughput, the reference does that
/// much more.
pub fn gate(summary: &Summary, percent: f64) -> Gate {
    let allowed = 1.0 + percent / 100.0;
    let (mut failed, mut undecided) = (Vec::new(), Vec::new());
    for row in summary.rows.iter().skip(1) {
        match cost(summary, row) {
            Some((low, _)) if low > allowed => failed.push(standing(summary, row, allowed)),
            Some((_, high)) if high <= allowed => {}
            _ => undecided.push(standing(summary, row, allowed)),
        }
    }
    if !failed.is_empty() {
        Gate::Failed(failed)
    } else if !undecided.is_empty() {
        Gate::Undecided(undecided)
    } else {
        Gate::Passed
    }
}

/// The cost of the variant of `row`, as a multiple of the reference's; none if there is no verdict.
fn cost(summary: &Summary, row: &Row) -> Option<(f64, f64)> {
    if let Verdict::TooFewRuns { .. } | Verdict::RunsFailed { .. } = row.verdict {
        return None;
    }
    let (low, high) = row.estimate(summary.primary)?.ratio?.interval?;
    Some(if summary.primary.is_better_larger() { (1.0 / high, 1.0 / low) } else { (low, high) })
}

fn standing(summary: &Summary, row: &Row, allowed: f64) -> Standing {
    let others = summary.rows.len() - 1;
    let visible = |(low, high)| statistics::visible(low, high, others, summary.look.level);
    Standing {
        variant: row.variant.clone(),
        could_have_seen: cost(summary, row).map(visible).map(|seen| allowed * (1.0 + seen) - 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{Look, Measure};
    use crate::summary::simulation::{Comparison, Machine, Noise, labels};
    use crate::summary::summarize;
    use masu_run::execute::Burst;

    /// A table at 1 % noise, judged by time or by throughput.
    fn table(truth: &[f64], primary: Measure, rounds: usize) -> Summary {
        let mut machine = Machine::new(Noise::Normal(0.01), 1);
        let mut runs = Comparison::of(truth).runs(&mut machine, rounds);
        for run in &mut runs {
            let throughput = Some(1.0 / run.wall_s);
            run.burst = Some(Burst { throughput, ..Burst::default() });
        }
        summarize(&labels(truth.len()), primary, Look::ONLY, &runs)
    }

    fn names(standings: &[Standing]) -> Vec<&str> {
        standings.iter().map(|standing| standing.variant.as_str()).collect()
    }

    #[test]
    fn what_is_surely_worse_fails_by_time_and_by_throughput() {
        for primary in [Measure::Wall, Measure::Throughput] {
            let summary = table(&[1.0, 1.2, 0.8, 1.05], primary, 20);
            let Gate::Failed(failed) = gate(&summary, 10.0) else { panic!("{summary:?}") };
            assert_eq!(names(&failed), ["b"], "{primary:?}");
            assert_eq!(gate(&summary, 30.0), Gate::Passed, "{primary:?}");
        }
    }

    #[test]
    fn what_may_be_either_is_undecided_and_says_what_would_have_been_seen() {
        let summary = table(&[1.0, 1.05, 0.9], Measure::Wall, 20);
        let Gate::Undecided(undecided) = gate(&summary, 5.0) else { panic!("{summary:?}") };
        assert_eq!(names(&undecided), ["b"]);
        let seen = undecided[0].could_have_seen.unwrap();
        assert!((0.055..0.075).contains(&seen), "{seen}");
        assert!(matches!(
            gate(&table(&[1.0, 1.0 + seen], Measure::Wall, 20), 5.0),
            Gate::Failed(_)
        ));
    }

    #[test]
    fn too_few_runs_are_undecided_however_bad_they_look() {
        let Gate::Undecided(few) = gate(&table(&[1.0, 9.0], Measure::Wall, 7), 5.0) else {
            panic!("decided on seven rounds")
        };
        assert_eq!(few[0].could_have_seen, None);
        let nothing = summarize(&labels(2), Measure::Wall, Look::ONLY, &[]);
        assert!(matches!(gate(&nothing, 5.0), Gate::Undecided(_)), "decided on nothing");
    }

    #[test]
    fn the_reference_alone_passes() {
        assert_eq!(gate(&table(&[1.0], Measure::Wall, 10), 0.0), Gate::Passed);
    }
}
