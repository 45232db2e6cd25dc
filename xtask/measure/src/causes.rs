//! `cargo xtask causes`: `masu diagnose` held against programs whose one cause is known, against ordinary programs,
//! and against the program of a field report.
//!
//! Relies on `workloads/causes` for the programs and on the command for every finding. This module has only the
//! expected findings (`causes.toml`) and the verdict on them (`judge.rs`). The hard idea is that a judge must not
//! learn from the programs that it judges: thresholds are fixed on the causes in C, and the causes in Rust and the
//! ordinary programs are run to judge.

mod judge;
mod page;
mod table;

use std::path::Path;

use anyhow::Result;

use xtask::{commands, machine, options, page_part, records};

use crate::findings;
use judge::{Found, Judged};
use table::{Case, Group, Places};

/// The page whose tables `--record` writes, from the workspace's root.
const PAGE: &str = "benches/record/checks/causes.md";

/// masu diagnose on programs whose cause is known, and on ordinary ones (about 4 minutes)
#[derive(Debug, Default, PartialEq, Eq, clap::Parser)]
pub(crate) struct Request {
    /// The causes in this language alone, without ordinary programs; else everything
    #[arg(long = "language", value_name = "LANGUAGE", value_enum)]
    group: Option<Group>,
    /// Only this cause or program; repeats
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Write benches/record/checks/causes.md: of everything
    #[arg(long, conflicts_with_all = ["group", "only"])]
    record: bool,
}

impl Request {
    fn choose(&self, cases: Vec<Case>) -> Result<Vec<Case>> {
        let mut cases = options::chosen(cases, &self.only, |case| case.known.name)?;
        cases.retain(|case| self.group.is_none_or(|group| case.group == group));
        Ok(cases)
    }
}

/// Builds everything, has each program diagnosed once, and says of each whether the cause was named.
pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let masu = commands::target_folder()?.join("release/masu");
    let cases = request.choose(table::cases(&build(root, request)?)?)?;
    let mut judged = Vec::new();
    for case in cases {
        println!("==> {}: {}", case.group.name(), case.known.name);
        let found = diagnose(&masu, root, &case);
        let one = Judged::new(case, found);
        println!("    {}", one.line());
        judged.push(one);
    }
    let tables = page::tables(&judged);
    println!("\n{tables}");
    if request.record {
        let text = page::text(&judged, &records::commit(root));
        page_part::replace(&root.join(PAGE), "causes", &text)?;
        println!("record: {PAGE}");
    }
    Ok(())
}

fn diagnose(masu: &Path, root: &Path, case: &Case) -> Result<Found> {
    // The judge looks at the judgement of one counted run, not of a trial beside other mallocs.
    let words = [&["diagnose", "--once"], &case.known.options[..]].concat();
    let folder = if case.group == Group::Ordinary { root.join("workloads") } else { root.into() };
    let is_cut_short = case.known.options.contains(&"--timeout");
    judge::read(&findings::ask(masu, &words, &case.command, &folder)?, is_cut_short)
}

fn build(root: &Path, request: &Request) -> Result<Places> {
    machine::provide_all(&[machine::PATTERNS])?;
    commands::step("build masu", || commands::build(root, &["--package", "masu-cli"]))?;
    let causes = commands::make_workload(root, "causes")?;
    commands::step("build the causes in Rust", || {
        let manifest = ["--manifest-path", "workloads/causes/rust/Cargo.toml", "--target-dir"];
        let mut build = commands::cargo(root, &["build", "--release", "--locked"]);
        commands::run(build.args(manifest).arg(causes.join("rust")))
    })?;
    let mut programs = commands::target_folder()?.join("programs");
    if request.group.is_none() {
        machine::provide_all(&[machine::PROGRAMS, machine::ORDINARY])?;
        programs = commands::make_workload(root, "programs")?;
        commands::step("build the field report's program", || {
            let build = ["build", "--package", "masu-chunk", "--example", "steps"];
            commands::run(&mut commands::cargo(root, &build))
        })?;
    }
    Ok(Places { causes, programs })
}

#[cfg(test)]
mod tests;
