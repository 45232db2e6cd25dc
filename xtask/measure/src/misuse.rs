//! `cargo xtask misuse`: what each malloc does when a program misuses memory, as a table that is never written by hand.
//!
//! It relies on `workloads/misuse` for the programs, each of which does one thing that is wrong and goes on, and on the
//! lab's catalogue for the mallocs. No malloc is asked: a verdict comes from the marks that the program wrote before
//! and after, from what it saw, and from how its process ended (`verdict.rs`). Each is run several times, because
//! hardened mallocs draw at random.

mod cases;
mod check;
pub(crate) mod mallocs;
mod page;
mod run;
#[cfg(test)]
mod tests;
mod verdict;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;

use cases::Case;
use mallocs::{MALLOCS, Malloc};
use run::Results;
use xtask::{commands, machine, options, page_part};

/// The page whose tables `--record` writes, from the workspace's root.
const PAGE: &str = "benches/record/checks/misuse.md";

/// What each malloc does when a program misuses memory (about 3 minutes, after peers)
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

    fn wants(&self, malloc: &Malloc) -> bool {
        match self.mallocs.is_empty() {
            true => malloc.is_ours() || !self.check,
            false => self.mallocs.iter().any(|name| name == malloc.name),
        }
    }

    fn choose(&self, mut cases: Vec<Case>) -> Result<Vec<Case>> {
        options::are_known(&self.only, cases.iter().map(|case| case.name.as_str()))?;
        cases.retain(|case| self.only.is_empty() || self.only.contains(&case.name));
        Ok(cases)
    }
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let program = build(root)?;
    let found = mallocs::find(root, &program, |malloc| request.wants(malloc))?;
    for (malloc, reason) in &found.missing {
        if request.record {
            bail!("misuse: a record needs {}: {reason}", malloc.title);
        }
        println!("going on without {}: {reason}", malloc.title);
    }
    let cases = request.choose(cases::of(&program)?)?;
    let results = commands::step("misuse", || {
        Results::gather(&program, &cases, &found.mallocs, request.runs())
    })?;
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

fn build(root: &Path) -> Result<PathBuf> {
    machine::provide_all(&[machine::PATTERNS])?;
    let out = commands::target_folder()?.join("misuse");
    commands::step("build the cases", || commands::make(&root.join("workloads/misuse"), &out))?;
    Ok(out.join("misuse"))
}
