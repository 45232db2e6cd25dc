//! Variants × runs: a verified warm-up each, then alternating rounds in randomised, balanced order.

use std::path::PathBuf;
use std::time::Duration;

use crate::{Error, Evidence, Header, Limits, Run, Stop, Summary, Variant, Workload};

/// Rounds when the caller does not say: enough to find a 3 % difference under 1.5 % noise.
pub const DEFAULT_RUNS: usize = 20;

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
}

impl Default for Options {
    fn default() -> Options {
        Options { runs: DEFAULT_RUNS, seed: None, limits: Limits::default(), results: None }
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
    /// What the warm-up run of each variant showed, in the variants' order.
    pub evidence: Vec<Evidence>,
    /// The timed runs in the order they were made.
    pub runs: Vec<Run>,
    /// Medians, ratios, verdicts and warnings.
    pub summary: Summary,
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
    let _ = (workload, variants, options, stop, observe);
    Err(Error::Compare("this version cannot compare yet".to_owned()))
}
