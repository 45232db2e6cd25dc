//! `cargo xtask cranelift`: the code arena's memory for `cranelift-jit`, with its tests and with those of that crate.
//!
//! It relies on `crates/masu-code/cranelift`, which is outside the workspace, and on the source that cargo fetched: the
//! crate's own tests are compiled from there, against a builder whose modules have the arena's memory.

use std::path::Path;

use anyhow::{Context, Result};

use crate::{commands, files, registry};

const FOLDER: &str = "crates/masu-code/cranelift";

pub(crate) fn run(root: &Path) -> Result<()> {
    let target = commands::target_folder()?.join("cranelift");
    let cargo = |words: &[&str]| {
        let mut cargo = commands::cargo(&root.join(FOLDER), words);
        cargo.env("CARGO_TARGET_DIR", &target);
        cargo
    };
    commands::step("format", || commands::run(&mut cargo(&["fmt", "--check"])))?;
    let lints = ["clippy", "--all-targets", "--locked", "--", "-D", "warnings"];
    commands::step("clippy", || commands::run(&mut cargo(&lints)))?;
    let lock = files::read(&root.join(FOLDER).join("Cargo.lock"))?;
    let version =
        registry::version(&lock, "cranelift-jit").context("no cranelift-jit is locked")?;
    let source = registry::source("cranelift-jit", version)?;
    commands::step("tests", || {
        let mut tests = cargo(&["test", "--locked", "--features", "stock-tests"]);
        commands::run(tests.env("CRANELIFT_JIT", &source))
    })
}
