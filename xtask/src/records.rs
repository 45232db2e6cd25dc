//! The common parts of every dated record: the day, the commit, the machine's load, and the path of the record.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::benchmarks::{self, RECORDS};
use crate::{commands, files};

/// The load of the last 1, 5 and 15 minutes.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: Vec<&str> = text.split_whitespace().take(3).collect();
    if load.is_empty() { "unknown".to_owned() } else { load.join(" ") }
}

/// The commit that was measured, and whether the files differ from it.
pub fn commit(root: &Path) -> String {
    known_commit(root).unwrap_or_else(|| "an unknown commit".to_owned())
}

fn known_commit(root: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        commands::answer(Command::new("git").args(arguments).current_dir(root)).ok()
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    // Pages are not measured, and a record may be kept in one.
    let measured =
        ["status", "--porcelain", "--", "crates", "workloads", "Cargo.lock", ":(exclude)*.md"];
    let changed = git(&measured).is_none_or(|changes| !changes.is_empty());
    Some(if changed { format!("{commit} with changes") } else { commit })
}

/// This chore as typed, for a record to say how it was made.
pub fn command() -> String {
    let words = std::env::args().skip(1);
    std::iter::once("cargo xtask".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Today in UTC: `2026-11-24`.
pub fn today() -> String {
    commands::answer(Command::new("date").args(["-u", "+%F"])).unwrap_or("unknown".to_owned())
}

/// Writes the record, and the page of figures; returns the record's path from the root.
pub fn write(root: &Path, name: &str, text: &str) -> Result<String> {
    let path = format!("{RECORDS}/{}-{name}.md", today());
    files::write(&root.join(&path), text)?;
    benchmarks::run(root)?;
    Ok(path)
}
