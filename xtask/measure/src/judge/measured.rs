//! The truth: the program under every malloc of this machine and the main settings, in alternating runs of the lab's
//! engine.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use masu_lab::compare::Destination;
use masu_lab::plan::{self, Prepared};
use masu_lab::prove::{Rules, prove, prove_by};
use masu_lab::results::Rounds;
use masu_lab::statistics::{Looks, ratio};
use masu_lab::{
    Catalogue, CompareOptions, Event, Measure, Plan, Row, Run, Stop, Suite, Until, Workload,
};
use serde_json::Value;

use super::verdict;

/// The settings to try beside the mallocs with their defaults.
const SETTINGS: [&str; 3] = [
    "glibc:huge_pages=1",
    "glibc:top_pad=64M,trim_threshold=64M",
    // For heaps of any size, and not only for heaps of eight huge pages and more.
    "masu:huge_pages_from=0",
];

/// The most rounds while a remedy is open, and their longest duration: a remedy still open by then would take hours.
const ROUNDS: usize = 60;
const LONGEST: Duration = Duration::from_secs(150);

/// The rules by which runs are examined.
const RULES: Rules = Rules { looks: Looks::new, ratio, decided: verdict::decided };

fn open(variants: usize, primary: Measure, runs: &[Run]) -> Vec<usize> {
    RULES.open(variants, primary, runs)
}

/// The programs, and the mallocs there are for them.
pub(super) struct Programs {
    pub(super) suite: Suite,
    pub(super) catalogue: Catalogue,
}

impl Programs {
    /// The program under every malloc that was found.
    fn whole(&self, name: &str) -> Result<Plan> {
        let mut suite = self.suite.clone();
        suite.keep_only(&[name.to_owned()])?;
        let catalogue = &self.catalogue;
        let mut mallocs =
            |_| plan::Mallocs { catalogue: catalogue.clone(), ..plan::Mallocs::default() };
        let mut plan = Plan::make(&suite, &mut mallocs)?;
        let rows = &mut plan.cases.first_mut().context("a suite without a program")?.rows;
        rows.iter_mut().skip(1).for_each(|row| row.optional = true);
        Ok(plan)
    }

    /// The workload of the program called `name`.
    pub(super) fn workload(&self, name: &str) -> Result<Workload> {
        let plan = self.whole(name)?;
        let row = plan.cases.into_iter().flat_map(|case| case.rows).next();
        Ok(row.context("a program without rows")?.workload)
    }

    /// The program under these variants, or under all mallocs and the main settings; `beside` is whether the runs of a
    /// round share a CPU.
    pub(super) fn plan(
        &self,
        name: &str,
        variants: Option<&[String]>,
        rounds: Option<usize>,
        beside: bool,
    ) -> Result<Plan> {
        let mut plan = self.whole(name)?;
        match variants {
            None => self.add(&mut plan, SETTINGS),
            Some(labels) => {
                plan.cases[0].rows.truncate(1);
                self.add(&mut plan, labels.iter().map(String::as_str));
            }
        }
        if beside {
            plan.cases.iter_mut().for_each(Prepared::side_by_side);
        }
        plan.rounds = Rounds::Fixed(rounds.unwrap_or(ROUNDS));
        Ok(plan)
    }

    /// Adds rows for those variants that the program can have.
    fn add<'a>(&self, plan: &mut Plan, labels: impl IntoIterator<Item = &'a str>) {
        let rows = &mut plan.cases[0].rows;
        let workload = rows[0].workload.clone();
        for label in labels {
            let spec = label.parse().ok();
            let variant =
                spec.and_then(|spec| self.catalogue.resolve(&spec, &workload.program).ok());
            rows.extend(variant.map(|variant| Row {
                variant,
                workload: workload.clone(),
                optional: true,
            }));
        }
    }
}

/// Runs the plan, continuing from `results`, and returns the proof as JSON.
pub(super) fn measure(
    plan: &Plan,
    rounds: Option<usize>,
    results: &Path,
    stop: &Stop,
) -> Result<Value> {
    let mut observe = |event: Event<'_>| {
        if let Event::LeftOut { left_out, .. } = event {
            println!("    without {}: {}", left_out.label, left_out.reason);
        }
    };
    let mut made = |results| {
        let options = CompareOptions { results, ..CompareOptions::default() };
        if rounds.is_some() {
            return prove(plan, &options, stop, &mut observe);
        }
        let until = Some(Until { end: Instant::now() + LONGEST, rounds: 1, first: 0, spare: None });
        let options = CompareOptions { until, open: Some(open), ..options };
        prove_by(&RULES, plan, &options, stop, &mut observe)
    };
    // The results of an earlier call under another plan are of no use.
    let proof = match results.exists().then(|| made(Destination::Resume(results.to_owned()))) {
        Some(Ok(proof)) => proof,
        _ => made(Destination::New(results.to_owned()))?,
    };
    if proof.stopped {
        bail!("stopped");
    }
    Ok(serde_json::to_value(proof)?)
}
