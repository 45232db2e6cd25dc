//! The search: how often each candidate is tried, within a budget of time.
//!
//! Successive halving (Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter
//! optimization", AISTATS 2016): all are tried a little, the better half a little more, and so on. It
//! differs from the paper in that every step of the ladder is halved by itself, because the answer is not
//! the best of all but the smallest change that is nearly as good, and so the best of each step must
//! be known. The variant that needs least of the other measure stays too.
//!
//! The hard idea: the best of many was lucky too, so the runs that chose it flatter it.
//! The candidates left at the end are therefore run again, and only these fresh runs give the result.
//!
//! Relies on [`Trials`] for all knowledge of the world, time included: tests put a simulated program behind it.

use std::time::Duration;

use super::candidates::{Candidate, Step};
use super::{Event, Goal, Tried};
use crate::prove::{Proof, Values};
use crate::statistics::{Level, pairs_needed};
use crate::written::written_budget;
use masu_run::Error;
use masu_run::quantity::seconds;

/// The share of the budget that is kept for the last stage, whose runs alone count.
pub(super) const CONFIRMING: f64 = 0.4;

/// The share of the time to search that one stage may take at most, so that as many as possible are tried.
const OF_ONE_STAGE: f64 = 0.6;

/// A stage of the search may take this many times its share: a slightly slower run must not cost a round.
const STAGE_OVER: f64 = 1.25;

/// The fewest rounds of a stage of the search: one value may be anything, and of two none is in the middle.
const ROUNDS_LEAST: usize = 3;

/// The rounds of the first stage where there is no time for more: a candidate that was run once is better known than
/// one that was not tried.
const ROUNDS_FIRST: usize = 1;

/// The most rounds of a stage of the search: candidates that these do not distinguish are alike.
const ROUNDS_MOST: usize = 20;

/// Rounds of the last stage at most.
const ROUNDS_CONFIRMING_MOST: usize = 60;

/// Runs of the program that a budget must have room for: one candidate tried, and confirmed.
const RUNS_LEAST: f64 = 40.0;

/// Measures candidates against the reference.
pub(super) trait Trials {
    fn announce(&mut self, next: Event<'static>);

    /// Makes a warm-up and `rounds` rounds of the reference and of `candidates`, by fresh
    /// runs; fewer rounds where they take longer than `room` has. The remedies of the proof are these
    /// candidates in this order.
    fn measure(
        &mut self,
        candidates: &[usize],
        rounds: usize,
        room: Room,
    ) -> Result<(Proof, Values), Error>;
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Room {
    /// The seconds of the stage, its warm-ups included.
    pub(super) seconds: f64,
    /// This many rounds are made in any case.
    pub(super) rounds: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Found {
    /// The last result of each candidate in the search's stages; none where it was not tried.
    pub(super) tried: Vec<Option<Tried>>,
    pub(super) stages: usize,
    /// The candidates of the last stage.
    pub(super) confirmed: Vec<usize>,
    /// The last stage's proof of them; none where the stage was not reached.
    pub(super) proof: Option<Proof>,
    /// The values of the last stage's runs.
    pub(super) values: Values,
    /// The variation of one round's ratio in the last stage; none where it was not seen.
    pub(super) noise: Option<f64>,
    /// Candidates that were not tried because the same malloc, as it comes, was in the worse half.
    pub(super) passed_over: Vec<usize>,
    /// A budget that has room for all other candidates, in seconds.
    pub(super) enough_s: f64,
    /// Runs made, warm-ups included.
    pub(super) runs: usize,
    /// The wall-clock seconds of these runs.
    pub(super) spent_s: f64,
    /// Whether every run of every stage had the same output and exit code.
    pub(super) repeatable: bool,
    pub(super) stopped: bool,
}

/// Searches `candidates` within `budget_s` seconds.
pub(super) fn search(
    candidates: &[Candidate],
    goal: Goal,
    budget_s: f64,
    trials: &mut dyn Trials,
) -> Result<Found, Error> {
    let tried = vec![None; candidates.len()];
    let found = Found { tried, repeatable: true, ..Found::default() };
    let mut search = Search {
        candidates,
        goal,
        budget_s,
        trials,
        reference_s: 0.0,
        run_s: vec![None; candidates.len()],
        surcharge: 1.0,
        frugal: None,
        found,
    };
    match search.make() {
        Ok(()) => Ok(search.found),
        Err(Error::Stopped) if search.found.stages > 0 => {
            Ok(Found { stopped: true, ..search.found })
        }
        Err(error) => Err(error),
    }
}

struct Search<'a> {
    candidates: &'a [Candidate],
    goal: Goal,
    budget_s: f64,
    trials: &'a mut dyn Trials,
    /// Wall-clock seconds of a run of the reference.
    reference_s: f64,
    /// Wall-clock seconds of a run of each candidate, as far as it was tried.
    run_s: Vec<Option<f64>>,
    /// The time of a stage over that of its runs alone: warm-ups are traced, and the work around a
    /// run takes time too.
    surcharge: f64,
    /// The candidate that needs least of the other measure, among those still tried.
    frugal: Option<usize>,
    found: Found,
}

impl Search<'_> {
    fn make(&mut self) -> Result<(), Error> {
        self.probe()?;
        let left = self.halve()?;
        self.confirm(left)
    }

    /// Measures the duration of a run, by the reference.
    fn probe(&mut self) -> Result<(), Error> {
        let (probe, _) = self.trials.measure(&[], 1, Room { seconds: self.budget_s, rounds: 1 })?;
        self.account(&[], &probe);
        let run_s = self.cost_s(&[]);
        let needed_s = run_s * RUNS_LEAST;
        if needed_s > self.budget_s {
            return Err(Error::Request(format!(
                "a run takes {}, and in {} nothing could be shown; allow at least {} (--budget), or \
                 give the program less to do",
                seconds(run_s),
                seconds(self.budget_s),
                written_budget(needed_s)
            )));
        }
        let runs = (self.left_s() / run_s.max(1e-6)) as usize;
        let (runs, run) = (runs.min(self.most_runs()), duration(run_s));
        self.trials.announce(Event::Planned { runs, run });
        Ok(())
    }

    /// The number of runs if time had no limit.
    fn most_runs(&self) -> usize {
        let tried = 2 * (self.candidates.len() + 1) * (ROUNDS_MOST + 1);
        tried + (Step::ALL.len() + 2) * (ROUNDS_CONFIRMING_MOST + 1)
    }

    fn left_s(&self) -> f64 {
        self.budget_s - self.found.spent_s
    }

    /// Tries and halves, until one candidate of each step is left.
    fn halve(&mut self) -> Result<Vec<usize>, Error> {
        let searching_s = self.budget_s * (1.0 - CONFIRMING);
        let has_parent = |index: &usize| self.candidates[*index].parent.is_some();
        let (mut waiting, mut left): (Vec<usize>, Vec<usize>) =
            (0..self.candidates.len()).partition(has_parent);
        for number in 1.. {
            // Settings of a malloc are tried once that malloc, as it comes, was among the better half.
            if number > 1 || self.of_step(&left, Step::Malloc) <= 1 {
                let joins = |index: &usize| {
                    self.candidates[*index].parent.is_some_and(|parent| left.contains(&parent))
                };
                let (joining, others): (Vec<usize>, Vec<usize>) =
                    waiting.drain(..).partition(joins);
                left.extend(joining);
                self.pass_over(others);
            }
            let stages = self.stages_to_come(&left, &waiting);
            if stages == 0 {
                break;
            }
            let left_s = (searching_s - self.found.spent_s).max(0.0);
            // A variant that is kept for the other measure goes first, so as not to be cut off.
            let frugal = self.frugal.filter(|frugal| !left.contains(frugal));
            let set: Vec<usize> = frugal.into_iter().chain(left.iter().copied()).collect();
            let least_s = self.cost_s(&set) * (ROUNDS_LEAST + 1) as f64;
            let share_s = (left_s / stages as f64).max(least_s.min(left_s * OF_ONE_STAGE));
            let first = if number == 1 { ROUNDS_FIRST } else { ROUNDS_LEAST };
            let set = self.fitting(&set, share_s, first);
            if set.is_empty() {
                // The time to search is over; the best that are known go on to the last stage.
                left = self.first_of_each(&left, |_| 1);
                break;
            }
            let rounds = self.rounds_in(&set, share_s).clamp(first, ROUNDS_MOST);
            let seconds = (share_s * STAGE_OVER).min(left_s);
            let (proof, values) =
                self.stage(&set, rounds, Room { seconds, rounds: first }, false)?;
            self.note(&set, &proof, values.noise());
            // INVARIANT: Each stage halves the candidates it was given of each step, so the loop ends; a candidate
            // that is kept for the other measure alone is not counted among them.
            left.retain(|one| set.contains(one));
            left = self.first_of_each(&left, |count| count.div_ceil(2));
            self.frugal = self.most_frugal(&set);
        }
        self.pass_over(waiting);
        self.found.enough_s = self.enough_s();
        Ok(left)
    }

    /// Notes the candidates that are not tried because of their malloc, and not for want of time.
    fn pass_over(&mut self, dropped: Vec<usize>) {
        let was_tried = |index: &usize| {
            let parent = self.candidates[*index].parent;
            parent.is_some_and(|parent| self.found.tried[parent].is_some())
        };
        let passed_over: Vec<usize> = dropped.into_iter().filter(was_tried).collect();
        self.found.passed_over.extend(passed_over);
    }

    /// A budget that has room for all: the first stage, and the second, which settings of other mallocs join.
    fn enough_s(&self) -> f64 {
        let all = 0..self.candidates.len();
        let (first, later): (Vec<usize>, Vec<usize>) =
            all.partition(|one| self.candidates[*one].parent.is_none());
        let joining = later.into_iter().filter(|one| !self.found.passed_over.contains(one));
        let second: Vec<usize> =
            first.iter().copied().take(first.len().div_ceil(2)).chain(joining).collect();
        let [first_s, second_s] =
            [first, second].map(|set| self.cost_s(&set) * (ROUNDS_LEAST + 1) as f64);
        // The first may take an equal share of all stages and no less than it needs, the second a part of the rest.
        let both_s = (first_s + second_s / OF_ONE_STAGE).max(1.5 * second_s / OF_ONE_STAGE);
        both_s.max(first_s / OF_ONE_STAGE) / (1.0 - CONFIRMING)
    }

    /// Runs the remaining candidates again.
    fn confirm(&mut self, left: Vec<usize>) -> Result<(), Error> {
        let mut finalists = left;
        // A candidate that could not take part was tried and has no ratio.
        finalists.retain(|one| self.found.tried[*one].is_none() || self.gain(*one).is_some());
        self.sort_by_gain(&mut finalists);
        finalists.extend(self.frugal.filter(|frugal| !finalists.contains(frugal)));
        if finalists.is_empty() {
            return Ok(());
        }
        let needed = |finalists: &[usize]| pairs_needed(finalists.len(), Level::TABLE);
        let left_s = self.left_s();
        while finalists.len() > 1 && self.rounds_in(&finalists, left_s) < needed(&finalists) {
            finalists.pop();
        }
        let rounds = self.rounds_in(&finalists, left_s).min(ROUNDS_CONFIRMING_MOST);
        let rounds = rounds.max(needed(&finalists));
        finalists.sort_by_key(|one| (self.candidates[*one].step, *one));
        let room = Room { seconds: left_s, rounds: needed(&finalists) };
        let (proof, values) = self.stage(&finalists, rounds, room, true)?;
        self.found.stopped |= proof.stopped;
        self.found.noise = values.noise();
        self.found.values = values;
        self.found.confirmed = finalists;
        self.found.proof = Some(proof);
        Ok(())
    }

    fn stage(
        &mut self,
        set: &[usize],
        rounds: usize,
        room: Room,
        confirms: bool,
    ) -> Result<(Proof, Values), Error> {
        self.found.stages += 1;
        let estimate = duration(self.cost_s(set) * (rounds + 1) as f64);
        let number = self.found.stages;
        let candidates = set.len();
        self.trials.announce(Event::Stage { number, candidates, rounds, estimate, confirms });
        let (proof, values) = self.trials.measure(set, rounds, room)?;
        self.account(set, &proof);
        if proof.stopped && !confirms {
            let known = self.found.tried.clone();
            self.note(set, &proof, values.noise());
            // An earlier stage was whole.
            for (one, known) in self.found.tried.iter_mut().zip(known) {
                if known.is_some() || one.as_ref().is_some_and(|one| one.gain(self.goal).is_none())
                {
                    *one = known;
                }
            }
            return Err(Error::Stopped);
        }
        Ok((proof, values))
    }

    /// Adds the runs and time of a stage, and estimates those of the next from them.
    fn account(&mut self, set: &[usize], proof: &Proof) {
        self.found.runs += proof.runs;
        self.found.spent_s += proof.seconds;
        self.found.repeatable &= proof.repeatable;
        if let Some(wall_s) = proof.reference.wall_s {
            self.reference_s = wall_s;
        }
        let mut round_s = self.reference_s;
        for (index, proved) in set.iter().zip(&proof.remedies) {
            self.run_s[*index] = proved.medians.wall_s;
            round_s += proved.medians.wall_s.unwrap_or(self.reference_s);
        }
        let runs_s = round_s * (proof.rounds + 1) as f64;
        if runs_s > 0.0 {
            self.surcharge = (proof.seconds / runs_s).max(1.0);
        }
    }

    /// The seconds of a round of the reference and of `set`.
    fn cost_s(&self, set: &[usize]) -> f64 {
        let run_s = |index: &usize| self.run_s[*index].unwrap_or(self.reference_s);
        self.surcharge * (self.reference_s + set.iter().map(run_s).sum::<f64>())
    }

    /// The number of rounds of `set` that fit into `seconds`, with a warm-up before them.
    fn rounds_in(&self, set: &[usize], seconds: f64) -> usize {
        ((seconds / self.cost_s(set).max(1e-6)) as usize).saturating_sub(1)
    }

    /// As many of `set` as can be tried in `least` rounds in `seconds`, in their order.
    fn fitting(&self, set: &[usize], seconds: f64, least: usize) -> Vec<usize> {
        let mut fitting: Vec<usize> = Vec::new();
        for index in set {
            fitting.push(*index);
            if self.rounds_in(&fitting, seconds) < least {
                fitting.pop();
                break;
            }
        }
        fitting
    }

    /// The number of stages until one candidate of each step is left, those of `waiting` included.
    fn stages_to_come(&self, left: &[usize], waiting: &[usize]) -> usize {
        let halvings = |count: usize| count.next_power_of_two().ilog2() as usize;
        let of_step = |step: &Step| halvings(self.of_step(left, *step));
        let now = Step::ALL.iter().map(of_step).max().unwrap_or(0);
        let later = if waiting.is_empty() { 0 } else { 1 + halvings(waiting.len().div_ceil(2)) };
        now.max(later)
    }

    fn of_step(&self, set: &[usize], step: Step) -> usize {
        set.iter().filter(|index| self.candidates[**index].step == step).count()
    }

    fn note(&mut self, set: &[usize], proof: &Proof, noise: Option<f64>) {
        let stage = self.found.stages;
        for (index, proved) in set.iter().zip(&proof.remedies) {
            let Candidate { label, step, .. } = &self.candidates[*index];
            self.found.tried[*index] = Some(Tried {
                variant: label.clone(),
                step: *step,
                stage,
                rounds: proof.rounds,
                time: proved.ratio(self.goal.time()),
                peak_rss: proved.peak_rss,
                noise,
            });
        }
    }

    fn gain(&self, index: usize) -> Option<f64> {
        self.found.tried[index].as_ref()?.gain(self.goal)
    }

    fn price(&self, index: usize) -> Option<f64> {
        self.found.tried[index].as_ref()?.price(self.goal)
    }

    /// Puts the best first and the candidates that were not tried last.
    fn sort_by_gain(&self, set: &mut [usize]) {
        let gain = |index: usize| self.gain(index).unwrap_or(f64::INFINITY);
        set.sort_by(|a, b| gain(*a).total_cmp(&gain(*b)));
    }

    /// The best of each step, as many as `keep` says, the best first; candidates without a ratio are dropped.
    fn first_of_each(&self, set: &[usize], keep: impl Fn(usize) -> usize) -> Vec<usize> {
        let mut kept = Vec::new();
        for step in Step::ALL {
            let is_here =
                |index: &usize| self.candidates[*index].step == step && self.gain(*index).is_some();
            let mut own: Vec<usize> = set.iter().copied().filter(is_here).collect();
            self.sort_by_gain(&mut own);
            own.truncate(keep(own.len()));
            kept.extend(own);
        }
        self.sort_by_gain(&mut kept);
        kept
    }

    fn most_frugal(&self, set: &[usize]) -> Option<usize> {
        let priced = set.iter().filter_map(|index| Some((*index, self.price(*index)?)));
        let least = priced.min_by(|(_, a), (_, b)| a.total_cmp(b));
        least.filter(|(_, price)| *price < 1.0).map(|(index, _)| index)
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
