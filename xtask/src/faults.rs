//! `cargo xtask faults`: each system call of the allocator refused at each of its uses, as tables in
//! `benches/record/checks/faults.md`.
//!
//! It relies on the tests `faults` of `masu-abi`, which try all of it where a variable asks for that and make the tables.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;

use crate::records;
use crate::{commands, files, page_part};

const PAGE: &str = "benches/record/checks/faults.md";

/// The programs that are tried, and the test of each.
const PROGRAMS: [(&str, &str); 3] = [
    ("c", "a_refused_call_gives_null_or_success_and_right_statistics"),
    ("rust-glibc", "a_refused_call_is_survived_by_a_rust_program"),
    ("rust-musl", "a_refused_call_is_survived_by_a_rust_program_without_a_c_library"),
];

/// Refuse each system call of the allocator at each of its uses, keep the tables in benches/record/checks/faults.md (about 15
/// minutes for each program)
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// Only these programs
    #[arg(value_parser = PossibleValuesParser::new(PROGRAMS.map(|(name, _)| name)))]
    names: Vec<String>,
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let tables = commands::target_folder()?.join("faults");
    fs::create_dir_all(&tables)?;
    for (name, test) in PROGRAMS {
        if request.names.is_empty() || request.names.iter().any(|asked| asked == name) {
            commands::step(name, || refuse(root, &tables, name, test))?;
        }
    }
    Ok(())
}

fn refuse(root: &Path, tables: &Path, name: &str, test: &str) -> Result<()> {
    let tests = ["test", "--locked", "--package", "masu-abi", "--test", "faults"];
    let mut tests = commands::cargo(root, &tests);
    // A table of some calls is none.
    tests.env("MASU_FAULTS", tables).env_remove("MASU_FAULTS_CALL");
    tests.args(["--", "--nocapture", "--exact", test]);
    commands::run(&mut tests)?;
    let table = tables.join(name).with_extension("md");
    let rows = files::read(&table).context("the test wrote no table: no filters here?")?;
    let commit = records::commit(root);
    let text = format!("{}, commit {commit}:\n\n{rows}", records::today());
    page_part::replace(&root.join(PAGE), &format!("faults {name}"), &text)
}
