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
        /// The distribution of requests over time.
        arrivals: Arrivals,
    },
}

/// The distribution of a rate's requests over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal distances.
    Regular,
    /// Requests at random times, like those of many independent people (a Poisson process), the same for the same
    /// seed.
    Random(u64),
}

#[derive(Debug)]
pub(super) struct Schedule {
    pace: Pace,
    random: Random,
    count: u64,
    next_s: f64,
}

impl Schedule {
    pub(super) fn new(pace: Pace) -> Schedule {
        let seed = match pace {
            Pace::Open { arrivals: Arrivals::Random(seed), .. } => seed,
            _ => 0,
        };
        Schedule { pace, random: Random::new(seed), count: 0, next_s: 0.0 }
    }

    pub(super) fn advance(&mut self) -> Duration {
        let Pace::Open { rate, arrivals } = self.pace else { return Duration::ZERO };
        let due_s = self.next_s;
        self.count += 1;
        self.next_s = match arrivals {
            // Distances are not added up, because their errors would add up too.
            Arrivals::Regular => self.count as f64 / rate,
            Arrivals::Random(_) => {
                // A number in (0, 1], because zero has no logarithm.
                let uniform = ((self.random.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                due_s - uniform.ln() / rate
            }
        };
        Duration::try_from_secs_f64(due_s).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, count: usize) -> Vec<Duration> {
        let mut schedule = Schedule::new(Pace::Open { rate: 1000.0, arrivals });
        (0..count).map(|_| schedule.advance()).collect()
    }

    #[test]
    fn regular_requests_are_due_at_equal_distances_for_ever() {
        let times = times(Arrivals::Regular, 100_001);
        assert_eq!(times[0], Duration::ZERO);
        assert_eq!(times[1], Duration::from_millis(1));
        assert_eq!(times[100_000], Duration::from_secs(100));
    }

    #[test]
    fn random_requests_have_the_rate_and_the_seed_decides() {
        let one = times(Arrivals::Random(1), 100_000);
        assert!(one.is_sorted());
        let mean_s = one[99_999].as_secs_f64() / 99_999.0;
        assert!((mean_s * 1000.0 - 1.0).abs() < 0.02, "{mean_s}");
        // A share of exp(−1) of exponential distances is longer than the mean.
        let longer = one.windows(2).filter(|pair| pair[1] - pair[0] > Duration::from_millis(1));
        let share = longer.count();
        assert!((35_500..38_000).contains(&share), "{share}");
        assert_eq!(one, times(Arrivals::Random(1), 100_000));
        assert_ne!(one, times(Arrivals::Random(2), 100_000));
    }
}
