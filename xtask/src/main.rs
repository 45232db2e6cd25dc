//! The chores of this repository, run as `cargo xtask CHORE`: what a newcomer and CI call, so that the
//! two never differ.
//!
//! It relies on cargo, git and, where something is missing, apt-get. Every chore is a list of steps
//! that run programs. Nothing of masu is linked here, so that the first chore starts within seconds;
//! chores that measure are the program `xtask-measure`, which links the lab.

mod boot;
mod ci;
mod docs;
mod faults;
mod first_look;
mod fuzz;
mod install;
mod matrix;
mod package;
mod picture;
mod sanitize;
mod suites;
mod tally;
mod tidy;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use xtask::{benchmarks, kept, links, machine, records, root, steps};

/// Chores of `xtask-measure`.
const MEASURING: &[&str] =
    &["bench", "causes", "duel", "judge", "layout", "misuse", "peers", "profile", "rust", "scale"];

const USAGE: &str = "\
Usage: cargo xtask CHORE

  try          Build, then compare GNU sed under every malloc found (about a minute)
  ci           Check and test everything       (--soak: the long runs too)
  tidy         Check the house rules
  install      The commands, both libraries, their headers, pkg-config files, manual pages and completions, below
               --prefix DIR (/usr/local); --libdir NAME (lib); --destdir DIR: into DIR/PREFIX, for packages
  package      crates, deb, wheel, static or all, into target/packages; --test: installed and used in a clean place, too
  docs         The pages of docs/ as a book in target/book, by mdBook
  picture      A real comparison as a drawing, docs/compare.svg (about two minutes)
  benchmarks   The page of figures, docs/benchmarks.md, from the records
  matrix       Run every group of the allocator's tests on every target, keep the table in the tests' README
               (over an hour; --quick: aarch64 under qemu in 2 minutes; --target NAME, --group NAME)
  boot         Run a program of aarch64 under a kernel with other OS pages (--pages 4, 16 or 64; about 10 minutes the
               first time; --env NAME=VALUE, --file PATH)
  faults       Refuse each system call of the allocator at each of its uses, keep the tables in docs/faults.md (about 15
               minutes for each of c, rust-glibc and rust-musl, or for those that are named)
  fuzz         libFuzzer on the code arena's loader (a minute; --seconds N; --asan: under AddressSanitizer)
  sanitize     The code arena's method JIT under AddressSanitizer and valgrind (about 5 minutes; --seconds N)
  suites       Other people's test suites with and without masu, keep the table in docs/tested-with.md (about an hour, or the
               names of some)
  peers        Build every malloc to compare with into target/peers, and prove each (about 5 minutes, once;
               --jobs N, or the names of some)
  bench        Run every allocation pattern and real programs under every malloc, write benches/record
               (about 40 minutes; --quick: 7; --patterns, --programs, --pattern NAME, --program NAME,
               --rounds N)
  rust         Rust programs under every allocator that is a crate, write benches/record (about 40 minutes, the
               first time 7 more; --quick: 6; --pattern NAME, --rounds N, --resume)
  layout       What a call costs by where code lies: libraries, one library, the arena; writes benches/record
               (about 6 minutes; --rounds N)
  causes       masu diagnose on programs whose cause is known, and on ordinary ones (about 4 minutes;
               --language c|rust|all, --only NAME; --record writes docs/causes.md)
  judge        What masu diagnose says of real programs beside what other mallocs and settings give them (about an hour;
               --quick, --rounds N, --half tuning|judging, --only NAME, --again; --record writes docs/judgement.md)
  misuse       What each malloc does when a program misuses memory (about 3 minutes, after peers; --malloc NAME,
               --only NAME, --runs N; --record writes docs/misuse.md; --check: masu's own columns against it;
               --prices: what safety costs, about 10 minutes)
  profile      What a heap profile costs: instructions of programs with one over those without, under cachegrind (about
               6 minutes; --runs N, --only NAME; --record: the table of docs/observing.md)
  scale        Lines moved between the caches of 1 to 64 threads, atomics, instructions and system calls an operation under
               every malloc, counted by a plugin of qemu (about 15 minutes, after peers; --quick: 1; --only NAME,
               --malloc NAME, --lib PATH, --threads N, --seeds N, --kept; --real: 2 to 256 threads on the machine itself;
               --record writes benches/record and docs/scale.md)
  duel         masu compare and hyperfine on the same commands under load that comes and goes, write
               benches/record (about 5 minutes; --runs N instead of 40; --quick: one pairing each)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["try"] => root().and_then(first_look::run),
        ["ci"] => root().and_then(|root| ci::run(root, ci::Length::Short)),
        ["ci", "--soak"] => root().and_then(|root| ci::run(root, ci::Length::Soak)),
        ["benchmarks"] => root().and_then(benchmarks::run),
        ["boot", options @ ..] => root().and_then(|root| boot::run(root, options)),
        ["docs"] => root().and_then(docs::run),
        ["faults", names @ ..] => root().and_then(|root| faults::run(root, names)),
        ["fuzz", options @ ..] => root().and_then(|root| fuzz::run(root, options)),
        ["install", options @ ..] => root().and_then(|root| install::run(root, options)),
        ["matrix", options @ ..] => root().and_then(|root| matrix::run(root, options)),
        ["package", options @ ..] => root().and_then(|root| package::run(root, options)),
        ["picture"] => root().and_then(picture::run),
        ["sanitize", options @ ..] => root().and_then(|root| sanitize::run(root, options)),
        ["suites", names @ ..] => root().and_then(|root| suites::run(root, names)),
        ["tidy"] => root().and_then(tidy::run),
        [chore, ..] if MEASURING.contains(chore) => {
            root().and_then(|root| measure(root, &arguments))
        }
        ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Becomes the chore of `xtask-measure`; returns only where that cannot start.
fn measure(root: &Path, arguments: &[&str]) -> Result<()> {
    let mut cargo = steps::cargo(root, &["run", "--package", "xtask-measure", "--"]);
    Err(cargo.args(arguments).exec()).context("cannot start cargo")
}
