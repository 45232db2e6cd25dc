//! One process, observed again and again: the age of its page, its rates a second, and its history.
//!
//! The process is the one with this number *and* this start time; a program that took its place begins its own history.

use std::collections::VecDeque;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::page::{Cache, Class, Page, Total};
use super::reach::Reach;
use super::system;
use crate::{Error, kernel, proc_files};

/// Points of history that are kept.
const HISTORY: usize = 512;
/// The number of looks for each look at huge pages: the kernel walks all memory of the process for that.
const HUGE_EVERY: u32 = 10;

/// The state of a process at one moment. Written as JSON, its form has a version: `docs/observing.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Observation {
    /// `masu-top`.
    pub schema: &'static str,
    pub version: u32,
    pub pid: u32,
    pub name: String,
    pub command: String,
    /// The time of the observation, in seconds since 1970.
    pub(crate) unix_seconds: f64,
    /// The age of the page, in seconds.
    pub age_seconds: f64,
    pub resident_bytes: Option<u64>,
    /// The resident bytes in huge pages, as of a few looks ago at most; not known where this user may not know.
    pub huge_page_resident_bytes: Option<u64>,
    /// The rates a second since the look before; not known at the first look.
    pub rates: Option<Rates>,
    pub total: Total,
    /// The size classes in use, smallest first.
    pub classes: Vec<Class>,
    /// The thread caches, the youngest first.
    pub threads: Vec<Thread>,
}

/// A thread cache and the name of its thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Thread {
    /// The thread's name; empty where it is not known.
    pub name: String,
    #[serde(flatten)]
    pub cache: Cache,
}

/// The rates of events, a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rates {
    /// Calls that thread caches could not serve.
    pub slow_calls: f64,
    /// Blocks fetched by thread caches.
    pub refilled_blocks: f64,
    /// Blocks sent away by thread caches.
    pub flushed_blocks: f64,
    /// Remote frees: blocks sent to other lanes or brought home to other shards.
    pub remote_blocks: f64,
    pub(crate) large_made: f64,
    /// Times that contents were given back to the kernel.
    pub purges: f64,
    pub purged_bytes: f64,
}

/// A process at one moment of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Point {
    /// Bytes handed out.
    pub live_bytes: u64,
    pub resident_bytes: u64,
}

/// Observes one process.
#[derive(Debug)]
pub struct Observer {
    pid: u32,
    start: Option<u64>,
    reach: Reach,
    name: String,
    history: VecDeque<Point>,
    before: Option<(Instant, Total)>,
    looks: u32,
    huge_bytes: Option<u64>,
}

impl Observer {
    /// Begins to observe the process `pid`. A process without a statistics page that this user may read is
    /// [`Error::Process`], with a remedy.
    pub fn new(pid: u32) -> Result<Observer, Error> {
        let reach = Reach::find(pid)?;
        reach.read()?;
        let (start, name) = (system::start(pid), system::name(pid));
        let history = VecDeque::new();
        Ok(Observer { pid, start, reach, name, history, before: None, looks: 0, huge_bytes: None })
    }

    /// The history, the oldest point first, one point a look.
    pub fn history(&self) -> impl ExactSizeIterator<Item = Point> + '_ {
        self.history.iter().copied()
    }

    /// Observes the process now. [`Error::Ended`] once it has ended; [`Error::Process`] where it has no page at this
    /// moment, as when it has just become another program.
    pub fn observe(&mut self) -> Result<Observation, Error> {
        if !system::is_alive(self.pid) || system::start(self.pid) != self.start {
            return Err(Error::Ended { pid: self.pid });
        }
        let page = match self.reach.read() {
            Ok(page) => page,
            // The process may have closed the descriptor, or be another program by now.
            Err(_) => {
                self.reach = Reach::find(self.pid)?;
                self.reach.read()?
            }
        };
        let name = system::name(self.pid);
        if name != self.name {
            self.history.clear();
            self.before = None;
            self.name = name;
        }
        Ok(self.take_down(page))
    }

    fn take_down(&mut self, page: Page) -> Observation {
        let now = Instant::now();
        let resident_bytes = proc_files::resident_bytes(&format!("/proc/{}", self.pid));
        if self.looks.is_multiple_of(HUGE_EVERY) {
            self.huge_bytes = system::huge_bytes(self.pid);
        }
        self.looks = self.looks.wrapping_add(1);
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(Point {
            live_bytes: page.total.live_bytes,
            resident_bytes: resident_bytes.unwrap_or_default(),
        });
        let rates = self.before.and_then(|(then, before)| {
            Rates::between(&before, &page.total, now.duration_since(then).as_secs_f64())
        });
        self.before = Some((now, page.total));
        let thread = |cache: Cache| Thread {
            name: if cache.thread == 0 {
                String::new()
            } else {
                system::thread_name(self.pid, cache.thread)
            },
            cache,
        };
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Observation {
            schema: "masu-top",
            version: 1,
            pid: self.pid,
            name: self.name.clone(),
            command: system::command(self.pid),
            unix_seconds: since_1970.as_secs_f64(),
            age_seconds: age_seconds(page.time, kernel::monotonic_nanoseconds()),
            resident_bytes,
            huge_page_resident_bytes: self.huge_bytes,
            rates,
            total: page.total,
            threads: page.caches.into_iter().map(thread).collect(),
            classes: page.classes,
        }
    }
}

/// The age of a page that was written at `time`; a page from the future is new.
fn age_seconds(time: u64, now: u64) -> f64 {
    now.saturating_sub(time) as f64 / 1e9
}

impl Rates {
    /// The rates a second between two looks; `None` where both are of the same moment.
    fn between(before: &Total, now: &Total, seconds: f64) -> Option<Rates> {
        if seconds <= 0.0 {
            return None;
        }
        // Counts only grow; where one has not, the process has changed.
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
        let remote = |total: &Total| total.lane_blocks.saturating_add(total.shard_blocks);
        Some(Rates {
            slow_calls: rate(before.slow_calls, now.slow_calls),
            refilled_blocks: rate(before.refilled_blocks, now.refilled_blocks),
            flushed_blocks: rate(before.flushed_blocks, now.flushed_blocks),
            remote_blocks: rate(remote(before), remote(now)),
            large_made: rate(before.large_made, now.large_made),
            purges: rate(before.purges, now.purges),
            purged_bytes: rate(before.purged_bytes, now.purged_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_differences_by_time() {
        let before = Total { slow_calls: 100, purged_bytes: 50, ..Total::default() };
        let now = Total { slow_calls: 300, purged_bytes: 40, lane_blocks: 8, ..Total::default() };
        let rates = Rates::between(&before, &now, 2.0).unwrap();
        assert_eq!((rates.slow_calls, rates.remote_blocks), (100.0, 4.0));
        assert_eq!(rates.purged_bytes, 0.0, "what shrank says nothing");
        assert!(Rates::between(&before, &now, 0.0).is_none());
        let most = Total { lane_blocks: u64::MAX, shard_blocks: u64::MAX, ..Total::default() };
        assert!(Rates::between(&before, &most, 1.0).is_some());
    }

    #[test]
    fn a_page_from_the_future_is_new() {
        assert_eq!(age_seconds(1_500_000_000, 4_000_000_000), 2.5);
        assert_eq!(age_seconds(u64::MAX, 0), 0.0);
    }
}
