//! `parallel`: a general parallel executor, found slow by measuring (Rust, 2024).
//!
//! Relies on the steps of that report, which are an example of masu-chunk and time making the data, working and
//! printing apart. The hard idea: the author timed work *and* printing, so claims are compared with the sum of
//! both, and the page shows each.

use std::fs;
use std::path::{Path, PathBuf};

use super::build::Cargo;
use super::format::{self, grouped, numbered, owned};
use super::page_file::{Figures, Known};
use super::series::row;
use super::workbench::{in_one_table, set};
use super::{Block, Depth, Experiment, Series, Workbench};
use crate::report;
use crate::suite::Suite;
use crate::tables::Table;
use masu_run::Error;
use masu_run::error::Doing;
use masu_run::machine::memory_available;

mod cpu_use;

use cpu_use::Watched;

const SUITE: &str = include_str!("../../experiments/parallel.toml");

/// The steps, in the report's order, with their descriptions.
const STEPS: [(&str, &str); 8] = [
    ("threads", "a thread for each chunk"),
    ("semaphore", "the same, four at once"),
    ("pool", "a pool with one locked queue"),
    ("channel", "the same, results through a channel"),
    ("loop", "a plain loop"),
    ("rayon-copy", "rayon, chunks copied"),
    ("rayon", "rayon on the slice"),
    ("ours", "masu-chunk"),
];

/// The steps of which two copies run at once.
const COPIED: [&str; 3] = ["threads", "pool", "ours"];

/// The memory that must be available for a billion numbers, which are 8 GB: a run may hold three quarters of it.
const BILLION_BYTES: u64 = 11 << 30;

/// The workers of every step, except where their number is the question.
const WORKERS: u64 = 4;

pub(super) const PARALLEL: Experiment = Experiment {
    name: "parallel",
    about: "A parallel executor, built up and measured",
    title: "A parallel executor: what was measured was the printing",
    takes: ["1 min", "4 min", "40 min", "4 h"],
    report: include_str!("../../experiments/reports/parallel.toml"),
    run,
};

fn run(bench: &mut Workbench<'_>) -> Result<super::Measured, Error> {
    let Some(target) = prepare(bench) else {
        return Ok((Box::new(Measured::default()), Vec::new()));
    };
    let figures = bench.cache().join("figures");
    let suite = suite(bench, &target, &figures)?;
    let tables = bench.tables(&suite);
    let program = target.join("release/examples/steps");
    let mut watched = Vec::new();
    for (step, what) in STEPS {
        let (items, workers) = (items(bench).to_string(), WORKERS.to_string());
        let words = [step, "--workers", &workers, "--print", "--items", &items];
        let words = [&[program.to_str().unwrap_or("steps")], &words[..]].concat();
        watched.extend(Watched::watch(bench, what, &words));
    }
    let diagnosis = diagnoses(bench, &target);
    let (items, turns, most) = (items(bench), turns(bench), most(bench));
    let measured = Measured { tables, watched, figures, items, turns, most };
    Ok((Box::new(measured), diagnosis))
}

/// The diagnoses of the report's slow configurations: not optimized, every result printed, and once as the author
/// ran it, through cargo.
fn diagnoses(bench: &mut Workbench<'_>, target: &Path) -> Vec<Block> {
    let (items, workers) = (items(bench).to_string(), WORKERS.to_string());
    let asked = ["--workers", &workers, "--print", "--items", &items];
    let program = target.join("debug/examples/steps");
    let program = program.to_str().unwrap_or("steps");
    let manifest = bench.source().map(|tree| tree.join("Cargo.toml")).unwrap_or_default();
    let places = [&manifest, target].map(|path| path.to_str().unwrap_or_default());
    let cargo = [
        &[
            "cargo", "run", "--quiet", "--locked", "--manifest-path", places[0], "--target-dir",
            places[1],
        ],
        &["--package", "masu-chunk", "--example", "steps", "--", "pool"][..],
    ];
    let commands = [
        ("A thread for each chunk, debug build, every result printed", vec![program, "threads"]),
        ("The pool, debug build, every result printed", vec![program, "pool"]),
        ("The same as the author ran it, through cargo", cargo.concat()),
    ];
    let mut blocks = Vec::new();
    for (what, words) in commands {
        let words = [words.as_slice(), &asked].concat();
        blocks.extend(bench.diagnosis(what, &words, None));
    }
    blocks
}

fn items(bench: &Workbench<'_>) -> u64 {
    bench.choose(10_000, 1_000_000, 10_000_000, 100_000_000)
}

/// The turns of the loop that makes a chunk's work heavy.
fn turns(bench: &Workbench<'_>) -> u64 {
    bench.choose(10, 20_000, 20_000, 20_000)
}

fn most(bench: &Workbench<'_>) -> u64 {
    5 * turns(bench)
}

/// Builds the steps, debug and release; returns their folder.
fn prepare(bench: &mut Workbench<'_>) -> Option<PathBuf> {
    let cargo = Cargo::find(bench, "the report's steps")?;
    let example = ["--package", "masu-chunk", "--example", "steps"];
    let release = [&["--release"][..], &example].concat();
    cargo.of_tree(bench, "the steps, release", &release)?;
    cargo.of_tree(bench, "the steps, debug", &example)
}

fn suite(bench: &mut Workbench<'_>, target: &Path, figures: &Path) -> Result<Suite, Error> {
    // Figures of an earlier experiment would be taken for those of this one.
    let _ = fs::remove_dir_all(figures);
    fs::create_dir_all(figures).doing(|| format!("making {}", figures.display()))?;
    let mut suite = Suite::parse(&bench.cache().join("parallel.toml"), SUITE)?;
    set(&mut suite, "target", target)?;
    set(&mut suite, "figures", figures)?;
    set(&mut suite, "items", items(bench).to_string())?;
    set(&mut suite, "turns", turns(bench).to_string())?;
    set(&mut suite, "most", most(bench).to_string())?;
    set(&mut suite, "workers", WORKERS.to_string())?;
    in_one_table(&mut suite, bench.choose(1, 8, 8, 8));
    let is_full = bench.depth() == Depth::Full;
    let has_room = memory_available().is_none_or(|available| available >= BILLION_BYTES);
    if is_full && !has_room {
        let needed = report::bytes(BILLION_BYTES as f64);
        bench.miss(
            "a billion items",
            format!("their runs need {needed} of memory that is available"),
        );
    }
    if !is_full || !has_room {
        suite.entries.retain(|entry| entry.name != "billion");
    }
    let program = target.join("release/examples/steps");
    for entry in suite.entries.iter_mut().filter(|entry| entry.name == "mallocs") {
        bench.add_found(entry, program.to_str().unwrap_or("steps"));
    }
    Ok(suite)
}

#[derive(Default)]
pub(super) struct Measured {
    tables: Vec<Table>,
    /// One run of each step, examined closely.
    watched: Vec<Watched>,
    figures: PathBuf,
    items: u64,
    turns: u64,
    most: u64,
}

impl Measured {
    fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.case.name == name)
    }

    /// A figure of a row, from its runs or from their notes in `file`.
    fn figure(
        &self,
        figure: &str,
        table: &str,
        values: &[(&str, &str)],
        file: &str,
    ) -> Option<Series> {
        let Some(table) = self.table(table) else { return Some(Series::default()) };
        let index = row(table, "system", values);
        let path = self.figures.join(file);
        let noted = |key| Series::noted(table, index, &path, |_| true, key);
        Some(match figure {
            "generation" => noted("generation_ms"),
            "compute" => noted("compute_ms"),
            "output" => noted("output_ms"),
            // The author timed work and printing.
            "timed" => {
                noted("compute_ms").with(&noted("output_ms"), |compute, output| compute + output)
            }
            "busy" => Series::by(table, index, |run| Some(run.user_s / run.wall_s)),
            _ => Series::of(table, index, format::measure_named(figure)?),
        })
    }
}

impl Figures for Measured {
    /// `FIGURE TABLE STEP`; without a figure the time that the author took. `light` is the release build, `debug` the
    /// other one.
    fn known(&self, name: &str) -> Option<Known> {
        let words: Vec<&str> = name.split(' ').collect();
        let (figure, table, value) = match words[..] {
            [table, value] => ("timed", table, value),
            [figure, table, value] => (figure, table, value),
            _ => return None,
        };
        let of_build = |build: &str| {
            let values = [("build", build), ("step", value)];
            self.figure(figure, "light", &values, &format!("light-{build}-{value}"))
        };
        let file = format!("{table}-{value}");
        Some(Known::Runs(match table {
            "light" => of_build("release"),
            "debug" => of_build("debug"),
            "workers" => self.figure(figure, table, &[("count", value)], &file),
            "one" => self.figure(figure, "copies", &[("step", value), ("copies", "1")], ""),
            "two" => self.figure(figure, "copies", &[("step", value), ("copies", "2")], ""),
            _ => self.figure(figure, table, &[("step", value)], &file),
        }?))
    }

    fn rows(&self, list: &str) -> Vec<(String, String)> {
        match list {
            "steps" => owned(&STEPS),
            "others" => owned(STEPS.iter().filter(|(step, _)| *step != "ours")),
            "copied" => owned(STEPS.iter().filter(|(step, _)| COPIED.contains(step))),
            "builds" => {
                let build = |(table, name): (&str, &str)| {
                    STEPS.map(|(step, what)| (format!("{table} {step}"), format!("{what}, {name}")))
                };
                [("light", "release"), ("debug", "debug")].map(build).concat()
            }
            "workers" => {
                let row = |workers: &str| (workers.to_owned(), numbered(workers, "worker"));
                ["2", "4", "6", "8", "12"].map(row).into()
            }
            _ => Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    fn values(&self) -> Vec<(&'static str, String)> {
        let numbers = [("items", self.items), ("turns", self.turns), ("most", self.most)];
        numbers.map(|(name, number)| (name, grouped(&number.to_string()))).into()
    }

    fn blocks(&self, name: &str) -> Vec<Block> {
        if name == "watched" {
            return cpu_use::blocks(&self.watched);
        }
        let Some(table) = self.table("mallocs") else { return Vec::new() };
        let steps = [("threads", "A thread for each chunk"), ("pool", "The pool")].into_iter();
        let sheets = steps.filter_map(|(step, what)| {
            format::mallocs(table, &[("step", step)], &format!("{what} under each malloc"))
        });
        sheets.map(Block::Sheet).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_has_every_step_of_the_page() {
        let suite = Suite::parse("parallel.toml".as_ref(), SUITE).unwrap();
        let light = &suite.entries[0];
        let steps = light.parameters.iter().find(|one| one.name == "step").unwrap();
        assert_eq!(steps.values, STEPS.map(|(step, _)| step));
    }
}
