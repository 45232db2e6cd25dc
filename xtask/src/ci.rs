//! `cargo xtask ci`: everything that must hold before a change is shared, in the order in which it
//! fails fastest. A step that fails is the last one, but all suites of tests are run. The same
//! command runs on a newcomer's machine and on a fresh one.
//!
//! The last line is always a verdict: `N passed, N failed`, summed over all test programs, or the
//! step that stopped it.

use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};

use crate::test_counts::{TestCounts, run_tests};
use crate::{commands, containers, machine, matrix, tidy};

/// Runs the checks of every change; with `soak` also tests that search at random search for long (`MASU_SOAK=1`), and as
/// root the images of containers are built.
pub(crate) fn run(root: &Path, soak: bool) -> Result<()> {
    let cargo = |words: &str| commands::run(cargo(root, words)?.current_dir(root));
    commands::step("machine", || machine::provide_all(&[machine::PEERS, machine::TESTED]))?;
    commands::step("toolchain", || machine::provide_toolchain(root))?;
    commands::step("format", || cargo("fmt --all --check"))?;
    commands::step("tidy", || tidy::run(root))?;
    for (name, words) in CHECKS {
        commands::step(name, || cargo(words))?;
    }
    commands::step("other systems", || {
        let check = |system| cargo(&format!("check --package masu --locked --target {system}"));
        machine::OTHER_SYSTEMS.iter().try_for_each(check)
    })?;
    commands::step("oldest Rust", || {
        let mut check = Command::new("rustup");
        check.args(["run", machine::OLDEST_RUST, "cargo", "check", "--locked"]).current_dir(root);
        check.args(
            "--package masu --package masu-chunk --package masu-code --package masu-xquo --config build.rustflags=[\"-Dwarnings\"]"
                .split(' '),
        );
        commands::run(check.arg("--target-dir").arg(commands::target_folder()?.join("oldest")))
    })?;
    commands::step("build", || cargo("build --release --locked"))?;
    // After the build of the programs that this step runs.
    commands::step("misuse", || cargo("xtask misuse --check"))?;
    commands::step("dependencies", || check_dependencies(root))?;
    let mut tally = TestCounts::default();
    let ahead = thread::spawn({
        let root = root.to_owned();
        move || build_ahead(&root, soak)
    });
    for suite in SUITES {
        let of_suite = commands::step(suite.name, || run_tests(&mut suite.command(root, soak)?))?;
        tally.passed += of_suite.passed;
        tally.failed += of_suite.failed;
        if of_suite.failed > 0 {
            eprintln!("xtask: the {} fail: see above", suite.name);
        }
    }
    // It has nothing left to build.
    let _ = ahead.join();
    if tally.failed == 0 {
        commands::step("tests, other CPU", || matrix::run(root, &matrix::Request::quick()))?;
        if soak && machine::is_root() {
            commands::step("containers", || containers::run(root))?;
        }
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// A cargo command in words; `{target}/FOLDER` among them is a target folder of its own.
fn cargo(root: &Path, words: &str) -> Result<Command> {
    let target = commands::target_folder()?;
    let target = target.to_str().context("the target folder's path is no text")?;
    let mut command = commands::cargo(root, &[]);
    command.args(words.split_whitespace().map(|word| word.replace("{target}", target)));
    Ok(command)
}

/// Checks that build no program, each with cargo's arguments.
const CHECKS: &[(&str, &str)] = &[
    // The features add code to check; the build compiles the code without them.
    (
        "clippy",
        "clippy --workspace --all-targets --features masu-abi/count,masu-chunk/timely --locked -- -D warnings",
    ),
    // Not with the others: that crate's collections would have `masu-abi` need an allocator of its own.
    (
        "masu with allocator-api2, masu-xquo without masu",
        "clippy --package masu --features masu/allocator-api2 --package masu-xquo --no-default-features --all-targets
            --locked -- -D warnings",
    ),
    (
        "pages of the crates",
        "doc --no-deps --package masu --package masu-chunk --package masu-code --package masu-run --package masu-lab --locked
            --features masu/allocator-api2,masu/profile,masu/guards,masu/secure,masu-chunk/timely
            --config build.rustdocflags=[\"-Dwarnings\"]",
    ),
    ("format of Rust patterns", "fmt --check --manifest-path workloads/rust/Cargo.toml"),
    (
        "Rust patterns",
        "clippy --manifest-path workloads/rust/Cargo.toml --features masu --target-dir {target}/rust-patterns/build
            --locked -- -D warnings",
    ),
    ("format of Rust causes", "fmt --check --manifest-path workloads/causes/rust/Cargo.toml"),
    (
        "Rust causes",
        "clippy --manifest-path workloads/causes/rust/Cargo.toml --target-dir {target}/causes/rust --locked
            -- -D warnings",
    ),
    (
        "other CPU",
        "check --locked --target aarch64-unknown-linux-gnu --package masu --package masu-abi --package masu-code
            --package masu-code-abi --package masu-run --package masu-lab --package masu-xquo",
    ),
];

/// Compiles the tests of all suites but the first while earlier ones run, which leave CPU time unused. A failure here
/// is not shown: the compilation fails again in its own step, and is shown there.
fn build_ahead(root: &Path, soak: bool) {
    for suite in &SUITES[1..] {
        let Ok(mut tests) = suite.command(root, soak) else { return };
        commands::succeeds(&mut commands::behind(&["nice", "-n", "19"], tests.arg("--no-run")));
    }
}

/// Licenses and sources, where cargo-deny is installed. Advisories need a database from the network: `cargo deny check advisories`.
fn check_dependencies(root: &Path) -> Result<()> {
    if !commands::succeeds(&mut commands::cargo(root, &["deny", "--version"])) {
        println!("skipped: cargo-deny is not installed");
        return Ok(());
    }
    commands::run(&mut commands::cargo(root, &["deny", "check", "bans", "licenses", "sources"]))
}

struct Suite {
    name: &'static str,
    /// Behind `cargo test`.
    words: &'static str,
    /// A `--cfg` for the compiler, and the name of the target folder for it.
    cfg: Option<(&'static str, &'static str)>,
}

impl Suite {
    const fn new(name: &'static str, words: &'static str) -> Suite {
        Suite { name, words, cfg: None }
    }

    /// Under loom, which tries every interleaving: atomics and threads are its own.
    const fn loom(name: &'static str, words: &'static str) -> Suite {
        Suite { name, words, cfg: Some(("loom", "loom")) }
    }

    /// The oracle looks for a fault that is planted in a build of its own.
    const fn planted(name: &'static str, fault: &'static str) -> Suite {
        let words =
            "--package masu --release --features profile,guards --test oracle random_combinations";
        Suite { name, words, cfg: Some(("planted", fault)) }
    }
}

/// All tests. The allocator's own run again where another build is another program: optimized, on
/// the other C library, hardened, and under loom.
const SUITES: &[Suite] = &[
    // With that feature, for a job of several processes is tested, too.
    Suite::new("tests", "--workspace --features masu-chunk/timely"),
    // With the feature here too, for there the functions are held against glibc's own.
    Suite::new("tests, optimized", "--package masu --release --features musl-memcpy"),
    // With features here and without them in the tests before.
    Suite::new(
        "tests, musl",
        "--package masu --features allocator-api2,musl-memcpy,profile,guards --target x86_64-unknown-linux-musl",
    ),
    // The build without caches does not run the tests of caches, as its tests say.
    Suite::new(
        "tests, hardened",
        "--package masu --features secure,profile,allocator-api2 --lib --test oracle --test global --test collections
            --test profile --test plugins --test options --test heaps --test statistics --test properties",
    ),
    Suite::loom(
        "tests, loom",
        "--package masu --package masu-code --package masu-chunk --release --test loom",
    ),
    Suite::loom(
        "tests, all of the allocator under loom",
        "--package masu --release --features profile,guards --lib models::",
    ),
    Suite::planted(
        "tests, sampled blocks taken for the first shard's",
        "masu_plant=\"samples_as_first\"",
    ),
    Suite::planted("tests, lanes counted once", "masu_plant=\"lanes_once\""),
    Suite::planted("tests, runs freed into the first stripe", "masu_plant=\"runs_to_first\""),
];

impl Suite {
    fn command(&self, root: &Path, soak: bool) -> Result<Command> {
        let mut command = commands::cargo(root, &["test", "--locked", "--no-fail-fast"]);
        command.args(self.words.split_whitespace());
        // Only where the suite is built for release: tests of the others build the libraries that users get, and must
        // get the profile that users get. Optimizing a test program as one piece shows nothing more and takes the
        // compiler long.
        if self.words.contains("--release") {
            command.env("CARGO_PROFILE_RELEASE_LTO", "off");
            command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        }
        if let Some((folder, cfg)) = self.cfg {
            // A target folder of its own, so that nothing else is built again for other flags.
            command.arg("--target-dir").arg(commands::target_folder()?.join(folder));
            commands::set_flags(&mut command, &format!("--cfg {cfg}"));
        }
        if soak {
            command.env("MASU_SOAK", "1");
        }
        Ok(command)
    }
}
