//! The check that masu still does as the page says.
//!
//! It relies on the page's own tables. Hardened builds draw at random: if all runs of a cell agreed, most of today's
//! runs must agree with it; if they differed, today's runs must have one of the cell's words.

use std::path::Path;

use anyhow::{Result, bail};
use xtask::files;

use super::PAGE;
use super::cases::{Case, SIZES};
use super::page;
use super::run::Results;
use super::verdict::Tally;

/// Runs of the cases in which masu seems to differ, before that is reported.
const RUNS: usize = 15;

/// Holds `results` against the page. Cases that differ are run again and more often: a hardened build draws at
/// random.
pub(super) fn hold(root: &Path, program: &Path, results: &Results) -> Result<()> {
    let text = files::read(&root.join(PAGE))?;
    let seems = differences(&text, results);
    let differs = |case: &&Case| seems.iter().any(|(name, _)| *name == case.name);
    let again: Vec<Case> = results.cases.iter().filter(differs).cloned().collect();
    let again = Results::gather(program, &again, &results.mallocs, RUNS)?;
    let wrong: Vec<String> =
        differences(&text, &again).into_iter().map(|(_, difference)| difference).collect();
    if wrong.is_empty() {
        println!("{PAGE} holds: {} cases with their sizes", results.outcomes.len());
        return Ok(());
    }
    bail!(
        "{PAGE} says otherwise; `cargo xtask misuse --record` writes it again:\n  {}",
        wrong.join("\n  ")
    );
}

/// The differences, for each cell the case's name and a line.
pub(super) fn differences(text: &str, results: &Results) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    for kind in SIZES {
        for case in kind.cases(&results.cases) {
            for malloc in &results.mallocs {
                let title = &malloc.title;
                let recorded = page::recorded(text, kind.title, &case.name, title);
                let sizes = kind.sizes.iter();
                let tallies = sizes.map(|size| results.tally(case, *size, &malloc.name));
                if !recorded.is_some_and(|cell| agrees(cell, tallies)) {
                    let now = page::cell(results, case, kind.sizes, &malloc.name);
                    let then = recorded.unwrap_or("nothing");
                    let line = format!(
                        "{}, {}, {title}: the page says {then}, today {now}",
                        kind.title, case.name
                    );
                    wrong.push((case.name.clone(), line));
                }
            }
        }
    }
    wrong
}

/// Whether today's runs with each size are as the cell says.
fn agrees(cell: &str, tallies: impl Iterator<Item = Tally>) -> bool {
    let parts: Vec<&str> = cell.split("; ").collect();
    tallies.enumerate().all(|(index, tally)| {
        let Some(part) = parts.get(index).or(parts.last()) else { return false };
        let word = tally.main().map_or("–", |verdict| verdict.word());
        let mut words = part.split(", ").filter_map(|words| words.split_whitespace().next());
        words.any(|recorded| recorded == word)
    })
}
