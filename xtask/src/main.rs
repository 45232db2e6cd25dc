//! The chores of this repository, run as `cargo xtask CHORE`: a newcomer and CI call the same ones, so that the two
//! never differ.
//!
//! It relies on cargo, git and, where something is missing, apt-get. Every chore is a list of steps
//! that run programs. Nothing of masu is linked here, so that the first chore starts within seconds;
//! chores that measure are the program `xtask-measure`, which links the lab.

mod ci;
mod containers;
mod cranelift;
mod docs;
mod faults;
mod fuzz;
mod install;
mod interface;
mod matrix;
mod package;
mod picture;
mod release;
mod sanitize;
mod suites;
mod test_counts;
mod tidy;
mod tools;
mod trial;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, error::ErrorKind};
use xtask::{
    benchmarks, commands, files, links, machine, options, page_part, records, registry, root,
};

#[derive(Parser)]
#[command(bin_name = "cargo xtask", after_help = measuring())]
enum Chore {
    /// Build, then compare GNU sed under every malloc found (about two minutes)
    Try,
    /// Check and test everything
    Ci {
        /// The long runs too
        #[arg(long)]
        soak: bool,
    },
    /// Check the rules of CONTRIBUTING.md
    Tidy,
    Install(install::Request),
    Package(package::Request),
    Interface(interface::Request),
    Release(release::Request),
    /// The images and the pod of docs/containers.md, built and run without a daemon, as root (ten minutes)
    Containers,
    /// The pages of docs/ as a book in target/book, by mdBook
    Docs,
    /// A real comparison as a drawing, docs/compare.svg (about two minutes)
    Picture,
    /// The page of figures, docs/benchmarks.md, from the records
    Benchmarks,
    Matrix(matrix::Request),
    /// Run a program of aarch64 under a kernel with other OS pages: `cargo xtask boot --help`
    #[command(disable_help_flag = true)]
    Boot {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    Faults(faults::Request),
    /// The code arena as memory of cranelift-jit, with that crate's own tests (two minutes)
    Cranelift,
    Fuzz(fuzz::Request),
    Sanitize(sanitize::Request),
    Suites(suites::Request),
    #[command(external_subcommand)]
    Measure(Vec<OsString>),
}

/// The chores of `xtask-measure`. For more: `cargo xtask bench --help`.
const MEASURING: [(&str, &str); 8] = [
    ("peers", "Build every malloc to compare with, and prove each"),
    ("bench", "Allocation patterns and real programs under every malloc"),
    ("rust", "Rust programs under every allocator that is a crate"),
    ("causes", "masu diagnose on programs whose cause is known"),
    ("judge", "masu diagnose on real programs, beside what other mallocs give them"),
    ("misuse", "Misuse of memory under each malloc: found, survived or fatal"),
    ("pauses", "The longest calls of malloc and free under each malloc"),
    ("scale", "Cache lines moved and locks held between threads of each malloc"),
];

fn measuring() -> String {
    let lines = MEASURING.map(|(name, about)| format!("  {name:10}  {about}\n"));
    format!("Chores that measure:\n{}", lines.concat())
}

fn perform(chore: Chore) -> Result<()> {
    let root = root()?;
    match chore {
        Chore::Try => trial::run(root),
        Chore::Ci { soak } => ci::run(root, soak),
        Chore::Tidy => tidy::run(root),
        Chore::Install(request) => install::run(root, &request),
        Chore::Package(request) => package::run(root, &request),
        Chore::Interface(request) => interface::run(root, &request),
        Chore::Release(request) => release::run(root, &request),
        Chore::Containers => containers::run(root),
        Chore::Docs => docs::run(root),
        Chore::Picture => picture::run(root),
        Chore::Benchmarks => benchmarks::run(root),
        Chore::Matrix(request) => matrix::run(root, &request),
        Chore::Boot { words } => boot(root, &words),
        Chore::Faults(request) => faults::run(root, &request),
        Chore::Cranelift => cranelift::run(root),
        Chore::Fuzz(request) => fuzz::run(root, &request),
        Chore::Sanitize(request) => sanitize::run(root, &request),
        Chore::Suites(request) => suites::run(root, &request),
        Chore::Measure(words) => measure(root, &words),
    }
}

fn main() -> ExitCode {
    match perform(Chore::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Becomes the script that runs a guest.
fn boot(root: &Path, words: &[OsString]) -> Result<()> {
    matrix::provide_guests(root)?;
    Err(Command::new("sh").arg(root.join(matrix::BOOT)).args(words).exec()).context("no sh")
}

/// Becomes the chore of `xtask-measure`; returns only where that cannot start.
fn measure(root: &Path, words: &[OsString]) -> Result<()> {
    if !MEASURING.iter().any(|(name, _)| words[0] == *name) {
        let message = format!("there is no chore `{}`", words[0].display());
        Chore::command().error(ErrorKind::InvalidSubcommand, message).exit();
    }
    let mut cargo = commands::cargo(root, &["run", "--package", "xtask-measure", "--"]);
    Err(cargo.args(words).exec()).context("cannot start cargo")
}
