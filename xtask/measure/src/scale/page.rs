//! The results of a run as text: for the terminal, and for the page of checks.
//!
//! A malloc is judged by what a whole operation moves, its program's part too: blocks that come back from another
//! thread are moved by the program that writes to them, and which blocks come back is the malloc's doing.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::OPS_START;
use super::report::{START, STEADY};
use super::results::{Figure, Results, Spread};
use super::symbols;
use super::watch::{CPUS, QUANTUM};
use crate::machine_facts::MachineFacts;
use xtask::records;

const FUNCTIONS_NAMED: usize = 4;

/// By how much more than the best peer counts as more: two runs differ by as much.
const MARGIN: f64 = 1.05;
/// Fewer lines an operation count as none.
const NOTHING: f64 = 0.005;

/// What was run, where masu is behind and by which code, and every figure.
pub(super) fn text(root: &Path, results: &Results) -> String {
    let mut text = facts(root, results) + &findings(results) + &figures(results);
    if !results.failures.is_empty() {
        let _ = write!(text, "\n## Not run to the end\n\n");
        for failure in &results.failures {
            let _ = writeln!(text, "- {}", failure.replace('\n', " "));
        }
    }
    text
}

/// The lines moved by so many threads, and what else an operation takes where most threads are.
pub(super) fn figures(results: &Results) -> String {
    let mut text = "\n## Lines moved an operation\n".to_owned();
    let heads: Vec<String> = results.threads.iter().map(ToString::to_string).collect();
    for workload in &results.workloads {
        let _ = write!(text, "\n**{}**: {}\n\n", workload.name, workload.about);
        head(&mut text, "threads", &heads);
        for malloc in &results.mallocs {
            let cell = |&threads: &usize| {
                let moved = Figure::Moved;
                shown(moved, results.spread(moved, STEADY, &workload.name, threads, &malloc.name))
            };
            row(&mut text, &malloc.name, results.threads.iter().map(cell));
        }
    }
    let most = results.most_threads();
    let _ = write!(text, "\n## What else an operation takes\n\nWith {most} threads.\n");
    for workload in &results.workloads {
        let _ = write!(text, "\n**{}**\n\n", workload.name);
        let others = ["atomics", "instructions", "system calls", "busiest lock held"];
        let heads = [&["lines, all", "by libraries", "at the start"], &others[..]].concat();
        head(&mut text, "", &[&heads[..], &["it lets work at once"]].concat());
        for malloc in &results.mallocs {
            let spread =
                |(figure, phase)| results.spread(figure, phase, &workload.name, most, &malloc.name);
            let cells = FIGURES.map(|(figure, phase)| shown(figure, spread((figure, phase))));
            let all = spread((Figure::Instructions, STEADY));
            let at_once = at_once(all, spread((Figure::Held, STEADY)));
            row(&mut text, &malloc.name, cells.into_iter().chain([at_once]));
        }
    }
    text
}

const FIGURES: [(Figure, usize); 7] = [
    (Figure::Moved, STEADY),
    (Figure::MovedByLibraries, STEADY),
    (Figure::Moved, START),
    (Figure::Atomics, STEADY),
    (Figure::Instructions, STEADY),
    (Figure::Calls, STEADY),
    (Figure::Held, STEADY),
];

fn head(text: &mut String, first: &str, heads: &[impl AsRef<str>]) {
    row(text, first, heads.iter().map(|head| head.as_ref().to_owned()));
    let _ = writeln!(text, "|---{}|", "|--:".repeat(heads.len()));
}

fn row(text: &mut String, first: &str, cells: impl Iterator<Item = String>) {
    let _ = writeln!(text, "| {first} | {} |", cells.collect::<Vec<_>>().join(" | "));
}

/// The median; and the ends, where they differ by more than a twentieth.
fn shown(figure: Figure, spread: Option<Spread>) -> String {
    let Some(Spread { least, median, most }) = spread else { return "–".to_owned() };
    let digits = match figure {
        Figure::Instructions => 0,
        Figure::Held => 1,
        _ => 2,
    };
    let shown = |value: f64| {
        // What is there and would be shown as nothing.
        if digits == 2 && value > 0.0 && value < NOTHING {
            "<0.01".to_owned()
        } else {
            format!("{value:.digits$}")
        }
    };
    if most - least > (0.05 * median).max(2.0 * NOTHING) {
        format!("{} ({}–{})", shown(median), shown(least), shown(most))
    } else {
        shown(median)
    }
}

/// How many threads can work at once at most, since one of them at a time holds the busiest lock: what an operation
/// takes, by what of it lies under that lock.
fn at_once(all: Option<Spread>, held: Option<Spread>) -> String {
    let Some((all, held)) = all.zip(held) else { return "–".to_owned() };
    let bound = all.median / held.median;
    if bound < 1000.0 { format!("{bound:.1}") } else { "all".to_owned() }
}

/// Where the malloc that the run is about moves more lines than the best of the others, and by which code; where there
/// are no others, what it moves at all.
pub(super) fn findings(results: &Results) -> String {
    let subject = results.subject();
    let mut text = String::new();
    if results.mallocs.len() == 1 {
        let _ = write!(text, "\n## The code of {subject} that moves lines\n");
        for workload in &results.workloads {
            text.push_str(&hottest(results, &workload.name, STEADY));
        }
        return text;
    }
    for (phase, title) in [
        (STEADY, format!("Where {subject} moves more lines than the best peer")),
        (START, "The same at the start".to_owned()),
    ] {
        let _ = write!(text, "\n## {title}\n\n");
        let (mut rows, mut named) = (String::new(), Vec::new());
        for workload in results.workloads.iter().map(|one| one.name.as_str()) {
            for &threads in &results.threads {
                let ours = results.spread(Figure::Moved, phase, workload, threads, subject);
                let best = results.best_peer(phase, workload, threads);
                let (Some(Spread { median: ours, .. }), Some((peer, best))) = (ours, best) else {
                    continue;
                };
                if ours > best * MARGIN + NOTHING {
                    let ratio = if best > NOTHING {
                        format!("{:.2}", ours / best)
                    } else {
                        "–".to_owned()
                    };
                    let _ = writeln!(
                        rows,
                        "| {workload} | {threads} | {ours:.2} | {peer} | {best:.2} | {ratio} |"
                    );
                    named.push(workload);
                }
            }
        }
        if rows.is_empty() {
            text.push_str("Nowhere.\n");
            continue;
        }
        let heads = format!("| workload | threads | {subject} | best peer | | ratio |");
        let _ = write!(text, "{heads}\n|---|--:|--:|---|--:|--:|\n{rows}");
        named.dedup();
        for workload in named.into_iter().filter(|_| phase == STEADY) {
            text.push_str(&hottest(results, workload, phase));
        }
    }
    text
}

/// The functions that move most with most threads, where mallocs differ most, and the busiest lock.
fn hottest(results: &Results, workload: &str, phase: usize) -> String {
    let threads = results.most_threads();
    let Some(report) = results.first(workload, threads, results.subject()) else {
        return String::new();
    };
    let all = report.moved(phase).max(1);
    let mut text = format!("\n{workload}, {threads} threads, {all} lines moved in all:\n\n");
    let mut by_function: BTreeMap<String, u64> = BTreeMap::new();
    for site in report.sites.iter().filter(|site| site.phase == phase) {
        *by_function.entry(symbols::function(report, site.instruction)).or_default() += site.moves;
    }
    let mut functions: Vec<(String, u64)> = by_function.into_iter().collect();
    functions.sort_by_key(|(_, moves)| std::cmp::Reverse(*moves));
    for (function, moves) in functions.iter().take(FUNCTIONS_NAMED) {
        let _ = writeln!(text, "- {:.0} % by `{function}`", 100.0 * *moves as f64 / all as f64);
    }
    if let Some(lock) = report.busiest(phase) {
        let share = 100.0 * lock.held as f64 / report.count(phase, "instructions").max(1) as f64;
        let _ = writeln!(
            text,
            "- busiest lock: held {} times, {share:.1} % of all instructions, {} at most, {} system calls inside; {} \
             attempts of others",
            lock.holds, lock.longest, lock.calls, lock.attempts
        );
    }
    text
}

fn facts(root: &Path, results: &Results) -> String {
    let MachineFacts { cpu, cpus, system, .. } = MachineFacts::here();
    let mallocs = results.mallocs.iter().map(|malloc| match &malloc.version {
        Some(version) => format!("{} {version}", malloc.name),
        None => malloc.name.clone(),
    });
    let (slips, turns) = results.slips();
    format!(
        "- made by `cargo xtask scale` at {}\n\
         - each thread: {OPS_START} operations to warm up, {} counted (large: 16 times fewer, churn: 64 times); {} seeds, \
         of which a cell has the median, and the ends where they differ by more than 5 %\n\
         - model: a cache for each thread, lines of 64 bytes, turns of {QUANTUM} instructions on average, {CPUS} CPUs \
         shown\n\
         - mallocs: {}\n\
         - turns given {turns}, taken from a thread that did not come {slips}\n\
         - machine: {cpu}, {cpus} CPUs, {system}; nothing is timed\n",
        records::commit(root),
        results.ops,
        results.seeds,
        mallocs.collect::<Vec<_>>().join(", ")
    )
}
