//! `cargo xtask matrix`: every group of the allocator's tests on every target that this machine can run, as one
//! table, which is kept in the tests' README: row by row, each as soon as all its groups have run. A row names the
//! run that it is from.
//!
//! It relies on cargo for each cell, on qemu-user and Debian's cross compilers for aarch64, on `xtask/boot/boot.sh`
//! for kernels with other OS pages, and on the variables that the tests themselves read from the environment
//! (`TESTED_TARGET`, `TESTED_RUNNER`, `TESTED_PROFILE`, `MASU_OPERATIONS`). The hard idea is honesty about emulation:
//! a test that an emulator breaks by itself is left out by name, with the reason, and the table says so.

mod plan;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::{commands, machine, page_part, records, test_counts};
use plan::{BY_QEMU, GROUPS, Group, LEFT_OUT, Machine, REASONS, TARGETS, Target};
use xtask::table::{Cells, Table};

const README: &str = "crates/masu-abi/tests/README.md";

pub(crate) const BOOT: &str = "xtask/boot/boot.sh";

/// The longest time for a cell, in seconds: far more than any cell takes, including the builds that it needs on a
/// busy machine.
const PATIENCE_S: &str = "3600";

/// Run every group of the allocator's tests on every target, keep the table in the tests' README (over an hour)
#[derive(Debug, Default, clap::Parser)]
pub(crate) struct Request {
    /// The part that CI runs: aarch64 under qemu, a few groups, released (2 minutes)
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

    /// Whether the requested rows are whole ones.
    fn keeps_rows(&self) -> bool {
        !self.quick && self.groups.is_empty()
    }
}

/// Runs the requested cells and prints the table; whole rows are kept in the README as they are done.
pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let wants = |target: &Target| GROUPS.iter().any(|group| request.wants(target, group));
    let targets: Vec<&Target> = TARGETS.iter().filter(|target| wants(target)).collect();
    if targets.is_empty() {
        bail!("matrix: no such target or group");
    }
    machine::provide_all(&[machine::TESTED, machine::FOREIGN])?;
    machine::provide_toolchain(root)?;
    if targets.iter().any(|target| matches!(target.machine, Machine::Guest(_))) {
        provide_guests(root)?;
    }
    let readme = root.join(README);
    // Before any row is kept, because a kept row is a change.
    let stamp = format!("{}, commit {}", records::today(), records::commit(root));
    let (mut rows, mut failed) = (Vec::new(), 0);
    for target in targets {
        let mut cells = Vec::new();
        for group in GROUPS.iter() {
            let (cell, is_failed) = cell(root, request, target, group);
            cells.push(cell);
            failed += usize::from(is_failed);
        }
        rows.push(format!("| {} | {stamp} | {} |", target.name, cells.join(" | ")));
        if request.keeps_rows() {
            let old = page_part::read(&readme, "matrix")?;
            let old = old.lines().map(str::to_owned);
            page_part::replace(&readme, "matrix", &table(&old.collect::<Vec<_>>(), &rows))?;
        }
    }
    println!("\n{}", table(&[], &rows));
    if failed > 0 {
        bail!("matrix: {failed} cells of the table fail");
    }
    Ok(())
}

pub(crate) fn provide_guests(root: &Path) -> Result<()> {
    machine::provide_all(&[machine::GUEST])?;
    machine::provide_target(root, machine::OTHER_CPU_MUSL)
}

/// The result of a group on a target as a cell of the table, and whether it failed.
fn cell(root: &Path, request: &Request, target: &Target, group: &Group) -> (String, bool) {
    if !request.wants(target, group) {
        return (String::new(), false);
    }
    if let Some(letter) = plan::not_run(target, group) {
        return (letter.to_string(), false);
    }
    let name = format!("{}: {}", target.name, group.name);
    let tally =
        commands::step(&name, || test_counts::run_tests(&mut command(root, target, group)?));
    let (passed, failed) = match tally {
        Ok(tally) => (tally.passed, tally.failed),
        // Said here, so that the other cells are still run.
        Err(error) => {
            println!("{error:#}");
            (0, 1)
        }
    };
    match failed {
        0 => (passed.to_string(), false),
        _ => (format!("{passed}, **{failed} failed**"), true),
    }
}

/// The table of these rows, in the order of the targets; `old` has those of other targets, if it has the same columns.
fn table(old: &[String], rows: &[String]) -> String {
    let heads: Vec<&str> =
        ["target", "run"].into_iter().chain(GROUPS.iter().map(|group| group.name)).collect();
    let head = format!("| {} |", heads.join(" | "));
    let old = if old.contains(&head) { old } else { &[] };
    let mut text = Table::new(heads, Cells::Figures).to_string();
    for target in TARGETS {
        let is_its = |row: &&String| row.starts_with(&format!("| {} |", target.name));
        if let Some(row) = rows.iter().find(is_its).or_else(|| old.iter().find(is_its)) {
            text.push_str(&format!("{row}\n"));
        }
    }
    text.push_str("\nTests that passed; with *n* failed where any did. Not run:\n\n");
    for (letter, reason) in REASONS {
        let _ = writeln!(text, "- {letter}: {reason}.");
    }
    for one in LEFT_OUT {
        let _ = writeln!(text, "- `{}`, {}: {}.", one.test, one.place, one.reason);
    }
    text
}

fn command(root: &Path, target: &Target, group: &Group) -> Result<Command> {
    let mut cargo =
        commands::cargo(root, &["test", "--locked", "--no-fail-fast", "--package", group.package]);
    cargo.args(group.tests.split_whitespace());
    if target.is_emulated() {
        cargo.envs(BY_QEMU);
    }
    if group.runs_programs {
        cargo.env("TESTED_PROFILE", target.profile);
    } else {
        cargo.args((target.profile == "release").then_some("--release"));
        // There are many test programs, and none of them is released.
        cargo.env("CARGO_PROFILE_RELEASE_LTO", "off");
    }
    // The tests of C programs run here; it is the programs that are another target's.
    if group.runs_programs && target.is_emulated() {
        cargo.env("TESTED_TARGET", target.triple);
    } else {
        cargo.args(["--target", target.triple]);
    }
    if let Machine::Guest(size) = target.machine {
        let runner = guest_runner(root, target, size)?;
        let name = target.triple.to_uppercase().replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{name}_RUNNER"), &runner);
        cargo.env("TESTED_RUNNER", &runner);
    }
    cargo.env("MASU_OPERATIONS", if target.is_emulated() { "200000" } else { "1000000" });
    cargo.arg("--");
    for left_out in LEFT_OUT.iter().filter(|one| one.has(target, group)) {
        cargo.args(["--skip", left_out.test]);
    }
    if target.machine == Machine::QemuUser && group.name == "code" {
        // Its tests start compilers: a child of `fork` may wait for ever for what another of qemu's threads had.
        cargo.arg("--test-threads=1");
    }
    // `timeout` leaves the terminal's group of processes: without setpriv, Ctrl-C would leave the tests running.
    Ok(commands::behind(&["setpriv", "--pdeathsig", "TERM", "timeout", PATIENCE_S], &cargo))
}

/// The command that runs a guest's program, words with spaces between.
fn guest_runner(root: &Path, target: &Target, size: u32) -> Result<String> {
    // The page that tests of `crates/masu` read, and the folder in which they write.
    let (script, page) = (root.join(BOOT), root.join("docs/options.md"));
    let folder = commands::target_folder()?.join(target.triple).join("tmp");
    let (script, page, folder) = (script.display(), page.display(), folder.display());
    Ok(format!("sh {script} --pages {size} --file {page} --folder {folder}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> impl Iterator<Item = (&'static Target, &'static Group)> {
        TARGETS.iter().flat_map(|target| GROUPS.iter().map(move |group| (target, group)))
    }

    #[test]
    fn what_ci_runs_is_a_part_that_runs() {
        let request = Request::quick();
        let asked: Vec<_> =
            cells().filter(|(target, group)| request.wants(target, group)).collect();
        assert!(asked.len() > 2);
        assert!(asked.iter().all(|(target, group)| plan::not_run(target, group).is_none()));
    }

    #[test]
    fn rows_of_an_earlier_run_stay_where_the_columns_are_the_same() {
        let row = |place: usize, run: &str| format!("| {} | {run} | 7 |", TARGETS[place].name);
        let kept = |old: &str| -> Vec<String> { old.lines().map(str::to_owned).collect() };
        let both = table(&[], &[row(1, "then"), row(0, "then")]);
        let later = table(&kept(&both), &[row(1, "now")]);
        let rows: Vec<&str> = later.lines().skip(2).take(2).collect();
        assert_eq!(rows, [row(0, "then"), row(1, "now")]);
        let others = both.replace("| unit |", "| other |");
        assert!(!table(&kept(&others), &[row(1, "now")]).contains("then"));
    }

    #[test]
    fn every_reason_has_a_letter_of_the_list() {
        for letter in cells().filter_map(|(target, group)| plan::not_run(target, group)) {
            assert!(REASONS.iter().any(|(known, _)| *known == letter), "{letter}");
        }
    }
}
