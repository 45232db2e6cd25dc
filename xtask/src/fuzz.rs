//! `cargo xtask fuzz`: libFuzzer on the code arena's loader, on the stable toolchain.
//!
//! It relies on `crates/masu-code/fuzz`, which is outside the workspace and has cargo-fuzz's layout: `cargo fuzz run
//! load` works there too. Coverage is a pass of LLVM's that stable rustc can run; only AddressSanitizer needs rustc
//! to pass for a nightly one.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{commands, machine, options};

const FOLDER: &str = "crates/masu-code/fuzz";

/// The inputs to keep: compilers' objects, and inputs that broke the loader before.
const CORPUS: &str = "crates/masu-code/tests/corpus";

/// Counters for libFuzzer in every block, and the operands of comparisons.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// libFuzzer on the code arena's loader (a minute)
#[derive(Debug, clap::Parser)]
pub(crate) struct Request {
    /// The time to search
    #[arg(long, value_name = "N", default_value = "60", value_parser = options::seconds())]
    seconds: u32,
    /// Under AddressSanitizer, by RUSTC_BOOTSTRAP=1
    #[arg(long)]
    asan: bool,
}

pub(crate) fn run(root: &Path, request: &Request) -> Result<()> {
    let target = commands::target_folder()?.join(if request.asan { "fuzz-asan" } else { "fuzz" });
    commands::step("build", || {
        let mut build =
            commands::cargo(root, &["build", "--release", "--locked", "--target", machine::HOST]);
        build.current_dir(root.join(FOLDER)).arg("--target-dir").arg(&target);
        if request.asan {
            build.env("RUSTC_BOOTSTRAP", "1");
        }
        let sanitizer = if request.asan { " -Zsanitizer=address" } else { "" };
        commands::run(commands::set_flags(&mut build, &format!("{COVERAGE}{sanitizer}")))
    })?;
    let (found, broken) = (target.join("found"), target.join("broken"));
    for folder in [&found, &broken] {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    commands::step("fuzz", || {
        let mut fuzzer = Command::new(target.join(machine::HOST).join("release/load"));
        fuzzer.arg(format!("-max_total_time={}", request.seconds));
        fuzzer.arg(format!("-artifact_prefix={}/", broken.display()));
        fuzzer.args(["-max_len=16384", "-timeout=20", "-rss_limit_mb=3000"]);
        // Found objects are written into the first folder.
        fuzzer.arg(&found).arg(root.join(CORPUS));
        commands::run(&mut fuzzer)
    })
}
