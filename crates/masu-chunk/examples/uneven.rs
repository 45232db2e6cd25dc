//! How near uneven work comes to list scheduling: chunks that sleep for very different times, in the
//! order that was drawn, against the same times dealt out one by one to the worker that is free first.
//!
//! ```text
//! cargo run --release --example uneven
//! ```
//!
//! Sleeping takes no CPU, so the figures hold on a busy machine, and for more workers than cores.

use std::thread;
use std::time::{Duration, Instant};

use masu_chunk::Executor;

/// The microseconds that the chunk with this index takes.
type Shape = fn(u64) -> u64;

/// Where the long chunks stand.
const SHAPES: &[(&str, Shape)] = &[
    (
        "mixed",
        |index| if draw(index).is_multiple_of(10) { 30_000 } else { 200 + draw(index) % 2000 },
    ),
    ("long ones last", |index| if index >= 280 { 20_000 } else { 500 }),
    ("long ones first", |index| if index < 20 { 20_000 } else { 500 }),
    ("equal", |_| 2_000),
];

/// A number that depends on the index alone.
fn draw(index: u64) -> u64 {
    (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) % 1_000_003
}

fn main() {
    println!("{:<16} workers   ours ms  greedy ms  ratio  total/workers + longest", "work");
    for (name, micros) in SHAPES {
        let times: Vec<u64> = (0..300).map(micros).collect();
        for workers in [2, 4, 8] {
            let executor = Executor::new().chunk(1).workers(workers);
            let begin = Instant::now();
            let sleep = |time: u64| {
                let begin = Instant::now();
                thread::sleep(Duration::from_micros(time));
                begin.elapsed().as_micros() as u64
            };
            let slept = match executor.slice(&times).map(|chunk| sleep(chunk[0])) {
                Ok(finished) => finished.value,
                Err(failure) => return eprintln!("uneven: {failure}"),
            };
            let ours = begin.elapsed().as_secs_f64() * 1e3;
            // Both are given the times that the sleeps really took: how late they woke is the machine's.
            let greedy = greedy(&slept, workers) as f64 / 1e3;
            let longest = slept.iter().copied().max().unwrap_or(0);
            let bound = (slept.iter().sum::<u64>() / workers as u64 + longest) as f64 / 1e3;
            let ratio = ours / greedy;
            println!(
                "{name:<16} {workers:>7} {ours:>9.1} {greedy:>10.1} {ratio:>6.3} {bound:>9.1}"
            );
        }
    }
}

/// The time that list scheduling takes: each chunk goes to the worker that is free first.
fn greedy(times: &[u64], workers: usize) -> u64 {
    let mut free = vec![0; workers];
    for time in times {
        if let Some(first) = free.iter_mut().min() {
            *first += time;
        }
    }
    free.into_iter().max().unwrap_or(0)
}
