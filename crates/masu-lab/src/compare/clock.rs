//! The time that the rest of a case takes.

use std::time::Duration;

/// Estimates the rest of a case from the durations of each variant's runs, repeated ones included, or from its
/// warm-up while it has no runs.
#[derive(Debug)]
pub(super) struct Clock {
    variants: Vec<Timing>,
}

#[derive(Debug)]
struct Timing {
    warm_up_s: f64,
    total_s: f64,
    /// Runs that are not repeated.
    done: usize,
}

impl Clock {
    pub(super) fn new(warm_ups_s: impl Iterator<Item = f64>) -> Clock {
        let timing = |warm_up_s| Timing { warm_up_s, total_s: 0.0, done: 0 };
        Clock { variants: warm_ups_s.map(timing).collect() }
    }

    pub(super) fn count(&mut self, variant: usize, wall_s: f64, lasts: bool) {
        self.variants[variant].total_s += wall_s;
        self.variants[variant].done += usize::from(lasts);
    }

    pub(super) fn spent_s(&self) -> f64 {
        self.variants.iter().map(|timing| timing.total_s).sum()
    }

    /// The time that is left until every variant has `rounds` runs.
    pub(super) fn remaining(&self, rounds: usize) -> Duration {
        let left = |timing: &Timing| timing.each_s() * rounds.saturating_sub(timing.done) as f64;
        seconds(self.variants.iter().map(left).sum())
    }
}

impl Timing {
    fn each_s(&self) -> f64 {
        match self.done {
            0 => self.warm_up_s,
            done => self.total_s / done as f64,
        }
    }
}

pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_runs() {
        let mut clock = Clock::new([2.0, 4.0].into_iter());
        assert_eq!(clock.remaining(10), Duration::from_secs(60));
        clock.count(0, 1.0, true);
        assert_eq!(clock.remaining(10), Duration::from_secs(9 + 40));
        assert!((clock.spent_s() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_run_that_is_made_again_is_not_done() {
        let mut clock = Clock::new([2.0].into_iter());
        clock.count(0, 3.0, false);
        assert_eq!(clock.remaining(10), Duration::from_secs(20));
        clock.count(0, 1.0, true);
        assert_eq!(clock.remaining(10), Duration::from_secs(9 * 4));
    }
}
