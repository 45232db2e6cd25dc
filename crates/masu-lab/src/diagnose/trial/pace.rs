//! The time that a trial may take, and the number of candidates for which there is time.
//!
//! Relies on the times of the counted run. The difficulty is that a busy machine changes the time of a run, so two
//! times are known: the time of a run here and now, and its time if it were alone.

use super::super::facts::Facts;
use super::{FEW, rounds};

/// The usual time of a trial, in seconds, so that the answer for a short program comes within twenty. For a longer
/// program a trial may take as long as [`RUNS`] runs, but never more than [`LONGEST_S`].
const USUAL_S: f64 = 16.0;
const RUNS: f64 = 20.0;
const LONGEST_S: f64 = 50.0;

/// The factor for a trial on a busy machine: its runs wait for a CPU, and differ more.
pub(super) const LONGER: f64 = 2.0;

/// The rounds for which there must be time if at most [`FEW`] candidates are tried one after the other; otherwise fewer
/// are tried, the likeliest first. Pairs of large programs differ by 6 %, and of 1500 simulated trials of a gain of
/// 12 %, all in the same time, 99.7 % showed it in 11 rounds of one candidate and 83.7 % in 7 rounds of two.
pub(super) const ROUNDS_APART: usize = 8;

/// The time of an uncounted run, in seconds: it waits for a CPU as the counted one did, and takes no longer than that.
pub(super) fn run_beside_others_s(facts: &Facts) -> f64 {
    let clock = &facts.clock;
    let waited = facts.others.waited_share.clamp(0.0, 0.95);
    let own_s = clock.own_wall_s(facts.cpus);
    (own_s / (1.0 - waited)).min((clock.wall_s - clock.counting_s).max(own_s))
}

/// The time of a program's runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The time of a run on this machine as it is, in seconds.
    pub(super) run_s: f64,
    /// The time of a run if nobody else used the machine, in seconds.
    pub(super) own_s: f64,
    pub(super) is_busy: bool,
}

impl Pace {
    pub(super) fn of(facts: &Facts) -> Pace {
        let own_s = facts.clock.own_wall_s(facts.cpus);
        Pace { run_s: run_beside_others_s(facts), own_s, is_busy: facts.others.is_busy() }
    }

    /// The time that a trial may take, in seconds.
    pub(super) fn budget_s(self) -> f64 {
        let longer = if self.is_busy { LONGER } else { 1.0 };
        (RUNS * self.run_s).clamp(longer * USUAL_S, longer * LONGEST_S)
    }

    /// The time of this many rounds of this many candidates, in seconds, warm-ups included. Runs side by side share the
    /// CPU time that others leave, and each gets as much as one run alone: a round of them takes little longer than a
    /// run.
    #[expect(clippy::cast_precision_loss, reason = "runs are few")]
    pub(super) fn needed_s(self, candidates: usize, rounds: usize, beside: bool) -> f64 {
        let (run_s, own_s) = (self.run_s.max(1e-3), self.own_s.min(self.run_s).max(1e-3));
        let warm_ups_s = (candidates + 1) as f64 * run_s;
        let more_s = candidates as f64 * if beside { own_s } else { run_s };
        warm_ups_s + rounds as f64 * (run_s + more_s)
    }

    fn has_room(self, candidates: usize, rounds: usize, beside: bool) -> bool {
        self.budget_s() >= self.needed_s(candidates, rounds, beside)
    }

    /// The number of `candidates` that can be tried in the available time, in as many rounds as give a verdict. More
    /// rounds are made if time is left.
    pub(super) fn affordable(self, candidates: usize, beside: bool) -> Option<usize> {
        (1..=candidates).rev().find(|count| self.has_room(*count, rounds::FIRST, beside))
    }

    /// The number of `candidates` that are tried, and whether they run side by side, if that is possible for so many.
    pub(super) fn chosen(
        self,
        candidates: usize,
        may_take_turns: impl Fn(&usize) -> bool,
    ) -> Option<(usize, bool)> {
        let apart = self.affordable(candidates, false);
        if let Some(count) = self.affordable(candidates, true).filter(&may_take_turns) {
            return Some((count, true));
        }
        if let Some(count) = apart.filter(&may_take_turns) {
            return Some((count, true));
        }
        let mut count = apart?;
        while (2..=FEW).contains(&count) && !self.has_room(count, ROUNDS_APART, false) {
            count -= 1;
        }
        Some((count, false))
    }
}
