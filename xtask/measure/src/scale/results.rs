//! Every run, and the figures of an operation over the runs of one case.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use masu_lab::statistics;

use super::queue;
use super::report::Report;
use super::watch::{Case, Watch};
use super::{NAMES, Request, Workload};
use crate::mallocs::{Malloc, OURS};
use crate::parallel;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Moved,
    /// The libraries' part of the moved lines: the malloc's code and the C library's.
    MovedByLibraries,
    Atomics,
    Instructions,
    Calls,
    /// Instructions during which the busiest lock is held.
    Held,
}

impl Figure {
    pub(super) fn of(self, report: &Report, phase: usize) -> f64 {
        let counts = report.of(phase);
        let count = match self {
            Figure::Moved => counts.moved(),
            Figure::MovedByLibraries => counts.moved() - counts.by_program.min(counts.moved()),
            Figure::Atomics => counts.atomics,
            Figure::Instructions => counts.instructions,
            Figure::Calls => counts.calls,
            Figure::Held => report.busiest(phase).map_or(0, |lock| lock.held),
        };
        // Counts are far below 2^52.
        let (count, operations) = (count as f64, counts.operations.max(1) as f64);
        count / operations
    }
}

/// The middle of several runs, and their ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
}

impl Spread {
    pub(super) fn of(values: &[f64]) -> Option<Spread> {
        let median = statistics::median(values)?;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Spread { least, median, most })
    }
}

pub(super) struct Run {
    pub(super) workload: String,
    pub(super) threads: usize,
    pub(super) malloc: String,
    pub(super) seed: u64,
    pub(super) report: Report,
}

pub(super) struct Results {
    pub(super) workloads: Vec<Workload>,
    pub(super) threads: Vec<usize>,
    pub(super) mallocs: Vec<Malloc>,
    pub(super) seeds: u64,
    pub(super) ops: u64,
    pub(super) runs: Vec<Run>,
    pub(super) failures: Vec<String>,
}

impl Results {
    /// Runs every case, as many at once as there are CPUs: nothing is timed.
    pub(super) fn gather(
        watch: &Watch,
        request: &Request,
        workloads: &[Workload],
        mallocs: &[Malloc],
    ) -> Result<Results> {
        let (threads, seeds, ops) = (request.counts(), request.seeds(), request.ops());
        let mut cases = Vec::new();
        // The longest first, so that the CPUs are done at the same time.
        for &threads in threads.iter().rev() {
            for seed in 1..=seeds {
                for workload in workloads {
                    let case =
                        |malloc| Case { workload: &workload.name, threads, malloc, seed, ops };
                    cases.extend(mallocs.iter().map(case));
                }
            }
        }
        let done = AtomicUsize::new(0);
        let all = parallel::run_each(&cases, |case| {
            let run = watch.run(case, request.is_kept);
            // ORDERING: Relaxed, nothing is read by this number.
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_multiple_of(50) || count == cases.len() {
                println!("    {count} of {} runs", cases.len());
            }
            Ok(run.map(|report| kept(case, report)).map_err(|error| failure(case, &error)))
        })?;
        let (mut runs, mut failures) = (Vec::new(), Vec::new());
        for run in all {
            match run {
                Ok(run) => runs.push(run),
                Err(failure) => failures.push(failure),
            }
        }
        let (workloads, mallocs) = (workloads.to_vec(), mallocs.to_vec());
        Ok(Results { workloads, threads, mallocs, seeds, ops, runs, failures })
    }

    fn runs_of(&self, workload: &str, threads: usize, malloc: &str) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(move |run| {
            run.threads == threads && run.workload == workload && run.malloc == malloc
        })
    }

    /// A figure of one case in one phase, over its runs; none where none succeeded.
    pub(super) fn spread(
        &self,
        figure: Figure,
        phase: usize,
        workload: &str,
        threads: usize,
        malloc: &str,
    ) -> Option<Spread> {
        let runs = self.runs_of(workload, threads, malloc);
        Spread::of(&runs.map(|run| figure.of(&run.report, phase)).collect::<Vec<_>>())
    }

    /// The malloc that the run is about: the library that was given last, else masu, else the first.
    pub(super) fn subject(&self) -> &str {
        let is_given = |name: &&str| !NAMES.contains(name);
        let mut names = self.mallocs.iter().map(|malloc| malloc.name.as_str());
        let first = names.clone().next().unwrap_or(OURS);
        let given = names.clone().rfind(is_given);
        given.or_else(|| names.find(|name| *name == OURS)).unwrap_or(first)
    }

    /// The peer that moves fewest lines, and how many.
    pub(super) fn best_peer(
        &self,
        phase: usize,
        workload: &str,
        threads: usize,
    ) -> Option<(&str, f64)> {
        let subject = self.subject();
        let peers = self.mallocs.iter().filter(|malloc| malloc.name != subject);
        let medians = peers.filter_map(|malloc| {
            let spread = self.spread(Figure::Moved, phase, workload, threads, &malloc.name)?;
            Some((malloc.name.as_str(), spread.median))
        });
        medians.min_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    /// The predicted throughput of a case's threads, relative to one thread and as operations a nanosecond: medians over
    /// the seeds.
    pub(super) fn predicted(
        &self,
        workload: &str,
        threads: usize,
        malloc: &str,
    ) -> Option<(f64, f64)> {
        let (mut speedups, mut throughputs) = (Vec::new(), Vec::new());
        for many in self.runs_of(workload, threads, malloc) {
            let throughput = queue::throughput(&many.report, threads);
            throughputs.push(throughput);
            let one = self.runs_of(workload, 1, malloc).find(|one| one.seed == many.seed);
            speedups.extend(one.map(|one| throughput / queue::throughput(&one.report, 1)));
        }
        Some((statistics::median(&speedups)?, statistics::median(&throughputs)?))
    }

    /// The run of a case that lines and code are named of: the first seed's.
    pub(super) fn shown(&self, workload: &str, threads: usize, malloc: &str) -> Option<&Run> {
        self.runs_of(workload, threads, malloc).min_by_key(|run| run.seed)
    }

    pub(super) fn slips(&self) -> (u64, u64) {
        let sum = |of: fn(&Report) -> u64| self.runs.iter().map(|run| of(&run.report)).sum();
        (sum(|report| report.slips), sum(|report| report.turns))
    }
}

/// Lines and code are named of the first seed alone: the others need not keep theirs.
fn kept(case: &Case<'_>, mut report: Report) -> Run {
    if case.seed != 1 {
        report.lines = Vec::new();
        report.sites = Vec::new();
        report.maps = String::new();
    }
    Run {
        workload: case.workload.to_owned(),
        threads: case.threads,
        malloc: case.malloc.name.clone(),
        seed: case.seed,
        report,
    }
}

fn failure(case: &Case<'_>, error: &anyhow::Error) -> String {
    let Case { workload, threads, malloc, seed, .. } = case;
    format!("{workload}, {threads} threads, {}, seed {seed}: {error:#}", malloc.name)
}
