//! `cargo xtask bench`: every allocation pattern and a number of real programs under every malloc found,
//! as tables and a dated record.
//!
//! It relies on `workloads/patterns` and `workloads/programs` for the work and on the lab's engine for every run:
//! warm-ups that verify each preload, then alternating randomized rounds. The hard part is to spend minutes well: a
//! pattern's work is cut down to a fraction of a second, but never below the size at which it keeps its character
//! (`pattern.rs`), so that there is time for as many rounds as a verdict takes.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use masu_lab::statistics::{Level, pairs_needed};
use masu_lab::{Libc, Totals, Variant};

use xtask::{commands, machine, options, records};

pub(crate) mod builds;
pub(crate) mod figures;
pub(crate) mod pattern;
mod programs;
pub(crate) mod record;
pub(crate) mod series;
mod suite;
pub(crate) mod table;

use figures::Figures;
use pattern::{Pattern, Share};

/// Rounds of `--quick`: too few for intervals, enough for a median.
const QUICK_ROUNDS: usize = 3;

/// Rounds beyond those a verdict needs at least: with no more than those, the interval reaches from the
/// lowest pair to the highest, and one disturbed run decides.
const SPARE_ROUNDS: usize = 2;

/// The rounds that a verdict on so many variants takes.
pub(crate) fn usual_rounds(is_quick: bool, variants: usize) -> usize {
    if is_quick { QUICK_ROUNDS } else { pairs_needed(variants - 1, Level::TABLE) + SPARE_ROUNDS }
}

/// Run every allocation pattern and real programs under every malloc, write benches/record (about 40 minutes)
#[derive(Debug, Default, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    /// Shorter runs, fewer rounds, no intervals (about 7 minutes instead of 40)
    #[arg(long)]
    quick: bool,
    /// The patterns linked with musl: its malloc and masu's library for musl
    #[arg(long, conflicts_with_all = ["only_programs", "programs"])]
    musl: bool,
    /// Only the allocation patterns
    #[arg(long = "patterns", conflicts_with_all = ["only_programs", "patterns", "programs"])]
    only_patterns: bool,
    /// Only the real programs
    #[arg(long = "programs", conflicts_with_all = ["patterns", "programs"])]
    only_programs: bool,
    /// Only this pattern; repeats, and goes with --program
    #[arg(long = "pattern", value_name = "NAME")]
    patterns: Vec<String>,
    /// Only this program; repeats, and goes with --pattern
    #[arg(long = "program", value_name = "NAME")]
    programs: Vec<String>,
    /// Rounds, each with one run of every malloc
    #[arg(long, value_name = "N", value_parser = options::times)]
    rounds: Option<usize>,
    /// Where the record goes: benches/record/DATE-NAME.md (whole runs: first)
    #[arg(long, value_name = "NAME", value_parser = options::record_name)]
    record: Option<String>,
}

impl Request {
    fn share(&self) -> Share {
        match (self.musl, self.quick) {
            (true, _) => Share::Musl,
            (false, true) => Share::Quick,
            (false, false) => Share::Usual,
        }
    }

    fn libc(&self) -> Libc {
        if self.musl { Libc::Musl } else { Libc::Glibc }
    }

    fn names_some(&self) -> bool {
        !self.patterns.is_empty() || !self.programs.is_empty()
    }

    fn wants_patterns(&self) -> bool {
        if self.names_some() { !self.patterns.is_empty() } else { !self.only_programs }
    }

    fn wants_programs(&self) -> bool {
        let wants_all = !self.only_patterns && !self.musl;
        if self.names_some() { !self.programs.is_empty() } else { wants_all }
    }

    /// The number of rounds for `variants` variants: the requested number, or the number that a verdict takes.
    fn rounds(&self, variants: usize) -> usize {
        self.rounds.unwrap_or_else(|| usual_rounds(self.quick, variants))
    }

    /// Whether the program `true` is measured too: the cost of a malloc for a program that needs none.
    fn measures_smallest(&self) -> bool {
        self.wants_patterns() && self.patterns.is_empty() && !self.musl
    }

    fn record(&self) -> Option<&str> {
        let is_part = self.musl || self.only_patterns || self.only_programs || self.names_some();
        let is_whole = !self.quick && !is_part;
        self.record.as_deref().or(is_whole.then_some("first"))
    }
}

struct Bench {
    variants: Vec<Variant>,
    command: String,
    rounds: usize,
    /// The seeds of the order of the patterns' runs and of the programs'.
    seeds: Vec<u64>,
    patterns: Vec<Figures>,
    /// The program `true` under every malloc: the cost of a malloc for a program that needs none.
    smallest: Option<Figures>,
    programs: Vec<Figures>,
    asked: Vec<Totals>,
    commit: String,
    load_before: String,
    took_s: f64,
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let (patterns, programs) = (request.wants_patterns(), request.wants_programs());
    machine::provide_all(&[machine::PATTERNS])?;
    if request.musl {
        machine::provide_all(&[machine::MUSL_PATTERNS])?;
        machine::provide_target(root, machine::MUSL)?;
    }
    if programs {
        machine::provide_all(&[machine::PROGRAMS])?;
    }
    // Fewer peers still make a table, which names them.
    machine::provide_what_there_is(&[machine::PEERS]);
    let libc = request.libc();
    let library = builds::library(root, libc)?;
    let made = commands::step("build the patterns", || builds::patterns(root, libc))?;
    let variants = builds::variants(&library, &made.program)?;
    let mut bench = Bench {
        rounds: request.rounds(variants.len()),
        command: records::command(),
        commit: records::commit(root),
        load_before: records::load(),
        variants,
        seeds: Vec::new(),
        patterns: Vec::new(),
        smallest: None,
        programs: Vec::new(),
        asked: Vec::new(),
        took_s: 0.0,
    };
    let began = Instant::now();
    if patterns {
        let chosen = pattern::choose(pattern::list(&made.program)?, &request.patterns)?;
        commands::step("measure the patterns", || {
            series::patterns(&mut bench, request, chosen, &made, &library)
        })?;
    }
    if programs {
        let made = commands::make_workload(root, "programs")?;
        let counting = commands::step("build the library that counts", || {
            commands::build_library_with(root, "count")
        })?;
        commands::step("measure the programs", || {
            let suite = programs::suite(root, &made, &request.programs, bench.rounds)?;
            series::programs(&mut bench, &suite, &counting, &library)
        })?;
    }
    bench.took_s = began.elapsed().as_secs_f64();
    let text = record::text(&bench);
    println!("\n{text}");
    if let Some(name) = request.record() {
        println!("record: {}", records::write(root, name, &text)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
