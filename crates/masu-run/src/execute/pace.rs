//! The interval between samples of a running tree: long enough to cost little, short enough to catch a runaway near its
//! limit.
//!
//! A sample costs about one per cent of a CPU: an expensive one makes the next come later. Near the limit the next one
//! comes before the tree could get there, if it grew as fast as memory can be touched, or twice as fast as it just
//! did.

use std::time::Duration;

/// The time between two looks at the tree, when a look is cheap.
pub(super) const USUAL: Duration = Duration::from_millis(10);

/// The least multiple of a look's own time to wait until the next.
const COST_FACTOR: u32 = 100;

/// The longest time between two looks, so that a request to stop is heard.
const AT_LEAST_EVERY: Duration = Duration::from_millis(100);

/// The shortest time between two looks.
const AT_MOST_EVERY: Duration = Duration::from_millis(1);

/// Bytes a second by which one thread grows that touches small pages.
const GROWTH: f64 = 2e9;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The time of the last look since the start, and the bytes that were held.
    last: Option<(Duration, u64)>,
}

impl Pace {
    /// The time to wait after a look at `at`, which took `cost` and saw `bytes` of at most `limit`.
    pub(super) fn after(
        &mut self,
        at: Duration,
        cost: Duration,
        bytes: u64,
        limit: Option<u64>,
    ) -> Duration {
        let usual = (cost * COST_FACTOR).clamp(USUAL, AT_LEAST_EVERY);
        let before = self.last.replace((at, bytes));
        let Some(limit) = limit else { return usual };
        let seen = before.map_or(0.0, |(then, held)| {
            let seconds = at.saturating_sub(then).as_secs_f64();
            bytes.saturating_sub(held) as f64 / seconds.max(1e-6)
        });
        let growth = GROWTH.max(2.0 * seen);
        let until_limit_s = limit.saturating_sub(bytes) as f64 / growth;
        let until_limit = Duration::try_from_secs_f64(until_limit_s).unwrap_or(usual);
        usual.min(until_limit.max(AT_MOST_EVERY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: Duration = Duration::from_millis(1);
    const CHEAP: Duration = Duration::from_micros(50);

    #[test]
    fn far_from_any_limit_looks_cost_one_per_cent() {
        for limit in [None, Some(1 << 40)] {
            let mut pace = Pace::default();
            assert_eq!(pace.after(MILLI, CHEAP, 1 << 20, limit), USUAL);
            assert_eq!(pace.after(20 * MILLI, MILLI / 2, 1 << 20, limit), 50 * MILLI);
            assert_eq!(pace.after(90 * MILLI, 9 * MILLI, 1 << 20, limit), AT_LEAST_EVERY);
        }
    }

    #[test]
    fn near_the_limit_the_next_look_comes_before_it_can_be_reached() {
        let mut pace = Pace::default();
        // Ten million bytes below it: five milliseconds at two gigabytes a second.
        assert_eq!(pace.after(MILLI, MILLI, 90_000_000, Some(100_000_000)), 5 * MILLI);
        assert_eq!(pace.after(MILLI, MILLI, 99_999_999, Some(100_000_000)), AT_MOST_EVERY);
        assert_eq!(pace.after(MILLI, MILLI, 200_000_000, Some(100_000_000)), AT_MOST_EVERY);
    }

    #[test]
    fn a_tree_that_grows_fast_is_looked_at_sooner() {
        let mut pace = Pace::default();
        let limit = Some(1_000_000_000);
        assert_eq!(pace.after(10 * MILLI, CHEAP, 0, limit), USUAL);
        // 200 million in ten milliseconds and 800 to go: at twice that, 20 milliseconds.
        assert_eq!(pace.after(20 * MILLI, MILLI, 200_000_000, limit), 20 * MILLI);
        // 640 million more and 160 to go.
        let soon = Duration::from_micros(1250);
        assert_eq!(pace.after(30 * MILLI, CHEAP, 840_000_000, limit), soon);
    }
}
