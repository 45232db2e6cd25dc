//! `cargo xtask scale`: the cost of sharing between threads of a malloc, counted on a machine with few CPUs.
//!
//! It relies on `workloads/scale` for the programs, and on qemu with the plugin there for the counting: lines moved
//! between the caches of a machine that has a core for each thread, atomic operations, instructions and system calls an
//! operation. Nothing is timed: threads take turns of some hundred instructions, so that a count is the same on a busy
//! machine, and as much as can be in every run with the same seed.

mod page;
mod queue;
mod report;
mod results;
mod symbols;
#[cfg(test)]
mod tests;
mod watch;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;

use results::Results;
use watch::Watch;

use crate::mallocs::{self, Malloc, OURS, Wanted};
use xtask::{commands, machine, options, records};

/// The page that `--record` writes, from the workspace's root.
const PAGE: &str = "benches/record/checks/scale.md";

/// In the order of the tables: ours first, then those that are built by `cargo xtask peers`, then the system's.
const NAMES: [&str; 7] =
    [OURS, "mimalloc3", "snmalloc", "jemalloc", "tcmalloc-google", "rpmalloc", "glibc"];

/// Threads that are counted, and those of `--quick`.
const THREADS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const THREADS_QUICK: [usize; 3] = [1, 8, 64];

/// Operations of each thread before the count begins.
const OPS_START: u64 = 500;

/// Lines moved between the caches of 1 to 64 threads, atomics, instructions and system calls an operation under every
/// malloc, counted by a plugin of qemu (half an hour to an hour, after peers)
#[derive(Debug, Default, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    /// Only this workload; repeats
    #[arg(long, value_name = "WORKLOAD")]
    only: Vec<String>,
    /// Only this malloc; repeats
    #[arg(long = "malloc", value_name = "NAME", value_parser = PossibleValuesParser::new(NAMES))]
    mallocs: Vec<String>,
    /// This library, too; repeats, and alone where no --malloc is named
    #[arg(long = "lib", value_name = "PATH")]
    libraries: Vec<PathBuf>,
    /// So many threads; repeats (1, 2, 4, 8, 16, 32 and 64)
    #[arg(long, value_name = "N", value_parser = options::times)]
    threads: Vec<usize>,
    /// Runs of each, with other turns and other sizes (3)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: Option<u64>,
    /// Operations of each thread that are counted (2000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    ops: Option<u64>,
    /// 1, 8 and 64 threads, one seed, 500 operations
    #[arg(long = "quick")]
    is_quick: bool,
    /// Run nothing that was run before: its report is in target/scale/reports
    #[arg(long = "kept")]
    is_kept: bool,
    /// Write benches/record and benches/record/checks/scale.md: of everything
    #[arg(long, conflicts_with_all = ["only", "mallocs", "libraries", "is_quick"])]
    record: bool,
}

impl Request {
    /// The numbers of threads, one count after the other.
    fn counts(&self) -> Vec<usize> {
        let usual: &[usize] = if self.is_quick { &THREADS_QUICK } else { &THREADS };
        let mut counts = self.threads.clone();
        if counts.is_empty() {
            counts.extend(usual);
        }
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    fn seeds(&self) -> u64 {
        self.seeds.unwrap_or(if self.is_quick { 1 } else { 3 })
    }

    fn ops(&self) -> u64 {
        self.ops.unwrap_or(if self.is_quick { 500 } else { 2000 })
    }

    /// The mallocs of the names, or all where neither a name nor a library is given, and the libraries.
    fn find(&self, root: &Path, program: &Path) -> Result<Vec<Malloc>> {
        let path = |library: &PathBuf| {
            let path = library.canonicalize().with_context(|| library.display().to_string())?;
            path.into_os_string().into_string().ok().context("the path of a library is no text")
        };
        let paths: Vec<String> = self.libraries.iter().map(path).collect::<Result<_>>()?;
        let mut wanted: Vec<Wanted<'_>> = NAMES.map(|name| Wanted::new(name, name)).into();
        wanted.retain(|one| match self.mallocs.is_empty() {
            true => paths.is_empty(),
            false => self.mallocs.iter().any(|name| name == one.name),
        });
        wanted.extend(paths.iter().map(|path| {
            // Libraries of one name may be compared with each other, as before and after a change.
            let name = if paths.len() == 1 { path.rsplit('/').next() } else { None };
            Wanted { spec: path, ..Wanted::new(name.unwrap_or(path), name.unwrap_or(path)) }
        }));
        mallocs::find(root, program, &wanted, self.record)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Workload {
    name: String,
    about: String,
}

impl Workload {
    /// Reads `scale --list`: a name and its meaning, a line each.
    fn read(listed: &str) -> Vec<Workload> {
        let lines = listed.lines().filter_map(|line| line.split_once(char::is_whitespace));
        let workload = |(name, about): (&str, &str)| Workload {
            name: name.to_owned(),
            about: about.trim().to_owned(),
        };
        lines.map(workload).collect()
    }
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    machine::provide_all(&[machine::PATTERNS, machine::EMULATED])?;
    let made = commands::make_workload(root, "scale")?;
    let program = made.join("scale");
    let mallocs = request.find(root, &program)?;
    let listed = Workload::read(&commands::output(Command::new(&program).arg("--list"))?);
    let workloads = options::chosen(listed, &request.only, |one| &one.name)?;
    let watch = Watch::new(&made)?;
    let results =
        commands::step("scale", || Results::gather(&watch, request, &workloads, &mallocs))?;
    let text = page::tables(&results);
    let predictions = page::predictions(&results);
    println!("\n{text}\n{}\n{predictions}", page::findings(&results, page::Detail::Full));
    if request.record {
        let record = records::write(root, "scale", &page::record(root, &results))?;
        page::keep(root, &results)?;
        println!("record: {record}, {PAGE}");
    }
    Ok(())
}
