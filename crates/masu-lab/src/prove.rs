//! A proof: remedies compared with a program as it is, each with its ratios and a verdict.
//!
//! Relies on [`compare`](crate::compare()) for every run; there is no second way to measure. The hard idea: a remedy
//! that cannot take part is an answer like any other and no reason to fail, so it is among the results with its
//! reason. `masu diagnose --prove` asks for proofs, and so does every stage of [`tune`](mod@crate::tune).

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::compare::Event;
use crate::results::{LeftOut, Rounds, Row};
use crate::statistics::{CONFIDENCE, Ratio};
use crate::{CompareOptions, Comparison, Measure, Plan, Summary, Verdict, compare, summary};
use masu_run::{Ending, Error, Stop, Variant, Workload};

mod rounds;
mod values;

pub use rounds::{RatioOf, Rules};
pub(crate) use values::Values;

/// Rounds of a proof where the caller does not say: under 2 % noise, enough to show a gain of 5 % in
/// nearly every proof of a few remedies, and two thirds of a comparison's rounds.
pub const DEFAULT_ROUNDS: usize = 20;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Proof {
    /// The measure that carries the verdicts.
    pub primary: Measure,
    /// The confidence of all verdicts together that runs of the same rounds gave: 0.99.
    pub confidence: f64,
    /// Rounds asked for, each with one run of the reference and of every remedy.
    pub rounds: usize,
    /// Whether the runs of a round were made at the same time, on one CPU: then only CPU times are meaningful.
    pub side_by_side: bool,
    pub reference: Medians,
    /// The usual ending of its runs: `returned 0`. None without a run that counts.
    pub ending: Option<String>,
    /// The last line that a run said on its standard error, if the usual ending is a failure.
    pub said: Option<String>,
    /// The remedies, in the order of the request.
    pub remedies: Vec<Proved>,
    /// Runs made, warm-ups included.
    pub runs: usize,
    /// Wall-clock seconds of the whole proof.
    pub seconds: f64,
    /// Whether every run had the same output and exit code.
    pub repeatable: bool,
    /// Whether the proof was stopped before all rounds were made.
    pub stopped: bool,
    /// Warnings that the reader must know before trusting the verdicts, each with advice.
    pub warnings: Vec<String>,
}

/// The median time and memory of a variant's runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Medians {
    pub label: String,
    /// Wall-clock seconds; none without a run that counts, here and below.
    pub wall_s: Option<f64>,
    /// CPU seconds, in the program's code and in the kernel.
    pub cpu_s: Option<f64>,
    /// The kernel's part of the CPU seconds.
    pub sys_s: Option<f64>,
    /// Peak resident bytes of the process tree.
    pub peak_rss_bytes: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proved {
    #[serde(flatten)]
    pub medians: Medians,
    pub shown: Shown,
    /// The remedy's wall-clock time over the reference's; none where there is no pair of runs, here and below.
    pub wall: Option<Ratio>,
    /// The remedy's CPU time over the reference's.
    pub cpu: Option<Ratio>,
    /// The remedy's peak resident memory over the reference's; none too where it is too small to be seen.
    pub peak_rss: Option<Ratio>,
}

/// The verdict on a remedy, by the primary measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Shown {
    /// The whole interval lies on the better side of 1.
    Gain,
    /// The interval contains 1.
    NoDifference {
        /// The smallest relative difference that nine of ten such series would have shown.
        could_have_seen: f64,
    },
    /// The whole interval lies on the worse side of 1.
    Worse,
    TooFewRuns {
        pairs: usize,
        needed: usize,
    },
    /// There were enough runs, but the primary measure is zero in too many of them, or not known.
    NoRatio,
    /// In too many rounds a run of the pair did not end as it should.
    RunsFailed {
        /// Rounds in which the remedy's run or the reference's does not count.
        failed: usize,
        /// Rounds in which both were run.
        of: usize,
    },
    /// The remedy could not take part.
    LeftOut {
        reason: String,
    },
}

impl Proved {
    /// The ratio of `measure`, if a proof keeps that measure.
    pub fn ratio(&self, measure: Measure) -> Option<Ratio> {
        match measure {
            Measure::Wall => self.wall,
            Measure::Cpu => self.cpu,
            Measure::PeakRss => self.peak_rss,
            _ => None,
        }
    }
}

/// The announcement of a proof of `remedies` remedies in `rounds` rounds, where one run of the program takes `run_s`
/// seconds.
///
/// ```
/// assert_eq!(masu_lab::prove::forecast(2, 20, 1.5), "about 63 runs, about 2 minutes");
/// ```
pub fn forecast(remedies: usize, rounds: usize, run_s: f64) -> String {
    // Warm-ups are runs, too.
    let runs = (remedies + 1).saturating_mul(rounds + 1);
    let duration = Duration::try_from_secs_f64(run_s.max(0.0) * runs as f64);
    let duration = duration.unwrap_or(Duration::MAX);
    format!("about {runs} runs, {}", masu_run::quantity::about(duration))
}

pub fn plan(workload: &Workload, reference: &Variant, remedies: &[Variant], rounds: usize) -> Plan {
    let variants: Vec<Variant> = std::iter::once(reference).chain(remedies).cloned().collect();
    let mut plan = Plan::single(workload, &variants, Rounds::Fixed(rounds));
    for row in plan.cases.iter_mut().flat_map(|case| case.rows.iter_mut().skip(1)) {
        row.optional = true;
    }
    plan
}

/// Runs the only case of `plan`, whose first row is the reference and whose other rows are remedies, and returns the
/// verdict on each. `observe` receives the events of [`compare`](crate::compare()), including the number of runs and
/// their duration. A remedy that may be left out ([`Row::optional`](masu_run::Row)) and cannot take part is no error.
pub fn prove(
    plan: &Plan,
    options: &CompareOptions,
    stop: &Stop,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Proof, Error> {
    prove_with_values(plan, options, stop, observe).map(|(proof, _)| proof)
}

/// [`prove`], judged by `rules`; where `options` asks them, the rounds go on with the remedies they leave open.
pub fn prove_by(
    rules: &Rules,
    plan: &Plan,
    options: &CompareOptions,
    stop: &Stop,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Proof, Error> {
    let (mut proof, values) = prove_with_values(plan, options, stop, observe)?;
    rules.conclude(&mut proof, &values);
    Ok(proof)
}

/// [`prove`], with the values of each run.
pub(crate) fn prove_with_values(
    plan: &Plan,
    options: &CompareOptions,
    stop: &Stop,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<(Proof, Values), Error> {
    let [case] = plan.cases.as_slice() else {
        return Err(Error::Request("a proof is of one command".to_owned()));
    };
    let labels: Vec<String> = case.rows.iter().map(|row| row.variant.label.clone()).collect();
    let rounds = match plan.rounds {
        Rounds::Fixed(rounds) => rounds,
        Rounds::Budget { .. } | Rounds::UntilDecided { .. } => 0,
    };
    let mut left_out = case.left_out.clone();
    let began = Instant::now();
    let made = {
        let left_out = &mut left_out;
        compare(plan, options, stop, &mut |event| {
            if let Event::LeftOut { left_out: one, .. } = &event {
                left_out.push((*one).clone());
            }
            observe(event);
        })
    };
    let seconds = began.elapsed().as_secs_f64();
    match made {
        Ok(comparison) => {
            let mut proof = of_comparison(&labels, &comparison);
            let rounds = options.until.map_or(rounds, |_| rounds_made(&comparison).min(rounds));
            if case.is_side_by_side {
                proof.forget_wall();
            }
            let values = comparison.tables.first().map_or_else(Values::default, |table| {
                Values::of(&labels, &table.case.labels(), proof.primary, &table.runs)
            });
            Ok((Proof { rounds, seconds, ..proof }, values))
        }
        Err(error) => {
            // The engine does not go on with the reference alone; this too is an answer.
            let is_optional = |label: &str| {
                case.rows.iter().any(|row| row.optional && row.variant.label == label)
            };
            let Some(label) = culprit(&error).filter(|label| is_optional(label)) else {
                return Err(error);
            };
            left_out.push(LeftOut { label: label.to_owned(), reason: error.to_string() });
            let proof = Proof::of(&labels, case.primary, None, &left_out);
            Ok((Proof { rounds, seconds, runs: labels.len(), ..proof }, Values::default()))
        }
    }
}

/// The variant that an error is about, if the error may leave that variant out.
fn culprit(error: &Error) -> Option<&str> {
    match error {
        Error::NotInEffect { variant, .. }
        | Error::CannotRun { variant, .. }
        | Error::WarmUp { variant, .. } => Some(variant),
        _ => None,
    }
}

/// The number of rounds made, which may be fewer than planned where the time ended.
fn rounds_made(comparison: &Comparison) -> usize {
    let runs = comparison.tables.first().map_or(&[][..], |table| &table.runs[..]);
    runs.iter().filter_map(|run| run.round).max().map_or(0, |last| last + 1)
}

fn of_comparison(labels: &[String], comparison: &Comparison) -> Proof {
    let table = comparison.tables.first();
    let (summary, left_out) =
        table.map_or((None, &[][..]), |table| (Some(&table.summary), &table.case.left_out[..]));
    let primary = summary.map_or(Measure::Wall, |summary| summary.primary);
    let runs = table.map_or(0, |table| table.runs.len()) + labels.len();
    let stopped = comparison.stopped;
    let counted = table.and_then(|table| summary::valid(&table.runs).first().copied());
    let ending = counted.map(|run| run.ending.to_string());
    let failed = counted.filter(|run| run.ending != Ending::Exited(0));
    let said = failed.map(|run| run.stderr.said()).filter(|said| !said.is_empty());
    Proof { ending, said, runs, stopped, ..Proof::of(labels, primary, summary, left_out) }
}

impl Proof {
    /// Adds the results of further remedies from further runs, beside the same reference. Each verdict is as sure as
    /// before, all together are less sure.
    pub(crate) fn add(&mut self, more: Proof) {
        self.remedies.extend(more.remedies);
        self.rounds = self.rounds.max(more.rounds);
        self.runs += more.runs;
        self.seconds += more.seconds;
        self.repeatable &= more.repeatable;
        self.stopped |= more.stopped;
        let is_new = |warning: &String| !self.warnings.contains(warning);
        let new: Vec<String> = more.warnings.into_iter().filter(is_new).collect();
        self.warnings.extend(new);
    }

    /// Forgets wall-clock times: programs that took turns waited for each other all the time.
    fn forget_wall(&mut self) {
        self.side_by_side = true;
        self.reference.wall_s = None;
        for remedy in &mut self.remedies {
            (remedy.wall, remedy.medians.wall_s) = (None, None);
        }
    }

    /// The proof in `summary` about the variants `labels`, the first of which is the reference.
    pub(crate) fn of(
        labels: &[String],
        primary: Measure,
        summary: Option<&Summary>,
        left_out: &[LeftOut],
    ) -> Proof {
        let row = |label: &String| {
            summary.and_then(|summary| summary.rows.iter().find(|row| row.variant == *label))
        };
        let reason = |label: &String| {
            let known = left_out.iter().find(|one| one.label == *label);
            let reason = known.map_or("the reference ran alone", |one| one.reason.as_str());
            Shown::LeftOut { reason: reason.to_owned() }
        };
        let proved = |label: &String| {
            let row = row(label);
            let ratio = |measure| row?.estimate(measure)?.ratio;
            Proved {
                medians: medians(label, row),
                shown: row.map_or_else(|| reason(label), |row| shown(row.verdict)),
                wall: ratio(Measure::Wall),
                cpu: ratio(Measure::Cpu),
                peak_rss: ratio(Measure::PeakRss),
            }
        };
        let reference = labels.first().cloned().unwrap_or_default();
        Proof {
            primary,
            confidence: CONFIDENCE,
            reference: medians(&reference, row(&reference)),
            remedies: labels.iter().skip(1).map(proved).collect(),
            repeatable: summary.is_none_or(|summary| summary.repeatable),
            warnings: summary.map(|summary| summary.warnings.clone()).unwrap_or_default(),
            ..Proof::default()
        }
    }
}

fn medians(label: &str, row: Option<&Row>) -> Medians {
    let median = |measure| row?.estimate(measure)?.median;
    Medians {
        label: label.to_owned(),
        wall_s: median(Measure::Wall),
        cpu_s: median(Measure::Cpu),
        sys_s: median(Measure::Sys),
        peak_rss_bytes: median(Measure::PeakRss),
    }
}

fn shown(verdict: Verdict) -> Shown {
    match verdict {
        Verdict::Faster => Shown::Gain,
        Verdict::Slower => Shown::Worse,
        // The reference is not compared with itself.
        Verdict::Reference => Shown::NoDifference { could_have_seen: 0.0 },
        Verdict::NoDifferenceShown { could_have_seen } => Shown::NoDifference { could_have_seen },
        Verdict::TooFewRuns { pairs, needed } => Shown::TooFewRuns { pairs, needed },
        Verdict::NoRatio => Shown::NoRatio,
        Verdict::RunsFailed { failed, of } => Shown::RunsFailed { failed, of },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Look;
    use crate::summary::simulation::{self, Machine, Noise};
    use crate::summary::summarize;
    use masu_run::{Catalogue, Input, Places};

    /// A proof on a simulated machine with 1 % of noise.
    fn fixture(truth: &[f64], rounds: usize) -> Proof {
        let labels = simulation::labels(truth.len());
        let mut machine = Machine::new(Noise::Normal(0.01), 1);
        let runs = simulation::Comparison::of(truth).runs(&mut machine, rounds);
        let summary = summarize(&labels, Measure::Wall, Look::ONLY, &runs);
        Proof::of(&labels, Measure::Wall, Some(&summary), &[])
    }

    /// A command with the system's malloc, and with a setting of it.
    fn command() -> (Workload, [Variant; 2]) {
        let workload = Workload::new(["sh", "-c", "echo hello"], Input::Empty).unwrap();
        let catalogue = Catalogue::find(&Places::default());
        let variants = ["system", "system:top_pad=1M"]
            .map(|text| catalogue.resolve(&text.parse().unwrap(), &workload.program).unwrap());
        (workload, variants)
    }

    #[test]
    fn a_gain_a_loss_and_nothing_are_distinguished() {
        let proof = fixture(&[1.0, 0.8, 1.2, 1.0], DEFAULT_ROUNDS);
        let shown: Vec<&Shown> = proof.remedies.iter().map(|one| &one.shown).collect();
        assert!(
            matches!(shown[..], [Shown::Gain, Shown::Worse, Shown::NoDifference { .. }]),
            "{shown:?}"
        );
        let (low, high) = proof.remedies[0].wall.unwrap().interval.unwrap();
        assert!(low < 0.8 && high > 0.8, "{low} {high}");
    }

    #[test]
    fn few_rounds_give_ratios_and_no_verdict() {
        let proof = fixture(&[1.0, 0.5], 3);
        assert_eq!(proof.remedies[0].shown, Shown::TooFewRuns { pairs: 3, needed: 8 });
        assert!(proof.remedies[0].wall.unwrap().interval.is_none());
    }

    #[test]
    fn a_remedy_without_a_row_is_left_out_with_its_reason() {
        let labels = simulation::labels(3);
        let left_out = [LeftOut { label: "c".to_owned(), reason: "it is not here".to_owned() }];
        let proof = Proof::of(&labels, Measure::Wall, None, &left_out);
        let expected_outcome = Shown::LeftOut { reason: "it is not here".to_owned() };
        assert_eq!(proof.remedies[1].shown, expected_outcome);
        assert!(matches!(proof.remedies[0].shown, Shown::LeftOut { .. }));
    }

    #[test]
    fn remedies_run_side_by_side_are_judged_by_cpu_time_alone() {
        let (workload, [reference, remedy]) = command();
        let mut plan = plan(&workload, &reference, &[remedy], 3);
        plan.cases[0].side_by_side();
        let made = prove(&plan, &CompareOptions::default(), &Stop::never(), &mut |_| {}).unwrap();
        assert_eq!((made.primary, made.side_by_side), (Measure::Cpu, true));
        assert_eq!(made.remedies[0].shown, Shown::TooFewRuns { pairs: 3, needed: 8 });
        assert_eq!((made.remedies[0].wall, made.reference.wall_s), (None, None));
        assert!(made.reference.cpu_s.is_some() && made.repeatable, "{made:?}");
    }

    #[test]
    fn remedies_of_a_real_command_are_run_by_the_engine() {
        let (workload, [reference, remedy]) = command();
        let plan = plan(&workload, &reference, &[remedy], 2);
        let mut announced = None;
        let proof = prove(&plan, &CompareOptions::default(), &Stop::never(), &mut |event| {
            if let Event::Planned { runs, .. } = event {
                announced = runs;
            }
        });
        let proof = proof.unwrap();
        assert_eq!((announced, proof.rounds, proof.repeatable), (Some(4), 2, true));
        assert_eq!(proof.reference.label, "system");
        assert_eq!(proof.remedies[0].shown, Shown::TooFewRuns { pairs: 2, needed: 8 });
        assert!(proof.remedies[0].wall.is_some() && proof.reference.wall_s.is_some());
    }

    #[test]
    fn a_remedy_that_is_alone_and_does_not_work_is_an_answer() {
        let (workload, [reference, _]) = command();
        let remedy = Variant {
            label: "gone".to_owned(),
            // The loader ignores the file, because it is no library.
            library: Some(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into()),
            ..reference.clone()
        };
        let plan = plan(&workload, &reference, &[remedy], 2);
        let proof = prove(&plan, &CompareOptions::default(), &Stop::never(), &mut |_| {}).unwrap();
        let Shown::LeftOut { reason } = &proof.remedies[0].shown else { panic!("{proof:?}") };
        assert!(reason.contains("gone"), "{reason}");
    }
}
