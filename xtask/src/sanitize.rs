//! `cargo xtask sanitize`: the code arena's method JIT and lifetimes under AddressSanitizer and under valgrind.
//!
//! It relies on rustc's sanitizer, which a stable one has if it is taken for a nightly one (as in `fuzz.rs`), and on
//! valgrind. What is checked is the arena's own work: books, tables, memory that was given back. The code that it
//! loads is a C compiler's and not instrumented under AddressSanitizer; valgrind sees that, too. The one hard idea:
//! valgrind has to be told that code changes under it, also through another mapping (`--smc-check=all`).

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{machine, steps};

const USAGE: &str = "\
Usage: cargo xtask sanitize [--seconds N]
  --seconds N  how long the method JIT goes on, for each way of writing code, under each of the two (30)";

/// Test programs of `masu-code` that load, swap and unload.
const TESTS: [&str; 4] = ["method_jit", "lifetime", "constructs", "hostile"];

/// The same for valgrind, less what loads thousands of objects.
const SLOW: [&str; 3] = ["method_jit", "lifetime", "constructs"];

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Runs both.
///
/// # Errors
///
/// When something is missing, a test fails, or either of the two finds fault.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let seconds = parse(arguments)?.to_string();
    machine::provide(&machine::TESTED.iter().collect::<Vec<_>>())?;
    let target = steps::target_folder()?.join("sanitize");
    steps::take("AddressSanitizer", || {
        let mut tests = cargo(root, &["test"], &TESTS, &target.join("address"));
        tests.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address");
        // Flags of `CARGO_ENCODED_RUSTFLAGS` would stand in for these.
        tests.env_remove("CARGO_ENCODED_RUSTFLAGS");
        steps::succeed(tests.env("MASU_JIT_SECONDS", &seconds).args(["--", "--nocapture"]))
    })?;
    let programs = steps::take("build", || programs(root, &target.join("plain")))?;
    for program in programs {
        steps::take("valgrind", || {
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--quiet", "--error-exitcode=9", "--smc-check=all", "--fair-sched=yes"]);
            valgrind.arg(&program).env("MASU_JIT_SECONDS", &seconds);
            valgrind.current_dir(root.join("crates/masu-code"));
            steps::succeed(valgrind.arg("--nocapture"))
        })?;
    }
    Ok(())
}

fn parse(arguments: &[&str]) -> Result<u32> {
    let seconds = match arguments {
        [] => Some(30),
        ["--seconds", seconds] => seconds.parse().ok().filter(|seconds| *seconds > 0),
        _ => bail!("sanitize: `{}` is no option\n{USAGE}", arguments.join(" ")),
    };
    seconds.with_context(|| format!("--seconds needs a whole number from 1 on\n{USAGE}"))
}

/// A cargo command on test programs of `masu-code`.
fn cargo(root: &Path, command: &[&str], tests: &[&str], folder: &Path) -> Command {
    let mut cargo = steps::cargo(root, command);
    cargo.args(["--locked", "--package", "masu-code", "--target", TARGET, "--target-dir"]);
    cargo.arg(folder);
    for test in tests {
        cargo.args(["--test", test]);
    }
    cargo
}

/// Builds the tests for valgrind; returns the programs, as cargo says where they are.
fn programs(root: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut build = cargo(root, &["test", "--no-run"], &SLOW, folder);
    build.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let mut child = build.spawn().context("cannot start cargo")?;
    let output = child.stdout.take().context("cargo has no output")?;
    let mut programs = Vec::new();
    for line in BufReader::new(output).lines() {
        programs.extend(executable(&line?));
    }
    if !child.wait()?.success() || programs.len() != SLOW.len() {
        bail!("`{}` made {} of {} test programs", steps::show(&build), programs.len(), SLOW.len());
    }
    Ok(programs)
}

/// The program of one of cargo's messages.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, after) = message.split_once("\"executable\":\"")?;
    after.split_once('"').map(|(path, _)| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_or_refused() {
        assert_eq!((parse(&[]).unwrap(), parse(&["--seconds", "5"]).unwrap()), (30, 5));
        for wrong in [&["--seconds"][..], &["--seconds", "0"], &["--fast"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn programs_are_found_in_cargo_s_messages() {
        let message = r#"{"reason":"compiler-artifact","executable":"/t/deps/a-1","fresh":true}"#;
        assert_eq!(executable(message), Some(PathBuf::from("/t/deps/a-1")));
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
    }
}
