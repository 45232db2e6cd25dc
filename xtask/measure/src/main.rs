//! The chores that measure, run as `cargo xtask CHORE`.
//!
//! It relies on the lab's engine for every run that is timed. `xtask` lists these chores too, and starts this program.

mod bench;
mod causes;
mod findings;
mod judge;
mod machine_facts;
mod mallocs;
mod misuse;
mod parallel;
mod pauses;
mod peers;
mod rust;
mod scale;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use xtask::root;

#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Chore {
    Bench(bench::Request),
    Causes(causes::Request),
    Judge(judge::Request),
    Misuse(misuse::Request),
    Pauses(pauses::Request),
    Peers(peers::Request),
    Rust(rust::Request),
    Scale(scale::Request),
}

fn perform(chore: &Chore) -> Result<()> {
    match chore {
        Chore::Bench(request) => bench::run(root()?, request),
        Chore::Causes(request) => causes::run(root()?, request),
        Chore::Judge(request) => judge::run(root()?, request),
        Chore::Misuse(request) => misuse::run(root()?, request),
        Chore::Pauses(request) => pauses::run(root()?, request),
        Chore::Peers(request) => peers::run(root()?, request),
        Chore::Rust(request) => rust::run(root()?, request),
        Chore::Scale(request) => scale::run(root()?, request),
    }
}

fn main() -> ExitCode {
    match perform(&Chore::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask-measure: {error:#}");
            ExitCode::FAILURE
        }
    }
}
