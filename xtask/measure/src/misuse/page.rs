//! The figures of the page: the counts of each malloc's outcomes, the runs, and the tables.

use std::fmt::Write as _;
use std::iter::once;
use std::path::Path;

use super::cases::{Case, SIZES};
use super::run::Results;
use super::verdict::Verdict;
use crate::machine_facts::MachineFacts;
use crate::mallocs::Malloc;
use xtask::records;
use xtask::table::{Cells, Table};

const IN_SHORT: &str =
    "\n## In short\n\nEach case with each size is counted once, by the worst of its runs.\n\n";

const KINDS: [(&str, &[Verdict]); 6] = [
    ("stopped at the call", &[Verdict::Call, Verdict::Access, Verdict::Fault]),
    ("refused or wiped", &[Verdict::Refused, Verdict::Wiped]),
    ("stopped later", &[Verdict::Later, Verdict::Hangs]),
    ("silent", &[Verdict::Silent]),
    ("damage", &[Verdict::Damage]),
    ("handed to an attacker", &[Verdict::Handed]),
];

/// The cell of the page `old`, in the table under `heading`, the row of `case` and the column `title`.
pub(super) fn recorded<'a>(
    old: &'a str,
    heading: &str,
    case: &str,
    title: &str,
) -> Option<&'a str> {
    let (_, section) = old.split_once(&format!("\n## {heading}\n"))?;
    let section = section.split("\n## ").next()?;
    let mut rows = section.lines().filter(|line| line.starts_with('|'));
    let column = rows.next()?.split('|').position(|head| head.trim() == title)?;
    let start = format!("| `{case}`:");
    rows.find(|row| row.starts_with(&start))?.split('|').nth(column).map(str::trim)
}

/// The part of the page that is made: all but its words by hand.
pub(super) fn text(root: &Path, results: &Results) -> String {
    let mut text = IN_SHORT.to_owned();
    let kinds = KINDS.iter().map(|(title, _)| *title);
    let heads = once("malloc").chain(kinds).chain(["of", "version", "run"]);
    let mut table = Table::new(heads, Cells::Figures);
    let when = format!(
        "{}, {}, {} times, Linux {}",
        records::today(),
        records::commit(root),
        results.runs,
        MachineFacts::here().kernel
    );
    for found in &results.mallocs {
        let ends = [found.version().to_string(), when.clone()];
        table.row(once(found.title.clone()).chain(counts(results, found)).chain(ends));
    }
    let _ = write!(text, "{table}");
    text.push_str(&tables(results));
    text
}

/// The number of cases in each kind of outcome for `malloc`, and the number of all cases. A case with a size counts
/// once, by its worst run.
fn counts(results: &Results, malloc: &Malloc) -> impl Iterator<Item = String> {
    let of_it = results.outcomes.iter().filter(|one| one.malloc == malloc.name);
    let worst: Vec<Verdict> = of_it.filter_map(|one| one.tally.worst()).collect();
    let count = |of: &[Verdict]| worst.iter().filter(|one| of.contains(one)).count().to_string();
    KINDS.map(|(_, of)| count(of)).into_iter().chain([worst.len().to_string()])
}

/// A table for each kind of blocks.
pub(super) fn tables(results: &Results) -> String {
    let mut text = String::new();
    for kind in SIZES {
        let cases: Vec<&Case> = kind.cases(&results.cases).collect();
        if cases.is_empty() {
            continue;
        }
        let heads = results.mallocs.iter().map(|one| one.title.as_str());
        let mut table = Table::new(once("case").chain(heads), Cells::Words);
        for case in cases {
            let cells =
                results.mallocs.iter().map(|one| cell(results, case, kind.sizes, &one.name));
            table.row(once(format!("`{}`: {}", case.name, case.about)).chain(cells));
        }
        let _ = write!(text, "\n## {}\n\n{table}", kind.title);
    }
    text
}

/// The outcome of a case with each of `sizes`, once where all are the same.
pub(super) fn cell(results: &Results, case: &Case, sizes: &[usize], malloc: &str) -> String {
    let texts = sizes.iter().map(|size| results.tally(case, *size, malloc).text());
    let mut cells: Vec<String> = texts.collect();
    cells.dedup();
    cells.join("; ")
}
