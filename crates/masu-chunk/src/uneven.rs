//! Uneven work in simulated time: the real spans and the real pace, with workers whose clocks are
//! numbers. No test here reads the time.
//!
//! COUPLING: `run` below is the loop of `indexed.rs` with the effect of `idle.rs`, one chunk an event.

use std::ops::Range;
use std::time::Duration;

use crate::batch::Turn;
use crate::pace::Pace;
use crate::spans::Spans;

struct Simulated {
    /// The end of the worker's chunk; for an idle worker, the time at which it ran out of chunks.
    time: u64,
    began: u64,
    /// The batch as taken, before others stole from it; `None`: the worker is idle.
    batch: Option<Range<u64>>,
    pace: Pace,
}

/// The end of the last chunk, with chunks of so many nanoseconds.
fn run(times: &[u64], workers: usize) -> u64 {
    let spans = Spans::new(times.len() as u64, workers);
    let fresh = |_| Simulated { time: 0, began: 0, batch: None, pace: Pace::new() };
    let mut all: Vec<Simulated> = (0..workers).map(fresh).collect();
    let mut done = 0;
    for (number, worker) in all.iter_mut().enumerate() {
        begin(&spans, worker, number, times, 0);
    }
    loop {
        let busy = (0..workers).filter(|&worker| all[worker].batch.is_some());
        let Some(next) = busy.min_by_key(|&worker| all[worker].time) else { break };
        let worker = &mut all[next];
        let (now, batch) = (worker.time, spans.batch(next));
        let chunk = batch.at() + 1;
        done += 1;
        if batch.next(chunk) || spans.turn(next, chunk) != Turn::Over {
            worker.time += times[chunk as usize];
        } else {
            if worker.batch.as_ref().is_some_and(|batch| batch.end == chunk) {
                worker.pace.took(Duration::from_nanos(now - worker.began));
            } else {
                worker.pace = Pace::new();
            }
            begin(&spans, worker, next, times, now);
        }
        // Idle workers look again, because there may be chunks.
        for (other, worker) in all.iter_mut().enumerate() {
            if worker.batch.is_none() {
                begin(&spans, worker, other, times, now);
            }
        }
    }
    assert_eq!(done, times.len(), "a chunk was lost or done twice");
    all.iter().map(|worker| worker.time).max().unwrap_or(0)
}

/// Takes a batch, if there is one.
fn begin(spans: &Spans, worker: &mut Simulated, number: usize, times: &[u64], now: u64) {
    worker.batch = spans.take(number, worker.pace.most(), worker.pace.is_short());
    if worker.batch.is_none() && (spans.steal(number) || spans.rob(number)) {
        worker.pace = Pace::new();
        worker.batch = spans.take(number, worker.pace.most(), worker.pace.is_short());
    }
    if let Some(batch) = &worker.batch {
        worker.began = now;
        worker.time = now + times[batch.start as usize];
    }
}

/// The end of the last chunk if each goes to the first free worker.
fn greedy(times: &[u64], workers: usize) -> u64 {
    let mut free = vec![0; workers];
    for time in times {
        if let Some(first) = free.iter_mut().min() {
            *first += time;
        }
    }
    free.into_iter().max().unwrap_or(0)
}

/// Deterministic pseudo-random numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

/// Calls `holds` with many cases: workers, and the chunks' times by `time`, which gets the chunk's
/// number, how many there are, and how long a long one and a short one take here.
fn each_case(
    time: impl Fn(&mut Draw, (u64, u64), (u64, u64)) -> u64,
    holds: impl Fn(&[u64], usize, u64) -> bool,
) {
    let mut draw = Draw(1);
    for case in 0..120 {
        let workers = 2 + draw.below(15) as usize;
        let count = 1 + draw.below(1000);
        let (long, short) = (1000 + draw.below(30_000_000), 20 + draw.below(2000));
        let times: Vec<u64> =
            (0..count).map(|chunk| time(&mut draw, (chunk, count), (long, short))).collect();
        let ours = run(&times, workers);
        assert!(holds(&times, workers, ours), "case {case}: {workers} workers, {ours} ns");
    }
}

/// Total by workers, and the longest chunk.
fn share(times: &[u64], workers: usize) -> (u64, u64) {
    let longest = times.iter().copied().max().unwrap_or(0);
    (times.iter().sum::<u64>().div_ceil(workers as u64), longest)
}

fn is_near_greedy(times: &[u64], workers: usize, ours: u64) -> bool {
    let (share, longest) = share(times, workers);
    ours * 10 <= greedy(times, workers) * 11 && ours <= share + longest
}

#[test]
fn chunks_that_are_never_short_are_scheduled_as_by_the_list() {
    let time = |draw: &mut Draw, _, (long, _)| 40_001 + draw.below(long);
    each_case(time, |times, workers, ours| ours == greedy(times, workers));
}

#[test]
fn uneven_work_is_within_a_tenth_of_list_scheduling_and_below_share_and_longest() {
    each_case(|draw, _, (long, _)| 1 + draw.below(long), is_near_greedy);
    each_case(|_, _, (_, short)| short, is_near_greedy);
    let first = |_: &mut Draw, (chunk, _), (long, short)| if chunk < 20 { long } else { short };
    each_case(first, is_near_greedy);
    let last = |_: &mut Draw, (chunk, count), (long, short)| {
        if chunk + 20 >= count { long } else { short }
    };
    each_case(last, is_near_greedy);
    each_case(|_, (chunk, _), (long, _)| 20 + chunk * long / 1000, is_near_greedy);
}

/// After very short chunks a worker takes many at once. If there are long chunks among those, other workers take the
/// chunks that the worker has not begun.
#[test]
fn long_chunks_among_very_short_ones_are_below_share_and_longest() {
    let holds = |times: &[u64], workers: usize, ours: u64| {
        let (share, longest) = share(times, workers);
        ours <= share + longest
    };
    let rare = |draw: &mut Draw, _, (long, short)| if draw.below(50) == 0 { long } else { short };
    each_case(rare, holds);
    let together = |_: &mut Draw, (chunk, count), (long, short)| {
        if (count / 2..count / 2 + 30).contains(&chunk) { long } else { short }
    };
    each_case(together, holds);
    each_case(|draw, _, _| 20 << draw.below(20), holds);
}
