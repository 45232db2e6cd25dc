//! `cargo xtask matrix`: every group of the allocator's tests on every target that this machine can run, as
//! one table, which is kept in the tests' README: row by row, each as soon as all its groups have run.
//!
//! It relies on cargo for each cell, on qemu-user and Debian's cross compilers for aarch64, on `cargo xtask boot` for
//! kernels with other OS pages, and on what the tests themselves take from the environment (`TESTED_TARGET`,
//! `TESTED_RUNNER`, `TESTED_PROFILE`, `MASU_OPERATIONS`). The hard
//! idea is honesty about emulation: what an emulator gets wrong by itself is left out by name, with the reason,
//! and the table says so.

mod plan;
mod table;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{boot, commands, machine, page_part, records, test_counts};
use plan::{Cell, GROUPS, Group, Machine, TARGETS, Target};

const README: &str = "crates/masu-abi/tests/README.md";

/// No cell takes longer than this by far, in seconds, what it needs built and on a busy machine.
const PATIENCE_S: &str = "3600";

/// Run every group of the allocator's tests on every target, keep the table in the tests' README (over an hour)
#[derive(Debug, Default, clap::Parser)]
pub(crate) struct Request {
    /// What CI runs: aarch64 under qemu, a few groups, released (2 minutes)
    #[arg(long)]
    quick: bool,
    /// Only targets whose name has this in it; repeats
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Only this group; repeats; the table in the README stays as it is
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
}

impl Request {
    pub(crate) fn quick() -> Request {
        Request { quick: true, ..Request::default() }
    }

    fn wants(&self, target: &Target, group: &Group) -> bool {
        let of_target = self.targets.is_empty()
            || self.targets.iter().any(|name| target.name.contains(name.as_str()));
        let of_group = self.groups.is_empty() || self.groups.iter().any(|name| name == group.name);
        let in_part = !self.quick || (target.is_quick && group.is_quick);
        of_target && of_group && in_part
    }

    /// Whether the rows that were asked for are whole ones.
    fn keeps_rows(&self) -> bool {
        !self.quick && self.groups.is_empty()
    }
}

/// Runs the cells that were asked for and prints the table; whole rows are kept in the README as they are done.
pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    machine::provide_all(&[machine::TESTED, machine::FOREIGN])?;
    machine::provide_toolchain(root)?;
    provide_guests(root, request)?;
    let readme = root.join(README);
    // Before anything is kept, for what is kept is a change.
    let head = table::head(&records::commit(root));
    let mut rows = Vec::new();
    for target in TARGETS {
        let cells: Vec<Cell> =
            GROUPS.iter().map(|group| cell(root, request, target, group)).collect::<Result<_>>()?;
        if cells.iter().any(|cell| *cell != Cell::NotAsked) {
            rows.push((target, cells));
            if request.keeps_rows() {
                let old = page_part::read(&readme, "matrix")?;
                page_part::replace(&readme, "matrix", &table::merged(&old, &head, &rows))?;
            }
        }
    }
    if rows.is_empty() {
        bail!("matrix: no such target or group");
    }
    println!("\n{}", table::text(&rows));
    if request.keeps_rows() {
        println!("kept in {README}");
    }
    let failed = rows.iter().flat_map(|(_, cells)| cells).filter(|cell| cell.is_failed()).count();
    if failed > 0 {
        bail!("matrix: {failed} cells of the table fail");
    }
    Ok(())
}

fn provide_guests(root: &Path, request: &Request) -> Result<()> {
    let asked = TARGETS
        .iter()
        .filter(|target| GROUPS.iter().any(|group| request.wants(target, group)))
        .filter_map(|target| match target.machine {
            Machine::Guest(size) => Some(size),
            Machine::Here | Machine::QemuUser => None,
        });
    let sizes: BTreeSet<u32> = asked.collect();
    if sizes.is_empty() {
        Ok(())
    } else {
        boot::provide(root, &sizes.into_iter().collect::<Vec<_>>())
    }
}

fn cell(root: &Path, request: &Request, target: &Target, group: &Group) -> Result<Cell> {
    if !request.wants(target, group) {
        return Ok(Cell::NotAsked);
    }
    if let Some(reason) = plan::not_run(target, group) {
        return Ok(Cell::NotRun(reason));
    }
    let name = format!("{}: {}", target.name, group.name);
    let tally =
        commands::step(&name, || test_counts::run_tests(&mut command(root, target, group)?));
    Ok(match tally {
        Ok(tally) if tally.failed == 0 => Cell::Passed(tally.passed),
        Ok(tally) => Cell::Failed(tally.passed, tally.failed),
        // Said here, so that the other cells are still run.
        Err(error) => {
            println!("{error:#}");
            Cell::Failed(0, 1)
        }
    })
}

fn command(root: &Path, target: &Target, group: &Group) -> Result<Command> {
    let mut cargo =
        commands::cargo(root, &["test", "--locked", "--no-fail-fast", "--package", group.package]);
    cargo.args(group.tests.split_whitespace());
    // The tests of C programs run here; it is the programs that are another target's.
    if !group.runs_programs || !target.is_emulated() {
        cargo.args(["--target", target.triple]);
    }
    if !group.runs_programs && target.profile == "release" {
        cargo.arg("--release");
    }
    if !group.runs_programs {
        // Test programs are many, and none of them is what is released.
        cargo.env("CARGO_PROFILE_RELEASE_LTO", "off");
    }
    for (name, value) in target.variables {
        cargo.env(name, value);
    }
    if group.runs_programs {
        cargo.env("TESTED_PROFILE", target.profile);
        if target.is_emulated() {
            cargo.env("TESTED_TARGET", target.triple);
        }
    }
    if let Machine::Guest(size) = target.machine {
        let runner = guest_runner(root, target, size)?;
        let name = target.triple.to_uppercase().replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{name}_RUNNER"), &runner);
        cargo.env("TESTED_RUNNER", &runner);
    }
    cargo.env("MASU_OPERATIONS", if target.is_emulated() { "200000" } else { "1000000" });
    cargo.arg("--");
    for left_out in plan::LEFT_OUT.iter().filter(|one| one.has(target, group)) {
        cargo.args(["--skip", left_out.test]);
    }
    Ok(commands::behind(&["timeout", PATIENCE_S], &cargo))
}

/// The command that runs a guest's program, words with spaces between.
fn guest_runner(root: &Path, target: &Target, size: u32) -> Result<String> {
    let xtask = std::env::current_exe().context("this program's own path is unknown")?;
    // What tests of `crates/masu` read and where they write.
    let page = root.join("docs/options.md");
    let folder = commands::target_folder()?.join(target.triple).join("tmp");
    let (xtask, page, folder) = (xtask.display(), page.display(), folder.display());
    Ok(format!("{xtask} boot --pages {size} --file {page} --folder {folder}"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn a_part_is_what_was_asked_for() {
        let words = ["matrix", "--target", "aarch64", "--group", "unit"];
        let request = Request::try_parse_from(words).unwrap();
        let asked = |target: &Target, group: &Group| request.wants(target, group);
        assert!(TARGETS.iter().any(|target| GROUPS.iter().any(|group| asked(target, group))));
        assert!(!TARGETS.iter().any(|target| asked(target, &GROUPS[1])));
        assert!(!request.keeps_rows() && Request::default().keeps_rows());
    }

    #[test]
    fn what_ci_runs_is_a_part_that_runs() {
        let request = Request::quick();
        let cells =
            TARGETS.iter().flat_map(|target| GROUPS.iter().map(move |group| (target, group)));
        let asked: Vec<_> = cells.filter(|(target, group)| request.wants(target, group)).collect();
        assert!(
            asked.len() > 2
                && asked.iter().all(|(target, group)| plan::not_run(target, group).is_none())
        );
    }
}
