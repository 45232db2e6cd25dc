//! The page of the docs: what each verdict means, what was run, the tables, and how often each malloc does what.

use std::fmt::Write as _;
use std::path::Path;

use super::cases::{Case, SIZES, STRANGERS};
use super::mallocs::Malloc;
use super::run::Results;
use super::verdict::{Tally, Verdict};
use crate::machine_facts::MachineFacts;
use xtask::records;

const OPENING: &str = "\
# What misuse of memory comes to

`cargo xtask misuse --record` writes this page; CI runs `cargo xtask misuse --check`, which holds masu's own columns
against it. Each case is a program that does one thing that is wrong ([workloads/misuse](../../../workloads/misuse/README.md)) in a
heap that is in use, and then goes on: it allocates and frees some hundred blocks, of the same size and small ones, checks that no
two overlap and that each keeps what was written to it, frees all, and ends. No malloc is asked what it noticed.

| word | what the program or its parent saw |
| --- | --- |
| `call` | the malloc ended the program inside the very call; of a write out of bounds: when that block was freed |
| `access` | the very read or write ended the program: the memory there was not to be touched |
| `fault` | the very call ended in a memory fault: the malloc stumbled over the pointer, which is luck |
| `refused` | the call returned null, or a size of 0 |
| `wiped` | a freed block could be read, and nothing of its data was left |
| `later` | the program ended in a later call or at its exit |
| `silent` | nothing wrong was seen until the end |
| `damage` | the program ran to its end; a live block lost what was written to it |
| `hangs` | the program did not end |
| **handed** | handed to an attacker: memory in use was handed out again, or a pointer that stood in the program's data was followed |

Where runs differ, each word has its number of runs. Where the two sizes of a table differ, a semicolon is between them. A *forged
header* is what glibc's malloc keeps before a block, written there as ordinary data; that other mallocs stop at the same word
anywhere does not make them safer against data that is made for them.
";

/// The section of `masu compare --suite workloads/prices.toml`, which is kept by hand.
const PRICES: &str = "What safety costs";

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

pub(super) struct Old<'a>(pub(super) &'a str);

impl<'a> Old<'a> {
    /// The cell of the table under `heading`, in the row of `case` and the column `title`.
    pub(super) fn cell(&self, heading: &str, case: &str, title: &str) -> Option<&'a str> {
        let mut rows = self.section(heading)?.lines().filter(|line| line.starts_with('|'));
        let column = rows.next()?.split('|').position(|head| head.trim() == title)?;
        let start = format!("| `{case}`:");
        rows.find(|row| row.starts_with(&start))?.split('|').nth(column).map(str::trim)
    }

    fn section(&self, heading: &str) -> Option<&'a str> {
        let (_, section) = self.0.split_once(&format!("\n## {heading}\n"))?;
        section.split("\n## ").next()
    }
}

/// The whole page; of `old` it keeps the prices.
pub(super) fn text(root: &Path, results: &Results, old: &Old<'_>) -> String {
    let mut text = OPENING.to_owned();
    text.push_str(IN_SHORT);
    let heads: Vec<&str> = KINDS.iter().map(|(title, _)| *title).collect();
    let _ = write!(
        text,
        "| malloc | {} | of | version | run |\n|---{}|---:|---|---|\n",
        heads.join(" | "),
        "|---:".repeat(KINDS.len())
    );
    let when = format!(
        "{}, {}, {} times, Linux {}",
        records::today(),
        records::commit(root),
        results.runs,
        MachineFacts::here().kernel
    );
    for found in &results.mallocs {
        let counts = counts(results, found.malloc);
        let _ = writeln!(text, "{counts} | {} | {when} |", found.version);
    }
    text.push_str(&tables(results));
    if let Some(prices) = old.section(PRICES) {
        let _ = write!(text, "\n## {PRICES}\n{prices}");
    }
    text
}

/// How often `malloc` does what, a case with a size counted once, by its worst run.
fn counts(results: &Results, malloc: Malloc) -> String {
    let of_it = results.outcomes.iter().filter(|one| one.malloc == malloc.name);
    let worst: Vec<Verdict> = of_it.filter_map(|one| one.tally.worst()).collect();
    let count = |of: &[Verdict]| worst.iter().filter(|one| of.contains(one)).count().to_string();
    let counts = KINDS.map(|(_, of)| count(of)).join(" | ");
    format!("| {} | {counts} | {}", malloc.title, worst.len())
}

/// A table for each kind of blocks.
pub(super) fn tables(results: &Results) -> String {
    let mut text = String::new();
    for kind in SIZES.into_iter().chain([STRANGERS]) {
        let cases: Vec<&Case> = kind.cases(&results.cases).collect();
        if cases.is_empty() {
            continue;
        }
        let heads: Vec<&str> = results.mallocs.iter().map(|one| one.malloc.title).collect();
        let _ = write!(
            text,
            "\n## {}\n\n| case | {} |\n|---{}|\n",
            kind.title,
            heads.join(" | "),
            "|---".repeat(heads.len())
        );
        for case in cases {
            let cells =
                results.mallocs.iter().map(|one| cell(results, case, kind.sizes, one.malloc.name));
            let cells = cells.collect::<Vec<_>>().join(" | ");
            let _ = writeln!(text, "| `{}`: {} | {cells} |", case.name, case.about);
        }
    }
    text
}

/// The outcome of a case with each of `sizes`, once where all are the same.
pub(super) fn cell(results: &Results, case: &Case, sizes: &[usize], malloc: &str) -> String {
    let of_size = |size: &usize| {
        let tally = results.tally(case, *size, malloc);
        tally.map_or_else(|| Tally::default().text(), Tally::text)
    };
    let mut cells: Vec<String> = sizes.iter().map(of_size).collect();
    cells.dedup();
    cells.join("; ")
}
