//! The figures of the page: the expected findings, the findings, and the errors among them.

use std::fmt::Write as _;
use std::iter::once;

use super::judge::{Judged, Verdict};
use super::table::Group;
use crate::findings::listed;
use crate::machine_facts::MachineFacts;
use xtask::records;
use xtask::table::{Cells, Table};

/// The part of the page that is made: all but its words by hand.
pub(super) fn text(judged: &[Judged], commit: &str) -> String {
    let MachineFacts { cpu, cpus, system, .. } = MachineFacts::here();
    let mut text = format!(
        "Run on {} at {commit}: {cpu}, {cpus} CPUs, {system}; load {} at the end.\n",
        records::today(),
        records::load()
    );
    text.push_str(&tables(judged));
    text.push_str(&misses(judged));
    text
}

/// A table for each group that was run, with how many of it are right.
pub(super) fn tables(judged: &[Judged]) -> String {
    let mut text = String::new();
    for group in Group::ALL {
        let rows: Vec<&Judged> = judged.iter().filter(|one| one.case.group == group).collect();
        if rows.is_empty() {
            continue;
        }
        let right = rows.iter().filter(|one| one.verdict == Verdict::Right).count();
        let _ = writeln!(text, "\n## {}: {right} of {} right\n", title(group), rows.len());
        match group {
            Group::C | Group::Rust => {
                let heads = ["cause", "expected first", "found first", "other findings", ""];
                let _ = write!(text, "{}", table(heads, &rows, of_cause));
            }
            Group::Ordinary => {
                let heads = ["program", "found", "true of it", ""];
                let cells = |one: &Judged| [listed(&one.found, "–"), names(&one.case.known.also)];
                let _ = write!(text, "{}", table(heads, &rows, cells));
            }
            Group::Report => {
                let heads = ["step", "expected", "found", ""];
                let cells =
                    |one: &Judged| [names(&one.case.known.expected), listed(&one.found, "–")];
                let _ = write!(text, "{}", table(heads, &rows, cells));
                let command = rows[0].case.command.join(" ");
                let _ = writeln!(text, "\nThe command of the first: `{command}`.");
            }
        }
    }
    text
}

fn title(group: Group) -> &'static str {
    match group {
        Group::C => "Causes in C, on which thresholds were fixed",
        Group::Rust => "Causes in Rust, which judge them",
        Group::Ordinary => "Ordinary programs",
        Group::Report => "Field report 2",
    }
}

/// A row for each program: its name, `cells`, and the verdict.
fn table<const HEADS: usize, const CELLS: usize>(
    heads: [&str; HEADS],
    rows: &[&Judged],
    cells: impl Fn(&Judged) -> [String; CELLS],
) -> Table {
    let mut table = Table::new(heads, Cells::Words);
    for one in rows {
        // An error message may hold a character that a table's cell may not.
        let verdict = one.verdict.words().replace('|', "\\|");
        table.row(once(one.case.known.name.to_owned()).chain(cells(one)).chain([verdict]));
    }
    table
}

fn of_cause(one: &Judged) -> [String; 3] {
    let (first, others) = match one.found.split_first() {
        Some((first, others)) => (first.short(), listed(others, "–")),
        None => ("–".to_owned(), "–".to_owned()),
    };
    [names(&one.case.known.expected), first, others]
}

fn names(names: &[&str]) -> String {
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

/// The wrong verdicts, with the evidence that the diagnosis gave.
fn misses(judged: &[Judged]) -> String {
    let mut text = String::new();
    for one in judged.iter().filter(|one| one.verdict != Verdict::Right) {
        let (group, name) = (one.case.group.name(), one.case.known.name);
        let _ = writeln!(text, "- {name} ({group}): {}", one.verdict.words());
        let wrong = one.found.iter().filter(|found| one.false_ones.contains(&found.id));
        for found in wrong.chain(one.found.first().filter(|_| one.false_ones.is_empty())) {
            let _ = writeln!(text, "  - {}: {}", found.id, found.evidence.join("; "));
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\n## What is wrong, and what the diagnosis says for it\n\n{text}")
    }
}
