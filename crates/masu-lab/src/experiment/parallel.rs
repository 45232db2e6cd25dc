//! `parallel`: a general parallel executor, found slow by measuring (Rust, 2024).
//!
//! Relies on the steps of that report, which are an example of masu-chunk and time making the data, working and
//! printing apart. The hard idea: what the author timed was work *and* printing, so claims are held against the sum of
//! both, and the page shows each.

use std::fs;
use std::path::{Path, PathBuf};

use super::build::Cargo;
use super::field_report::{FieldReport, Today};
use super::format::{self, grouped, milliseconds, time};
use super::series::row;
use super::workbench::{in_one_table, set};
use super::{Block, Depth, Experiment, Figure, Outcome, Series, Sheet, Workbench, claim};
use crate::error::Doing;
use crate::report::{self, Bar, count, seconds};
use crate::suite::Suite;
use crate::tables::Table;
use crate::{Error, Measure, Parameter, Run};

mod watched;

use watched::Watched;

const REPORT: &str = include_str!("../../experiments/reports/parallel.toml");
const SUITE: &str = include_str!("../../experiments/parallel.toml");

/// The steps, in the report's order, with what each is.
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

/// Workers of every step, but where their number is what is asked.
const WORKERS: u64 = 4;

pub(super) const PARALLEL: Experiment = Experiment {
    name: "parallel",
    about: "A parallel executor, built up and measured",
    title: "A parallel executor: what was measured was the printing",
    takes: ["1 min", "4 min", "40 min", "4 h"],
    run,
};

fn run(bench: &mut Workbench<'_>) -> Result<Outcome, Error> {
    let Some(target) = prepare(bench)? else {
        return Ok(outcome(&Measured::default(), Vec::new()));
    };
    let figures = bench.cache().join("figures");
    let suite = suite(bench, &target, &figures)?;
    let comparison = bench.compare(&suite, "runs")?;
    let tables = comparison.map(|comparison| comparison.tables).unwrap_or_default();
    let program = target.join("release/examples/steps");
    let mut watched = Vec::new();
    for (step, what) in STEPS {
        let (items, workers) = (items(bench).to_string(), WORKERS.to_string());
        let words = [step, "--workers", &workers, "--print", "--items", &items];
        let words = [&[program.to_str().unwrap_or("steps")], &words[..]].concat();
        watched.extend(Watched::watch(bench, what, &words)?);
    }
    let diagnosis = diagnoses(bench, &target)?;
    let (items, turns, most) = (items(bench), turns(bench), most(bench));
    let measured = Measured { tables, watched, figures, items, turns, most };
    Ok(outcome(&measured, diagnosis))
}

/// The report's slow configurations, diagnosed: not optimised, every result printed, and once as the author ran it,
/// through cargo.
fn diagnoses(bench: &mut Workbench<'_>, target: &Path) -> Result<Vec<Block>, Error> {
    let (items, workers) = (items(bench).to_string(), WORKERS.to_string());
    let asked = ["--workers", &workers, "--print", "--items", &items];
    let program = target.join("debug/examples/steps");
    let program = program.to_str().unwrap_or("steps");
    let manifest = bench.source().map(|tree| tree.join("Cargo.toml")).unwrap_or_default();
    let places = [&manifest, target].map(|path| path.to_str().unwrap_or_default());
    let cargo = [
        &[
            "cargo",
            "run",
            "--quiet",
            "--locked",
            "--manifest-path",
            places[0],
            "--target-dir",
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
        blocks.extend(bench.diagnosis(what, &words, None)?);
    }
    Ok(blocks)
}

fn items(bench: &Workbench<'_>) -> u64 {
    bench.choose(10_000, 1_000_000, 10_000_000, 100_000_000)
}

/// The turns of the loop that makes a chunk's work heavy.
fn turns(bench: &Workbench<'_>) -> u64 {
    bench.choose(10, 20_000, 20_000, 20_000)
}

/// Those of the longer loop.
fn most(bench: &Workbench<'_>) -> u64 {
    5 * turns(bench)
}

/// Builds the steps, debug and release; the folder they are in.
fn prepare(bench: &mut Workbench<'_>) -> Result<Option<PathBuf>, Error> {
    let Some(cargo) = Cargo::find(bench, "the report's steps") else { return Ok(None) };
    let example = ["--package", "masu-chunk", "--example", "steps"];
    let release = [&["--release"][..], &example].concat();
    let made = cargo.of_tree(bench, "the steps, release", &release)?;
    let debug = cargo.of_tree(bench, "the steps, debug", &example)?;
    Ok(made.and(debug))
}

fn suite(bench: &mut Workbench<'_>, target: &Path, figures: &Path) -> Result<Suite, Error> {
    // What an earlier time left would be taken for this one's.
    let _ = fs::remove_dir_all(figures);
    fs::create_dir_all(figures).doing(|| format!("making {}", figures.display()))?;
    let mut suite = Suite::parse(&bench.cache().join("parallel.toml"), SUITE)?;
    set(&mut suite, "target", target)?;
    set(&mut suite, "figures", figures)?;
    let values = [
        ("items", items(bench)),
        ("turns", turns(bench)),
        ("most", most(bench)),
        ("workers", WORKERS),
    ];
    for (name, value) in values {
        suite.set(&Parameter { name: name.to_owned(), values: vec![value.to_string()] })?;
    }
    in_one_table(&mut suite, bench.choose(1, 8, 8, 8));
    if bench.depth() != Depth::Full {
        suite.entries.retain(|entry| entry.name != "billion");
    }
    let program = target.join("release/examples/steps");
    for entry in suite.entries.iter_mut().filter(|entry| entry.name == "mallocs") {
        bench.add_found(entry, program.to_str().unwrap_or("steps"));
    }
    Ok(suite)
}

#[derive(Default)]
struct Measured {
    tables: Vec<Table>,
    /// One run of each step, looked at closely.
    watched: Vec<Watched>,
    figures: PathBuf,
    items: u64,
    turns: u64,
    most: u64,
}

struct Times {
    generation: Series,
    compute: Series,
    output: Series,
    wall: Series,
}

impl Times {
    /// What the author timed: work and printing.
    fn timed(&self) -> Series {
        self.compute.with(&self.output, |compute, output| compute + output)
    }
}

impl Measured {
    fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.case.name == name)
    }

    /// The times of the row of `table` with these values, noted in `file`.
    fn times(&self, table: &str, values: &[(&str, &str)], file: &str) -> Times {
        let table = self.table(table);
        let index = table.and_then(|table| row(table, "system", values));
        let path = self.figures.join(file);
        let noted = |key| {
            table.map(|table| Series::noted(table, index, &path, |_| true, key)).unwrap_or_default()
        };
        Times {
            generation: noted("generation_ms"),
            compute: noted("compute_ms"),
            output: noted("output_ms"),
            wall: table.map(|table| Series::of(table, index, Measure::Wall)).unwrap_or_default(),
        }
    }

    fn light(&self, build: &str, step: &str) -> Times {
        self.times("light", &[("build", build), ("step", step)], &format!("light-{build}-{step}"))
    }

    /// A table that has a row for each step: `heavy`, `heavier`, `sleeping`, `billion`.
    fn of_steps(&self, table: &str, step: &str) -> Times {
        self.times(table, &[("step", step)], &format!("{table}-{step}"))
    }

    fn heavy(&self, step: &str) -> Times {
        self.of_steps("heavy", step)
    }

    /// What `figure` says of the runs of a step in the release build.
    fn of_runs(&self, name: &str, figure: impl Fn(&Run) -> Option<f64>) -> Option<Series> {
        let (table, step) = name.split_once(' ')?;
        let values: &[(&str, &str)] = match table {
            "light" => &[("build", "release"), ("step", step)],
            _ => &[("step", step)],
        };
        let Some(table) = self.table(table) else { return Some(Series::default()) };
        Some(Series::by(table, row(table, "system", values), figure))
    }

    fn workers(&self, workers: &str) -> Times {
        self.times("workers", &[("count", workers)], &format!("workers-{workers}"))
    }

    fn copies(&self, step: &str, copies: &str) -> Series {
        self.times("copies", &[("step", step), ("copies", copies)], "").wall
    }
}

/// What was measured for a claim: `light pool` over `light threads`.
fn today(measured: &Measured, of: &str, over: &str) -> Option<Today> {
    let series = |name: &str| {
        let (table, value) = name.split_once(' ')?;
        Some(match table {
            "user" => measured.of_runs(value, |run| Some(run.user_s))?,
            "sys" => measured.of_runs(value, |run| Some(run.sys_s))?,
            "busy" => measured.of_runs(value, |run| Some(run.user_s / run.wall_s))?,
            "heavier" | "sleeping" => measured.of_steps(table, value).timed(),
            "light" => measured.light("release", value).timed(),
            "heavy" => measured.heavy(value).timed(),
            "workers" => measured.workers(value).timed(),
            "debug" => measured.light("debug", value).timed(),
            "debug-work" => measured.light("debug", value).compute,
            _ => return None,
        })
    };
    Some(Today::Ratio(series(of)?.over(&series(over)?)))
}

fn outcome(measured: &Measured, diagnosis: Vec<Block>) -> Outcome {
    let report = FieldReport::parse(REPORT);
    let claims = match measured.tables.is_empty() {
        true => Vec::new(),
        false => report.claims(&[("most", &grouped(&measured.most.to_string()))], |of, over| {
            today(measured, of, over)
        }),
    };
    let (now, change) = (now(measured), change(measured));
    Outcome { now, diagnosis, change, ..report.outcome(claims, &figures(measured)) }
}

fn now(measured: &Measured) -> Vec<Block> {
    let mut blocks = Vec::new();
    if measured.tables.is_empty() {
        return blocks;
    }
    let (items, turns) = (count(measured.items as f64), count(measured.turns as f64));
    let bars: Vec<Bar> = STEPS
        .iter()
        .map(|(step, what)| {
            let timed = measured.light("release", step).timed().median();
            Bar { label: (*what).to_owned(), value: timed.map(|ms| ms / 1e3) }
        })
        .collect();
    let caption = format!("{items} items, release build: work and printing together");
    let svg = report::bars("parallel-steps", &caption, &bars, seconds);
    blocks.push(Block::Figure(Figure { name: "steps".to_owned(), caption, svg }));
    let mut rows = Vec::new();
    for build in ["release", "debug"] {
        for (step, what) in STEPS {
            rows.push(line(&format!("{what}, {build}"), &measured.light(build, step)));
        }
    }
    let headings = ["step", "making the data", "work", "printing", "whole process"];
    let caption = format!(
        "Light work, {items} items, medians; {WORKERS} workers, every result printed into a pipe"
    );
    blocks.push(Block::Sheet(Sheet::new(caption, headings, rows)));
    let most = count(measured.most as f64);
    let kinds = [
        ("heavy", format!("Heavy work: a loop of {turns} turns in each chunk, {items} items")),
        ("heavier", format!("A loop of {most} turns in each chunk, {items} items")),
        ("sleeping", format!("A loop of {turns} turns and a sleep of 500 ns, {items} items")),
        ("billion", "Light work, a billion items, nothing printed".to_owned()),
    ];
    for (table, caption) in kinds {
        let lines = STEPS.iter().map(|(step, what)| line(what, &measured.of_steps(table, step)));
        let lines: Vec<Vec<String>> = lines.filter(|cells| !cells[2].is_empty()).collect();
        if !lines.is_empty() {
            let caption = format!("{caption}; release build");
            blocks.push(Block::Sheet(Sheet::new(caption, headings, lines)));
        }
    }
    blocks.extend(watched::blocks(&measured.watched));
    let workers = ["2", "4", "6", "8", "12"]
        .map(|workers| line(&format!("{workers} workers"), &measured.workers(workers)));
    blocks.push(Block::Sheet(Sheet::new(
        "The pool by its number of workers",
        headings,
        workers.into(),
    )));
    let copied = STEPS.into_iter().filter(|(step, _)| COPIED.contains(step));
    let copies = copied.map(|(step, what)| {
        let (one, two) = (measured.copies(step, "1"), measured.copies(step, "2"));
        vec![what.to_owned(), time(&one), time(&two), claim::written(two.over(&one).as_ref())]
    });
    let headings = ["step", "one copy", "two at once", "× one"];
    blocks.push(Block::Sheet(Sheet::new(
        "One copy of the program, and two at once: wall time",
        headings,
        copies.collect(),
    )));
    blocks
}

fn line(label: &str, times: &Times) -> Vec<String> {
    vec![
        label.to_owned(),
        milliseconds(&times.generation),
        milliseconds(&times.compute),
        milliseconds(&times.output),
        time(&times.wall),
    ]
}

/// The figures of the verdict's sentence.
fn figures(measured: &Measured) -> String {
    if measured.tables.is_empty() {
        return "nothing could be measured here".to_owned();
    }
    let light = |step: &str| measured.light("release", step).timed();
    let debug = measured.light("debug", "pool");
    let ratio_text = |ratio: Option<crate::statistics::Ratio>| claim::written(ratio.as_ref());
    format!(
        "a thread for each chunk takes {} of the pool's time (theirs ×6.8), 12 workers take {} of the time of 2 (about ×1), and \
         work is {} of what was timed of the pool, the rest printing (theirs ×0.1 to ×0.3)",
        ratio_text(light("threads").over(&light("pool"))),
        ratio_text(measured.workers("12").timed().over(&measured.workers("2").timed())),
        ratio_text(debug.compute.over(&debug.timed()))
    )
}

/// What masu changes: the executor, and the malloc under the others.
fn change(measured: &Measured) -> Vec<Block> {
    let mut blocks = Vec::new();
    if measured.tables.is_empty() {
        return blocks;
    }
    let ours = measured.light("release", "ours").compute;
    let rows = STEPS.iter().filter(|(step, _)| *step != "ours").map(|(step, what)| {
        let other = measured.light("release", step).compute;
        let heavy = measured.heavy(step).compute;
        vec![
            (*what).to_owned(),
            claim::written(ours.over(&other).as_ref()),
            claim::written(measured.heavy("ours").compute.over(&heavy).as_ref()),
        ]
    });
    let caption = "masu-chunk's time for the work alone, over that of each step; release build";
    blocks.push(Block::Sheet(Sheet::new(
        caption,
        ["step", "light work", "heavy work"],
        rows.collect(),
    )));
    let Some(table) = measured.table("mallocs") else { return blocks };
    for (step, what) in [("threads", "A thread for each chunk"), ("pool", "The pool")] {
        let caption = format!("{what} under each malloc");
        blocks.extend(format::mallocs(table, &[("step", step)], &caption).map(Block::Sheet));
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_programs_the_page_is_made_and_nothing_is_claimed() {
        let outcome = outcome(&Measured::default(), Vec::new());
        assert!(outcome.claims.is_empty() && outcome.now.is_empty() && outcome.change.is_empty());
        assert_eq!(outcome.verdict.agreement, super::super::Agreement::Undecided);
        let measured = Measured::default();
        FieldReport::parse(REPORT).check(&[], |of, over| today(&measured, of, over));
    }

    #[test]
    fn the_suite_has_every_step_of_the_page() {
        let suite = Suite::parse("parallel.toml".as_ref(), SUITE).unwrap();
        let light = &suite.entries[0];
        let steps = light.parameters.iter().find(|one| one.name == "step").unwrap();
        assert_eq!(steps.values, STEPS.map(|(step, _)| step));
    }

    #[test]
    fn what_was_timed_is_work_and_printing() {
        let series = |figure: f64| -> Series { (0..8).map(|round| (round, figure)).collect() };
        let times = Times {
            generation: series(100.0),
            compute: series(3.0),
            output: series(7.0),
            wall: Series::default(),
        };
        assert_eq!(times.timed().median(), Some(10.0));
        assert_eq!(milliseconds(&times.compute), "3.00 ms");
    }
}
