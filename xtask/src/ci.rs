//! `cargo xtask ci`: everything that must hold before a change is shared, in the order in which it
//! fails fastest. A step that fails is the last one, but all suites of tests are run. The same
//! command runs on a newcomer's machine and on a fresh one.
//!
//! The last line is always a verdict: `N passed, N failed`, summed over all test programs, or the
//! step that stopped it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::tally::{Tally, run_tests};
use crate::{machine, matrix, steps, tidy};

/// Whether the long runs are wanted too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// What every change is checked with.
    Short,
    /// `MASU_SOAK=1`: tests that search at random search for long.
    Soak,
}

/// Runs all checks, then all tests; stops at the first check that fails.
///
/// # Errors
///
/// The step that failed, named.
pub(crate) fn run(root: &Path, length: Length) -> Result<()> {
    let cargo = |arguments: &[&str]| steps::succeed(&mut steps::cargo(root, arguments));
    let needs: Vec<_> = machine::PEERS.iter().chain(machine::TESTED).collect();
    steps::take("machine", || machine::provide(&needs))?;
    steps::take("toolchain", || machine::provide_toolchain(root))?;
    steps::take("format", || cargo(&["fmt", "--all", "--check"]))?;
    steps::take("tidy", || tidy::run(root))?;
    // With the feature there is more to read; the build below compiles what it leaves out.
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        "masu-abi/count,masu-chunk/timely",
    ];
    let clippy = [&clippy[..], &["--locked", "--", "-D", "warnings"]].concat();
    steps::take("clippy", || cargo(&clippy))?;
    steps::take("Rust patterns", || {
        let patterns = "workloads/rust/Cargo.toml";
        cargo(&["fmt", "--check", "--manifest-path", patterns])?;
        let target = steps::target_folder()?.join("rust-patterns/build");
        let mut clippy = steps::cargo(root, &["clippy", "--locked", "--features", "masu"]);
        clippy.args(["--manifest-path", patterns, "--target-dir"]).arg(target);
        steps::succeed(clippy.args(["--", "-D", "warnings"]))
    })?;
    steps::take("Rust causes", || {
        let causes = "workloads/causes/rust/Cargo.toml";
        cargo(&["fmt", "--check", "--manifest-path", causes])?;
        let target = steps::target_folder()?.join("causes/rust");
        let mut clippy = steps::cargo(root, &["clippy", "--locked", "--manifest-path", causes]);
        steps::succeed(clippy.arg("--target-dir").arg(target).args(["--", "-D", "warnings"]))
    })?;
    let rooms = ["masu", "masu-abi", "masu-code", "masu-code-abi", "masu-lab", "xquo"]
        .map(|room| ["--package", room]);
    let other_cpu = [&["check", "--locked", "--target", machine::OTHER_CPU], rooms.as_flattened()];
    let other_cpu = other_cpu.concat();
    steps::take("other CPU", || cargo(&other_cpu))?;
    steps::take("other systems", || {
        machine::OTHER_SYSTEMS.iter().try_for_each(|system| {
            cargo(&["check", "--package", "masu", "--locked", "--target", system])
        })
    })?;
    steps::take("oldest Rust", || {
        let libraries = ["masu", "masu-chunk", "masu-code", "xquo"];
        let mut check = Command::new("rustup");
        check.args(["run", machine::OLDEST_RUST, "cargo", "check", "--locked"]).current_dir(root);
        check.args(libraries.iter().flat_map(|library| ["--package", library]));
        steps::succeed(check.arg("--target-dir").arg(steps::target_folder()?.join("oldest")))
    })?;
    // Alone: a test's dependency on that crate would have `masu-abi` need an allocator of its own.
    let trait_too = ["clippy", "--package", "masu", "--features", "allocator-api2", "--locked"];
    let trait_too = [&trait_too[..], &["--all-targets", "--", "-D", "warnings"]].concat();
    steps::take("masu with allocator-api2", || cargo(&trait_too))?;
    let without = ["clippy", "--package", "xquo", "--no-default-features", "--locked"];
    let without = [&without[..], &["--all-targets", "--", "-D", "warnings"]].concat();
    steps::take("xquo without masu", || cargo(&without))?;
    steps::take("build", || cargo(&["build", "--release", "--locked"]))?;
    // After what it runs was built.
    steps::take("misuse", || cargo(&["xtask", "misuse", "--check"]))?;
    steps::take("dependencies", || check_dependencies(root))?;
    let mut tally = Tally::default();
    for suite in SUITES {
        let of_suite = steps::take(suite.name, || run_tests(&mut suite.command(root, length)?))?;
        tally.passed += of_suite.passed;
        tally.failed += of_suite.failed;
        if of_suite.failed > 0 {
            eprintln!("xtask: the {} fail: see above", suite.name);
        }
    }
    if tally.failed == 0 {
        steps::take("tests, other CPU", || matrix::run(root, &matrix::Request::quick()))?;
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed > 0 {
        std::process::exit(1);
    }
    Ok(())
}

/// Licences and advisories, where cargo-deny is installed.
fn check_dependencies(root: &Path) -> Result<()> {
    let version = steps::cargo(root, &["deny", "--version"]).stderr(Stdio::null()).output();
    if !version.is_ok_and(|output| output.status.success()) {
        println!("skipped: cargo-deny is not installed");
        return Ok(());
    }
    steps::succeed(&mut steps::cargo(root, &["deny", "check", "bans", "licenses", "sources"]))
}

/// Tests as one cargo command runs them.
struct Suite {
    name: &'static str,
    arguments: &'static [&'static str],
    /// What the compiler is to know besides, and the target folder's name for that.
    cfg: Option<(&'static str, &'static str)>,
}

/// Atomics and threads are loom's.
const LOOM: Option<(&str, &str)> = Some(("loom", "loom"));

/// What has the oracle look for a fault that is planted in a build of its own.
const PLANTED: &[&str] = &[
    "--package",
    "masu",
    "--release",
    "--features",
    "profile",
    "--test",
    "oracle",
    "random_combinations",
];

/// All tests. The allocator's own run again where another build is another program: optimised, on
/// the other C library, and under loom, which tries every interleaving.
const SUITES: &[Suite] = &[
    Suite { name: "tests", arguments: &["--workspace"], cfg: None },
    Suite {
        name: "tests, optimised",
        // With the feature here too, for there the functions are held against glibc's own.
        arguments: &["--package", "masu", "--release", "--features", "musl-memcpy"],
        cfg: None,
    },
    Suite {
        name: "tests, musl",
        // With features here and without them in the tests before.
        arguments: &[
            "--package",
            "masu",
            "--features",
            "allocator-api2,musl-memcpy,profile,guards",
            "--target",
            machine::MUSL,
        ],
        cfg: None,
    },
    Suite {
        // What is about caches is not asked of the build that has none, as its tests say.
        name: "tests, hardened",
        arguments: &[
            "--package",
            "masu",
            "--features",
            "secure,profile,allocator-api2",
            "--lib",
            "--test",
            "oracle",
            "--test",
            "global",
            "--test",
            "collections",
            "--test",
            "profile",
            "--test",
            "plugins",
            "--test",
            "options",
            "--test",
            "heaps",
            "--test",
            "statistics",
            "--test",
            "properties",
        ],
        cfg: None,
    },
    Suite {
        name: "tests, loom",
        arguments: &["--package", "masu", "--package", "masu-code", "--release", "--test", "loom"],
        cfg: LOOM,
    },
    Suite {
        name: "tests, all of the allocator under loom",
        arguments: &[
            "--package",
            "masu",
            "--release",
            "--features",
            "profile",
            "--lib",
            "models::",
        ],
        cfg: LOOM,
    },
    Suite {
        name: "tests, sampled blocks taken for the first shard's",
        arguments: PLANTED,
        cfg: Some(("planted", "masu_plant=\"samples_as_first\"")),
    },
    Suite {
        name: "tests, lanes counted once",
        arguments: PLANTED,
        cfg: Some(("planted", "masu_plant=\"lanes_once\"")),
    },
    Suite {
        name: "tests of chunks, several processes",
        arguments: &["--package", "masu-chunk", "--features", "timely", "--test", "cluster"],
        cfg: None,
    },
    Suite {
        name: "tests of chunks, loom",
        arguments: &["--package", "masu-chunk", "--release", "--test", "loom"],
        cfg: LOOM,
    },
];

impl Suite {
    fn command(&self, root: &Path, length: Length) -> Result<Command> {
        let mut command = steps::cargo(root, &["test", "--locked", "--no-fail-fast"]);
        command.args(self.arguments);
        if self.arguments.contains(&"--release") {
            // Nothing more is shown by each test program and all that it uses being optimised as one piece, which takes
            // the compiler long; the tests of `masu-abi` have the library that is made so.
            command.env("CARGO_PROFILE_RELEASE_LTO", "off");
        }
        if let Some((folder, cfg)) = self.cfg {
            // A target folder of its own, so that nothing else is built again for other flags.
            command.arg("--target-dir").arg(steps::target_folder()?.join(folder));
            command.env("RUSTFLAGS", format!("--cfg {cfg}")).env_remove("CARGO_ENCODED_RUSTFLAGS");
        }
        if length == Length::Soak {
            command.env("MASU_SOAK", "1");
        }
        Ok(command)
    }
}
