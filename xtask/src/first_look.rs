//! `cargo xtask try`: a newcomer's first look. Builds masu and compares a real program, GNU sed on
//! a script that keeps malloc busy, under every malloc found.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{machine, steps};

/// How many primes the script lists: a run takes a bit less than a second.
pub(crate) const PRIMES: &str = "35";

/// Runs of each malloc: few enough for about a minute in all, enough for a verdict on five mallocs.
const RUNS: &str = "12";

/// Takes the first look.
///
/// # Errors
///
/// When a malloc to compare with cannot be installed, the build fails, or the comparison does.
pub(crate) fn run(root: &Path) -> Result<()> {
    let gnu_sed = Command::new("sed").arg("--version").output().context("sed is not there")?;
    if !String::from_utf8_lossy(&gnu_sed.stdout).contains("GNU sed") {
        bail!("the sed on the path is not GNU sed, whose malloc calls this comparison is about");
    }
    if let Err(error) = machine::provide(&machine::PEERS.iter().collect::<Vec<_>>()) {
        // A comparison with fewer mallocs is still a comparison.
        println!("going on without: {error:#}");
    }
    steps::take("build", || steps::succeed(&mut steps::cargo(root, &["build", "--release"])))?;
    steps::take("compare", || {
        let mut command = comparison(root)?;
        println!("$ {}", steps::show(&command));
        steps::succeed(&mut command)
    })
}

/// The comparison, once masu is built.
///
/// # Errors
///
/// When what the script reads cannot be written.
pub(crate) fn comparison(root: &Path) -> Result<Command> {
    let mut command = Command::new(steps::target_folder()?.join("release/masu"));
    command.args(["compare", "-n", RUNS, "--", "sed", "-rf", "workloads/primes49.sed"]);
    // `cargo run` sets this for the programs it builds; sed would only search longer with it.
    command.current_dir(root).stdin(primes()?).env_remove("LD_LIBRARY_PATH");
    Ok(command)
}

/// Standard input with the script's number in it.
fn primes() -> Result<Stdio> {
    let path = std::env::temp_dir().join(format!("masu-try-{}", std::process::id()));
    let options = || File::options().read(true).write(true).create_new(true).open(&path);
    let mut file = options().with_context(|| format!("cannot write {}", path.display()))?;
    // The open file is all that is needed, so its name goes at once.
    std::fs::remove_file(&path)?;
    writeln!(file, "{PRIMES}")?;
    file.rewind()?;
    Ok(file.into())
}
