//! The matrix of real programs: each gives the same exit status, output and files with
//! `libmasu.so` preloaded as without, and the library is shown to be at work in it.
//!
//! Relies on the lab, which runs each program, traces it, and says what the library served, and on the Debian packages
//! that `programs.toml` names; a missing program fails its test. Each entry of that file is a test, so a new entry adds
//! a program. `MASU_SOAK=1` makes the inputs larger and runs tests of minutes.
//!
//! The hard part is the proof (`masu_lab::verify`): a mapped library and a bound symbol prove little, so every executable
//! of every process tree that asks for memory must have *entered* one of the library's allocating functions, or be
//! excused by name and reason.

mod huge_pages;
#[path = "../../../masu-abi/tests/library/mod.rs"]
mod library;
mod program;
mod rust;
mod text;
mod valgrind;

use libtest_mimic::{Arguments, Trial};
use program::Program;

/// Whether this is a long run.
fn soak() -> bool {
    std::env::var_os("MASU_SOAK").is_some_and(|value| value == "1")
}

fn main() {
    let programs = program::all().into_iter().filter(|program| soak() || !program.is_long);
    let mut trials: Vec<Trial> = programs
        .map(|program| {
            let test = if program.is_proven_otherwise { valgrind::test } else { Program::test };
            Trial::test(program.name.clone(), move || Ok(test(&program)?))
        })
        .collect();
    for policy in ["always", "madvise"] {
        let name = format!("programs_run_the_same_where_huge_pages_are_given_by_{policy}");
        trials.push(Trial::test(name, move || Ok(huge_pages::same_with(policy)?)));
    }
    // The libraries are built for this CPU alone.
    trials.retain(|_| cfg!(target_arch = "x86_64"));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
