//! Simulated threads, of which samples are counted: on a machine on which stops cost more or less than assumed, at
//! random times.

use super::*;
use crate::random::Random;

/// The next action of a thread.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// A number of calls, each after this much CPU time; some are reads or writes.
    Calls {
        number: u64,
        each_s: f64,
        are_transfers: bool,
    },
    /// Work without calls.
    Work(f64),
    Sleep(f64),
}

const CHEAP: Act = Act::Calls { number: 2_000, each_s: 3e-7, are_transfers: false };

/// A thread, and the clock that it runs by.
struct Simulated {
    windows: Windows,
    shares: Shares,
    random: Random,
    now_s: f64,
    progress: Progress,
    /// The times when the next window is to open, and when the open one closes.
    opens_s: f64,
    closes_s: f64,
    /// The real CPU time of a stop, and the time until the tracer answers it.
    stop_s: f64,
    answer_s: f64,
    in_window: u64,
    /// Calls of the window before, where they stand beside these.
    before: u64,
    counted: u64,
    made: u64,
    /// True if the kernel counts the thread's calls.
    is_metered: bool,
}

impl Simulated {
    /// `thought_s` is the assumed cost of a stop.
    fn new(seed: u64, stop_s: f64, thought_s: f64, answer_s: f64) -> Simulated {
        Simulated {
            windows: Windows::new(false, Progress::default()),
            shares: Shares::new(thought_s),
            random: Random::new(seed),
            now_s: 0.0,
            progress: Progress::default(),
            opens_s: 0.01,
            closes_s: 0.0,
            stop_s,
            answer_s,
            in_window: 0,
            before: 0,
            counted: 0,
            made: 0,
            is_metered: false,
        }
    }

    fn metered(mut self) -> Simulated {
        self.is_metered = true;
        self.progress.calls = Some(0);
        self.windows = Windows::new(false, self.progress);
        self
    }

    fn luck(&mut self) -> f64 {
        self.random.bits() as f64 / u64::MAX as f64
    }

    fn stop(&mut self) {
        self.progress.cpu_s += self.stop_s;
        self.progress.sleeps += 1;
        self.now_s += self.stop_s + self.answer_s;
        if self.now_s >= self.closes_s {
            let times = self.windows.let_go(self.progress, &mut self.shares);
            self.counted += times * (self.in_window + self.before);
            self.opens_s = self.now_s + 0.03 + 0.06 * self.luck();
        }
    }

    /// Works for this long; the thread may be caught while it does.
    fn work(&mut self, for_s: f64) {
        let at_s = self.opens_s - self.now_s;
        if !self.windows.is_followed && at_s < for_s {
            // If the window was due while the thread slept, the thread is caught as soon as a check finds it at work.
            let into_s = if at_s > 0.0 { at_s } else { 0.01 * self.luck() };
            if into_s < for_s {
                let mut caught = self.progress;
                caught.cpu_s += into_s;
                self.windows.catch(caught, &mut self.shares);
                self.closes_s = self.now_s + into_s + 0.02;
            }
        }
        self.now_s += for_s;
        self.progress.cpu_s += for_s;
    }

    fn call(&mut self, is_transfer: bool) {
        self.made += 1;
        self.progress.transfers += u64::from(is_transfer);
        if self.windows.is_followed {
            self.counted += 1;
            let in_window = self.now_s < self.closes_s;
            self.windows.note(true, in_window);
            if let Some(stands_on) = self.windows.begins_again() {
                let last = std::mem::take(&mut self.in_window);
                self.before = if stands_on { last } else { 0 };
            }
            self.in_window += u64::from(in_window);
            self.stop();
        }
        // The kernel counts the call behind the stop.
        self.progress.calls = self.progress.calls.map(|calls| calls + 1);
        if self.windows.is_followed {
            self.windows.note(false, false);
            self.stop();
        }
    }

    fn run(self, acts: &[Act], times: usize) -> f64 {
        self.both(acts, times).0
    }

    /// The estimate of the thread's calls, and its bounds, as shares of the truth.
    fn both(mut self, acts: &[Act], times: usize) -> (f64, [f64; 2]) {
        for _ in 0..times {
            for act in acts {
                match *act {
                    Act::Work(for_s) => self.work(for_s),
                    Act::Sleep(for_s) => {
                        self.now_s += for_s;
                        self.progress.sleeps += 1;
                    }
                    Act::Calls { number, each_s, are_transfers } => {
                        for _ in 0..number {
                            let for_s = each_s * 2.0 * self.luck();
                            self.work(for_s);
                            self.call(are_transfers);
                        }
                    }
                }
            }
        }
        let times = self.windows.end(self.progress, &mut self.shares);
        let share = |calls: f64| calls / self.made as f64;
        // `counted` includes the calls that windows stood for.
        let all = (self.counted + times * (self.in_window + self.before)) as f64;
        let Estimate { calls, least, most } = self.shares.unseen;
        (share(all), [share(all - calls + least), share(all - calls + most)])
    }
}

/// The least, the greatest and the mean of many runs' estimates of a thread's calls, as shares of the truth.
fn estimates(acts: &[Act], times: usize, prices: [f64; 3]) -> (f64, f64, f64) {
    let [stop_s, thought_s, answer_s] = prices;
    let all = (0..8).map(|seed| Simulated::new(seed, stop_s, thought_s, answer_s).run(acts, times));
    let all: Vec<f64> = all.collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    (least, all.iter().sum::<f64>() / all.len() as f64, most)
}

/// Usual prices of a stop: 3 µs of CPU time, assumed correctly, and 20 µs until the tracer answers.
const USUAL: [f64; 3] = [3e-6, 3e-6, 20e-6];

#[test]
fn a_thread_is_estimated_by_what_it_did() {
    let calls = |number, each_s| Act::Calls { number, each_s, are_transfers: false };
    let reads = Act::Calls { number: 500_000, each_s: 3e-7, are_transfers: true };
    let many = calls(1_000_000, 1e-6);
    let if_stops_cost = |thought_s| [3e-6, thought_s, 20e-6];
    for (what, acts, times, prices, near) in [
        ("even, cheap", vec![calls(3_333_333, 3e-7)], 1, USUAL, 1.2),
        ("even", vec![calls(100_000, 1e-5)], 1, USUAL, 1.2),
        ("even, costly", vec![calls(1_000, 1e-3)], 1, USUAL, 1.2),
        ("reads", vec![reads], 1, if_stops_cost(1e-6), 1.02),
        ("reads", vec![reads], 1, if_stops_cost(3e-6), 1.02),
        ("reads", vec![reads], 1, if_stops_cost(9e-6), 1.02),
        // The thread sleeps where windows begin.
        ("bursts", vec![CHEAP, Act::Sleep(1e-3)], 300, USUAL, 1.5),
        // The thread hardly works at all, and is caught once in a while.
        ("rare bursts", vec![CHEAP, Act::Sleep(0.1)], 300, USUAL, 1.6),
        ("many calls first", vec![many, Act::Work(2.0)], 1, USUAL, 1.3),
        ("many calls last", vec![Act::Work(2.0), many], 1, USUAL, 1.3),
        // By the assumed cost alone, nothing of a window would be the thread's own.
        ("stops that cost less", vec![calls(100_000, 1e-5)], 1, if_stops_cost(9e-6), 8.0),
    ] {
        let (least, mean, most) = estimates(&acts, times, prices);
        let is_near = |estimate: f64| (1.0 / near..near).contains(&estimate);
        assert!([least, mean, most].into_iter().all(is_near), "{what}: {least}, {mean}, {most}");
    }
}

#[test]
fn a_busy_machine_changes_nothing() {
    let quiet = estimates(&[CHEAP, Act::Sleep(1e-3)], 300, USUAL);
    let busy = estimates(&[CHEAP, Act::Sleep(1e-3)], 300, [3e-6, 3e-6, 1e-3]);
    assert!((quiet.1 / busy.1 - 1.0).abs() < 0.3, "{quiet:?}, {busy:?}");
}

#[test]
fn what_is_done_after_the_last_window_counts() {
    let mut thread = Simulated::new(1, 3e-6, 3e-6, 20e-6);
    thread.opens_s = 0.0;
    for _ in 0..2_000 {
        thread.work(1e-5);
        thread.call(false);
    }
    // No window opens any more.
    thread.opens_s = f64::INFINITY;
    let seen = thread.run(&[Act::Calls { number: 500_000, each_s: 1e-5, are_transfers: false }], 1);
    assert!((0.8..1.2).contains(&seen), "{seen}");
}

#[test]
fn a_call_that_stands_for_part_of_another_is_made_up_for() {
    let (mut windows, mut shares) = (Windows::new(true, Progress::default()), Shares::new(0.0));
    let mut counted = 0;
    let mut now = Progress::default();
    for _ in 0..100 {
        now.cpu_s += 1.0;
        windows.note(true, true);
        let stand = if windows.begins_again() == Some(true) { 2 } else { 1 };
        counted += 1 + stand * windows.let_go(now, &mut shares);
        now.cpu_s += 0.25;
        windows.catch(now, &mut shares);
    }
    assert!((123..=125).contains(&counted), "{counted}");
    assert!((shares.seen() - 0.8).abs() < 0.01, "{}", shares.seen());
}

#[test]
fn what_only_cpu_time_among_stops_tells_is_uncertain() {
    let rough = |number: u64, are_transfers| {
        let mut thread = Simulated::new(1, 3e-6, 3e-6, 20e-6);
        thread.random = Random::new(7);
        for _ in 0..number {
            thread.work(3e-7);
            thread.call(are_transfers);
        }
        let Estimate { least, most, .. } = thread.shares.unseen;
        most > 3.0 * least
    };
    assert!(rough(1_000_000, false) && !rough(1_000_000, true));
}

#[test]
fn few_reads_among_many_calls_do_not_tell() {
    let (mut windows, mut shares) = (Windows::new(true, Progress::default()), Shares::new(0.0));
    let mut now = Progress { cpu_s: 1.0, transfers: 30, ..Progress::default() };
    (0..500).for_each(|_| windows.note(true, true));
    windows.let_go(now, &mut shares);
    // The thread reads a lot from then on.
    now = Progress { cpu_s: 2.0, transfers: 30_000, ..now };
    assert_eq!(windows.end(now, &mut shares), 1);
}

#[test]
fn a_window_without_a_call_is_part_of_the_next() {
    let (mut windows, mut shares) = (Windows::new(false, Progress::default()), Shares::new(0.0));
    let mut now = Progress::default();
    for calls in [0, 0, 10] {
        now.transfers += 30;
        windows.catch(now, &mut shares);
        (0..calls).for_each(|_| windows.note(true, true));
        now.transfers += calls;
        let times = windows.let_go(now, &mut shares);
        assert_eq!(times, if calls == 0 { 0 } else { 9 });
    }
}

#[test]
fn where_the_kernel_counts_calls_all_are_known_whatever_stops_cost() {
    for (each_s, thought_s) in [(3e-7, 3e-6), (3e-7, 3e-7), (1e-5, 9e-6)] {
        let acts = [Act::Calls { number: 300_000, each_s, are_transfers: false }, Act::Work(0.5)];
        let thread = Simulated::new(3, 3e-6, thought_s, 20e-6).metered();
        let (estimate, between) = thread.both(&acts, 2);
        assert!((0.99..1.01).contains(&estimate), "{each_s}, {thought_s}: {estimate}");
        assert!((between[0] - between[1]).abs() < 1e-9, "{between:?}");
    }
}

#[test]
fn the_truth_is_within_the_interval() {
    // The real cost ranges from the assumed one to five times that, because caches are cold after stops.
    for stop_s in [2e-6, 3e-6, 6e-6, 15e-6] {
        for each_s in [1e-7, 7e-7, 1e-5, 1e-3] {
            for are_transfers in [false, true] {
                let number = ((1.0 / each_s) as u64).min(1_000_000);
                let acts = [Act::Calls { number, each_s, are_transfers }];
                let thread = Simulated::new(5, stop_s, 3e-6, 20e-6);
                let (_, [least, most]) = thread.both(&acts, 1);
                assert!(least <= 1.0 && 1.0 <= most, "{stop_s}, {each_s}: {least} to {most}");
            }
        }
    }
}

#[test]
fn threads_that_no_window_met_are_counted_by_the_next_that_ends() {
    let mut shares = Shares::new(0.0);
    let at = |calls| Progress { calls: Some(calls), ..Progress::default() };
    for _ in 0..3 {
        assert_eq!(Windows::new(false, at(0)).end(at(40), &mut shares), 0);
    }
    let mut met = Windows::new(true, at(0));
    (0..20).for_each(|_| met.note(true, true));
    met.note(false, true);
    assert_eq!(met.end(at(20), &mut shares), 6);
    assert_eq!(shares.unseen.calls, 120.0);
}
