//! Random operation sequences against an oracle of live intervals.
//!
//! The tests call masu directly and keep their own memory in the system's malloc. Walkers allocate,
//! resize, pass on and free blocks; the oracle knows the live addresses and their contents. `planted`
//! shows that it finds bugs. `combinations` checks with the same walkers while every feature of masu is
//! switched on and off.
//!
//! `MASU_SEED=N` repeats a run, `MASU_SOAK=1` makes it hundreds of millions of operations, and
//! `MASU_OPERATIONS=N` sets their number, for an emulated machine.

#[path = "../../src/platform/alone.rs"]
mod alone;
mod checked;
mod combinations;
mod finding;
mod live;
mod malloc;
mod os_pages;
mod pattern;
mod plain;
mod planted;
mod random;
mod sizes;

use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::combinations::walker::Tally;
use crate::malloc::Masu;

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

/// Walks with a new seed; a finding fails the test with everything needed to repeat it.
fn assert_sound(walkers: usize, operations: usize, live_bytes: usize) -> Tally {
    os_pages::simulate_if_requested();
    let seed = seed();
    println!("MASU_SEED={seed}: {operations} operations, {walkers} walkers");
    match plain::walk(&Masu, walkers, operations, live_bytes, seed) {
        Ok(tally) => {
            println!("{tally:?}");
            tally
        }
        Err(finding) => panic!("{finding:x?}; MASU_SEED={seed}"),
    }
}

#[test]
fn random_operations_of_four_walkers_are_sound() {
    let operations = operations();
    let tally = assert_sound(4, operations, 256 << 20);
    let Tally { allocated, resized, freed, handed_on, refused, threads, .. } = tally;
    assert_eq!(allocated, freed, "every block is freed once");
    // A short run may have fewer.
    if operations >= 10_000 {
        assert!(allocated > operations / 4 && resized > operations / 20, "{tally:?}");
        assert!(handed_on > operations / 50 && threads > (operations / 10_000).min(100));
        assert!(refused > 0, "{tally:?}");
    }
    let counts = masu::c::statistics();
    let (has_caches, made) = (!cfg!(feature = "secure"), counts.large_made);
    assert_eq!((counts.flushed_blocks > 0, counts.slow_calls > 0), (has_caches, has_caches));
    // On one CPU there is one shard, and no block is another shard's.
    let has_others = thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    assert!(made > 0 && (counts.shard_blocks + counts.lane_blocks > 0 || !has_others));
}

#[test]
fn random_operations_of_one_walker_are_sound() {
    assert_sound(1, operations().min(OPERATIONS) / 10, 64 << 20);
}
