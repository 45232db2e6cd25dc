//! `cargo xtask scale --real`: the same program on the machine itself, with many more threads than it has CPUs.
//!
//! It relies on what the program says of itself: CPU time and voluntary switches of its threads outside of their waiting for
//! each other, and the longest call. Wall time is not looked at: other work on the machine would be in it. A pause is what
//! a thread sees, so a thread that lost its CPU in a call has a long one under every malloc; one in which the thread
//! itself went to sleep is the malloc's.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use masu_lab::Machine;

use super::mallocs::Malloc;
use super::results::Spread;
use super::watch::{UNSET, succeed_within};
use super::{PAGE, Request, Workload};
use xtask::{commands, page_part, records};

/// Operations of all threads together that are counted, and each thread's least.
const OPERATIONS: usize = 200_000;
const OPERATIONS_LEAST: usize = 640;
const ROUNDS: usize = 3;
const LIMIT: Duration = Duration::from_secs(120);

/// What one run says.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Said {
    operations: f64,
    cpu_ns: f64,
    switches: f64,
    pause_ns: f64,
    pause_asleep_ns: f64,
}

impl Said {
    /// The words that follow each name in the program's line.
    pub(super) fn parse(printed: &str) -> Result<Said> {
        let words: Vec<&str> = printed.split_whitespace().collect();
        let field = |name: &str| {
            let at = words.iter().position(|word| *word == name);
            let value = at.and_then(|at| words.get(at + 1)?.parse::<f64>().ok());
            value.with_context(|| format!("the program does not say {name}: {printed}"))
        };
        Ok(Said {
            operations: field("operations")?.max(1.0),
            cpu_ns: field("cpu_ns")?,
            switches: field("switches")?,
            pause_ns: field("pause_ns")?,
            pause_asleep_ns: field("pause_asleep_ns")?,
        })
    }
}

/// A title, what it is of, and how many digits it is shown with.
type Figure = (&'static str, fn(&Said) -> f64, usize);

/// What is shown of the rounds of one case.
const FIGURES: [Figure; 4] = [
    ("CPU time an operation, ns", |said| said.cpu_ns / said.operations, 0),
    ("Voluntary switches in 1,000 operations", |said| 1000.0 * said.switches / said.operations, 2),
    ("Longest call, ms", |said| said.pause_ns / 1e6, 1),
    ("Longest call in which the thread slept, ms", |said| said.pause_asleep_ns / 1e6, 1),
];

struct Row {
    workload: String,
    malloc: String,
    threads: usize,
    said: Vec<Said>,
}

/// Runs every case in rounds and shows or records what came of it.
///
/// # Errors
///
/// When the page cannot be written; a run that fails is said and left out.
pub(super) fn run(
    root: &Path,
    program: &Path,
    request: &Request,
    workloads: &[Workload],
    mallocs: &[Malloc],
) -> Result<()> {
    let counts = request.counts();
    let mut rows = Vec::new();
    for workload in workloads {
        for malloc in mallocs {
            rows.extend(counts.iter().map(|&threads| Row {
                workload: workload.name.clone(),
                malloc: malloc.name.clone(),
                threads,
                said: Vec::new(),
            }));
        }
    }
    commands::step("scale --real", || {
        // Rounds of everything, so that a load that comes and goes meets every malloc.
        for _ in 0..ROUNDS {
            for row in &mut rows {
                let malloc = mallocs.iter().find(|one| one.name == row.malloc);
                let malloc = malloc.context("a row has no malloc")?;
                match once(program, row, malloc) {
                    Ok(said) => row.said.push(said),
                    Err(error) => println!("left out: {error:#}"),
                }
            }
        }
        Ok(())
    })?;
    let text = text(root, &rows, workloads, mallocs, &counts);
    println!("\n{text}");
    if request.record {
        page_part::replace(&root.join(PAGE), "scale --real", &text)?;
        println!("record: {PAGE}");
    }
    Ok(())
}

fn once(program: &Path, row: &Row, malloc: &Malloc) -> Result<Said> {
    let ops = (OPERATIONS / row.threads).max(OPERATIONS_LEAST);
    let mut command = Command::new(program);
    for name in UNSET {
        command.env_remove(name);
    }
    command.envs(malloc.environment.iter().cloned());
    command.args([row.workload.as_str(), "--pauses", "--threads", &row.threads.to_string()]);
    command.args(["--ops", &ops.to_string(), "--start", &(ops / 4).to_string()]);
    let output = succeed_within(&mut command, LIMIT)?;
    Said::parse(&String::from_utf8_lossy(&output.stdout))
}

fn text(
    root: &Path,
    rows: &[Row],
    workloads: &[Workload],
    mallocs: &[Malloc],
    counts: &[usize],
) -> String {
    let commit = records::commit(root);
    let mut text = format!(
        "Run on {} at {commit}, {} CPUs, {ROUNDS} rounds, of which a cell has the median (of pauses: the longest); load {}.\n",
        records::today(),
        Machine::here().cpus,
        records::load(),
    );
    for (index, (title, of, digits)) in FIGURES.into_iter().enumerate() {
        let _ = write!(text, "\n### {title}\n");
        for workload in workloads {
            let heads: Vec<String> = counts.iter().map(ToString::to_string).collect();
            let _ = write!(
                text,
                "\n| {}, threads | {} |\n|---{}|\n",
                workload.name,
                heads.join(" | "),
                "|--:".repeat(heads.len())
            );
            for malloc in mallocs {
                let cell = |&threads: &usize| {
                    let row = rows.iter().find(|row| {
                        row.threads == threads
                            && row.workload == workload.name
                            && row.malloc == malloc.name
                    });
                    let spread = row.and_then(|row| Spread::of(row.said.iter().map(of).collect()));
                    let is_pause = index >= 2;
                    spread.map_or("–".to_owned(), |spread| {
                        let value = if is_pause { spread.most } else { spread.median };
                        format!("{value:.digits$}")
                    })
                };
                let cells: Vec<String> = counts.iter().map(cell).collect();
                let _ = writeln!(text, "| {} | {} |", malloc.name, cells.join(" | "));
            }
        }
    }
    text
}
