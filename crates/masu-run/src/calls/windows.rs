//! The estimate of the calls that nobody saw, from one thread's calls in windows.
//!
//! Relies on nothing: progress comes from outside, so all of it is tested on simulated threads. Each thread has windows
//! of its own, from the stop in which it was caught to the stop in which it is let go, and its progress is read at
//! both. So the times when a thread sleeps, or waits for a CPU or for its tracer, do not matter: its unseen work is
//! known when it is caught again, or when it ends. The calls of two windows stand for themselves and for the unseen
//! work between them; those of the last windows also stand for the work after them, and for threads that no window met.
//! The hard part is the amount of work in a window. A window is mostly stops, so its CPU time says little where calls
//! are cheap. Events that the kernel counts at all times measure it, best the calls themselves where the kernel counts
//! those; otherwise an interval says how little is known.

/// Fewer events than this in a window do not show how much work was done.
const EVENTS_MIN: u64 = 20;

/// Events also tell of other calls only where there is one event for this many calls.
const EVENTS_SHARE: u64 = 10;

/// The least CPU time of a system call, in seconds.
const CALL_S: f64 = 5e-8;

/// The most unseen calls that a counted call stands for.
const TIMES_MAX: f64 = 1e5;

/// The real cost of a stop lies between these multiples of its assumed cost: caches are cold after it. If stops are
/// most of a window, the rest may be as little as a call can take.
const STOP_LEAST: f64 = 0.5;
const STOP_MOST: f64 = 5.0;

/// CPU time measures the work where stops took no more than this share of it.
const STOPS_SHARE: f64 = 0.5;

/// The greatest share of a window that stops count as, if they would seem to have cost all of it.
const STOPS_SHARE_MAX: f64 = 0.9;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Progress {
    /// CPU time, stops included.
    pub(super) cpu_s: f64,
    /// The kernel's part of it, to a tick of its clock.
    pub(super) sys_s: f64,
    /// Calls that read or wrote; none where the kernel does not count them.
    pub(super) transfers: u64,
    pub(super) faults: u64,
    /// The number of times that the thread slept, stops included.
    pub(super) sleeps: u64,
    /// System calls; none where the kernel does not count them.
    pub(super) calls: Option<u64>,
}

impl Progress {
    fn since(self, before: Progress) -> Progress {
        Progress {
            cpu_s: (self.cpu_s - before.cpu_s).max(0.0),
            sys_s: (self.sys_s - before.sys_s).max(0.0),
            transfers: self.transfers.saturating_sub(before.transfers),
            faults: self.faults.saturating_sub(before.faults),
            sleeps: self.sleeps.saturating_sub(before.sleeps),
            calls: self.calls.zip(before.calls).map(|(now, then)| now.saturating_sub(then)),
        }
    }

    fn plus(self, other: Progress) -> Progress {
        Progress {
            cpu_s: self.cpu_s + other.cpu_s,
            sys_s: self.sys_s + other.sys_s,
            transfers: self.transfers + other.transfers,
            faults: self.faults + other.faults,
            sleeps: self.sleeps + other.sleeps,
            calls: match (self.calls, other.calls) {
                (Some(one), Some(more)) => Some(one + more),
                (one, other) => one.or(other),
            },
        }
    }
}

/// A number of calls, and the interval that holds it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Estimate {
    pub(super) calls: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Estimate {
    fn times(self, number: f64) -> Estimate {
        let Estimate { calls, least, most } = self;
        Estimate { calls: number * calls, least: number * least, most: number * most }
    }

    fn add(&mut self, other: Estimate) {
        self.calls += other.calls;
        self.least += other.least;
        self.most += other.most;
    }
}

/// The cost of counting, and the share of the work that was seen: of all threads together.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// CPU seconds of the program that a stop takes, as far as the seen time leaves room for that.
    stop_cpu_s: f64,
    seen_s: f64,
    unseen_s: f64,
    /// CPU seconds in the kernel while calls were not counted.
    pub(super) unseen_sys_s: f64,
    pub(super) unseen: Estimate,
    /// The work of threads that ended before a window met them; the calls of the next thread that ends stand for it.
    unmet: Progress,
}

impl Shares {
    pub(super) fn new(stop_cpu_s: f64) -> Shares {
        Shares { stop_cpu_s, ..Shares::default() }
    }

    /// The share of the CPU time since samples began in which calls were counted.
    pub(super) fn seen(&self) -> f64 {
        self.seen_s / (self.seen_s + self.unseen_s).max(1e-9)
    }

    /// Notes the unseen work of a thread.
    fn note(&mut self, unseen: &Progress) {
        self.unseen_s += unseen.cpu_s;
        self.unseen_sys_s += unseen.sys_s;
    }
}

/// The content of a window that had a call.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    calls: u64,
    /// The progress of the thread, without the stops.
    own: Progress,
    /// The bounds of the thread's CPU time.
    least_s: f64,
    most_s: f64,
    /// True if the thread's CPU time measures the work.
    is_told: bool,
    /// True if unseen work came before the window.
    is_sample: bool,
}

/// One thread.
#[derive(Debug, Default)]
pub(super) struct Windows {
    /// True while the thread is stopped at its calls.
    pub(super) is_followed: bool,
    /// The progress when the thread was caught or let go.
    since: Progress,
    /// The unseen work that no calls stand for yet.
    unseen: Progress,
    /// Stops since the thread was caught, and calls that began.
    stops: u64,
    calls: u64,
    /// True if the thread is stopped at the start of a call, which the kernel has not counted yet.
    is_at_call: bool,
    held: Held,
    before: Held,
    /// Windows since `held`, which had no call: they are part of the next window that has one.
    idle: Held,
    /// The fraction of a call that remains where calls stand for no whole number of others.
    rest: f64,
}

impl Windows {
    /// A thread that begins, at no progress; from `since` on the kernel may count its calls.
    pub(super) fn new(is_followed: bool, since: Progress) -> Windows {
        Windows { is_followed, since, ..Windows::default() }
    }

    /// Notes a stop, and if a call begins there; the stop at which the thread is let go belongs to no window.
    pub(super) fn note(&mut self, begins: bool, in_window: bool) {
        self.stops += 1;
        self.calls += u64::from(begins && in_window);
        self.is_at_call = begins;
    }

    /// Some if exactly one call of the thread has begun in this window: true if the last window's calls then go on to
    /// stand beside this window's.
    pub(super) fn begins_again(&self) -> Option<bool> {
        (self.calls == 1).then_some(self.held.is_sample)
    }

    /// Notes that the thread is stopped at its calls from now on.
    pub(super) fn catch(&mut self, now: Progress, shares: &mut Shares) {
        let unseen = now.since(self.since);
        shares.note(&unseen);
        self.unseen = self.unseen.plus(unseen);
        (self.is_followed, self.since) = (true, now);
        (self.stops, self.calls, self.is_at_call) = (0, 0, false);
    }

    /// Notes that the thread is no longer stopped. Returns how many more calls each call of this window and of the one
    /// before stands for.
    pub(super) fn let_go(&mut self, now: Progress, shares: &mut Shares) -> u64 {
        let did = now.since(self.since);
        let least_s = (self.calls as f64 * CALL_S).max(1e-6);
        let each_s = (did.cpu_s - least_s) / self.stops.max(1) as f64;
        if shares.stop_cpu_s > each_s {
            // A stop cannot cost that much. The thread's other work is not known, but there was some.
            shares.stop_cpu_s = (STOPS_SHARE_MAX * each_s).max(0.0);
        }
        let stops_s = self.stops as f64 * shares.stop_cpu_s;
        let own = Progress {
            cpu_s: (did.cpu_s - stops_s).max(least_s),
            // Every stop is a sleep.
            sleeps: did.sleeps.saturating_sub(self.stops),
            ..did
        };
        let is_told = stops_s <= STOPS_SHARE * did.cpu_s;
        let most_of_stops_s = if is_told { STOP_MOST * stops_s } else { did.cpu_s };
        let mut window = Held {
            calls: self.calls,
            own,
            least_s: (did.cpu_s - most_of_stops_s).max(least_s),
            most_s: (did.cpu_s - STOP_LEAST * stops_s).max(least_s),
            is_told,
            is_sample: self.unseen != Progress::default(),
        };
        window.add(&std::mem::take(&mut self.idle));
        let calls = now.calls.map(|calls| calls + u64::from(self.is_at_call));
        (self.is_followed, self.since) = (false, Progress { calls, ..now });
        shares.seen_s += own.cpu_s;
        if self.calls == 0 {
            self.idle = window;
            return 0;
        }
        let last = std::mem::replace(&mut self.held, window);
        self.before = if last.is_sample { last } else { Held::default() };
        let unseen = std::mem::take(&mut self.unseen);
        self.times(unseen, shares)
    }

    /// Notes that the thread ends. Returns how many more calls each call of the last two windows stands for.
    pub(super) fn end(&mut self, now: Progress, shares: &mut Shares) -> u64 {
        let in_window = if self.is_followed { self.let_go(now, shares) } else { 0 };
        let unseen = now.since(self.since);
        self.since = now;
        shares.note(&unseen);
        let all = unseen.plus(std::mem::take(&mut self.unseen));
        let all = all.plus(std::mem::take(&mut shares.unmet));
        if self.held.calls == 0 {
            shares.unmet = all;
            return 0;
        }
        in_window + self.times(all, shares)
    }

    /// The number of unseen calls that each call of the last windows stands for, as a whole number.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
    fn times(&mut self, unseen: Progress, shares: &mut Shares) -> u64 {
        let mut held = self.held;
        held.add(&self.before);
        let stands = held.stands_for(&unseen);
        shares.unseen.add(stands.times(held.calls as f64));
        let times = stands.calls + self.rest;
        self.rest = times.fract();
        times as u64
    }
}

impl Held {
    fn add(&mut self, before: &Held) {
        self.calls += before.calls;
        self.own = self.own.plus(before.own);
        self.least_s += before.least_s;
        self.most_s += before.most_s;
    }

    /// The number of unseen calls that each call stands for, with its bounds.
    fn stands_for(&self, unseen: &Progress) -> Estimate {
        let (held, calls) = (&self.own, self.calls);
        if let Some(unseen) = unseen.calls {
            let exact = unseen as f64 / calls as f64;
            return Estimate { calls: exact, least: exact, most: exact };
        }
        // If events are most of all calls, a few events tell enough; if they are a small part of the calls, even many
        // do not.
        let tell = |events: u64| {
            let enough = events >= EVENTS_MIN || 4 * events >= calls;
            events > 0 && enough && EVENTS_SHARE * events >= calls
        };
        // The deviation of random events: two standard deviations.
        let off = |held: u64| 2.0 / (held as f64).sqrt();
        let (least, most) = (|held| (1.0 - off(held)).max(0.0), |held| 1.0 + off(held));
        let by_events = |unseen: u64, held: u64| {
            let ratio = (unseen as f64 / held as f64).min(TIMES_MAX);
            Estimate { calls: ratio, least: ratio * least(held), most: ratio * most(held) }
        };
        let by_time = |held_s: f64| (unseen.cpu_s / held_s).min(TIMES_MAX);
        if tell(held.transfers) {
            by_events(unseen.transfers, held.transfers)
        } else if !self.is_told && tell(held.faults) {
            by_events(unseen.faults, held.faults)
        } else if !self.is_told && tell(held.sleeps) {
            by_events(unseen.sleeps, held.sleeps)
        } else {
            Estimate {
                calls: by_time(held.cpu_s),
                least: by_time(self.most_s) * least(calls),
                most: by_time(self.least_s) * most(calls),
            }
        }
    }
}

#[cfg(test)]
mod tests;
