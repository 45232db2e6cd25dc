//! How long a trial may take, and how many candidates it has time for.
//!
//! Relies on the times of the counted run. The hard idea is that a busy machine changes what a run takes, so both are known:
//! what one takes here and now, and what it would take alone.

use super::super::facts::Facts;
use super::{FEW, rounds};

/// A trial takes about so long, in seconds, so that the answer for a short program comes within twenty; of a longer program
/// it may take as long as [`RUNS`] runs, but never more than [`LONGEST_S`].
const USUAL_S: f64 = 16.0;
const RUNS: f64 = 20.0;
const LONGEST_S: f64 = 50.0;

/// On a busy machine a trial may take so many times as long: its runs wait for a CPU, and differ more.
pub(super) const LONGER: f64 = 2.0;

/// So few candidates are tried one after the other only where there is time for so many rounds, else fewer, the likeliest first:
/// pairs of large programs differ by 6 %, and of 1500 simulated trials of a gain of 12 %, all in the same time,
/// 99.7 % showed it in 11 rounds of one and 83.7 % in 7 rounds of two.
const ROUNDS_APART: usize = 8;

/// What a run takes that is not counted, in seconds: it waits for a CPU as the counted one did, and takes no longer than that.
pub(super) fn run_beside_others_s(facts: &Facts) -> f64 {
    let clock = &facts.clock;
    let waited = facts.others.waited_share.clamp(0.0, 0.95);
    let own_s = clock.own_wall_s(facts.cpus);
    (own_s / (1.0 - waited)).min((clock.wall_s - clock.counting_s).max(own_s))
}

/// What runs of a program take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// What one takes on this machine as it is, in seconds.
    pub(super) run_s: f64,
    /// What it would take if nobody else were there.
    pub(super) own_s: f64,
    pub(super) is_busy: bool,
}

impl Pace {
    pub(super) fn of(facts: &Facts) -> Pace {
        let own_s = facts.clock.own_wall_s(facts.cpus);
        Pace { run_s: run_beside_others_s(facts), own_s, is_busy: facts.others.is_busy() }
    }

    /// What a trial may take, in seconds.
    pub(super) fn budget_s(self) -> f64 {
        let longer = if self.is_busy { LONGER } else { 1.0 };
        (RUNS * self.run_s).clamp(longer * USUAL_S, longer * LONGEST_S)
    }

    /// What so many rounds of so many candidates take, in seconds, warm-ups included. Runs side by side share what others
    /// leave of a CPU, of which each gets as much as one alone: a round of them takes little longer than a run.
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

    /// How many of `candidates` can be tried in the time that there is, in as many rounds as give a verdict. More are made
    /// where time is left.
    pub(super) fn affordable(self, candidates: usize, beside: bool) -> Option<usize> {
        (1..=candidates).rev().find(|count| self.has_room(*count, rounds::FIRST, beside))
    }

    /// How many of `candidates` are tried, and whether side by side, as it may be where so many do.
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
