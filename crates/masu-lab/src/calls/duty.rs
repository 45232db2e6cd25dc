//! When threads are stopped at their calls, and what a call that was counted stands for: the bound on what counting
//! costs a program.
//!
//! Relies on nothing: clocks and counters come from outside, so all of it is tested on made-up ones. At first every call
//! is counted. A program that makes too many goes over to samples: windows in which every call is counted, and pauses
//! between them in which it runs as if nobody watched. The hard part is how much a pause holds. A window is mostly
//! stops, so its length says little; what the program got done in it does: its reads and writes or its page faults,
//! which the kernel counts at all times, else its CPU time without what stops took.

/// Seconds of wall-clock time that a window takes.
pub(super) const WINDOW_S: f64 = 0.02;

/// Seconds from the end of a window to the next: with it, counting takes less than as long again as the program.
pub(super) const PAUSE_S: f64 = 0.06;

/// All calls are counted up to so many stops, and so many more for each second: 2 % to 10 % of it.
const STOPS_FREE: u64 = 15_000;
const STOPS_A_SECOND: f64 = 2_000.0;

/// Where the machine is busy a stop takes longer, for the tracer waits for a CPU as well. All calls are counted until it
/// has waited for so many seconds, and for this share of the time since the start.
const WAITED_S: f64 = 1.0;
const WAITED_SHARE: f64 = 0.25;

/// Fewer reads and writes, or page faults, than this in a window do not tell how much got done.
const EVENTS_MIN: u64 = 20;

/// No system call takes less CPU time than this, in seconds.
const CALL_S: f64 = 1e-7;

/// A call that was counted stands for so many at most.
const WEIGHT_MAX: f64 = 1e5;

/// How far a tree has come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Progress {
    /// CPU time of its processes, stops included.
    pub(super) cpu_s: f64,
    /// Calls that read or wrote.
    pub(super) transfers: u64,
    pub(super) faults: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Whole,
    Window,
    Pause,
}

/// The phases of a counted run.
#[derive(Debug)]
pub(super) struct Duty {
    phase: Phase,
    /// When the phase began, in seconds, and what had been done by then.
    since_s: f64,
    before: Progress,
    /// Stops in this phase, and calls that began.
    stops: u64,
    calls: u64,
    /// CPU seconds that a stop takes of the program.
    stop_cpu_s: f64,
    /// What the last window got done, or what one would have while all calls were counted.
    last: Progress,
    last_calls: u64,
    /// What a call counts for.
    weight: u64,
    /// What the tracer has waited for a CPU, in seconds.
    waited_s: f64,
    samples_from_s: Option<f64>,
    /// CPU time of windows, and of windows and pauses, stops left out.
    seen_s: f64,
    all_s: f64,
}

impl Duty {
    /// `stop_cpu_s` is what a stop takes of the program's CPU time.
    pub(super) fn new(stop_cpu_s: f64) -> Duty {
        Duty {
            phase: Phase::Whole,
            since_s: 0.0,
            before: Progress::default(),
            stops: 0,
            calls: 0,
            stop_cpu_s,
            last: Progress::default(),
            last_calls: 0,
            weight: 1,
            waited_s: 0.0,
            samples_from_s: None,
            seen_s: 0.0,
            all_s: 0.0,
        }
    }

    /// Whether threads are to be stopped at their calls.
    pub(super) fn is_open(&self) -> bool {
        self.phase != Phase::Pause
    }

    /// What a call counts for.
    pub(super) fn weight(&self) -> u64 {
        self.weight
    }

    /// When it went over to samples, in seconds since the start.
    pub(super) fn samples_from_s(&self) -> Option<f64> {
        self.samples_from_s
    }

    /// Of the time since then, the share in which calls were counted.
    pub(super) fn share(&self) -> f64 {
        self.seen_s / self.all_s.max(1e-9)
    }

    /// Notes a stop at a call, which begins there or is over.
    pub(super) fn note(&mut self, begins: bool) {
        self.stops += 1;
        self.calls += u64::from(begins);
    }

    /// Notes what the tracer has waited for a CPU since the start.
    pub(super) fn waited(&mut self, waited_s: f64) {
        self.waited_s = waited_s;
    }

    pub(super) fn stops(&self) -> u64 {
        self.stops
    }

    pub(super) fn is_over(&self, now_s: f64) -> bool {
        match self.phase {
            Phase::Whole => {
                let is_often = self.stops > STOPS_FREE
                    && (self.stops - STOPS_FREE) as f64 > STOPS_A_SECOND * now_s;
                is_often || self.waited_s > WAITED_S + WAITED_SHARE * now_s
            }
            Phase::Window => now_s >= self.since_s + WINDOW_S,
            Phase::Pause => now_s >= self.since_s + PAUSE_S,
        }
    }

    /// Begins the next phase, `now` having been done.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "smaller than before"
    )]
    pub(super) fn turn(&mut self, now_s: f64, now: Progress) {
        let did = Progress {
            cpu_s: (now.cpu_s - self.before.cpu_s).max(0.0),
            transfers: now.transfers.saturating_sub(self.before.transfers),
            faults: now.faults.saturating_sub(self.before.faults),
        };
        self.phase = match self.phase {
            Phase::Whole => {
                self.samples_from_s = Some(now_s);
                let own_s = self.own_s(did.cpu_s);
                let windows = (now_s / WINDOW_S).max(1.0);
                self.last = Progress { cpu_s: own_s, ..did }.scaled(1.0 / windows);
                self.last_calls = (self.calls as f64 / windows) as u64;
                Phase::Pause
            }
            Phase::Window => {
                self.last = Progress { cpu_s: self.own_s(did.cpu_s), ..did };
                self.last_calls = self.calls;
                self.seen_s += self.last.cpu_s;
                self.all_s += self.last.cpu_s;
                Phase::Pause
            }
            Phase::Pause => {
                self.all_s += did.cpu_s;
                self.weight = weight(&self.last, self.last_calls, &did);
                Phase::Window
            }
        };
        (self.since_s, self.before, self.stops, self.calls) = (now_s, now, 0, 0);
    }

    /// CPU time of the program's own in a phase of stops.
    fn own_s(&self, cpu_s: f64) -> f64 {
        (cpu_s - self.stops as f64 * self.stop_cpu_s).max(self.calls as f64 * CALL_S).max(1e-6)
    }
}

impl Progress {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "smaller than before"
    )]
    fn scaled(self, by: f64) -> Progress {
        let scaled = |number: u64| (number as f64 * by) as u64;
        let (transfers, faults) = (scaled(self.transfers), scaled(self.faults));
        Progress { cpu_s: self.cpu_s * by, transfers, faults }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within its bounds")]
fn weight(window: &Progress, calls: u64, pause: &Progress) -> u64 {
    // Where they are most of all calls, few tell.
    let tell = |events: u64| events >= EVENTS_MIN || events > 0 && 4 * events >= calls;
    let ratio = if tell(window.transfers) {
        pause.transfers as f64 / window.transfers as f64
    } else if tell(window.faults) {
        pause.faults as f64 / window.faults as f64
    } else {
        pause.cpu_s / window.cpu_s.max(1e-6)
    };
    (1.0 + ratio).round().clamp(1.0, WEIGHT_MAX) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that makes a call every so many seconds of CPU time, and its machine, on which a stop takes 20 µs.
    struct Made {
        duty: Duty,
        call_s: f64,
        is_transfer: bool,
        now_s: f64,
        progress: Progress,
        made: u64,
        counted: u64,
    }

    const STOP_S: f64 = 20e-6;

    impl Made {
        fn new(call_s: f64, is_transfer: bool, priced_s: f64) -> Made {
            let (duty, progress) = (Duty::new(priced_s), Progress::default());
            Made { duty, call_s, is_transfer, now_s: 0.0, progress, made: 0, counted: 0 }
        }

        fn run(&mut self, calls: u64) {
            for _ in 0..calls {
                self.made += 1;
                let mut took_s = self.call_s;
                if self.duty.is_open() {
                    self.counted += self.duty.weight();
                    self.duty.note(true);
                    self.duty.note(false);
                    took_s += 2.0 * STOP_S;
                }
                self.now_s += took_s;
                self.progress.cpu_s += took_s;
                self.progress.transfers += u64::from(self.is_transfer);
                if self.duty.is_over(self.now_s) {
                    self.duty.turn(self.now_s, self.progress);
                }
            }
        }

        fn off(&self) -> f64 {
            self.counted as f64 / self.made as f64
        }

        fn own_s(&self) -> f64 {
            self.made as f64 * self.call_s
        }
    }

    #[test]
    fn a_program_of_few_calls_is_counted_whole() {
        let mut few = Made::new(1e-3, false, STOP_S);
        few.run(100_000);
        assert_eq!((few.counted, few.duty.samples_from_s()), (100_000, None));
    }

    #[test]
    fn a_tracer_that_waits_for_a_cpu_goes_over_to_samples_soon() {
        let mut busy = Made::new(1e-3, false, STOP_S);
        busy.run(300);
        assert!(!busy.duty.is_over(busy.now_s));
        busy.duty.waited(1.5);
        assert!(busy.duty.is_over(busy.now_s));
        assert!(!busy.duty.is_over(10.0), "a small part of a long run");
    }

    #[test]
    fn a_program_of_many_calls_takes_at_most_three_times_as_long_and_two_seconds() {
        for call_s in [2e-7, 1e-6, 1e-5, 1e-4] {
            let mut many = Made::new(call_s, true, STOP_S);
            many.run(5_000_000);
            assert!(many.now_s < 3.0 * many.own_s() + 2.0, "{call_s}: {}", many.now_s);
            assert!(many.duty.samples_from_s().is_some());
        }
    }

    #[test]
    fn what_was_not_counted_is_told_by_reads_and_writes() {
        // Whatever a stop is thought to take.
        for priced_s in [0.5 * STOP_S, STOP_S, 2.0 * STOP_S] {
            for call_s in [3e-7, 1e-5] {
                let mut writes = Made::new(call_s, true, priced_s);
                writes.run(10_000_000);
                assert!((writes.off() - 1.0).abs() < 0.1, "{call_s}, {priced_s}: {}", writes.off());
            }
        }
    }

    #[test]
    fn what_was_not_counted_is_told_by_cpu_time_where_nothing_is_read_or_written() {
        for call_s in [1e-5, 1e-4] {
            let mut calls = Made::new(call_s, false, STOP_S);
            calls.run(3_000_000);
            assert!((calls.off() - 1.0).abs() < 0.2, "{call_s}: {}", calls.off());
            assert!(calls.duty.share() > 0.01 && calls.duty.share() < 0.4);
        }
    }

    #[test]
    fn a_phase_of_many_calls_is_not_taken_for_the_whole() {
        let mut made = Made::new(1e-6, true, STOP_S);
        made.run(3_000_000);
        // From here on it computes.
        made.call_s = 1e-2;
        made.run(1_000);
        assert!((made.off() - 1.0).abs() < 0.15, "{}", made.off());
    }
}
