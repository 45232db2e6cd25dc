//! The times at which requests are due: computed one after the other from a rate, never kept.

use std::time::Duration;

use masu_run::random::Random;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Closed loop: each connection sends its next request as soon as it has the last answer.
    Closed,
    /// Open loop: requests are due whether or not earlier ones were answered.
    Open {
        /// Requests a second, over all connections.
        rate: f64,
    },
}

/// Every burst of every variant has the same times, so that chance makes no difference between them.
const SEED: u64 = 1;

/// Random times, like those of the requests of many independent people (a Poisson process).
#[derive(Debug)]
pub(super) struct Schedule {
    pace: Pace,
    random: Random,
    next_s: f64,
}

impl Schedule {
    pub(super) fn new(pace: Pace) -> Schedule {
        Schedule { pace, random: Random::new(SEED), next_s: 0.0 }
    }

    pub(super) fn advance(&mut self) -> Duration {
        let Pace::Open { rate } = self.pace else { return Duration::ZERO };
        let due_s = self.next_s;
        // A number in (0, 1], because zero has no logarithm.
        let uniform = ((self.random.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        self.next_s = due_s - uniform.ln() / rate;
        Duration::try_from_secs_f64(due_s).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_rate_and_random_distances() {
        let mut schedule = Schedule::new(Pace::Open { rate: 1000.0 });
        let times: Vec<Duration> = (0..100_000).map(|_| schedule.advance()).collect();
        assert!(times.is_sorted());
        let mean_s = times[99_999].as_secs_f64() / 99_999.0;
        assert!((mean_s * 1000.0 - 1.0).abs() < 0.02, "{mean_s}");
        // A share of exp(−1) of exponential distances is longer than the mean.
        let longer = times.windows(2).filter(|pair| pair[1] - pair[0] > Duration::from_millis(1));
        let share = longer.count();
        assert!((35_500..38_000).contains(&share), "{share}");
    }
}
