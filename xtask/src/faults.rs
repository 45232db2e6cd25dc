//! `cargo xtask faults`: each system call of the allocator refused at each of its uses, as a table in `docs/faults.md`.
//!
//! It relies on the tests `faults` of `masu-abi`, which try all of it where a variable asks for that and make the table.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::records;
use crate::{kept, steps};

const PAGE: &str = "docs/faults.md";

/// Tries everything and keeps the table.
///
/// # Errors
///
/// When a run crashes, hangs or loses a byte, as the tests say.
pub(crate) fn run(root: &Path) -> Result<()> {
    let table = steps::target_folder()?.join("faults.md");
    steps::take("refused calls", || {
        let tests = ["test", "--locked", "--package", "masu-abi", "--test", "faults"];
        let mut tests = steps::cargo(root, &tests);
        steps::succeed(tests.env("MASU_FAULTS", &table).args(["--", "--nocapture"]))
    })?;
    let rows = fs::read_to_string(&table).context("the tests wrote no table: no filters here?")?;
    let commit = records::commit(root).unwrap_or_else(|| "unknown".to_owned());
    kept::keep(
        &root.join(PAGE),
        "faults",
        &format!("{}, commit {commit}:\n\n{rows}", records::today()),
    )
}
