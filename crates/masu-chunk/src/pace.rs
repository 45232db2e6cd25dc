//! The pace of a worker: how many chunks it takes at once.
//!
//! Relies on nothing. The one hard idea: what has been taken is out of others' reach for as long as the
//! chunk lasts that the worker is in, so a batch is only as long as chunks were seen to be short, and
//! whenever others had to ask for chunks it begins again with one.

use std::ops::Range;
use std::time::Duration;

/// How long a batch is to last: long enough that taking it costs nothing, short enough that one
/// whose worker is interrupted is not missed.
const BATCH_TIME: Range<Duration> = Duration::from_micros(10)..Duration::from_micros(40);

/// How many chunks a worker takes at once.
pub(crate) struct Pace(u32);

impl Pace {
    /// One: nothing is known of the chunks.
    pub(crate) fn new() -> Self {
        Self(1)
    }

    /// So many at most.
    pub(crate) fn most(&self) -> u32 {
        self.0
    }

    /// A whole batch took so long.
    pub(crate) fn took(&mut self, lap: Duration) {
        if lap < BATCH_TIME.start {
            self.0 = self.0.saturating_mul(2);
        } else if lap > BATCH_TIME.end {
            self.0 = (self.0 / 2).max(1);
        }
    }
}
