//! `cargo xtask misuse`: the reaction of each malloc when a program misuses memory, as a table that is never written
//! by hand.
//!
//! It relies on `workloads/misuse` for the programs, each of which does one wrong thing and goes on, and on the lab's
//! catalogue for the mallocs. No malloc is asked: a verdict comes from the marks that the program wrote before and
//! after, from its observations, and from the end of its process (`verdict.rs`). Each program is run several times,
//! because hardened mallocs draw at random.

mod cases;
mod check;
mod page;
mod run;
#[cfg(test)]
mod tests;
mod verdict;

use std::path::Path;

use anyhow::Result;
use clap::builder::PossibleValuesParser;

use crate::mallocs::{self, OURS, SECURE, Wanted};
use run::Results;
use xtask::{commands, machine, options, page_part};

/// The page whose tables `--record` writes, from the workspace's root.
const PAGE: &str = "benches/record/checks/misuse.md";

pub(super) const MALLOCS: [Wanted<'_>; 10] = [
    Wanted::new(OURS, "masu"),
    Wanted::new(SECURE, "masu secure"),
    // Every block of up to 60 KiB is guarded: the row shows the misuses that the option finds in the blocks that it
    // guards.
    Wanted {
        name: "masu-guards",
        spec: "masu:guard_rate=1,guard_slots=8000",
        title: "masu, each block guarded",
    },
    Wanted::new("glibc", "glibc"),
    Wanted::new("jemalloc", "jemalloc"),
    Wanted::new("tcmalloc", "tcmalloc"),
    Wanted::new("mimalloc3", "mimalloc"),
    Wanted::new("mimalloc-secure", "mimalloc secure"),
    Wanted::new("scudo", "scudo"),
    Wanted::new("hardened_malloc", "hardened_malloc"),
];

/// The reaction of each malloc to a program that misuses memory (about 3 minutes, after peers)
#[derive(Debug, Default, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    /// Runs of each case with each size under each malloc (10; with --check 3)
    #[arg(long, value_name = "N", value_parser = options::times)]
    runs: Option<usize>,
    /// Only this case; repeats
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Only under this malloc, such as `masu` or `glibc`; repeats
    #[arg(
        long = "malloc",
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(MALLOCS.map(|malloc| malloc.name))
    )]
    mallocs: Vec<String>,
    /// Write benches/record/checks/misuse.md, of every case under every malloc
    #[arg(long, conflicts_with_all = ["check", "mallocs", "only"])]
    record: bool,
    /// Only masu's own columns, held against benches/record/checks/misuse.md
    #[arg(long)]
    check: bool,
}

impl Request {
    fn runs(&self) -> usize {
        self.runs.unwrap_or(if self.check { 3 } else { 10 })
    }

    fn wants(&self, malloc: &Wanted<'_>) -> bool {
        match self.mallocs.is_empty() {
            true => malloc.is_ours() || !self.check,
            false => self.mallocs.iter().any(|name| name == malloc.name),
        }
    }
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    machine::provide_all(&[machine::PATTERNS])?;
    let program = commands::make_workload(root, "misuse")?.join("misuse");
    let wanted: Vec<Wanted<'_>> = MALLOCS.into_iter().filter(|one| request.wants(one)).collect();
    let mallocs = mallocs::find(root, &program, &wanted, request.record)?;
    let cases = options::chosen(cases::of(&program)?, &request.only, |case| &case.name)?;
    let results =
        commands::step("misuse", || Results::gather(&program, &cases, &mallocs, request.runs()))?;
    if request.check {
        return check::hold(root, &program, &results);
    }
    if !request.record {
        println!("\n{}", page::tables(&results));
        return Ok(());
    }
    page_part::replace(&root.join(PAGE), "misuse", &page::text(root, &results))?;
    println!("record: {PAGE}");
    Ok(())
}
