//! Random operation sequences against an oracle of live intervals.
//!
//! The tests call masu directly and keep their own memory in the system's malloc. Workers allocate,
//! resize, pass on and free blocks; the oracle knows the live addresses and their contents. `planted`
//! shows that it finds bugs. `combinations` checks with the same oracle while every feature of masu is
//! switched on and off.
//!
//! `MASU_SEED=N` repeats a run, `MASU_SOAK=1` makes it hundreds of millions of operations, and
//! `MASU_OPERATIONS=N` sets their number, for an emulated machine.

#[path = "../../src/platform/alone.rs"]
mod alone;
#[macro_use]
mod tally;

mod checked;
mod combinations;
mod finding;
mod live;
mod malloc;
mod os_pages;
mod pattern;
mod plan;
mod planted;
mod random;
mod sizes;
mod worker;

use std::time::{SystemTime, UNIX_EPOCH};

use crate::malloc::Masu;
use crate::plan::{HISTORY, Plan};
use crate::worker::{Tally, run};

/// Operations of the main test. A debug build costs about twenty times as much for each, and checks
/// masu's own assertions.
const OPERATIONS: usize = if cfg!(debug_assertions) { 1_000_000 } else { 40_000_000 };

/// With `MASU_SOAK`, operations of the main test: some ten minutes.
const OPERATIONS_SOAK: usize = 400_000_000;

/// Operations of the main test in this run.
fn operations() -> usize {
    let usual = if combinations::is_soak() { OPERATIONS_SOAK } else { OPERATIONS };
    combinations::number("MASU_OPERATIONS").unwrap_or(usual)
}

/// The seed of `MASU_SEED`, or a new one from the clock.
fn seed() -> u64 {
    combinations::number("MASU_SEED").map_or_else(
        || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.subsec_nanos().into()),
        |seed| seed as u64,
    )
}

/// Runs the plan; a finding fails the test with everything needed to repeat it.
fn assert_sound(plan: &Plan) -> Tally {
    os_pages::simulate_if_requested();
    let seed = seed();
    println!("MASU_SEED={seed}: {} operations, {} workers", plan.operations, plan.workers);
    match run(&Masu, plan, seed) {
        Ok(tally) => {
            println!("{tally:?}");
            tally
        }
        Err((finding, phase)) => panic!("{finding:x?} in phase {phase:?}; MASU_SEED={seed}"),
    }
}

#[test]
fn random_operations_of_four_workers_are_sound() {
    let operations = operations();
    let plan = Plan { workers: 4, phases: HISTORY, operations, live_bytes: 256 << 20 };
    let tally = assert_sound(&plan);
    let Tally { allocated, resized, freed, received, inspected, refused, trimmed, threads } = tally;
    assert_eq!(allocated, freed, "every block is freed once");
    assert!(allocated > operations / 4 && resized > operations / 20, "{tally:?}");
    assert!(received > operations / 50 && inspected > operations / 100, "{tally:?}");
    assert!(refused > 0 && threads > (operations / 10_000).min(100), "{tally:?}");
    // A shorter run may have none.
    assert!(trimmed > 0 || operations < OPERATIONS, "{tally:?}");
}

#[test]
fn random_operations_of_one_worker_are_sound() {
    let operations = operations().min(OPERATIONS) / 10;
    assert_sound(&Plan { workers: 1, phases: HISTORY, operations, live_bytes: 64 << 20 });
}

#[test]
fn a_seed_repeats_the_run_of_one_worker() {
    let plan = Plan { workers: 1, phases: HISTORY, operations: 100_000, live_bytes: 8 << 20 };
    let [first, again, other] = [7, 7, 8].map(|seed| run(&Masu, &plan, seed));
    assert_eq!(first, again);
    assert_ne!(first, other);
}
