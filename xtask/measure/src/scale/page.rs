//! The tables of a run, the record, and the page of the docs.
//!
//! A malloc is judged by the lines that a whole operation moves, including the program's part. The program moves
//! blocks that come back from another thread when it writes to them, but the malloc decides which blocks come back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::iter::once;
use std::path::Path;

use anyhow::{Context, Result};

use super::queue::PRICES;
use super::report::{START, STEADY};
use super::results::{Figure, Results, Spread};
use super::symbols::Symbols;
use super::watch::{CPUS, QUANTUM};
use super::{OPS_START, PAGE};
use crate::machine_facts::MachineFacts;
use xtask::table::{Cells, Table};
use xtask::{page_part, records};

/// Hottest lines that are named of each case, and functions.
const LINES_NAMED: usize = 4;
const FUNCTIONS_NAMED: usize = 4;
const LOCKS_NAMED: usize = 2;
/// Locks held for a smaller share of all instructions are not named.
const LOCK_SHARE: f64 = 0.2;

/// The factor over the best peer that counts as more: two runs differ by as much.
const MARGIN: f64 = 1.05;
/// Fewer lines an operation count as none.
const NOTHING: f64 = 0.005;

/// The figures to count and the part of a run: the title of its tables, and the head of a column.
const COUNTED: [(Figure, usize, &str, &str); 7] = [
    (Figure::Moved, STEADY, "Lines moved an operation", "lines, all"),
    (
        Figure::MovedByLibraries,
        STEADY,
        "Lines moved an operation by the malloc and the C library",
        "by libraries",
    ),
    (Figure::Moved, START, "Lines moved an operation, at the start", "at the start"),
    (Figure::Atomics, STEADY, "Atomic operations an operation", "atomics"),
    (Figure::Instructions, STEADY, "Instructions an operation", "instructions"),
    (Figure::Calls, STEADY, "System calls an operation", "system calls"),
    (
        Figure::Held,
        STEADY,
        "Instructions an operation in which the busiest lock is held",
        "busiest lock held",
    ),
];

pub(super) fn tables(results: &Results) -> String {
    let mut text = String::new();
    for (figure, phase, title, _) in COUNTED {
        let _ = write!(text, "\n## {title}\n");
        text.push_str(&tables_of(results, figure, phase));
    }
    if !results.failures.is_empty() {
        let _ = write!(text, "\n## Not run to the end\n\n");
        for failure in &results.failures {
            let _ = writeln!(text, "- {}", failure.replace('\n', " "));
        }
    }
    text
}

fn tables_of(results: &Results, figure: Figure, phase: usize) -> String {
    let mut text = String::new();
    for workload in &results.workloads {
        let name = &workload.name;
        let heads = results.threads.iter().map(ToString::to_string);
        let mut table = Table::new(once("threads".to_owned()).chain(heads), Cells::Figures);
        for malloc in &results.mallocs {
            let cells = results
                .threads
                .iter()
                .map(|&threads| cell(results, figure, phase, name, threads, &malloc.name));
            table.row(once(malloc.name.clone()).chain(cells));
        }
        let _ = write!(text, "\n**{name}**: {}\n\n{table}", workload.about);
    }
    text
}

fn cell(
    results: &Results,
    figure: Figure,
    phase: usize,
    workload: &str,
    threads: usize,
    malloc: &str,
) -> String {
    let Some(spread) = results.spread(figure, phase, workload, threads, malloc) else {
        return "–".to_owned();
    };
    let digits = match figure {
        Figure::Instructions => 0,
        Figure::Held => 1,
        _ => 2,
    };
    let shown = |value: f64| {
        // The value is not zero, but rounding would show zero.
        if digits == 2 && value > 0.0 && value < NOTHING {
            "<0.01".to_owned()
        } else {
            format!("{value:.digits$}")
        }
    };
    let Spread { least, median, most } = spread;
    if most - least > (0.05 * median).max(2.0 * NOTHING) {
        format!("{} ({}–{})", shown(median), shown(least), shown(most))
    } else {
        shown(median)
    }
}

/// A case in which the malloc that the run is about moves more lines than the best of the others.
struct Behind<'a> {
    workload: &'a str,
    threads: usize,
    ours: f64,
    peer: &'a str,
    best: f64,
}

fn behind(results: &Results, phase: usize) -> Vec<Behind<'_>> {
    let mut all = Vec::new();
    for workload in &results.workloads {
        for &threads in &results.threads {
            let workload = workload.name.as_str();
            let ours = results.spread(Figure::Moved, phase, workload, threads, results.subject());
            let best = results.best_peer(phase, workload, threads);
            let (Some(Spread { median: ours, .. }), Some((peer, best))) = (ours, best) else {
                continue;
            };
            if ours > best * MARGIN + NOTHING {
                all.push(Behind { workload, threads, ours, peer, best });
            }
        }
    }
    all
}

/// The amount of detail that the page has on cases in which the malloc is behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// Lines and code of every case.
    Full,
    /// Only the table of the start.
    Short,
}

/// The places where the run's main malloc moves more lines than the best of the others, with these lines and the code
/// that moves them. If there are no others, the lines that it moves most.
pub(super) fn findings(results: &Results, detail: Detail) -> String {
    let mut symbols = Symbols::default();
    let mut text = String::new();
    let most = results.threads.iter().copied().max().unwrap_or(1);
    let subject = results.subject();
    if results.mallocs.len() == 1 {
        let _ = write!(text, "\n## The hottest lines of {subject}\n");
        for workload in &results.workloads {
            text.push_str(&hottest(results, &mut symbols, &workload.name, most, STEADY));
        }
        return text;
    }
    for (phase, title) in [
        (STEADY, format!("Where {subject} moves more lines than the best peer")),
        (START, "The same at the start".to_owned()),
    ] {
        let all = behind(results, phase);
        let _ = write!(text, "\n## {title}\n\n");
        if all.is_empty() {
            text.push_str("Nowhere.\n");
            continue;
        }
        let heads = ["workload", "threads", subject, "best peer", "", "ratio"];
        let mut table = Table::new(heads, Cells::Figures);
        for Behind { workload, threads, ours, peer, best } in &all {
            let ratio =
                if *best > NOTHING { format!("{:.2}", ours / best) } else { "–".to_owned() };
            let (ours, best) = (format!("{ours:.2}"), format!("{best:.2}"));
            table.row([*workload, &threads.to_string(), &ours, peer, &best, &ratio]);
        }
        let _ = write!(text, "{table}");
        if phase == START && detail == Detail::Short {
            continue;
        }
        let mut named: Vec<&str> = all.iter().map(|one| one.workload).collect();
        named.dedup();
        for workload in named {
            // The mallocs differ most with the most threads.
            text.push_str(&hottest(results, &mut symbols, workload, most, phase));
        }
    }
    text
}

fn hottest(
    results: &Results,
    symbols: &mut Symbols,
    workload: &str,
    threads: usize,
    phase: usize,
) -> String {
    let Some(run) = results.shown(workload, threads, results.subject()) else {
        return String::new();
    };
    let report = &run.report;
    let all = report.of(phase).moved().max(1);
    let share = |moves: u64| 100.0 * moves as f64 / all as f64;
    let mut text = format!("\n{workload}, {threads} threads, {all} lines moved in all:\n\n");
    let mut by_function: BTreeMap<String, u64> = BTreeMap::new();
    for site in report.sites.iter().filter(|site| site.phase == phase) {
        *by_function.entry(symbols.function(report, site.instruction)).or_default() += site.moves;
    }
    let mut functions: Vec<(String, u64)> = by_function.into_iter().collect();
    functions.sort_by_key(|(_, moves)| std::cmp::Reverse(*moves));
    for (function, moves) in functions.iter().take(FUNCTIONS_NAMED) {
        let _ = writeln!(text, "- {:.0} % by `{function}`", share(*moves));
    }
    let lines = report.lines.iter().filter(|line| line.phase == phase).take(LINES_NAMED);
    for line in lines {
        let by = line.by.iter().take(2).map(|(instruction, moves)| {
            format!("`{}` {moves}", symbols.code(report, *instruction))
        });
        let by: Vec<String> = by.collect();
        let place = symbols.place(report, line.address);
        let _ = writeln!(
            text,
            "- line {:#x} ({place}): {} times ({:.1} %), by {}",
            line.address,
            line.moves,
            share(line.moves),
            by.join(", ")
        );
    }
    let instructions = report.of(phase).instructions.max(1);
    for lock in report.shared(phase).take(LOCKS_NAMED) {
        let share = 100.0 * lock.held as f64 / instructions as f64;
        if share >= LOCK_SHARE {
            let _ = writeln!(
                text,
                "- lock at {:#x} ({}): held {} times, {share:.1} % of all instructions, {} at most, {} system calls \
                 inside; {} attempts of others",
                lock.address,
                symbols.place(report, lock.address),
                lock.holds,
                lock.longest,
                lock.calls,
                lock.attempts
            );
        }
    }
    text
}

pub(super) fn record(root: &Path, results: &Results) -> String {
    let today = records::today();
    format!(
        "# Scale: lines moved between cores, counted, {today}\n\n{}{}\n## Throughput, predicted\n{}{}",
        facts(root, results),
        findings(results, Detail::Full),
        predictions(results),
        tables(results)
    )
}

fn facts(root: &Path, results: &Results) -> String {
    let MachineFacts { cpu, cpus, system, .. } = MachineFacts::here();
    let mut text = String::new();
    let commit = records::commit(root);
    let mallocs = results.mallocs.iter().map(|malloc| match &malloc.version {
        Some(version) => format!("{} {version}", malloc.name),
        None => malloc.name.clone(),
    });
    let mallocs: Vec<String> = mallocs.collect();
    let (slips, turns) = results.slips();
    let _ = writeln!(text, "- made by `cargo xtask scale` at {commit}");
    let _ = writeln!(
        text,
        "- each thread: {OPS_START} operations to warm up, {} counted (large: 16 times fewer, churn: 64 times); {} seeds, of \
         which a cell has the median, and the ends where they differ by more than 5 %",
        results.ops, results.seeds
    );
    let _ = writeln!(
        text,
        "- model: a cache for each thread, lines of 64 bytes, turns of {QUANTUM} instructions on average, {CPUS} CPUs shown"
    );
    let _ = writeln!(text, "- mallocs: {}", mallocs.join(", "));
    let _ = writeln!(text, "- turns given {turns}, taken from a thread that did not come {slips}");
    let _ = writeln!(text, "- machine: {cpu}, {cpus} CPUs, {system}; nothing is timed");
    text
}

/// Writes the tables into the page of the docs, whose text is written by hand.
pub(super) fn keep(root: &Path, results: &Results) -> Result<()> {
    let text = format!(
        "{}{}\n## Throughput, predicted\n{}\n## Lines moved an operation\n{}\n## What else an operation takes\n{}",
        facts(root, results),
        findings(results, Detail::Short),
        predictions(results),
        tables_of(results, Figure::Moved, STEADY),
        besides(results)
    );
    page_part::replace(&root.join(PAGE), "scale", &text).with_context(|| format!("keeping {PAGE}"))
}

/// Threads of these meet all at one thread, which no queue at a lock describes.
const UNEVEN: [&str; 3] = ["fan-out", "fan-in", "reaper"];

/// Throughput with most threads, relative to one, as predicted.
pub(super) fn predictions(results: &Results) -> String {
    let even = results.workloads.iter().map(|one| one.name.as_str());
    let even: Vec<&str> = even.filter(|name| !UNEVEN.contains(name)).collect();
    let most = results.threads.iter().copied().max().unwrap_or(1);
    let text = format!(
        "\nTimes the throughput of one thread that {most} have, and in brackets millions of operations a second, on a machine with a \
         core for each: a lock is a queue, {:.2} ns an \
         instruction, {} ns a line moved, {} ns a system call. Predicted from the counts of {} seeds, and checked with 16 threads on sixteen cores.\n\n",
        PRICES.instruction, PRICES.moved, PRICES.call, results.seeds
    );
    let heads = even.iter().map(|workload| (*workload).to_owned());
    let mut table = Table::new(once(format!("threads {most}")).chain(heads), Cells::Figures);
    for malloc in &results.mallocs {
        let cells = even.iter().map(|workload| {
            let predicted = results.predicted(workload, most, &malloc.name);
            let Some((speedup, throughput)) = predicted else { return "–".to_owned() };
            // Operations a nanosecond are thousands of millions a second.
            let millions = 1000.0 * throughput;
            let digits = usize::from(millions < 10.0);
            format!("{speedup:.1} ({millions:.digits$})")
        });
        table.row(once(malloc.name.clone()).chain(cells));
    }
    text + &table.to_string()
}

fn besides(results: &Results) -> String {
    let most = results.threads.iter().copied().max().unwrap_or(1);
    let mut text = format!("\nWith {most} threads.\n");
    let heads = COUNTED.map(|(.., head)| head);
    for workload in &results.workloads {
        let heads = once("").chain(heads).chain(["it lets work at once"]);
        let mut table = Table::new(heads, Cells::Figures);
        for malloc in &results.mallocs {
            let cells = COUNTED.map(|(figure, phase, ..)| {
                cell(results, figure, phase, &workload.name, most, &malloc.name)
            });
            let at_once = at_once(results, &workload.name, most, &malloc.name);
            table.row(once(malloc.name.clone()).chain(cells).chain([at_once]));
        }
        let _ = write!(text, "\n**{}**\n\n{table}", workload.name);
    }
    text
}

/// The most threads that can work at once, because one of them at a time holds the busiest lock: the instructions of
/// an operation, divided by those under that lock.
fn at_once(results: &Results, workload: &str, threads: usize, malloc: &str) -> String {
    let median = |figure| results.spread(figure, STEADY, workload, threads, malloc);
    let (Some(all), Some(held)) = (median(Figure::Instructions), median(Figure::Held)) else {
        return "–".to_owned();
    };
    let bound = all.median / held.median;
    if bound < 1000.0 { format!("{bound:.1}") } else { "all".to_owned() }
}
