//! Runs a cargo command that runs tests, and counts those that passed and failed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::commands;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestCounts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl TestCounts {
    /// Adds the closing line of one test program; other lines count nothing.
    fn add(&mut self, line: &str) {
        let Some(counts) = line.strip_prefix("test result: ") else { return };
        let count = |kind: &str| {
            let field = counts.split([';', '.']).find(|field| field.ends_with(kind));
            field.and_then(|field| field.split_whitespace().next()).and_then(|n| n.parse().ok())
        };
        self.passed += count(" passed").unwrap_or(0);
        self.failed += count(" failed").unwrap_or(0);
    }
}

pub(crate) fn run_tests(command: &mut Command) -> Result<TestCounts> {
    let shown = commands::show(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let output = child.stdout.take().context("the tests have no output")?;
    let mut tally = TestCounts::default();
    for line in BufReader::new(output).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        println!("{line}");
        tally.add(&line);
    }
    let status = child.wait()?;
    // A test program that dies prints no closing line: its failure must not be lost in the sum.
    if !status.success() && tally.failed == 0 {
        bail!("`{shown}`: {status}, though no test says that it failed: see above");
    }
    if tally.passed == 0 {
        bail!("`{shown}`: no test was run");
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_summed() {
        let mut tally = TestCounts::default();
        tally.add("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out");
        tally.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured");
        tally.add("test page::tests::it passed ... ok");
        assert_eq!(tally, TestCounts { passed: 15, failed: 2 });
    }

    #[test]
    fn a_test_program_that_dies_is_a_failure() {
        let line = "test result: ok. 1 passed; 0 failed;";
        let run = |script: &str| run_tests(Command::new("sh").args(["-c", script]));
        assert!(run(&format!("echo '{line}'; exit 101")).is_err());
        assert_eq!(run(&format!("echo '{line}'")).unwrap(), TestCounts { passed: 1, failed: 0 });
    }

    #[test]
    fn running_no_test_is_a_failure() {
        assert!(run_tests(&mut Command::new("true")).is_err());
    }
}
