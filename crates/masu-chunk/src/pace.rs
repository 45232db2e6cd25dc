//! The pace of a worker: the number of chunks it takes at once.
//!
//! Relies on nothing. A batch only grows while chunks are seen to be short, because a long chunk keeps the rest of its
//! batch from others. Whenever others had to look for chunks, it starts again with one.

use std::ops::Range;
use std::time::Duration;

/// The duration of a batch: long enough that taking it costs nothing, short enough that an interrupted
/// worker holds up little.
const BATCH_TIME: Range<Duration> = Duration::from_micros(10)..Duration::from_micros(40);

/// The number of chunks that a worker takes at once.
pub(crate) struct Pace {
    most: u32,
    is_short: bool,
}

impl Pace {
    /// One: nothing is known of the chunks yet.
    pub(crate) fn new() -> Self {
        Self { most: 1, is_short: false }
    }

    /// The current number.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Whether the last batch was short, so that it does not matter where long chunks begin.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Adapts to the duration of a whole batch.
    pub(crate) fn took(&mut self, lap: Duration) {
        self.is_short = lap <= BATCH_TIME.end;
        if lap < BATCH_TIME.start {
            self.most = self.most.saturating_mul(2);
        } else if !self.is_short {
            self.most = (self.most / 2).max(1);
        }
    }
}
