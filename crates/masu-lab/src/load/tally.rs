//! The outcomes of a burst's requests: counts, and one histogram of latencies.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::connection::{Answer, Failure};
use super::schedule::Pace;
use masu_run::execute::Latencies;

/// The busy share of the client's threads from which on the client itself may limit the load.
const CLIENT_BUSY_SHARE: f64 = 0.9;

/// One request in so many may be sent after the window before the rate counts as missed.
const MISSED_ONE_IN: u64 = 100;

/// Requests that were not answered well, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures {
    /// The server took no connection.
    pub refused: u64,
    /// The connection broke.
    pub broken: u64,
    /// No whole answer within the time allowed.
    pub(crate) timed_out: u64,
    /// Answers with a status of 400 or more.
    pub status: u64,
    pub(crate) last_status: Option<u16>,
    /// Due, but every connection was still busy long after the burst.
    pub(crate) never_sent: u64,
}

impl Failures {
    pub fn total(&self) -> u64 {
        self.refused + self.broken + self.timed_out + self.status + self.never_sent
    }

    pub(crate) fn plus(self, other: Failures) -> Failures {
        Failures {
            refused: self.refused + other.refused,
            broken: self.broken + other.broken,
            timed_out: self.timed_out + other.timed_out,
            status: self.status + other.status,
            last_status: other.last_status.or(self.last_status),
            never_sent: self.never_sent + other.never_sent,
        }
    }
}

impl fmt::Display for Failures {
    /// `3 refused, 1 answered with status 503`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = match self.last_status {
            Some(status) => format!("answered with status {status}"),
            None => String::new(),
        };
        let kinds = [
            (self.refused, "refused"),
            (self.broken, "broken off"),
            (self.timed_out, "without an answer in time"),
            (self.status, status.as_str()),
            (self.never_sent, "never sent, as all connections were busy"),
        ];
        let said = kinds.iter().filter(|(count, _)| *count > 0);
        let said: Vec<String> = said.map(|(count, kind)| format!("{count} {kind}")).collect();
        f.write_str(&said.join(", "))
    }
}

#[derive(Clone)]
pub struct Met {
    /// Requests answered with a status below 400.
    pub answered: u64,
    pub(crate) in_window: u64,
    pub failures: Failures,
    /// The time in which requests were sent.
    pub window: Duration,
    /// The time until the last request was answered.
    pub elapsed: Duration,
    /// CPU seconds of this process in that time, of the load's threads and all others.
    pub(crate) client_cpu_s: f64,
    /// Reasons why the load may have differed from the requested one, with advice.
    pub notes: Vec<String>,
    latencies: Histogram<u64>,
}

impl fmt::Debug for Met {
    /// Leaves out the thousands of counts behind the latencies.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Met")
            .field("answered", &self.answered)
            .field("in_window", &self.in_window)
            .field("failures", &self.failures)
            .field("elapsed", &self.elapsed)
            .field("notes", &self.notes)
            .field("latencies", &self.latencies())
            .finish_non_exhaustive()
    }
}

impl Met {
    /// Answers a second, of those within the window.
    pub fn throughput(&self) -> f64 {
        self.in_window as f64 / self.window.as_secs_f64()
    }

    /// Seconds from when a request was due (open loop) or sent (closed loop) to its whole answer. A request without an
    /// answer in time counts with the time waited in vain; a request that was refused, broken off or answered with an
    /// error status does not count. None without any latency.
    pub fn latencies(&self) -> Option<Latencies> {
        let at = |quantile: f64| seconds(self.latencies.value_at_quantile(quantile));
        (!self.latencies.is_empty()).then(|| Latencies {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: seconds(self.latencies.max()),
        })
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[derive(Debug)]
pub(super) struct Tally {
    met: Met,
    /// The status of the last redirect.
    redirect: Option<u16>,
    /// Requests sent long after all were due.
    behind: u64,
    /// The client's own delay: the connection was free and the request was due, but it was sent later.
    lateness: Histogram<u64>,
}

impl Tally {
    /// Histograms with room for latencies from a microsecond to far over `timeout`, at three digits.
    pub(super) fn new(timeout: Duration) -> Tally {
        let most = nanoseconds(timeout.saturating_mul(16)).max(60_000_000_000);
        let histogram = || {
            let bounds = Histogram::new_with_bounds(1_000, most, 3);
            let Ok(histogram) = bounds else { unreachable!("the bounds are in order") };
            histogram
        };
        let met = Met {
            answered: 0,
            in_window: 0,
            failures: Failures::default(),
            window: Duration::ZERO,
            elapsed: Duration::ZERO,
            client_cpu_s: 0.0,
            notes: Vec::new(),
            latencies: histogram(),
        };
        Tally { met, redirect: None, behind: 0, lateness: histogram() }
    }

    /// Counts the outcome of a request, `latency` after it was due.
    pub(super) fn note(
        &mut self,
        outcome: Result<Answer, Failure>,
        latency: Duration,
        in_window: bool,
    ) {
        match outcome {
            Ok(Answer { redirect }) => {
                self.met.answered += 1;
                self.redirect = redirect.or(self.redirect);
                self.met.in_window += u64::from(in_window);
            }
            Err(Failure::Refused) => self.met.failures.refused += 1,
            Err(Failure::Broken) => self.met.failures.broken += 1,
            Err(Failure::TimedOut) => self.met.failures.timed_out += 1,
            Err(Failure::Status(status)) => {
                self.met.failures.status += 1;
                self.met.failures.last_status = Some(status);
            }
        }
        if matches!(outcome, Ok(_) | Err(Failure::TimedOut)) {
            self.met.latencies.saturating_record(nanoseconds(latency));
        }
    }

    /// Counts a request that was due `waited` ago and will not be sent any more.
    pub(super) fn never_sent(&mut self, waited: Duration) {
        self.met.failures.never_sent += 1;
        self.met.latencies.saturating_record(nanoseconds(waited));
    }

    /// Counts a request that is sent after the window, because all connections were busy until then.
    pub(super) fn behind(&mut self) {
        self.behind += 1;
    }

    /// Counts a request that a free connection sent `by` after it was due.
    pub(super) fn late(&mut self, by: Duration) {
        self.lateness.saturating_record(nanoseconds(by));
    }

    /// The result when the burst is over; the client's `threads` threads used `client_cpu_s`.
    pub(super) fn met(
        &self,
        pace: Pace,
        window: Duration,
        elapsed: Duration,
        client_cpu_s: f64,
        threads: usize,
    ) -> Met {
        let busy = client_cpu_s / elapsed.as_secs_f64() / threads as f64;
        let notes = self.notes(pace, busy);
        Met { window, elapsed, client_cpu_s, notes, ..self.met.clone() }
    }

    fn notes(&self, pace: Pace, busy: f64) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(status) = self.redirect {
            notes.push(format!(
                "answers were redirects (status {status}), which are not followed: what is measured \
                 is how fast they are given; ask for where they lead"
            ));
        }
        match pace {
            Pace::Closed => {
                if busy > CLIENT_BUSY_SHARE {
                    notes.push(
                        "the load itself may have been the limit: its threads were busy nearly \
                         all the time; compare CPU a request instead, or use a load command that \
                         does more with less"
                            .to_owned(),
                    );
                }
            }
            Pace::Open { rate, .. } => {
                let unsent = self.behind + self.met.failures.never_sent;
                if unsent * MISSED_ONE_IN > self.met.answered {
                    notes.push(format!(
                        "the rate of {rate} requests a second was not reached; ask for less, or \
                         for more connections"
                    ));
                }
                let late = self.lateness.value_at_quantile(0.99);
                let usual = self.met.latencies.value_at_quantile(0.5);
                if !self.lateness.is_empty() && late > usual.max(1_000_000) {
                    notes.push(
                        "the load was sent late though its connections were free: its CPU was \
                         taken by others, and latencies include that; ask for a lower rate, or \
                         measure on a quieter machine"
                            .to_owned(),
                    );
                }
            }
        }
        notes
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
