//! Variants × runs: a verified warm-up each, then alternating rounds in random order.
//!
//! It ties the other modules together and holds no knowledge of its own but this: what is run
//! when, what is said meanwhile, and that whatever was measured survives a stop.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::execute::Offsets;
use crate::report::{Extent, Table};
use crate::results::{self, Case, LeftOut, Record, SCHEMA_VERSION, Writer};
use crate::server::{ServerPlan, Servers};
use crate::statistics::Look;
use crate::summary::summarise;
use crate::{
    Ending, Error, Evidence, Header, Hooks, Limits, Machine, Measure, Row, Run, Scratch,
    ScratchFolder, Stop, Variant, Workload,
};

mod commands;
mod order;

pub(crate) use commands::Commands;
pub(crate) use order::Rounds;

/// What can bring the variants of a case to run and measure them, again and again: commands that
/// run to their end, or servers that are kept warm.
pub(crate) trait Executor {
    /// Brings the variant at `index` to where it can be measured and proves that it takes effect.
    fn warm_up(&mut self, index: usize, stop: &Stop) -> Result<(Run, Evidence), Error>;

    /// Makes one timed run of the variant at `index`.
    fn run(&mut self, index: usize, stop: &Stop) -> Result<Run, Error>;

    /// Ends whatever still runs, also after an error or a stop.
    fn finish(&mut self) -> Result<(), Error>;

    /// What there is to say besides the runs, when everything has ended.
    fn remarks(&self) -> Remarks {
        Remarks::default()
    }
}

/// What an executor has to say of its variants.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    /// What the reader must know before trusting the verdicts, each with advice.
    pub(crate) warnings: Vec<String>,
    /// What else there is to know.
    pub(crate) notes: Vec<String>,
}

/// Rounds when the caller does not say: under 2 % noise (a virtual machine left alone) enough to
/// find a 3 % difference in 19 of 20 tables of five variants. 20 rounds find it in 17.
pub const DEFAULT_RUNS: usize = 30;

/// How to compare.
#[derive(Debug, Clone)]
pub struct Options {
    /// Runs of each variant, warm-up not counted.
    pub runs: usize,
    /// Seed of the order of runs; none for one from the clock. It is kept in the results.
    pub seed: Option<u64>,
    /// What each run may use.
    pub limits: Limits,
    /// A results file (JSON lines), replaced if it exists and written after every run.
    pub results: Option<PathBuf>,
    /// The measure that carries the verdict.
    pub primary: Measure,
    /// How to compare servers; none for commands that run to their end.
    pub server: Option<ServerPlan>,
    /// Variants that were to take part and cannot; they are kept in the results.
    pub left_out: Vec<LeftOut>,
    /// Whether each run's environment is made longer by a random number of bytes, drawn from the
    /// seed: see [`Offsets`].
    pub offsets: bool,
    /// Shell commands around the runs.
    pub hooks: Hooks,
    /// The folder each run starts in.
    pub scratch: Scratch,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            runs: DEFAULT_RUNS,
            seed: None,
            limits: Limits::default(),
            results: None,
            primary: Measure::Wall,
            server: None,
            left_out: Vec::new(),
            offsets: true,
            hooks: Hooks::default(),
            scratch: Scratch::None,
        }
    }
}

/// Something happened during a comparison.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The warm-up run of a variant starts.
    WarmUp {
        /// Which variant.
        variant: &'a Variant,
        /// Its index.
        index: usize,
        /// How many variants there are.
        of: usize,
    },
    /// The warm-up run showed that the variant is in effect.
    Verified {
        /// Which variant.
        variant: &'a Variant,
        /// What was seen.
        evidence: &'a Evidence,
        /// The warm-up run; its times are those of a traced program.
        run: &'a Run,
    },
    /// All warm-ups are done and the timed runs start.
    Planned {
        /// Timed runs to come.
        runs: usize,
        /// How long they will take, judged by the warm-ups (which are slower).
        estimate: Duration,
    },
    /// A timed run starts.
    Running {
        /// Which variant.
        variant: &'a Variant,
        /// Timed runs done so far.
        done: usize,
        /// Timed runs in all.
        of: usize,
        /// How long the rest will take, this run included, judged by the runs so far.
        remaining: Duration,
    },
    /// A timed run is over.
    Ran {
        /// Which variant.
        variant: &'a Variant,
        /// What it came to.
        run: &'a Run,
        /// Timed runs done so far, this one included.
        done: usize,
        /// Timed runs in all.
        of: usize,
    },
}

/// What a comparison came to.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// What was compared, where and how.
    pub header: Header,
    /// One table for each of the header's cases, in their order; of a comparison that was stopped
    /// those that it came to.
    pub tables: Vec<Table>,
    /// Whether it was stopped before all runs were made.
    pub stopped: bool,
}

/// Compares `variants` on `workload`; the first is the reference. `observe` is called as things
/// happen, between runs, never during one.
///
/// # Errors
///
/// [`Error::Compare`] without variants, without runs, or with two equal labels;
/// [`Error::NotInEffect`] when a warm-up shows that a variant's library did not serve the program;
/// [`Error::WarmUp`] when a warm-up run is killed by a limit; [`Error::Stopped`] when stopped before
/// the first timed run; [`Error::System`] when the system or the results file refuses. A stop later
/// returns what was measured, with [`Comparison::stopped`] set.
pub fn compare(
    workload: &Workload,
    variants: &[Variant],
    options: &Options,
    stop: &Stop,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Comparison, Error> {
    check(variants, options)?;
    let header = header(workload, variants, options);
    let mut writer = Writer::create(options.results.as_deref())?;
    writer.write(&Record::Header(header.clone()))?;
    let offsets = if options.offsets { Offsets::random(header.seed) } else { Offsets::none() };
    let row = |variant: &Variant| Row { variant: variant.clone(), workload: workload.clone() };
    let rows: Vec<Row> = variants.iter().map(row).collect();
    let scratch = ScratchFolder::create(&options.scratch)?;
    let mut executor: Box<dyn Executor> = match &options.server {
        Some(plan) => Box::new(
            Servers::new(&rows, plan, &options.limits, offsets)?.with_hooks(options.hooks.clone()),
        ),
        None => Box::new(
            Commands::new(&rows, &options.limits, offsets)
                .with_hooks(options.hooks.clone())
                .with_scratch(scratch.as_ref()),
        ),
    };
    let executor = &mut *executor;
    let mut series = Series { executor, variants, options, stop, observe, writer };
    let made = series.make(header.seed);
    let finished = series.executor.finish();
    let (warm_ups, runs, stopped) = made?;
    finished?;
    if stopped && runs.is_empty() {
        return Err(Error::Stopped);
    }
    let mut summary = summarise(&header.cases[0].labels(), options.primary, Look::ONLY, &runs);
    summary.warnings.splice(0..0, surroundings(workload, variants, &warm_ups));
    let remarks = series.executor.remarks();
    summary.warnings.extend(remarks.warnings);
    summary.notes.extend(remarks.notes);
    series.writer.write(&Record::Summary { case: 0, summary: summary.clone() })?;
    let evidence = warm_ups.into_iter().map(|(_, evidence)| evidence).collect();
    let extent = if stopped { Extent::Stopped } else { Extent::Whole };
    let table = Table { case: header.cases[0].clone(), evidence, runs, summary, extent };
    Ok(Comparison { header, tables: vec![table], stopped })
}

fn check(variants: &[Variant], options: &Options) -> Result<(), Error> {
    if variants.is_empty() {
        return Err(Error::Compare("no variant given".to_owned()));
    }
    if options.runs == 0 {
        return Err(Error::Compare("no runs asked for; ask for one or more".to_owned()));
    }
    for (index, variant) in variants.iter().enumerate() {
        if variants[..index].iter().any(|earlier| earlier.label == variant.label) {
            return Err(Error::Compare(format!("`{}` is given twice", variant.label)));
        }
    }
    Ok(())
}

fn header(workload: &Workload, variants: &[Variant], options: &Options) -> Header {
    let lossy = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
    Header {
        schema_version: SCHEMA_VERSION,
        masu_version: env!("CARGO_PKG_VERSION").to_owned(),
        began: jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default().to_string(),
        suite: None,
        cases: vec![Case {
            name: workload.arguments.first().map(lossy).unwrap_or_default(),
            command: workload.arguments.iter().map(lossy).collect(),
            variants: variants.to_vec(),
            primary: options.primary,
            left_out: options.left_out.clone(),
            ..Case::default()
        }],
        rounds: results::Rounds::Fixed(options.runs),
        seed: options.seed.unwrap_or_else(seed_from_clock),
        machine: Machine::here(),
        files: Vec::new(),
    }
}

fn seed_from_clock() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Milliseconds keep the seed short enough to be typed again.
    u64::try_from(now.as_millis()).unwrap_or(0)
}

/// What was there before any run and may mislead the reader.
fn surroundings(
    workload: &Workload,
    variants: &[Variant],
    warm_ups: &[(Run, Evidence)],
) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(preload) = std::env::var_os("LD_PRELOAD").filter(|value| !value.is_empty()) {
        warnings.push(format!(
            "LD_PRELOAD was set already ({}) and was kept behind each variant's library; \
             unset it to compare with the system's own malloc",
            preload.display()
        ));
    }
    if let Some(reason) = &workload.program.refusal {
        warnings.push(format!("only settings can be compared on this program: {reason}"));
    }
    if let Some(library) = &workload.program.linked_malloc {
        for variant in variants.iter().filter(|variant| variant.library.is_none()) {
            warnings.push(format!(
                "`{}` runs {library}, with which the program is linked, and not the C library's \
                 malloc; `-a glibc` runs that one",
                variant.label
            ));
        }
    }
    for (variant, (_, evidence)) in variants.iter().zip(warm_ups) {
        if !evidence.served.is_empty() && !evidence.not_served.is_empty() {
            warnings.push(format!(
                "`{}` did not serve every program: {}",
                variant.label,
                evidence.not_served.join("; ")
            ));
        }
    }
    warnings.extend(notes(variants, warm_ups));
    warnings
}

/// The notes of the warm-ups, each once with the variants it is about.
fn notes(variants: &[Variant], warm_ups: &[(Run, Evidence)]) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for (variant, (_, evidence)) in variants.iter().zip(warm_ups) {
        for note in &evidence.notes {
            match notes.iter_mut().find(|(known, _)| known == note) {
                Some((_, labels)) => labels.push(&variant.label),
                None => notes.push((note, vec![&variant.label])),
            }
        }
    }
    notes.into_iter().map(|(note, labels)| format!("{}: {note}", labels.join(", "))).collect()
}

/// The runs of one comparison on their way.
struct Series<'a> {
    executor: &'a mut (dyn Executor + 'a),
    variants: &'a [Variant],
    options: &'a Options,
    stop: &'a Stop,
    observe: &'a mut dyn FnMut(Event<'_>),
    writer: Writer,
}

/// The warm-ups, the timed runs, and whether they were stopped early.
type Made = (Vec<(Run, Evidence)>, Vec<Run>, bool);

impl Series<'_> {
    fn make(&mut self, seed: u64) -> Result<Made, Error> {
        let warm_ups = self.warm_up()?;
        let (runs, stopped) = self.rounds(seed, &warm_ups)?;
        Ok((warm_ups, runs, stopped))
    }

    /// One verified run of each variant, in their order.
    fn warm_up(&mut self) -> Result<Vec<(Run, Evidence)>, Error> {
        let mut done = Vec::new();
        for (index, variant) in self.variants.iter().enumerate() {
            let of = self.variants.len();
            (self.observe)(Event::WarmUp { variant, index, of });
            let (mut run, evidence) = self.executor.warm_up(index, self.stop)?;
            run.variant = index;
            match &run.ending {
                Ending::Stopped => return Err(Error::Stopped),
                Ending::Exited(_) | Ending::Signalled(_) => {}
                cut_short => {
                    let variant = variant.label.clone();
                    return Err(Error::WarmUp { variant, reason: cut_short.to_string() });
                }
            }
            (self.observe)(Event::Verified { variant, evidence: &evidence, run: &run });
            let record = Record::WarmUp { evidence: evidence.clone(), run: run.clone() };
            self.writer.write(&record)?;
            done.push((run, evidence));
        }
        Ok(done)
    }

    /// The timed rounds; also whether they were stopped early.
    fn rounds(
        &mut self,
        seed: u64,
        warm_ups: &[(Run, Evidence)],
    ) -> Result<(Vec<Run>, bool), Error> {
        let of = self.options.runs * self.variants.len();
        let mut clock = Clock::new(warm_ups.iter().map(|(run, _)| run.wall_s), self.options.runs);
        (self.observe)(Event::Planned { runs: of, estimate: clock.remaining() });
        let mut runs: Vec<Run> = Vec::with_capacity(of);
        let mut rounds = Rounds::new(seed, self.variants.len());
        for round in 0..self.options.runs {
            for index in rounds.round() {
                let variant = &self.variants[index];
                let remaining = clock.remaining();
                (self.observe)(Event::Running { variant, done: runs.len(), of, remaining });
                if self.stop.requested() {
                    return Ok((runs, true));
                }
                let mut run = self.executor.run(index, self.stop)?;
                run.variant = index;
                run.round = Some(round);
                if run.ending == Ending::Stopped {
                    return Ok((runs, true));
                }
                clock.count(index, run.wall_s);
                self.writer.write(&Record::Run(run.clone()))?;
                (self.observe)(Event::Ran { variant, run: &run, done: runs.len() + 1, of });
                runs.push(run);
            }
        }
        Ok((runs, false))
    }
}

/// Estimates how long the rest takes: each variant's runs to come at the mean of those it had, or
/// at its warm-up while it had none.
#[derive(Debug)]
struct Clock {
    variants: Vec<Timing>,
    rounds: usize,
}

#[derive(Debug)]
struct Timing {
    warm_up_s: f64,
    total_s: f64,
    done: usize,
}

impl Clock {
    fn new(warm_ups_s: impl Iterator<Item = f64>, rounds: usize) -> Clock {
        let timing = |warm_up_s| Timing { warm_up_s, total_s: 0.0, done: 0 };
        Clock { variants: warm_ups_s.map(timing).collect(), rounds }
    }

    fn count(&mut self, variant: usize, wall_s: f64) {
        self.variants[variant].total_s += wall_s;
        self.variants[variant].done += 1;
    }

    #[expect(clippy::cast_precision_loss, reason = "runs are few")]
    fn remaining(&self) -> Duration {
        let seconds = self.variants.iter().map(|timing| {
            let each = match timing.done {
                0 => timing.warm_up_s,
                done => timing.total_s / done as f64,
            };
            each * self.rounds.saturating_sub(timing.done) as f64
        });
        Duration::try_from_secs_f64(seconds.sum()).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests;
