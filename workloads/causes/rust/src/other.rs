//! Causes outside memory: in output, and in the placement of code.

use std::process::Command;

use crate::kernel::{self, Step};
use crate::random::Random;
use crate::work::Work;

/// Prints lines as the standard library does: each at once.
pub fn small_writes(work: &Work) -> u64 {
    let width = work.size - 1;
    for round in 0..work.rounds {
        println!("{round:0width$}");
    }
    (work.rounds * work.size) as u64
}

/// Calls the libraries in another order than the order in which they were loaded.
pub fn scattered_libraries(work: &Work) -> u64 {
    let folder = work.libraries.as_deref();
    let folder = folder.expect("--libraries names the folder that make filled");
    let library = |number: usize| kernel::load(&folder.join(format!("{number:03}.so")));
    let mut steps: Vec<Step> = (0..work.size).map(library).collect();
    let mut random = Random::new(1);
    for last in (1..steps.len()).rev() {
        steps.swap(last, random.below(last + 1));
    }
    let first = steps[0](1);
    assert!(steps.iter().all(|step| step(1) == first), "the libraries are not copies of one");
    let mut value = 1;
    for _ in 0..work.rounds {
        value = steps.iter().fold(value, |value, step| step(value));
    }
    value
}

/// Works like a script: it starts a program for each small thing.
pub fn fork_storm(work: &Work) -> u64 {
    let mut sum = 0;
    for round in 0..work.rounds {
        let arguments = (0..work.size).map(|number| (round + number).to_string());
        let status = Command::new("true").args(arguments).status().expect("true is there");
        assert!(status.success(), "true is false");
        sum += round as u64;
    }
    sum
}
