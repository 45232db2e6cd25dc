//! Causes outside memory: in output, and in the placement of code.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::kernel::{self, Step};
use crate::random::Random;

/// Prints lines as the standard library does: each at once.
pub fn small_writes() -> u64 {
    for round in 0..400_000 {
        println!("{round:011}");
    }
    400_000 * 12
}

/// The folder with the libraries.
pub static LIBRARIES: OnceLock<PathBuf> = OnceLock::new();

/// Calls the libraries in another order than the order in which they were loaded.
pub fn scattered_libraries() -> u64 {
    let folder = LIBRARIES.get().expect("--libraries names the folder that make filled");
    let library = |number: usize| kernel::load(&folder.join(format!("{number:03}.so")));
    let mut steps: Vec<Step> = (0..1_000).map(library).collect();
    let mut random = Random::new(1);
    for last in (1..steps.len()).rev() {
        steps.swap(last, random.below(last + 1));
    }
    let first = steps[0](1);
    assert!(steps.iter().all(|step| step(1) == first), "the libraries are not copies of one");
    let mut value = 1;
    for _ in 0..30_000 {
        value = steps.iter().fold(value, |value, step| step(value));
    }
    value
}

/// Works like a script: it starts a program for each small thing.
pub fn fork_storm() -> u64 {
    let mut sum = 0;
    for round in 0_u64..1_000 {
        let arguments = [round, round + 1].map(|number| number.to_string());
        let status = Command::new("true").args(arguments).status().expect("true is there");
        assert!(status.success(), "true is false");
        sum += round;
    }
    sum
}
