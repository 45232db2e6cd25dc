//! The timed runs of one case, round after round.
//!
//! Every decision here follows from the seed and the runs so far: the order, the starved runs to repeat, the times of
//! looks at the table. A comparison that goes on takes runs from the file as long as there are any, and ends up
//! with the same sequence. Only a budget of time is spent again by repeated runs.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::clock::{Clock, seconds};
use super::surroundings::surroundings;
use super::warm_up::{Warm, found_done};
use super::{BegunCase, Event, Open, Until};
use crate::order::Order;
use crate::plan::{Plan, Prepared};
use crate::results::{Journal, Record, Rounds};
use crate::statistics::{Level, Look, Looks, pairs_needed};
use crate::summary::summarize;
use crate::written::written_budget;
use crate::{Measure, Summary};
use masu_run::executor::Executor;
use masu_run::{Ending, Error, Evidence, Run, Stop};

/// The most repeats of one starved run: a machine that is busy now will be busy again.
const REPEATS_OF_A_RUN: usize = 2;

/// The most repeats are one run in this many: more make a long comparison on a busy machine no better.
const RUNS_PER_REPEAT: usize = 4;

pub(super) struct Progress {
    rounds: Rounds,
    clocks: Vec<Clock>,
    /// The number of timed runs that count, of all cases.
    done: usize,
    /// The most that this number can become.
    of: Option<usize>,
}

impl Progress {
    pub(super) fn new(plan: &Plan, begun: &[BegunCase]) -> Progress {
        let clock = |(prepared, case): (&Prepared, &BegunCase)| {
            let mut clock = Clock::new(case.warm_ups.iter().map(|warm| expected_s(prepared, warm)));
            for run in &case.runs {
                clock.count(run.variant, run.wall_s, !run.replaced);
            }
            clock
        };
        let rows = plan.cases.iter().map(|prepared| prepared.rows.len());
        let of = match plan.rounds {
            Rounds::Fixed(most) | Rounds::UntilDecided { most } => {
                Some(most.saturating_mul(rows.sum::<usize>()))
            }
            Rounds::Budget { .. } => None,
        };
        let lasting = |case: &BegunCase| case.runs.iter().filter(|run| !run.replaced).count();
        Progress {
            rounds: plan.rounds,
            clocks: plan.cases.iter().zip(begun).map(clock).collect(),
            done: begun.iter().map(lasting).sum(),
            of,
        }
    }

    pub(super) fn planned(&self) -> Event<'static> {
        let is_known = matches!(self.rounds, Rounds::Fixed(_));
        Event::Planned {
            runs: self.of.filter(|_| is_known).map(|of| of.saturating_sub(self.done)),
            estimate: self.remaining(),
            resumed: self.done,
        }
    }

    fn spent_s(&self) -> f64 {
        self.clocks.iter().map(Clock::spent_s).sum()
    }

    fn remaining(&self) -> Duration {
        match self.rounds {
            Rounds::Fixed(most) | Rounds::UntilDecided { most } => {
                self.clocks.iter().map(|clock| clock.remaining(most)).sum()
            }
            Rounds::Budget { seconds: budget_s, .. } => seconds(budget_s - self.spent_s()),
        }
    }

    /// The seconds of the budget that the case may spend in all: an equal share of the rest that earlier cases left.
    fn share_s(&self, index: usize, budget_s: f64) -> f64 {
        let before: f64 = self.clocks[..index].iter().map(Clock::spent_s).sum();
        (budget_s - before) / (self.clocks.len() - index) as f64
    }
}

/// The expected duration of a run, by its warm-up.
fn expected_s(prepared: &Prepared, warm: &Warm) -> f64 {
    prepared.server.as_ref().map_or(warm.wall_s, |server| server.run_s(warm.wall_s))
}

/// The rounds that a table of a few variants needs for useful verdicts.
const FEWEST_ROUNDS: usize = 12;

/// The plan's rounds, or as many as take about `within`, but not so few that no verdict is possible.
pub(super) fn rounds_within(plan: &Plan, begun: &[BegunCase], within: Duration) -> Rounds {
    let most = match plan.rounds {
        Rounds::Fixed(most) | Rounds::UntilDecided { most } => most,
        Rounds::Budget { .. } => return plan.rounds,
    };
    let case_s = |(prepared, case): (&Prepared, &BegunCase)| -> f64 {
        case.warm_ups.iter().map(|warm| expected_s(prepared, warm)).sum()
    };
    let round_s: f64 = plan.cases.iter().zip(begun).map(case_s).sum();
    let others = plan.cases.iter().map(|case| case.rows.len().saturating_sub(1)).max();
    let fewest = pairs_needed(others.unwrap_or(1).max(1), Level::TABLE).max(FEWEST_ROUNDS);
    let fitting = (within.as_secs_f64() / round_s.max(1e-3)) as usize;
    let most = fitting.max(fewest).min(most);
    match plan.rounds {
        Rounds::Fixed(_) => Rounds::Fixed(most),
        _ => Rounds::UntilDecided { most },
    }
}

/// A budget must be at least this part of the time that a verdict takes by the warm-ups, which may have found cold
/// caches.
const BUDGET_LEAST: f64 = 0.8;

/// Checks that the plan's budget has room for the rounds that a verdict takes, judged by warm-ups.
pub(super) fn check_budget(plan: &Plan, begun: &[BegunCase]) -> Result<(), Error> {
    let Rounds::Budget { seconds: budget_s, .. } = plan.rounds else { return Ok(()) };
    let case = |(prepared, case): (&Prepared, &BegunCase)| {
        let expected = case.warm_ups.iter().map(|warm| expected_s(prepared, warm));
        let (all_s, rows) = (expected.clone().sum::<f64>(), prepared.rows.len());
        // Warm-ups of a preload are traced, and slower; the first is mostly the reference's, which is not traced.
        let round_s =
            expected.take(1).fold(all_s, |all_s, first_s| all_s.min(first_s * rows as f64));
        let needed = pairs_needed(rows.saturating_sub(1).max(1), Level::TABLE);
        if rows > 1 { (round_s, needed) } else { (round_s, 1) }
    };
    let cases = plan.cases.iter().zip(begun).map(case);
    let longest = cases.max_by(|a, b| (a.0 * a.1 as f64).total_cmp(&(b.0 * b.1 as f64)));
    let Some((round_s, needed)) = longest else { return Ok(()) };
    // Each case has an equal share.
    let count = plan.cases.len() as f64;
    let needed_s = round_s * needed as f64 * count;
    if budget_s >= BUDGET_LEAST * needed_s {
        return Ok(());
    }
    let fitting = (budget_s / count / round_s) as usize;
    Err(Error::Request(format!(
        "the budget has room for {fitting} of the {needed} rounds that a verdict takes, at about {} each: allow {} \
         (--budget), or compare fewer variants (-a)",
        masu_run::quantity::seconds(round_s),
        written_budget(needed_s * 1.2)
    )))
}

pub(super) struct Series<'a, 'o> {
    pub(super) index: usize,
    pub(super) prepared: &'a Prepared,
    pub(super) rounds: Rounds,
    pub(super) until: Option<Until>,
    pub(super) open: Option<Open>,
    pub(super) executor: &'a mut (dyn Executor + 'o),
    /// The executor's index of each row.
    pub(super) places: Vec<usize>,
    pub(super) journal: &'a mut Journal,
    pub(super) progress: &'a mut Progress,
    pub(super) stop: &'a Stop,
    pub(super) observe: &'a mut (dyn FnMut(Event<'_>) + 'o),
}

/// The runs of a case so far, and the runs in the file that are still to be taken.
#[derive(Default)]
struct Runs {
    made: Vec<Run>,
    repeats: usize,
    recorded: VecDeque<Run>,
}

impl Series<'_, '_> {
    /// Makes the runs that are not in `behind`, and summarizes all; none when stopped before the last.
    pub(super) fn make(&mut self, seed: u64, behind: BegunCase) -> Result<Option<Summary>, Error> {
        let evidence: Vec<Evidence> =
            behind.warm_ups.iter().map(|warm| warm.evidence.clone()).collect();
        let mut runs = Runs { recorded: behind.runs.into(), ..Runs::default() };
        // Every case has an order of its own, so that no two cases favor the same places.
        let seed = seed.wrapping_add((self.index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut order = Order::new(seed, self.prepared.rows.len());
        let mut looks = Looks::new(self.prepared.rows.len().saturating_sub(1));
        let mut open: Option<Vec<usize>> = None;
        let mut most = usize::MAX;
        for round in 0.. {
            let mut order = order.round();
            order.retain(|row| *row == 0 || open.as_ref().is_none_or(|open| open.contains(row)));
            let places: Vec<usize> = order.iter().map(|row| self.places[*row]).collect();
            self.executor.begin_round(&places);
            for variant in order {
                if !self.slot(round, variant, &mut runs)? {
                    return Ok(None);
                }
            }
            let rows = self.prepared.rows.len();
            open = self.open.map(|ask| ask(rows, self.prepared.primary, &runs.made));
            let run = self.run_s(&runs);
            if let (Some(until), Some(open)) = (self.until, &mut open) {
                most = most.min(until.fitting(Instant::now(), round + 1, seconds(run), open.len()));
                open.truncate(most);
            }
            let next = open.as_ref().map(Vec::len);
            if let Some(mut summary) = self.conclude(round + 1, next, &runs, &mut looks) {
                summary.warnings.splice(0..0, surroundings(self.prepared, &evidence));
                let done = found_done(&self.labels(), &behind.warm_ups, &runs.made);
                summary.warnings.extend(done);
                return Ok(Some(summary));
            }
        }
        unreachable!("rounds end before numbers do")
    }

    /// Makes one run that lasts, with the runs it replaces; false when stopped.
    fn slot(&mut self, round: usize, variant: usize, runs: &mut Runs) -> Result<bool, Error> {
        for attempt in 0.. {
            let mut run = match runs.recorded.pop_front() {
                Some(run) if run.round == Some(round) && run.variant == variant => run,
                Some(run) => {
                    let label = &self.prepared.rows[variant].variant.label;
                    return Err(Error::Request(format!(
                        "the results to resume are not in the order of their seed: case `{}`, \
                         round {round} has variant {} where `{label}` belongs; begin again",
                        self.prepared.name, run.variant
                    )));
                }
                None => match self.fresh(round, variant, attempt, runs)? {
                    Some(run) => run,
                    None => return Ok(false),
                },
            };
            let lasts = !run.replaced;
            runs.repeats += usize::from(!lasts);
            // The file has the curve; memory that the lab holds hides how little memory a small program needs.
            run.rss_over_time = Vec::new();
            runs.made.push(run);
            if lasts {
                break;
            }
        }
        Ok(true)
    }

    /// Makes a run that is not in the file; none when stopped.
    fn fresh(
        &mut self,
        round: usize,
        variant: usize,
        attempt: usize,
        runs: &Runs,
    ) -> Result<Option<Run>, Error> {
        (self.observe)(Event::Running {
            case: &self.prepared.name,
            variant: &self.prepared.rows[variant].variant,
            done: self.progress.done,
            of: self.progress.of,
            remaining: self.progress.remaining(),
        });
        if self.stop.requested() {
            return Ok(None);
        }
        let began = Instant::now();
        let mut run = self.executor.run(self.places[variant], self.stop)?;
        if run.ending == Ending::Stopped {
            return Ok(None);
        }
        (run.case, run.variant, run.round) = (self.index, variant, Some(round));
        // CPU time hardly shows that a run waited for its CPU.
        let is_longer = run.starved && self.prepared.primary != Measure::Cpu;
        run.replaced = is_longer && attempt < REPEATS_OF_A_RUN && self.may_repeat(runs);
        // The preparations around a run take time too.
        let (took_s, lasts) = (began.elapsed().as_secs_f64(), !run.replaced);
        self.progress.clocks[self.index].count(variant, took_s, lasts);
        self.progress.done += usize::from(lasts);
        self.journal.write(&Record::Run(run.clone()))?;
        (self.observe)(Event::Ran { done: self.progress.done });
        Ok(Some(run))
    }

    fn may_repeat(&self, runs: &Runs) -> bool {
        let all = match self.rounds {
            Rounds::Fixed(rounds) => rounds.saturating_mul(self.prepared.rows.len()),
            Rounds::Budget { .. } | Rounds::UntilDecided { .. } => runs.made.len(),
        };
        runs.repeats < all / RUNS_PER_REPEAT
    }

    fn labels(&self) -> Vec<String> {
        self.prepared.rows.iter().map(|row| row.variant.label.clone()).collect()
    }

    /// Seconds of a run, preparations and runs made again included.
    ///
    /// INVARIANT: As for a budget, this follows from the time of all rounds together, not from the result of any run.
    fn run_s(&self, runs: &Runs) -> f64 {
        self.progress.clocks[self.index].spent_s() / runs.made.len().max(1) as f64
    }

    /// The summary of the runs, if `rounds` rounds are enough, or all is decided: `open` variants go on.
    fn conclude(
        &self,
        rounds: usize,
        open: Option<usize>,
        runs: &Runs,
        looks: &mut Looks,
    ) -> Option<Summary> {
        let summary =
            |look: Look| summarize(&self.labels(), self.prepared.primary, look, &runs.made);
        match self.rounds {
            Rounds::Fixed(all) => {
                let is_over = rounds >= all || open == Some(0) || self.is_over(rounds, open, runs);
                is_over.then(|| summary(Look::ONLY))
            }
            Rounds::UntilDecided { most } if rounds >= most => Some(summary(looks.last())),
            Rounds::UntilDecided { .. } => {
                // A series that goes on was looked at before, and did not end then.
                let look = looks.due(rounds).filter(|_| runs.recorded.is_empty())?;
                Some(summary(look)).filter(Summary::is_decided)
            }
            Rounds::Budget { seconds, precision } => {
                if !runs.recorded.is_empty() {
                    // The series was looked at before, and did not end then.
                    looks.due(rounds);
                    return None;
                }
                let spent_s = self.progress.clocks[self.index].spent_s();
                let share_s = self.progress.share_s(self.index, seconds);
                // INVARIANT: Whether another round fits depends on the time of all rounds together and not on which
                // variant took it, as the looks' promise demands (`statistics/sequential.rs`); a mean for each
                // variant would depend on that if one had more runs made again than another.
                if spent_s + spent_s / rounds.max(1) as f64 > share_s {
                    return Some(summary(looks.last()));
                }
                looks.due(rounds).map(summary).filter(|summary| summary.is_narrow(precision))
            }
        }
    }

    /// Whether fixed rounds end early, after `rounds` of them.
    fn is_over(&self, rounds: usize, open: Option<usize>, runs: &Runs) -> bool {
        let row_count = open.map_or(self.prepared.rows.len(), |open| open + 1);
        let round = seconds(self.run_s(runs) * row_count as f64);
        self.until.is_some_and(|until| until.is_over(Instant::now(), rounds, round))
    }
}
