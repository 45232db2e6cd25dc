//! What one thread's calls in windows stand for: an estimate of the calls that nobody saw.
//!
//! Relies on nothing: progress comes from outside, so all of it is tested on simulated threads. Each thread has windows of its
//! own, from the stop in which it was caught to the one in which it is let go, and how far it came in between is read at
//! both. So it does not matter when a thread sleeps, or how long it waits for a CPU or for its tracer: what it
//! does unseen is known when it is caught again, or when it ends. The calls of a window stand for themselves and for what was
//! done unseen before it; those of the last one for what came after it too. The hard part is how much a window holds. It
//! is mostly stops, so its CPU time says little where calls are cheap; then events say it that the kernel counts at all times.

/// Fewer events than this in a window do not tell how much got done.
const EVENTS_MIN: u64 = 20;

/// And they tell of other calls only where there is one for so many of them.
const EVENTS_SHARE: u64 = 10;

/// No system call takes less CPU time than this, in seconds.
const CALL_S: f64 = 1e-7;

/// A call that was counted stands for so many more at most.
const TIMES_MAX: f64 = 1e5;

/// CPU time tells where stops took no more than this share of it.
const STOPS_SHARE: f64 = 0.5;

/// Of a window, stops are taken for this share at most where they are thought to have cost all of it.
const STOPS_SHARE_MAX: f64 = 0.9;

/// How far a thread has come.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Progress {
    /// CPU time, stops included.
    pub(super) cpu_s: f64,
    /// Of that, in the kernel, to a tick of its clock.
    pub(super) sys_s: f64,
    /// Calls that read or wrote; none where the kernel does not count them.
    pub(super) transfers: u64,
    pub(super) faults: u64,
    /// Times that it slept, stops included.
    pub(super) sleeps: u64,
}

impl Progress {
    fn since(self, before: Progress) -> Progress {
        Progress {
            cpu_s: (self.cpu_s - before.cpu_s).max(0.0),
            sys_s: (self.sys_s - before.sys_s).max(0.0),
            transfers: self.transfers.saturating_sub(before.transfers),
            faults: self.faults.saturating_sub(before.faults),
            sleeps: self.sleeps.saturating_sub(before.sleeps),
        }
    }

    fn plus(self, other: Progress) -> Progress {
        Progress {
            cpu_s: self.cpu_s + other.cpu_s,
            sys_s: self.sys_s + other.sys_s,
            transfers: self.transfers + other.transfers,
            faults: self.faults + other.faults,
            sleeps: self.sleeps + other.sleeps,
        }
    }
}

/// What counting costs a thread, and how much of it was seen: of all threads together.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// CPU seconds that a stop takes of the program, as far as what was seen leaves room for that.
    stop_cpu_s: f64,
    seen_s: f64,
    unseen_s: f64,
    unseen_sys_s: f64,
    /// Of what was not seen, what nothing tells well.
    rough_s: f64,
}

impl Shares {
    pub(super) fn new(stop_cpu_s: f64) -> Shares {
        Shares { stop_cpu_s, ..Shares::default() }
    }

    /// Of the CPU time since samples began, the share in which calls were counted.
    pub(super) fn seen(&self) -> f64 {
        self.seen_s / (self.seen_s + self.unseen_s).max(1e-9)
    }

    /// Whether most of what was not seen is known by CPU time alone, of windows that were mostly stops.
    pub(super) fn are_rough(&self) -> bool {
        2.0 * self.rough_s > self.unseen_s
    }

    /// CPU seconds in the kernel while calls were not counted.
    pub(super) fn unseen_sys_s(&self) -> f64 {
        self.unseen_sys_s
    }

    /// Notes what a thread did unseen.
    fn note(&mut self, unseen: &Progress) {
        self.unseen_s += unseen.cpu_s;
        self.unseen_sys_s += unseen.sys_s;
    }
}

/// One thread.
#[derive(Debug, Default)]
pub(super) struct Windows {
    is_followed: bool,
    /// How far it was when it was caught or let go.
    since: Progress,
    /// What it did unseen before it was caught.
    unseen: Progress,
    /// Stops since it was caught, and calls that began.
    stops: u64,
    calls: u64,
    /// What the last window held, stops left out.
    held: Progress,
    held_calls: u64,
    /// Whether its CPU time tells how much that is.
    is_told: bool,
    /// What is left of a call that stands for no whole number of others.
    rest: f64,
}

impl Windows {
    /// A thread that begins, at no progress.
    pub(super) fn new(is_followed: bool) -> Windows {
        Windows { is_followed, ..Windows::default() }
    }

    pub(super) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// Notes a stop at a call, which begins there or is over.
    pub(super) fn note(&mut self, begins: bool) {
        self.stops += 1;
        self.calls += u64::from(begins);
    }

    /// It is stopped at its calls from now on.
    pub(super) fn catch(&mut self, now: Progress, shares: &mut Shares) {
        let unseen = now.since(self.since);
        shares.note(&unseen);
        // A window without a call says nothing of what the calls before it stand for: it is part of the next.
        self.unseen = if self.held_calls == 0 { self.unseen.plus(unseen) } else { unseen };
        (self.is_followed, self.since) = (true, now);
        (self.stops, self.calls) = (0, 0);
    }

    /// It is no longer stopped. Returns how many more calls each of the window's stands for.
    pub(super) fn let_go(&mut self, now: Progress, shares: &mut Shares) -> u64 {
        let did = now.since(self.since);
        let least_s = (self.calls as f64 * CALL_S).max(1e-6);
        let each_s = (did.cpu_s - least_s) / self.stops.max(1) as f64;
        if shares.stop_cpu_s > each_s {
            // It cannot be that much. What else was done is not known, but something was.
            shares.stop_cpu_s = (STOPS_SHARE_MAX * each_s).max(0.0);
        }
        let stops_s = self.stops as f64 * shares.stop_cpu_s;
        let own = Progress {
            cpu_s: (did.cpu_s - stops_s).max(least_s),
            // Every stop is a sleep.
            sleeps: did.sleeps.saturating_sub(self.stops),
            ..did
        };
        self.held = if self.held_calls == 0 { self.held.plus(own) } else { own };
        self.held_calls = self.calls;
        (self.is_followed, self.since) = (false, now);
        shares.seen_s += own.cpu_s;
        self.is_told = stops_s <= STOPS_SHARE * did.cpu_s;
        self.times(self.unseen, shares)
    }

    /// It ends. Returns how many more calls each of the last window's stands for.
    pub(super) fn end(&mut self, now: Progress, shares: &mut Shares) -> u64 {
        if self.is_followed {
            return self.let_go(now, shares);
        }
        let unseen = now.since(self.since);
        self.since = now;
        shares.note(&unseen);
        self.times(unseen, shares)
    }

    /// For how many windows what was done unseen stands.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
    fn times(&mut self, unseen: Progress, shares: &mut Shares) -> u64 {
        let held = &self.held;
        if self.held_calls == 0 {
            return 0;
        }
        // Where they are most of all calls, few tell; and many do not where they are few of the calls.
        let tell = |events: u64| {
            let enough = events >= EVENTS_MIN || 4 * events >= self.held_calls;
            events > 0 && enough && EVENTS_SHARE * events >= self.held_calls
        };
        let ratio = |unseen: u64, held: u64| unseen as f64 / held as f64;
        let ratio = if tell(held.transfers) {
            ratio(unseen.transfers, held.transfers)
        } else if self.is_told {
            unseen.cpu_s / held.cpu_s
        } else if tell(held.faults) {
            ratio(unseen.faults, held.faults)
        } else if tell(held.sleeps) {
            ratio(unseen.sleeps, held.sleeps)
        } else {
            shares.rough_s += unseen.cpu_s;
            unseen.cpu_s / held.cpu_s
        };
        let times = ratio.min(TIMES_MAX) + self.rest;
        self.rest = times.fract();
        times as u64
    }
}

#[cfg(test)]
mod tests;
