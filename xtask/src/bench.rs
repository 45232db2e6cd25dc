//! `cargo xtask bench`: every allocation pattern under every malloc found, as tables and a dated
//! record.
//!
//! It relies on `workloads/patterns` for the work and on the lab's engine for every run: warm-ups
//! that verify each preload, then alternating randomised rounds. The hard part is to spend minutes
//! well: a pattern's work is cut down to a fraction of a second, never below what it needs to be
//! itself (`pattern.rs`), so that there is time for as many rounds as a verdict takes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use masu_lab::compare::Destination;
use masu_lab::plan::Ground;
use masu_lab::statistics::{Level, pairs_needed};
use masu_lab::{
    Catalogue, CompareOptions, Event, Places, Plan, Program, Stop, Suite, Variant, compare,
};

use crate::{machine, steps};

mod aims;
mod figures;
mod pattern;
pub(crate) mod record;
mod suite;
mod table;

use figures::Figures;
use pattern::Pattern;

const USAGE: &str = "\
Usage: cargo xtask bench [--quick] [--pattern NAME]... [--rounds N] [--record NAME]
  --quick         shorter runs, fewer rounds, no intervals (about 3 minutes instead of 11)
  --pattern NAME  only this pattern; repeats
  --rounds N      rounds, each with one run of every malloc
  --record NAME   where the record goes: benches/record/DATE-NAME.md (whole runs: first)";

/// Rounds of `--quick`: too few for intervals, enough for a median.
const QUICK_ROUNDS: usize = 5;

/// Rounds beyond those a verdict needs at least: with no more than those, the interval reaches from the
/// lowest pair to the highest, and one disturbed run decides.
const SPARE_ROUNDS: usize = 2;

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    quick: bool,
    patterns: Vec<String>,
    rounds: Option<usize>,
    record: Option<String>,
}

impl Request {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut request = Self::default();
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            if *option == "--quick" {
                request.quick = true;
                continue;
            }
            let known = ["--pattern", "--rounds", "--record"].contains(option);
            let Some(value) = rest.next().filter(|_| known) else {
                bail!("bench: `{option}` is no option or lacks its value\n{USAGE}");
            };
            match *option {
                "--pattern" => request.patterns.push((*value).to_owned()),
                "--record" if value.contains(['/', '.']) || value.is_empty() => {
                    bail!("bench: --record takes a word such as `first`, not `{value}`")
                }
                "--record" => request.record = Some((*value).to_owned()),
                _ => {
                    let rounds = value.parse().ok().filter(|rounds| (1..=1000).contains(rounds));
                    request.rounds = Some(rounds.with_context(|| {
                        format!("bench: --rounds takes a number from 1 to 1000, not `{value}`")
                    })?);
                }
            }
        }
        Ok(request)
    }

    /// Rounds when there are `variants` variants: what was asked for, or what a verdict takes.
    fn rounds(&self, variants: usize) -> usize {
        let usual = if self.quick {
            QUICK_ROUNDS
        } else {
            pairs_needed(variants - 1, Level::TABLE) + SPARE_ROUNDS
        };
        self.rounds.unwrap_or(usual)
    }

    /// Whether the program `true` is measured too: what a malloc costs who needs none.
    fn measures_smallest(&self) -> bool {
        self.patterns.is_empty()
    }

    /// This request as typed.
    fn command(&self) -> String {
        let mut words = vec!["cargo xtask bench".to_owned()];
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.extend(self.patterns.iter().map(|name| format!("--pattern {name}")));
        words.extend(self.rounds.map(|rounds| format!("--rounds {rounds}")));
        words.join(" ")
    }

    /// The record's name in the repository; none for runs that only a developer looks at.
    fn record(&self) -> Option<&str> {
        let is_whole = !self.quick && self.patterns.is_empty();
        self.record.as_deref().or(is_whole.then_some("first"))
    }
}

/// Everything one call of the chore measured.
struct Bench {
    variants: Vec<Variant>,
    /// What was typed.
    command: String,
    rounds: usize,
    seed: u64,
    patterns: Vec<Figures>,
    /// The commit that was measured.
    commit: Option<String>,
    /// The program `true` under every malloc, for what a malloc costs who needs none.
    smallest: Option<Figures>,
    load_before: Option<String>,
    took_s: f64,
    /// Peak RSS below this cannot be seen, in MB.
    floor_mb: f64,
}

/// What `make` made for the patterns.
struct Patterns {
    /// The one program that all mallocs run.
    program: PathBuf,
    /// The folder with the library that is no malloc: see `workloads/floor`.
    floor: PathBuf,
}

/// Measures, prints the tables and writes the record.
///
/// # Errors
///
/// When something cannot be built or installed, an argument is wrong, or something cannot be measured.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let request = Request::parse(arguments)?;
    machine::provide(&machine::PATTERNS.iter().collect::<Vec<_>>())?;
    if let Err(error) = machine::provide(&machine::PEERS.iter().collect::<Vec<_>>()) {
        // Fewer peers still make a table, which says who took part.
        println!("going on without: {error:#}");
    }
    let library = steps::take("build libmasu.so", || library(root))?;
    let made = steps::take("build the patterns", || patterns(root))?;
    let chosen = pattern::choose(pattern::list(&made.program)?, &request.patterns)?;
    let bench = steps::take("measure", || measure(root, &request, chosen, &made, library))?;
    let text = record::text(&bench);
    println!("\n{text}");
    if let Some(name) = request.record() {
        println!("record: {}", record::write(root, name, &text)?);
    }
    Ok(())
}

/// Builds masu's library as users get it.
fn library(root: &Path) -> Result<PathBuf> {
    steps::succeed(&mut steps::cargo(root, &["build", "--release", "--package", "masu-abi"]))?;
    Ok(steps::target_folder()?.join("release/libmasu.so"))
}

/// Every malloc to measure: those that `cargo xtask peers` built and those of the system, the newest
/// release of each, and what the folders of `others` hold.
fn mallocs(library: PathBuf, others: Vec<PathBuf>) -> Catalogue {
    let folders = crate::peers::folder().into_iter().chain(others).collect();
    let places = Places { masu_glibc: Some(library), folders, ..Places::default() };
    let mut catalogue = Catalogue::find(&places);
    // The catalogue names an older release of what it has by its version too.
    catalogue.allocators.retain(|allocator| {
        let version = allocator.version.as_ref();
        version.is_none_or(|version| !allocator.name.ends_with(&format!("-{version}")))
    });
    catalogue
}

/// Builds the one program that all mallocs run, and the floor under them.
fn patterns(root: &Path) -> Result<Patterns> {
    let target = steps::target_folder()?;
    let floor = target.join("floor");
    for (sources, out) in [("workloads/patterns", &target), ("workloads/floor", &floor)] {
        let mut make = Command::new("make");
        make.arg("--no-print-directory").arg("-C").arg(root.join(sources));
        let mut variable = std::ffi::OsString::from("OUT=");
        variable.push(out);
        steps::succeed(make.arg(variable))?;
    }
    Ok(Patterns { program: target.join("patterns"), floor })
}

/// Measures everything as one suite: one file of results, one order of runs.
fn measure(
    root: &Path,
    request: &Request,
    chosen: Vec<Pattern>,
    made: &Patterns,
    library: PathBuf,
) -> Result<Bench> {
    let catalogue = mallocs(library, vec![made.floor.clone()]);
    let smallest = Program::find("true".as_ref())?;
    let mut variants = catalogue.variants_for(&smallest);
    variants.retain(|variant| variant.label != figures::FLOOR);
    if !variants.iter().any(|variant| variant.label == figures::OURS) || variants.len() < 2 {
        bail!("there is no malloc to compare masu with, or no masu");
    }
    let rounds = request.rounds(variants.len());
    let folder = steps::target_folder()?.join("bench");
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let text = suite::text(request, &chosen, &made.program, rounds)?;
    let (file, results) = (folder.join("patterns.toml"), folder.join("patterns.jsonl"));
    std::fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
    let mut ground = |_| Ground { catalogue: catalogue.clone(), ..Ground::default() };
    let plan = Plan::make(&Suite::read(&file)?, &mut ground)?;
    let options =
        CompareOptions { results: Destination::New(results.clone()), ..CompareOptions::default() };
    let (began, load_before) = (Instant::now(), record::load());
    let mut floor_mb = 0.0;
    let mut observe = |event: Event<'_>| match event {
        Event::LeftOut { case, left_out } => {
            println!("{case}: without {}: {}", left_out.label, left_out.reason);
        }
        Event::Finished { case, summary } => {
            println!("{}: {}", case.name, table::line(summary));
            // Before the results are read back, because they count too.
            floor_mb = record::floor_mb();
        }
        _ => {}
    };
    let compared = compare(&plan, &options, &Stop::on_signals()?, &mut observe)?;
    println!("every run is in {}", results.display());
    if compared.stopped {
        bail!("stopped; the runs made so far are in {}", results.display());
    }
    let labels: Vec<String> = variants.iter().map(|variant| variant.label.clone()).collect();
    let mut tables = compared.tables.into_iter();
    let mut figures = |pattern: Pattern| -> Result<Figures> {
        let table = tables.next().context("a pattern has no table")?;
        Ok(Figures::of(pattern, &labels, table))
    };
    let smallest =
        request.measures_smallest().then(|| figures(Pattern::unscaled("true"))).transpose()?;
    Ok(Bench {
        smallest,
        patterns: chosen.into_iter().map(figures).collect::<Result<_>>()?,
        command: request.command(),
        commit: record::commit(root),
        variants,
        rounds,
        seed: compared.header.seed,
        load_before,
        took_s: began.elapsed().as_secs_f64(),
        floor_mb,
    })
}

#[cfg(test)]
mod tests;
