//! Load that comes and goes: on each CPU a thread that works for a while and rests for a while.
//!
//! Relies on nobody's clock but the threads' own: how long each works and rests is drawn from a seed, so
//! that both tools meet the same kind of machine, and another seed another one. The hard idea is none: it
//! is what a machine in use does to a measurement.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The shortest and the longest that a thread works or rests.
const SPELL_MS: (u64, u64) = (300, 6000);

/// How often a thread looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Load, until this is dropped.
pub(super) struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Begins it, on as many CPUs as there are.
    pub(super) fn begin(seed: u64) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let cpus = thread::available_parallelism().map_or(1, usize::from) as u64;
        let begun = |cpu: u64| {
            let over = Arc::clone(&over);
            thread::spawn(move || spells(seed.wrapping_mul(1000).wrapping_add(cpu), &over))
        };
        let threads = (0..cpus).map(begun).collect();
        Self { over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // ORDERING: Relaxed, because nothing is published with it; the join below orders the rest.
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that only counts cannot panic, and a drop has nobody to tell.
            let _ = thread.join();
        }
    }
}

fn spells(seed: u64, over: &AtomicBool) {
    let mut random = Random::new(seed);
    let mut works = random.drawn().is_multiple_of(2);
    // ORDERING: Relaxed, as above: seen late is seen soon enough.
    while !over.load(Ordering::Relaxed) {
        let (shortest, longest) = SPELL_MS;
        let spell = Duration::from_millis(shortest + random.drawn() % (longest - shortest));
        let begun = Instant::now();
        // ORDERING: Relaxed, as above.
        while begun.elapsed() < spell && !over.load(Ordering::Relaxed) {
            if works { work() } else { thread::sleep(LOOK) }
        }
        works = !works;
    }
}

/// Keeps a CPU busy for about a millisecond.
fn work() {
    let mut sum = 0_u64;
    for number in 0..1_000_000_u64 {
        sum = black_box(sum.wrapping_mul(31).wrapping_add(number));
    }
}

/// The generator splitmix64 (Steele, Lea and Flood, 2014): enough for spells of load.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn drawn(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
