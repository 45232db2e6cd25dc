//! The engine: every case of a plan gets verified warm-ups and alternating rounds in random order.
//!
//! Measurements survive a stop, a crash and a full disk. The order of runs, the repeated runs and the times of looks
//! at the table follow from the seed and the runs so far alone. So a comparison that was cut off goes on by
//! replaying its file (`series.rs`).

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::plan::{Plan, Prepared};
use crate::results::{Case, Journal, LeftOut, Record, Rounds};
use crate::server::Servers;
use crate::summary::{Condition, Criterion};
use crate::tables::{Extent, Source, Table};
use crate::{Header, Measure, Redact, Summary};
use masu_run::execute::Offsets;
use masu_run::executor::Executor;
use masu_run::{Error, Run, Stop, Variant};

mod clock;
mod commands;
mod header;
mod series;
mod surroundings;
mod warm_up;

use commands::Commands;
use series::{Progress, Series};
use surroundings::surroundings;
use warm_up::{Warm, WarmUps};

type Make<'m> =
    dyn for<'a> FnMut(&'a Prepared, Offsets) -> Result<Box<dyn Executor + 'a>, Error> + 'm;

#[derive(Debug, Clone, Default)]
pub enum Destination {
    /// No file: only the comparison itself is returned.
    #[default]
    Nowhere,
    /// This file (JSON lines), replaced if it exists and written after every run.
    New(PathBuf),
    /// This file, behind the records that an earlier comparison of the same plan left in it.
    Resume(PathBuf),
}

impl Destination {
    pub fn path(&self) -> Option<&Path> {
        match self {
            Destination::Nowhere => None,
            Destination::New(path) | Destination::Resume(path) => Some(path),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Seed of the order of runs and of their [`Offsets`], kept in the results; none for a seed from the clock, or for
    /// that of the comparison that is resumed.
    pub seed: Option<u64>,
    pub results: Destination,
    /// The words to take out of everything that is kept or returned.
    pub redact: Redact,
    /// A criterion that is fixed before the first run and kept with the results.
    pub decide: Option<Criterion>,
    /// The words that request the same comparison again, kept with the results; empty to keep none.
    pub asked: Vec<String>,
    /// The time for all timed runs together, judged by the warm-ups. Where the plan's rounds would take
    /// longer, fewer are made, but never too few for a verdict (12). The number is settled before the first timed run.
    pub within: Option<Duration>,
    /// The time at which fixed rounds end, whether all of them were made or not.
    pub until: Option<Until>,
    /// The choice of variants that fixed rounds go on with; none for all of them to the end.
    pub open: Option<Open>,
}

/// Chooses the variants that are still open: called after every round with the number of variants, the reference
/// included, the measure that decides and all runs so far. It returns the indices of the variants that stay; an empty
/// list ends the rounds. The reference stays in any case.
pub type Open = fn(variants: usize, primary: Measure, runs: &[Run]) -> Vec<usize>;

/// An end to fixed rounds, for a machine that turns out slower than expected.
#[derive(Debug, Clone, Copy)]
pub struct Until {
    /// No round begins that would end later than this.
    pub end: Instant,
    /// This many rounds are made in any case.
    pub rounds: usize,
    /// Where there is no time for so many rounds of all variants, the first of those that are open have them, and the
    /// others wait until one of these is decided. All go on with 0.
    pub first: usize,
    /// After so many rounds, none begins that would leave less than this time before the end: other runs need it.
    pub spare: Option<(usize, Duration)>,
}

impl Until {
    /// How many of `open` variants go on after `rounds` rounds, if each run takes `run`.
    pub(crate) fn fitting(&self, now: Instant, rounds: usize, run: Duration, open: usize) -> usize {
        let missing = self.first.saturating_sub(rounds);
        if missing == 0 {
            return open;
        }
        let left = self.end.saturating_duration_since(now);
        let runs = left.as_secs_f64() / run.as_secs_f64().max(1e-6) / missing as f64;
        // The reference has a run in each round too.
        (runs as usize).saturating_sub(1).max(1).min(open)
    }

    /// Whether no further round begins at `now`, after `rounds` rounds that took `round` each.
    pub(crate) fn is_over(&self, now: Instant, rounds: usize, round: Duration) -> bool {
        let spare = self.spare.filter(|(enough, _)| rounds >= *enough).map(|(_, spare)| spare);
        rounds >= self.rounds && now + round + spare.unwrap_or_default() > self.end
    }
}

#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    WarmUp {
        case: &'a str,
        variant: &'a Variant,
        /// Whether the program is a server, which becomes ready and does not end.
        is_server: bool,
        /// Whether commands of the user's run before it, which no limit ends.
        has_hooks: bool,
        done: usize,
        of: usize,
    },
    /// The warm-up run showed that the variant cannot take part.
    LeftOut { case: &'a str, left_out: &'a LeftOut },
    /// All warm-ups are done and the timed runs start.
    Planned {
        /// Timed runs to come; none where their number depends on their results.
        runs: Option<usize>,
        /// The most time that the runs will take, judged by the warm-ups (which are slower), or for servers by the
        /// length of their bursts; starts of servers that run one at a time come on top.
        estimate: Duration,
        /// Timed runs that are in the file already.
        resumed: usize,
    },
    Running {
        case: &'a str,
        variant: &'a Variant,
        done: usize,
        /// Timed runs in all, or the most there can be, if that is known.
        of: Option<usize>,
        /// The most time that the rest will take, this run included, judged by the runs so far.
        remaining: Duration,
    },
    Ran {
        /// Timed runs done so far, this one included.
        done: usize,
    },
    /// All runs of a case are made.
    Finished { case: &'a Case, summary: &'a Summary },
    /// An error ends the comparison, which has run something: these are its tables so far.
    CutShort { so_far: &'a Comparison },
}

#[derive(Debug, Clone)]
pub struct Comparison {
    pub header: Header,
    /// One table for each of the header's cases, in their order; a comparison that was stopped
    /// has only the tables of the cases it reached.
    pub tables: Vec<Table>,
    pub stopped: bool,
}

/// Measures `plan`. `observe` is called for each event, between runs, never during one. A warm-up that a limit ends is
/// an error, and so is one which shows that a variant that must work does not. A stop before the first timed run is
/// [`Error::Stopped`]; a later one returns what was measured, with [`Comparison::stopped`] set. [`Event::CutShort`] has
/// what was measured before a later error.
pub fn compare(
    plan: &Plan,
    options: &Options,
    stop: &Stop,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Comparison, Error> {
    let mut make: Box<Make<'_>> = Box::new(|prepared, offsets| {
        Ok(match &prepared.server {
            Some(server) => {
                let Prepared { rows, limits, hooks, .. } = prepared;
                Box::new(Servers::new(rows, server, limits, hooks, offsets)?) as Box<dyn Executor>
            }
            None => Box::new(Commands::new(prepared, offsets)?),
        })
    });
    compare_with(plan, options, stop, observe, &mut *make)
}

fn compare_with(
    plan: &Plan,
    options: &Options,
    stop: &Stop,
    observe: &mut dyn FnMut(Event<'_>),
    make: &mut Make<'_>,
) -> Result<Comparison, Error> {
    check(plan)?;
    check_criterion(plan, options.decide.as_ref())?;
    let (whole, mut plan) = (plan, plan.clone());
    let (journal, earlier) = match &options.results {
        Destination::Resume(path) => Journal::resume(path, &options.redact)?,
        other => (Journal::create(other.path(), &options.redact)?, Vec::new()),
    };
    let holds_runs = earlier.iter().any(|record| matches!(record, Record::Run(_)));
    let begun = Begun::from_records(earlier);
    if let (None, true, Some(path)) = (&begun, holds_runs, options.results.path()) {
        // Without runs nothing would be lost by starting again; here the runs would be lost.
        return Err(Error::Resume {
            path: path.to_owned(),
            reason: "it has runs but not one warm-up of each variant before them, or several \
                     comparisons in one; begin again in another file"
                .to_owned(),
        });
    }
    let mut engine = Engine { journal, options, stop, observe, make };
    let (header, begun, warm) = match begun {
        Some(begun) => (engine.go_on(&mut plan, &begun)?, begun, None),
        None => engine.begin(whole, &mut plan)?,
    };
    match engine.measure(&plan, &header, begun, warm) {
        Ok(stopped) => engine.conclude(&plan, stopped),
        Err(error) => {
            // A failure to read the runs back says less than what ended them.
            if let Ok(so_far) = engine.conclude(&plan, true) {
                (engine.observe)(Event::CutShort { so_far: &so_far });
            }
            Err(error)
        }
    }
}

/// Refuses a plan without workloads, runs or variants, and one that has a variant twice.
pub(crate) fn check(plan: &Plan) -> Result<(), Error> {
    if plan.cases.is_empty() {
        return Err(Error::Request("no workload given".to_owned()));
    }
    if plan.rounds == Rounds::Fixed(0) {
        return Err(Error::Request("no runs asked for; ask for one or more".to_owned()));
    }
    for prepared in &plan.cases {
        let labels: Vec<&str> =
            prepared.rows.iter().map(|row| row.variant.label.as_str()).collect();
        if labels.is_empty() {
            return Err(Error::Request(format!("`{}` has no variant", prepared.name)));
        }
        for (index, label) in labels.iter().enumerate() {
            if labels[..index].contains(label) {
                return Err(Error::Request(format!("`{label}` is given twice")));
            }
        }
    }
    Ok(())
}

/// Checks that some table has the criterion's variant, and the measures it uses.
fn check_criterion(plan: &Plan, criterion: Option<&Criterion>) -> Result<(), Error> {
    let Some(criterion) = criterion else { return Ok(()) };
    let others = |case: &Prepared| -> Vec<String> {
        case.rows.iter().skip(1).map(|row| row.variant.label.clone()).collect()
    };
    let has_it = |case: &&Prepared| others(case).contains(&criterion.variant);
    let Some(case) = plan.cases.iter().find(has_it) else {
        let known: Vec<String> = plan.cases.first().map(others).unwrap_or_default();
        let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
        return Err(Error::Request(format!(
            "the criterion is about `{}`, which is not compared with the reference; compared: {known}",
            criterion.variant,
        )));
    };
    let is_of_servers = |condition: &&Condition| condition.measure.is_of_servers();
    if case.server.is_none() && criterion.conditions.iter().any(|one| is_of_servers(&one)) {
        return Err(Error::Request(
            "the criterion asks for what only a server has; take wall, cpu, peak_rss, …".to_owned(),
        ));
    }
    Ok(())
}

/// An executor that is warm, with its index of each row that was not left out.
struct Remaining<'a> {
    executor: Box<dyn Executor + 'a>,
    places: Vec<usize>,
}

/// The records of a comparison when its timed runs start or go on.
struct Begun {
    header: Option<Header>,
    cases: Vec<BegunCase>,
}

#[derive(Default)]
struct BegunCase {
    warm_ups: Vec<Warm>,
    runs: Vec<Run>,
    is_finished: bool,
}

impl Begun {
    /// The records of a file; none where its warm-ups are not complete, so that nothing was timed, and
    /// where it is not the file of one comparison.
    fn from_records(records: Vec<Record>) -> Option<Begun> {
        let mut records = records.into_iter();
        let Some(Record::Header(header)) = records.next() else { return None };
        let mut cases: Vec<BegunCase> = Vec::new();
        cases.resize_with(header.cases.len(), BegunCase::default);
        for record in records {
            match record {
                Record::Header(_) => return None,
                Record::WarmUp { evidence, run } => {
                    cases.get_mut(run.case)?.warm_ups.push(Warm::of(&run, evidence));
                }
                Record::Run(run) => {
                    header.cases.get(run.case)?.variants.get(run.variant)?;
                    cases.get_mut(run.case)?.runs.push(run);
                }
                Record::Summary { case, .. } => {
                    let case = cases.get_mut(case)?;
                    case.is_finished = true;
                }
            }
        }
        let expected = header.cases.iter().map(|case| case.variants.len());
        let is_whole = cases.iter().zip(expected).all(|(case, count)| case.warm_ups.len() == count);
        is_whole.then_some(Begun { header: Some(header), cases })
    }
}

struct Engine<'a, 'm> {
    journal: Journal,
    options: &'a Options,
    stop: &'a Stop,
    observe: &'a mut dyn FnMut(Event<'_>),
    make: &'a mut Make<'m>,
}

impl Engine<'_, '_> {
    /// Makes the warm-ups of `whole` and writes the header, which lists the variants that could not take part; they
    /// are removed from `plan`. If there is only one case, it stays warm.
    fn begin<'p>(
        &mut self,
        whole: &'p Plan,
        plan: &mut Plan,
    ) -> Result<(Header, Begun, Option<Remaining<'p>>), Error> {
        let seed = self.options.seed.unwrap_or_else(header::seed_from_clock);
        // The header reads every file first, before minutes are spent on a file that cannot be read.
        let mut header = header::header(plan, seed, self.options)?;
        let mut cases = Vec::new();
        let mut records = Vec::new();
        let mut warm = None;
        let of = plan.cases.iter().map(|prepared| prepared.rows.len()).sum();
        let mut done = 0;
        for (index, prepared) in whole.cases.iter().enumerate() {
            let mut executor = (self.make)(prepared, offsets(seed, index, 0))?;
            let made = {
                let observe = &mut *self.observe;
                let executor = &mut *executor;
                let mut warm_ups = WarmUps { executor, stop: self.stop, observe, done, of };
                warm_ups.make(index, &mut plan.cases[index], &mut records)
            };
            if whole.cases.len() > 1 || made.is_err() {
                let finished = executor.finish();
                let (warm_ups, _) = made?;
                finished?;
                cases.push(BegunCase { warm_ups, ..BegunCase::default() });
            } else {
                let (warm_ups, places) = made?;
                cases.push(BegunCase { warm_ups, ..BegunCase::default() });
                warm = Some(Remaining { executor, places });
            }
            done += prepared.rows.len();
        }
        header.cases = plan.cases.iter().map(Prepared::case).collect();
        if let Some(within) = self.options.within {
            plan.rounds = series::rounds_within(plan, &cases, within);
            header.rounds = plan.rounds;
        }
        let written = series::check_budget(plan, &cases)
            .and_then(|()| self.write_beginning(&header, &records));
        if let (Err(_), Some(warm)) = (&written, &mut warm) {
            warm.executor.finish()?;
        }
        written?;
        Ok((header, Begun { header: None, cases }, warm))
    }

    fn write_beginning(&mut self, header: &Header, warm_ups: &[Record]) -> Result<(), Error> {
        self.journal.clear()?;
        self.journal.write(&Record::Header(header.clone()))?;
        warm_ups.iter().try_for_each(|record| self.journal.write(record))
    }

    /// Checks that `plan` is the plan of the results to go on with.
    fn go_on(&mut self, plan: &mut Plan, begun: &Begun) -> Result<Header, Error> {
        let Some(earlier) = &begun.header else { unreachable!("it was read from a file") };
        let redact = &self.options.redact;
        if self.options.within.is_some() {
            plan.rounds = earlier.rounds;
        }
        header::leave_out_again(plan, earlier, redact);
        let seed = self.options.seed.unwrap_or(earlier.seed);
        let mut planned = header::header(plan, seed, self.options)?;
        redact.all_of(&mut planned);
        let path = self.options.results.path().unwrap_or(Path::new(""));
        header::check_same(path, earlier, &planned)?;
        Ok(earlier.clone())
    }

    /// Makes the timed runs that are not made yet; returns whether the comparison was stopped before the end.
    fn measure<'p>(
        &mut self,
        plan: &'p Plan,
        header: &Header,
        begun: Begun,
        mut warm: Option<Remaining<'p>>,
    ) -> Result<bool, Error> {
        let mut progress = Progress::new(plan, &begun.cases);
        (self.observe)(progress.planned());
        for (index, (prepared, behind)) in plan.cases.iter().zip(begun.cases).enumerate() {
            if behind.is_finished {
                continue;
            }
            let (mut executor, places, is_warm) = match warm.take() {
                Some(Remaining { executor, places }) => (executor, places, true),
                None => {
                    let offsets = offsets(header.seed, index, 1 + behind.runs.len());
                    let mut executor = (self.make)(prepared, offsets)?;
                    behind.warm_ups.iter().for_each(|warm| executor.recall(warm.peak_rss_bytes));
                    // A case that was just warmed up needs no second warm-up, unless it has to stay warm.
                    let is_warm = begun.header.is_none() && !executor.is_kept_warm();
                    (executor, (0..prepared.rows.len()).collect(), is_warm)
                }
            };
            let made = if is_warm {
                Ok(())
            } else {
                warm_up::again(&mut *executor, prepared.rows.len(), self.stop)
            };
            let made = made.and_then(|()| {
                let mut series = Series {
                    index,
                    prepared,
                    rounds: plan.rounds,
                    until: self.options.until,
                    open: self.options.open,
                    executor: &mut *executor,
                    places,
                    journal: &mut self.journal,
                    progress: &mut progress,
                    stop: self.stop,
                    observe: self.observe,
                };
                series.make(header.seed, behind)
            });
            let finished = executor.finish();
            let summary = match made {
                Err(Error::Stopped) => None,
                made => made?,
            };
            let Some(mut summary) = summary else { return finished.map(|()| true) };
            let remarks = executor.remarks();
            summary.warnings.extend(remarks.warnings);
            summary.notes.extend(remarks.notes);
            (self.observe)(Event::Finished { case: &header.cases[index], summary: &summary });
            self.journal.write(&Record::Summary { case: index, summary })?;
            // The cleanup's error comes after the summary: a failed cleanup makes the measurements no worse.
            finished?;
        }
        Ok(false)
    }

    fn conclude(&mut self, plan: &Plan, stopped: bool) -> Result<Comparison, Error> {
        let source = Source::from_records(self.journal.read_back()?);
        let source = source.map_err(|reason| Error::Request(format!("reading back: {reason}")))?;
        let mut tables = source.tables;
        tables.retain(|table| !table.runs.is_empty());
        if tables.is_empty() {
            return Err(Error::Stopped);
        }
        for (table, prepared) in tables.iter_mut().zip(&plan.cases) {
            if table.extent == Extent::CutOff {
                table.extent = Extent::Stopped;
                let warnings = surroundings(prepared, &table.evidence);
                table.summary.warnings.splice(0..0, warnings);
            }
        }
        Ok(Comparison { header: source.header, tables, stopped })
    }
}

/// The offsets of a case; `part` distinguishes its warm-ups from its timed runs, and these from the runs of an earlier
/// process.
fn offsets(seed: u64, case: usize, part: usize) -> Offsets {
    Offsets::random(seed.wrapping_add((case as u64) << 32).wrapping_add((part as u64) << 8))
}

#[cfg(test)]
mod tests;
