//! The times at which threads are stopped at their calls: the bound on the cost of counting for a program.
//!
//! Relies on nothing: clocks and counters come from outside, so all of it is tested on made-up ones. At first every call
//! is counted. A program that makes too many goes over to samples: windows in which every call is counted, and pauses
//! between them in which it runs as if nobody watched.

/// Seconds of wall-clock time that a window takes. If threads make few calls because others have the CPUs, the window
/// stays open until it has this many stops, but for no longer than the second limit.
const WINDOW_S: f64 = 0.02;
const STOPS_MIN: u64 = 64;
const WINDOW_MAX_S: f64 = 0.2;

/// Seconds from the end of a window to the next: with it, counting takes less than as long again as the program.
const PAUSE_S: f64 = 0.06;

/// At first windows and pauses of a single thread are shorter, until windows took this long together: a short program,
/// too, is to meet many windows, or phases of it would stand for others. Several threads need the long pauses, to wait for
/// each other again as they do when nobody stops them.
const EARLY_S: f64 = 1.0;
const EARLY_WINDOW_S: f64 = 0.01;
const EARLY_PAUSE_S: f64 = 0.005;

/// The number of stops up to which all calls are counted, and the number for each second: 2 % to 10 % of it on most
/// machines. Where a stop takes long, only as many as take these times together.
const STOPS_FREE: f64 = 15_000.0;
const STOPS_FREE_S: f64 = 1.0;
const STOPS_A_SECOND: f64 = 2_000.0;
const STOPS_A_SECOND_S: f64 = 0.15;

/// On a busy machine a stop takes longer, because the tracer waits for a CPU as well. All calls are counted until the
/// tracer has waited for this many seconds, and for this share of the time since the start.
const WAITED_S: f64 = 1.0;
const WAITED_SHARE: f64 = 0.25;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// All calls are counted, whatever it costs.
    Unbounded,
    #[default]
    Whole,
    Window,
    Pause,
}

#[derive(Debug, Default)]
pub(super) struct Duty {
    phase: Phase,
    /// Stops up to which all calls are counted, and those for each second.
    free: f64,
    a_second: f64,
    /// The start of the phase, in seconds.
    since_s: f64,
    /// Stops since the start of the phase.
    pub(super) stops: u64,
    /// Seconds that the tracer has waited for a CPU since the start.
    pub(super) waited_s: f64,
    /// The time at which the program went over to samples, in seconds since the start.
    pub(super) samples_from_s: Option<f64>,
    /// Seconds of pauses that are over, and of windows.
    paused_s: f64,
    windows_s: f64,
    /// True if there are several threads or processes.
    pub(super) has_several_threads: bool,
}

impl Duty {
    /// Without a bound.
    pub(super) fn unbounded() -> Duty {
        Duty { phase: Phase::Unbounded, ..Duty::new(0.0) }
    }

    /// For a machine on which a stop takes `stop_s` seconds; 0 if that is not known.
    pub(super) fn new(stop_s: f64) -> Duty {
        let at_most = |usual: f64, for_s: f64| usual.min(for_s / stop_s.max(1e-9));
        Duty {
            free: at_most(STOPS_FREE, STOPS_FREE_S),
            a_second: at_most(STOPS_A_SECOND, STOPS_A_SECOND_S),
            ..Duty::default()
        }
    }

    /// True if threads are to be stopped at their calls.
    pub(super) fn is_open(&self) -> bool {
        self.phase != Phase::Pause
    }

    /// Seconds in which no calls were counted, until `now_s`.
    pub(super) fn paused_s(&self, now_s: f64) -> f64 {
        self.paused_s + if self.is_open() { 0.0 } else { now_s - self.since_s }
    }

    fn is_early(&self) -> bool {
        self.windows_s < EARLY_S && !self.has_several_threads
    }

    fn window_s(&self) -> f64 {
        if self.is_early() { EARLY_WINDOW_S } else { WINDOW_S }
    }

    /// Seconds from the end of a window to the next.
    pub(super) fn pause_s(&self) -> f64 {
        if self.is_early() { EARLY_PAUSE_S } else { PAUSE_S }
    }

    /// Goes over to the next phase if it is time; true if it did.
    pub(super) fn turn(&mut self, now_s: f64) -> bool {
        let for_s = now_s - self.since_s;
        let is_over = match self.phase {
            Phase::Unbounded => false,
            Phase::Whole => {
                let is_often = self.stops as f64 > self.free + self.a_second * now_s;
                is_often || self.waited_s > WAITED_S + WAITED_SHARE * now_s
            }
            Phase::Window => {
                for_s >= self.window_s() && (self.stops >= STOPS_MIN || for_s >= WINDOW_MAX_S)
            }
            Phase::Pause => for_s >= self.pause_s(),
        };
        if is_over {
            self.samples_from_s.get_or_insert(now_s);
            self.paused_s = self.paused_s(now_s);
            self.windows_s += if self.phase == Phase::Window { for_s } else { 0.0 };
            self.phase = if self.is_open() { Phase::Pause } else { Phase::Window };
            (self.since_s, self.stops) = (now_s, 0);
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time of a stop on a usual machine.
    const STOP_S: f64 = 20e-6;

    /// Simulates a program that makes a call at this interval, on a machine on which a stop takes `stop_s`, until it has
    /// made this many calls; returns the time that it took.
    fn run(duty: &mut Duty, stop_s: f64, call_s: f64, calls: u64) -> f64 {
        let mut now_s = 0.0;
        for _ in 0..calls {
            now_s += call_s;
            for _ in 0..if duty.is_open() { 2 } else { 0 } {
                now_s += stop_s;
                duty.stops += 1;
                duty.turn(now_s);
            }
            duty.turn(now_s);
        }
        now_s
    }

    #[test]
    fn a_program_of_few_calls_is_counted_whole() {
        let mut duty = Duty::new(STOP_S);
        run(&mut duty, STOP_S, 1e-3, 100_000);
        assert_eq!(duty.samples_from_s, None);
    }

    #[test]
    fn a_tracer_that_waits_for_a_cpu_goes_over_to_samples_soon() {
        let waits = |until_s: f64| {
            let mut duty = Duty::new(STOP_S);
            duty.waited_s = 1.5;
            duty.turn(until_s)
        };
        assert!(waits(0.3));
        assert!(!waits(10.0), "a small part of a long run");
    }

    #[test]
    fn a_program_of_many_calls_takes_at_most_three_times_as_long_and_two_seconds() {
        for stop_s in [STOP_S, 1.2e-4] {
            for call_s in [2e-7, 1e-6, 1e-5, 1e-4] {
                let mut duty = Duty::new(stop_s);
                let took_s = run(&mut duty, stop_s, call_s, 5_000_000);
                assert!(took_s < 3.0 * call_s * 5e6 + 2.0, "{stop_s}, {call_s}: {took_s}");
                assert!(duty.samples_from_s.is_some());
            }
        }
    }

    #[test]
    fn a_single_thread_has_short_windows_at_first_and_several_have_long_ones() {
        let pause_after = |windows: usize, several: bool| {
            let mut duty = Duty::new(STOP_S);
            if several {
                duty.has_several_threads = true;
            }
            duty.waited_s = 1.5;
            let mut now_s = 0.1;
            assert!(duty.turn(now_s));
            for _ in 0..windows {
                now_s += 1.1 * duty.pause_s();
                assert!(duty.turn(now_s) && duty.is_open());
                duty.stops += STOPS_MIN;
                now_s += 1.1 * WINDOW_S;
                assert!(duty.turn(now_s) && !duty.is_open());
            }
            duty.pause_s()
        };
        assert_eq!((pause_after(5, false), pause_after(100, false)), (EARLY_PAUSE_S, PAUSE_S));
        assert_eq!(pause_after(5, true), PAUSE_S);
    }

    #[test]
    fn a_window_waits_for_threads_that_hardly_come_to_a_call_but_not_for_long() {
        let mut duty = Duty::new(STOP_S);
        duty.waited_s = 1.5;
        assert!(duty.turn(0.1) && duty.turn(0.2) && duty.is_open());
        duty.stops = STOPS_MIN - 1;
        assert!(!duty.turn(0.25), "open for long enough, with too few stops");
        duty.stops += 1;
        assert!(duty.turn(0.26) && !duty.is_open());
        assert!(duty.turn(0.4) && duty.turn(0.7) && !duty.is_open(), "none at all");
    }
}
