//! `cargo xtask sanitize`: the allocator's oracle under ThreadSanitizer and AddressSanitizer; the code arena's method
//! JIT and lifetimes under AddressSanitizer and under valgrind.
//!
//! It relies on rustc's sanitizers, which a stable one has if it passes for a nightly one (as in `fuzz.rs`), and on
//! valgrind. Each seed of the allocator's combinations has a process of its own, started from here, because the
//! standard library is not instrumented: ThreadSanitizer reports a race where its locks and channels order accesses.
//! The checks of the arena are of its own work: books, tables, memory that was given back. The code that it loads
//! comes from a C compiler and is not instrumented under AddressSanitizer. valgrind sees that code too, with the
//! option that code may change under it, also through another mapping (`--smc-check=all`).

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::test_counts::{TestCounts, run_tests};
use crate::{commands, files, machine, options};

/// The oracle and the code arena under the sanitizers and valgrind, what can run there under Miri (about 6 minutes)
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// The time that the method JIT runs, for each way of writing code, under each of the two, and the number of seeds
    /// that the allocator's oracle walks under each sanitizer
    #[arg(long, value_name = "N", default_value = "30", value_parser = options::seconds())]
    seconds: u32,
}

/// Test programs of `masu-code` that load, swap and unload.
const TESTS: [&str; 4] = ["method_jit", "lifetime", "constructs", "hostile"];

const VALGRIND: &str = "valgrind --quiet --error-exitcode=9 --smc-check=all --fair-sched=yes";

/// The same for valgrind, without the tests that load thousands of objects.
const SLOW: [&str; 3] = ["method_jit", "lifetime", "constructs"];

/// Tests that Miri can run, by the beginnings of their names. It refuses system calls and the thread slot, which are
/// inline assembly, and so all tests that take memory: the tests left only compute.
const INTERPRETED: [(&str, &[&str]); 2] = [
    ("masu-code", &["link::layout::", "relocation::", "space::tests::freeing_twice"]),
    (
        "masu",
        &[
            "diagnostics::sampling::message::mappings::tests::a_line",
            "diagnostics::sampling::probability::tests::the_extremes",
            "diagnostics::unwind::rule_cache::tests::unusual",
            "diagnostics::unwind::rules::tests::offsets",
            "memory::class::tests::a_c",
            "memory::class::tests::aligned_classes",
            "memory::ranges::stripes::tests::the_next_bit",
            "memory::ranges::tests::occupied_lists",
            "memory::ranges::usage::",
            "platform::environment::tests::an_absent",
            "settings::rule::tests::a_default",
            "settings::rule::tests::accepted_values",
            "settings::rule::tests::bytes",
        ],
    ),
];

/// Each with its flags.
const SANITIZERS: [(&str, &str); 2] = [
    // The standard library is not built with it: see above.
    ("thread", "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"),
    ("address", "-Zsanitizer=address"),
];

/// The result of a test goes through a channel of the standard library's.
const SUPPRESSED: &str = "race:CompletedTest\n";

const OPERATIONS: &str = "30000";

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let seconds = request.seconds;
    machine::provide_all(&[machine::TESTED])?;
    let target = commands::target_folder()?.join("sanitize");
    for (name, flags) in SANITIZERS {
        let step = format!("masu, sanitizer of {name}");
        commands::step(&step, || walk(root, &target, &target.join(name), flags, seconds))?;
    }
    for (package, tests) in &INTERPRETED {
        commands::step(&format!("{package}, Miri"), || interpret(root, &target, package, tests))?;
    }
    let seconds = seconds.to_string();
    commands::step("AddressSanitizer", || {
        let mut tests = cargo(root, "masu-code", &["test"], &TESTS, &target.join("address"));
        commands::set_flags(tests.env("RUSTC_BOOTSTRAP", "1"), "-Zsanitizer=address");
        commands::run(tests.env("MASU_JIT_SECONDS", &seconds).args(["--", "--nocapture"]))
    })?;
    commands::step("valgrind", || {
        let mut tests = cargo(root, "masu-code", &["test"], &SLOW, &target.join("plain"));
        tests.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", VALGRIND);
        commands::run(tests.env("MASU_JIT_SECONDS", &seconds).args(["--", "--nocapture"]))
    })
}

/// Has the allocator's oracle walk so many seeds under a sanitizer, with a target folder of its own.
fn walk(root: &Path, target: &Path, folder: &Path, flags: &str, seeds: u32) -> Result<()> {
    let command = ["test", "--release", "--features", "profile,guards"];
    let suppressions = target.join("suppressions");
    files::write(&suppressions, SUPPRESSED)?;
    // Children that are forked start threads.
    let of_threads = format!("die_after_fork=0:suppressions={}", suppressions.display());
    // A process for each seed; cargo builds for the first.
    for seed in 1..=seeds {
        let mut test = cargo(root, "masu", &command, &["oracle"], folder);
        commands::set_flags(test.env("RUSTC_BOOTSTRAP", "1"), flags);
        test.env("CARGO_PROFILE_RELEASE_LTO", "off");
        test.args(["--", "--exact", "combinations::one_seed", "--ignored", "--nocapture"]);
        test.env("MASU_SEED", seed.to_string()).env("MASU_OPERATIONS", OPERATIONS);
        test.env("TSAN_OPTIONS", &of_threads);
        // The walkers leak the memory that they share, and AddressSanitizer does not see inside masu's blocks.
        test.env("ASAN_OPTIONS", "detect_leaks=0");
        commands::run(&mut test).with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

fn interpret(root: &Path, target: &Path, package: &str, tests: &[&str]) -> Result<()> {
    machine::provide_miri(root)?;
    let mut miri = Command::new("rustup");
    miri.args(["run", machine::NIGHTLY, "cargo", "miri", "test", "--locked", "--lib"]);
    miri.args(["--package", package, "--target-dir"]).arg(target.join("miri"));
    // Addresses become pointers again; some tests read the environment.
    miri.env("MIRIFLAGS", "-Zmiri-permissive-provenance -Zmiri-disable-isolation");
    let TestCounts { passed, failed } = run_tests(miri.arg("--").args(tests).current_dir(root))?;
    let groups = tests.len();
    let is_right = failed == 0 && passed >= groups as u64;
    ensure!(is_right, "of {groups} groups {passed} tests passed and {failed} failed");
    Ok(())
}

fn cargo(root: &Path, package: &str, command: &[&str], tests: &[&str], folder: &Path) -> Command {
    let mut cargo = commands::cargo(root, command);
    cargo.args(["--locked", "--package", package, "--target", machine::HOST, "--target-dir"]);
    cargo.arg(folder);
    for test in tests {
        cargo.args(["--test", test]);
    }
    cargo
}
