//! `cargo xtask bench`: every allocation pattern under every malloc found, as tables and a dated
//! record.
//!
//! It relies on `workloads/patterns` for the work and on the lab's engine for every run: warm-ups
//! that verify each preload, then alternating randomised rounds. The hard part is to spend minutes
//! well: a pattern's work is cut down to a fraction of a second, never below what it needs to be
//! itself (`pattern.rs`), so that there is time for as many rounds as a verdict takes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use masu_lab::statistics::{Level, pairs_needed};
use masu_lab::{
    Catalogue, CompareOptions, Input, Limits, Places, Stop, Variant, Workload, compare,
};

use crate::{machine, steps};

mod figures;
mod pattern;
mod record;
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

/// Longer than the slowest malloc takes for the longest pattern: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

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
    /// The program `true` under every malloc, for what a malloc costs who needs none.
    smallest: Option<Figures>,
    /// Patterns without figures, with the reason.
    missing: Vec<(String, String)>,
    load_before: Option<String>,
    took_s: f64,
    /// Peak RSS below this cannot be seen, in MB.
    floor_mb: f64,
}

/// Measures, prints the tables and writes the record.
///
/// # Errors
///
/// When something cannot be built or installed, an argument is wrong, or a pattern has no figures.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let request = Request::parse(arguments)?;
    machine::provide(&machine::PATTERNS.iter().collect::<Vec<_>>())?;
    if let Err(error) = machine::provide(&machine::PEERS.iter().collect::<Vec<_>>()) {
        // Fewer peers still make a table, which says who took part.
        println!("going on without: {error:#}");
    }
    let library = steps::take("build libmasu.so", || library(root))?;
    let program = steps::take("build the patterns", || patterns(root))?;
    let chosen = pattern::choose(pattern::list(&program)?, &request.patterns)?;
    let bench = steps::take("measure", || measure(&request, chosen, &program, library))?;
    let text = record::text(&bench, root);
    println!("\n{text}");
    if let Some(name) = request.record() {
        println!("record: {}", record::write(root, name, &text)?);
    }
    if !bench.missing.is_empty() {
        bail!("{} patterns have no figures; the record says why", bench.missing.len());
    }
    Ok(())
}

/// Builds masu's library as users get it.
fn library(root: &Path) -> Result<PathBuf> {
    steps::succeed(&mut steps::cargo(root, &["build", "--release", "--package", "masu-abi"]))?;
    Ok(steps::target_folder()?.join("release/libmasu.so"))
}

/// Builds the one program that all mallocs run.
fn patterns(root: &Path) -> Result<PathBuf> {
    let target = steps::target_folder()?;
    let mut make = Command::new("make");
    make.arg("--no-print-directory").arg("-C").arg(root.join("workloads/patterns"));
    let mut out = std::ffi::OsString::from("OUT=");
    out.push(&target);
    steps::succeed(make.arg(out))?;
    Ok(target.join("patterns"))
}

fn measure(
    request: &Request,
    chosen: Vec<Pattern>,
    program: &Path,
    library: PathBuf,
) -> Result<Bench> {
    let catalogue = Catalogue::find(&Places { masu_glibc: Some(library), ..Places::default() });
    let smallest = Workload::new(["true"], Input::Empty)?;
    let variants = catalogue.variants_for(&smallest.program);
    if !variants.iter().any(|variant| variant.label == figures::OURS) || variants.len() < 2 {
        bail!("there is no malloc to compare masu with, or no masu");
    }
    let mut series = Series::start(request, variants)?;
    if request.patterns.is_empty() {
        println!("the program `true`");
        series.compare("true", &smallest)?;
    }
    let of = chosen.len();
    for (index, pattern) in chosen.iter().enumerate() {
        let workload = Workload::new(pattern.command(program, request.quick), Input::Empty)?;
        println!("{:>3}/{of} {pattern}", index + 1);
        match series.compare(&pattern.name, &workload) {
            Ok(()) => println!("        {}", table::line(&series.figures(pattern.clone())?)),
            Err(error) if series.stop.requested() => return Err(error),
            // A pattern that cannot be measured must not cost the minutes spent on the others.
            Err(error) => {
                println!("        {error:#}");
                series.missing.push((pattern.name.clone(), format!("{error:#}")));
            }
        }
    }
    series.finish(request, chosen)
}

/// The patterns on their way. It keeps no runs: a run's peak RSS cannot be seen below what this
/// process holds when it starts the run, so figures wait in their files until all are there.
struct Series {
    variants: Vec<Variant>,
    rounds: usize,
    seed: u64,
    missing: Vec<(String, String)>,
    load_before: Option<String>,
    stop: Stop,
    began: Instant,
    /// Where every run is kept as JSON lines, a file a pattern.
    raw: PathBuf,
}

impl Series {
    fn start(request: &Request, variants: Vec<Variant>) -> Result<Self> {
        let raw = steps::target_folder()?.join("bench");
        std::fs::create_dir_all(&raw).with_context(|| format!("making {}", raw.display()))?;
        Ok(Self {
            rounds: request.rounds(variants.len()),
            variants,
            seed: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_secs(),
            missing: Vec::new(),
            load_before: record::load(),
            stop: Stop::on_signals()?,
            began: Instant::now(),
            raw,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.raw.join(format!("{name}.jsonl"))
    }

    fn compare(&self, name: &str, workload: &Workload) -> Result<()> {
        let options = CompareOptions {
            runs: self.rounds,
            seed: Some(self.seed),
            limits: Limits { time: Some(PATIENCE), memory_bytes: None },
            results: Some(self.file(name)),
            ..CompareOptions::default()
        };
        let made = compare(workload, &self.variants, &options, &self.stop, &mut |_| {})?;
        if made.stopped {
            bail!("stopped; the runs made so far are in {}", self.raw.display());
        }
        Ok(())
    }

    fn figures(&self, pattern: Pattern) -> Result<Figures> {
        let file = self.file(&pattern.name);
        Figures::read(pattern, &file)
    }

    /// Reads everything back.
    fn finish(self, request: &Request, chosen: Vec<Pattern>) -> Result<Bench> {
        let (took_s, floor_mb) = (self.began.elapsed().as_secs_f64(), record::floor_mb());
        let is_there =
            |pattern: &Pattern| self.missing.iter().all(|(name, _)| *name != pattern.name);
        let there = chosen.into_iter().filter(is_there);
        let patterns = there.map(|pattern| self.figures(pattern)).collect::<Result<_>>()?;
        let smallest = request.patterns.is_empty().then(|| self.figures(Pattern::unscaled("true")));
        println!("every run is in {}", self.raw.display());
        Ok(Bench {
            smallest: smallest.transpose()?,
            patterns,
            command: request.command(),
            variants: self.variants,
            rounds: self.rounds,
            seed: self.seed,
            missing: self.missing,
            load_before: self.load_before,
            took_s,
            floor_mb,
        })
    }
}

#[cfg(test)]
mod tests;
