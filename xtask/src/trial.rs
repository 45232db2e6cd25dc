//! `cargo xtask try`: a newcomer's first result. Builds masu and compares a real program, GNU sed on
//! a script that keeps malloc busy, under every malloc found.
//!
//! The lab is compiled without optimization here, which takes a third of the time: it starts programs and waits for
//! them. The libraries that the programs run on are always optimized.

use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{commands, machine};

/// The number of primes that the script lists: a run takes about half a second.
pub(crate) const PRIMES: &str = "30";

/// Runs of each malloc: few enough for a minute in all, enough for a verdict on five mallocs.
const RUNS: &str = "12";

/// Printed first.
const PLAN: &str = "\
Three steps, about two minutes on two idle CPUs:
  1. mallocs to compare with: jemalloc, tcmalloc and mimalloc of Debian, installed where this is root and lacks them
  2. build masu: about a minute the first time; cargo says how far it is
  3. compare GNU sed under every malloc found: about a minute; masu says how much is left
";

/// Printed after the comparison.
const NEXT: &str = "\
Now a program of yours:
  target/debug/masu diagnose -- PROGRAM ARGUMENTS   is memory what makes it slow?
  target/debug/masu compare -- PROGRAM ARGUMENTS    which malloc is better for it, and by how much?
To keep: `cargo build --release` makes target/release/masu and target/release/libmasu.so, both optimized.
";

pub(crate) fn run(root: &Path) -> Result<()> {
    let gnu_sed = Command::new("sed").arg("--version").output().context("sed is not there")?;
    if !String::from_utf8_lossy(&gnu_sed.stdout).contains("GNU sed") {
        bail!("the sed on the path is not GNU sed, whose malloc calls this comparison is about");
    }
    print!("{PLAN}");
    commands::step("1 of 3: mallocs", || {
        // A comparison with fewer mallocs is still a comparison.
        machine::provide_what_there_is(&[machine::PEERS]);
        Ok(())
    })?;
    commands::step("2 of 3: build", || build(root))?;
    commands::step("3 of 3: compare", || {
        let mut command = comparison(root)?;
        println!("$ {}", commands::show(&command));
        commands::run(&mut command)
    })?;
    print!("{NEXT}");
    Ok(())
}

pub(crate) fn build(root: &Path) -> Result<()> {
    let build = ["build", "--locked", "--package", "masu-cli", "--no-default-features"];
    let mut build = commands::cargo(root, &build);
    // Data that makes the next build quick would cost this build time.
    build.env("CARGO_INCREMENTAL", "0");
    commands::run(&mut build)
}

/// The comparison, once masu is built.
pub(crate) fn comparison(root: &Path) -> Result<Command> {
    let mut command = Command::new(commands::target_folder()?.join("debug/masu"));
    command.args(["compare", "-n", RUNS, "--", "sed", "-rf", "workloads/primes49.sed"]);
    // `cargo run` sets this for the programs it builds; sed would only search longer with it.
    command.current_dir(root).stdin(primes()?).env_remove("LD_LIBRARY_PATH");
    Ok(command)
}

/// Standard input with the script's number in it.
fn primes() -> Result<Stdio> {
    let mut file = tempfile::tempfile().context("cannot write a temporary file")?;
    writeln!(file, "{PRIMES}")?;
    file.rewind()?;
    Ok(file.into())
}
