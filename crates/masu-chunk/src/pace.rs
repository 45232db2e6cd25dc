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
pub(crate) struct Pace(u32);

impl Pace {
    /// One: nothing is known of the chunks yet.
    pub(crate) fn new() -> Self {
        Self(1)
    }

    /// The current number.
    pub(crate) fn most(&self) -> u32 {
        self.0
    }

    /// Adapts to the duration of a whole batch.
    pub(crate) fn took(&mut self, lap: Duration) {
        if lap < BATCH_TIME.start {
            self.0 = self.0.saturating_mul(2);
        } else if lap > BATCH_TIME.end {
            self.0 = (self.0 / 2).max(1);
        }
    }
}
