//! Every system call by its number, and roughly the kernel's time for each: they show the time of a program that mostly
//! makes system calls.
//!
//! Relies on a thread being stopped at the start and at the end of each call. The hard part is that a stop takes longer
//! than most calls, and much longer where the tracer waits for a CPU. So a cheap call of each kind counts (the lower
//! quartile), less the time of the cheapest kind, which is a stop alone; and calls in which a thread may wait for
//! others count for no more than that.

use std::collections::HashMap;
use std::time::Instant;

use serde::Serialize;

use super::Pid;
use crate::kernel::calls::waits_for_others;
use crate::kernel::names;

/// The number of kinds that are kept for the page and for JSON.
const KEPT: usize = 8;

/// The least time of a call, in seconds.
const LEAST_S: f64 = 1e-7;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CallKind {
    pub name: String,
    /// The number of calls; an estimate where calls were sampled.
    pub calls: u64,
    /// The kernel's time for all of them, in seconds; an estimate.
    pub seconds: f64,
}

/// Times of calls of one kind, by powers of the square root of two of a nanosecond.
#[derive(Debug, Clone)]
struct Times {
    calls: u64,
    timed: u64,
    classes: [u32; Times::CLASSES],
}

impl Times {
    const CLASSES: usize = 80;

    fn note(&mut self, seconds: f64) {
        let class = (2.0 * (seconds * 1e9).max(1.0).log2()) as usize;
        self.classes[class.min(Times::CLASSES - 1)] += 1;
        self.timed += 1;
    }

    /// The lower quartile of the times, in seconds; none where no call was timed.
    fn cheap_s(&self) -> Option<f64> {
        let mut below = 0;
        let class = self.classes.iter().position(|count| {
            below += u64::from(*count);
            below > 0 && 4 * below >= self.timed
        })?;
        Some(2_f64.powf(class as f64 / 2.0) / 1e9)
    }
}

#[derive(Debug, Default)]
pub(super) struct Kinds {
    times: HashMap<i64, Times>,
    /// The call that each thread is in, and the time of its start.
    begun: HashMap<Pid, (i64, Instant)>,
}

impl Kinds {
    /// Notes that a thread is about to make a call.
    pub(super) fn begins(&mut self, thread: Pid, number: i64) {
        self.add(number, 1);
        self.begun.insert(thread, (number, Instant::now()));
    }

    pub(super) fn add(&mut self, number: i64, calls: u64) {
        let none = || Times { calls: 0, timed: 0, classes: [0; Times::CLASSES] };
        self.times.entry(number).or_insert_with(none).calls += calls;
    }

    /// Notes a stop elsewhere: at the end of the thread's call, if it was in one.
    pub(super) fn ends(&mut self, thread: Pid) {
        let Some((number, since)) = self.begun.remove(&thread) else { return };
        if let Some(times) = self.times.get_mut(&number) {
            times.note(since.elapsed().as_secs_f64());
        }
    }

    /// Notes that the end of the thread's call is not seen.
    pub(super) fn lose_track(&mut self, thread: Pid) {
        self.begun.remove(&thread);
    }

    pub(super) fn calls(&self) -> u64 {
        self.times.values().map(|times| times.calls).sum()
    }

    pub(super) fn finish(self) -> Vec<CallKind> {
        let cheapest = self.times.values().filter_map(Times::cheap_s).fold(f64::INFINITY, f64::min);
        let kind = |(number, times): (i64, Times)| {
            let name = names::of_call(number);
            let each_s = times.cheap_s().filter(|_| !waits_for_others(number));
            let each_s = each_s.map_or(LEAST_S, |each_s| (each_s - cheapest).max(LEAST_S));
            CallKind { name, calls: times.calls, seconds: each_s * times.calls as f64 }
        };
        let mut kinds: Vec<CallKind> = self.times.into_iter().map(kind).collect();
        kinds.sort_by(|one, other| {
            other.seconds.total_cmp(&one.seconds).then_with(|| one.name.cmp(&other.name))
        });
        kinds.truncate(KEPT);
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(calls: u64, all_s: &[f64]) -> Times {
        let mut times = Times { calls, timed: 0, classes: [0; Times::CLASSES] };
        all_s.iter().for_each(|one_s| times.note(*one_s));
        times
    }

    #[test]
    fn what_takes_most_comes_first_and_a_stop_is_no_time_of_the_kernels() {
        let stop_s = 2e-5;
        let busy = [stop_s + 1e-4, 0.2, stop_s + 1e-4, 0.3, stop_s + 1e-4];
        let mut kinds = Kinds::default();
        kinds.times.insert(libc::SYS_getppid, times(50_000, &[stop_s; 9]));
        kinds.times.insert(libc::SYS_read, times(1_000, &busy));
        kinds.times.insert(libc::SYS_futex, times(10, &[1.0; 9]));
        let kinds = kinds.finish();
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        assert_eq!(names, ["read", "getppid", "futex"], "{kinds:?}");
        assert!((0.06..0.14).contains(&kinds[0].seconds), "{kinds:?}");
        assert!(kinds[1].seconds < 0.01 && kinds[2].seconds < 0.01, "{kinds:?}");
    }

    #[test]
    fn a_call_that_never_ends_was_made() {
        let mut kinds = Kinds::default();
        kinds.begins(1, libc::SYS_exit_group);
        kinds.ends(2);
        let kinds = kinds.finish();
        assert_eq!((kinds[0].name.as_str(), kinds[0].calls), ("exit_group", 1));
    }
}
