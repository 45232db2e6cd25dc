//! The end of a warm-up: answers and page faults for the same CPU time have become flat.
//!
//! The test looks for a trend, not for quiet: on a busy machine no two bursts are alike, but a server that still
//! warms up goes on in one direction. Answers are counted by the server's CPU time: other programs change how many a
//! second has, and hardly what one costs.

/// The fewest bursts for a decision.
pub(super) const BURSTS_MIN: usize = 4;

/// The most bursts. A virtual machine compiles for as many as 20 where other programs take most of the CPUs.
pub(super) const BURSTS_MAX: usize = 30;

/// The largest change of answers for the same CPU time, as a share, from two bursts to the next two.
const ANSWERS_SHARE: f64 = 0.05;

/// The largest factor by which faults may still fall or rise from two bursts to the next two.
const FAULTS_FACTOR: f64 = 1.5;

/// The share of a CPU up to which a server does nothing without load; more disturbs the others.
pub(super) const IDLE_SHARE: f64 = 0.02;

/// A server settles if it uses at most this share of the CPU time that it used without load before.
const SETTLING_SHARE: f64 = 0.8;

/// Page faults a request below which their changes do not matter.
const FAULTS_FEW: f64 = 0.05;

#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    /// Answers a second; of a load command, bursts a second.
    pub(super) throughput: f64,
    /// Answers a CPU second of the server; of a load command, bursts.
    pub(super) answers: f64,
    /// Page faults a request; of a load command, a burst.
    pub(super) faults: f64,
}

/// Whether a server may do less without load after more bursts: a virtual machine's compiler works on after them. `before`
/// and `now` are shares of a CPU.
pub(super) fn still_settles(before: f64, now: f64) -> bool {
    now > IDLE_SHARE && now < before * SETTLING_SHARE
}

/// The reason why the server is not steady yet; none if it is.
pub(super) fn trend(points: &[Point]) -> Option<String> {
    let [.., a, b, c, d] = points else { return Some("too few bursts were made".to_owned()) };
    let (then, now) = (a.answers + b.answers, c.answers + d.answers);
    if then <= 0.0 || (now / then - 1.0).abs() > ANSWERS_SHARE {
        let change = if then > 0.0 { (now / then - 1.0) * 100.0 } else { 100.0 };
        return Some(format!("answers for the same CPU time still changed by {change:+.0} %"));
    }
    let (then, now) = ((a.faults + b.faults) / 2.0, (c.faults + d.faults) / 2.0);
    let are_few = then < FAULTS_FEW && now < FAULTS_FEW;
    if !are_few && (now > then * FAULTS_FACTOR || then > now * FAULTS_FACTOR) {
        return Some(format!("page faults still changed from {then:.2} to {now:.2} a request"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(figures: &[(f64, f64)]) -> Vec<Point> {
        let point = |&(answers, faults): &(f64, f64)| Point { throughput: 1.0, answers, faults };
        figures.iter().map(point).collect()
    }

    #[test]
    fn flat_is_steady_and_few_bursts_are_not() {
        assert_eq!(trend(&points(&[(100.0, 1.0); 4])), None);
        assert!(trend(&points(&[(100.0, 1.0); 3])).is_some());
    }

    #[test]
    fn a_server_that_still_gets_faster_is_not_steady() {
        let still = points(&[(80.0, 0.0), (90.0, 0.0), (100.0, 0.0), (110.0, 0.0)]);
        assert!(trend(&still).unwrap().contains("+24 %"));
        let noisy = points(&[(80.0, 0.0), (110.0, 0.0), (108.0, 0.0), (82.0, 0.0)]);
        assert_eq!(trend(&noisy), None, "noise is no trend");
        assert!(trend(&points(&[(0.0, 0.0); 4])).is_some(), "nothing was answered");
    }

    #[test]
    fn a_server_that_works_without_load_settles_as_long_as_it_works_less() {
        assert!(still_settles(f64::INFINITY, 0.5) && still_settles(0.5, 0.2));
        assert!(!still_settles(0.2, 0.19), "it works all the time");
        assert!(!still_settles(f64::INFINITY, 0.01), "it does nothing");
    }

    #[test]
    fn faults_that_still_fall_are_a_trend_unless_they_are_few() {
        let falling = points(&[(100.0, 9.0), (100.0, 6.0), (100.0, 3.0), (100.0, 1.0)]);
        assert!(trend(&falling).unwrap().contains("faults"));
        let few = points(&[(100.0, 0.04), (100.0, 0.03), (100.0, 0.001), (100.0, 0.0)]);
        assert_eq!(trend(&few), None);
    }
}
