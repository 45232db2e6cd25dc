//! `cargo xtask rust`: what Rust programs ask of a global allocator, under masu and the crates that stand for other
//! mallocs, and what it costs to adopt masu.
//!
//! It relies on `workloads/rust` for the work, on cargo for a program of each allocator (`build.rs`), and on the
//! lab's engine for every run (`measure.rs`). The hard part is that the allocator is part of the program here: what
//! the compiler makes of it depends on link-time optimisation and on the C library, so each of these is a program and
//! a table of its own, and an allocator that cannot be built in one of them costs nobody else.

use std::path::Path;

use anyhow::{Context, Result, bail};

use xtask::{machine, records, steps};

mod adopt;
mod allocators;
mod build;
mod measure;
mod record;

use build::Libc;
use measure::Extent;

const USAGE: &str = "\
Usage: cargo xtask rust [--quick] [--libc NAME] [--pattern NAME]... [--rounds N] [--resume] [--record NAME]
  --quick         shorter runs, fewer rounds, no intervals
  --libc NAME     only on this C library, `glibc` or `musl`
  --pattern NAME  only this pattern; repeats
  --rounds N      rounds, each with one run of every program
  --resume        go on with a measurement of the same that was stopped (Ctrl-C shows what is finished)
  --record NAME   where the record goes: benches/record/DATE-NAME.md (whole runs: rust)";

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    quick: bool,
    resume: bool,
    libc: Option<Libc>,
    patterns: Vec<String>,
    rounds: Option<usize>,
    record: Option<String>,
}

impl Request {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut request = Self::default();
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            let mut value = || {
                let value = rest.next().with_context(|| format!("rust: {option} lacks its value"));
                value.map(|value| (*value).to_owned())
            };
            match *option {
                "--quick" => request.quick = true,
                "--resume" => request.resume = true,
                "--libc" => {
                    let name = value()?;
                    let known = Libc::ALL.into_iter().find(|libc| libc.name() == name);
                    request.libc = Some(known.with_context(|| {
                        format!("rust: --libc takes glibc or musl, not `{name}`")
                    })?);
                }
                "--pattern" => request.patterns.push(value()?),
                "--record" => {
                    let name = value()?;
                    if name.contains(['/', '.']) || name.is_empty() {
                        bail!("rust: --record takes a word such as `rust`, not `{name}`");
                    }
                    request.record = Some(name);
                }
                "--rounds" => {
                    let rounds = value()?;
                    let number = rounds.parse().ok().filter(|number| (1..=1000).contains(number));
                    request.rounds = Some(number.with_context(|| {
                        format!("rust: --rounds takes a number from 1 to 1000, not `{rounds}`")
                    })?);
                }
                _ => bail!("rust: `{option}` is no option\n{USAGE}"),
            }
        }
        Ok(request)
    }

    /// This request as typed, without what does not change the figures.
    fn command(&self) -> String {
        let mut words = vec!["cargo xtask rust".to_owned()];
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.extend(self.libc.map(|libc| format!("--libc {}", libc.name())));
        words.extend(self.patterns.iter().map(|name| format!("--pattern {name}")));
        words.extend(self.rounds.map(|rounds| format!("--rounds {rounds}")));
        words.join(" ")
    }

    /// The record's name in the repository; none for runs that only a developer looks at.
    fn record(&self) -> Option<&str> {
        let is_whole = !self.quick && self.libc.is_none() && self.patterns.is_empty();
        self.record.as_deref().or(is_whole.then_some("rust"))
    }
}

/// Builds, measures, prints the tables and writes the record.
///
/// # Errors
///
/// When a tool is missing and cannot be installed, masu or the reference cannot be built, or something cannot be
/// measured.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<()> {
    let request = Request::parse(arguments)?;
    machine::provide(&machine::RUST_PEERS.iter().collect::<Vec<_>>())?;
    machine::provide_toolchain(root)?;
    let folder = steps::target_folder()?.join("rust-patterns");
    let libcs = request.libc.map_or(Libc::ALL.to_vec(), |libc| vec![libc]);
    let built =
        steps::take("build a program of each allocator", || build::all(root, &folder, &libcs))?;
    let adoption = steps::take("build with masu from nothing", || adopt::measure(root, &folder))?;
    println!("{}", adopt::text(&adoption));
    let extent = Extent {
        quick: request.quick,
        resume: request.resume,
        rounds: request.rounds,
        patterns: request.patterns.clone(),
    };
    let load_before = records::load();
    let measured = steps::take("measure", || measure::measure(&built.programs, &extent, &folder))?;
    let facts =
        record::Facts { command: request.command(), commit: records::commit(root), load_before };
    let text = record::text(&facts, &measured, &built, &adoption);
    println!("\n{text}");
    if let Some(name) = request.record() {
        println!("record: {}", records::write(root, name, &text)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood() {
        let request =
            Request::parse(&["--quick", "--pattern", "box-u64", "--rounds", "7"]).unwrap();
        assert!(request.quick && request.record().is_none());
        assert_eq!(request.command(), "cargo xtask rust --quick --pattern box-u64 --rounds 7");
        assert_eq!(Request::parse(&[]).unwrap().record(), Some("rust"));
        let musl = Request::parse(&["--libc", "musl"]).unwrap();
        assert_eq!((musl.libc, musl.record()), (Some(Libc::Musl), None));
        assert_eq!(musl.command(), "cargo xtask rust --libc musl");
    }

    #[test]
    fn a_wrong_option_is_named() {
        for wrong in [["--fast", ""], ["--rounds", "0"], ["--record", "a/b"], ["--libc", "bionic"]]
        {
            let error = Request::parse(&wrong).unwrap_err().to_string();
            assert!(error.contains(wrong[0]), "{error}");
        }
        assert!(Request::parse(&["--pattern"]).is_err());
    }
}
