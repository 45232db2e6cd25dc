//! Runs what is held against what is known: the command, for a diagnosis of each program.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::judge::{self, Found};
use super::table::{Case, Group};

/// Variables that would change the malloc, or where it is looked for.
const UNSET: [&str; 4] = ["LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX"];

/// What `masu diagnose` finds in one run of the case.
pub(super) fn diagnose(masu: &Path, root: &Path, case: &Case) -> Result<Found> {
    let mut command = Command::new(masu);
    // What is judged is the judgement of one counted run, not of a trial beside other mallocs.
    command.args(["diagnose", "--json", "--once"]).args(&case.known.options);
    command.arg("--").args(&case.command).stdin(Stdio::null());
    let folder = if case.group == Group::Ordinary { root.join("workloads") } else { root.into() };
    command.current_dir(folder);
    for variable in UNSET {
        command.env_remove(variable);
    }
    let output = command.output().context("cannot start masu")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        bail!("masu diagnose: {}: {last}", output.status);
    }
    let is_cut_short = case.known.options.contains(&"--timeout");
    judge::read(&String::from_utf8_lossy(&output.stdout), is_cut_short)
}
