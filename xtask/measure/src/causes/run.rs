//! Runs the command for a diagnosis of each program, to be compared with the known cause.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use xtask::commands;

use super::judge::{self, Found};
use super::table::{Case, Group};

pub(super) fn diagnose(masu: &Path, root: &Path, case: &Case) -> Result<Found> {
    let mut command = Command::new(masu);
    // The judge looks at the judgement of one counted run, not of a trial beside other mallocs.
    command.args(["diagnose", "--json", "--once"]).args(&case.known.options);
    command.arg("--").args(&case.command);
    let folder = if case.group == Group::Ordinary { root.join("workloads") } else { root.into() };
    commands::unset_malloc_variables(command.current_dir(folder));
    let is_cut_short = case.known.options.contains(&"--timeout");
    judge::read(&commands::output(&mut command)?, is_cut_short)
}
