//! Tuning: the smallest change to a program's malloc that is worth making, found within a budget of time.
//!
//! Relies on [`prove`](mod@crate::prove) for every run. `candidates.rs` lists the candidates, `search.rs` decides how
//! often each is tried, `choice.rs` names the change in the end, `confidence.rs` says how sure it is that nothing better was
//! passed over, `paste.rs` writes the change down. Search and choice are pure: they know only the time they are given,
//! so they are tested on simulated programs whose best change is known (`tests.rs`). The *reference* is the program as
//! it is.
//!
//! The hard idea is that the best of many is often a lucky one too. So the runs that
//! choose say nothing in the end: the remaining candidates are run again, and only those fresh runs count.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::prove::{self, Proof, Shown, Values};
use crate::results::{LeftOut, Rounds};
use crate::statistics::Ratio;
use crate::{CompareOptions, Measure, Plan, Until, compare};
use masu_run::named;
use masu_run::quantity::seconds;
use masu_run::{Error, Limits, Stop, Variant};

mod candidates;
mod choice;
mod confidence;
mod paste;
mod search;
#[cfg(test)]
mod tests;

pub use candidates::{Step, leave_out_itself, named_by, worth_trying};
pub use paste::{Form, paste};

pub(crate) use choice::ENOUGH as NEARLY_ALL;

use candidates::Candidate;
use search::{Found, Room, Trials};

/// The most time of a candidate's run before it is given up, as a multiple of the reference's and in further
/// seconds: a candidate that is this much slower is no remedy, and the time is needed elsewhere.
const SLOWER_TIMES: f64 = 10.0;
const SLOWER_BEYOND_S: f64 = 5.0;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Goal as "goal" {
        #[default]
        Wall = "wall",
        /// CPU time, in the program's code and in the kernel.
        Cpu = "cpu",
        PeakRss = "peak_rss",
    }
}

impl Goal {
    pub fn primary(self) -> Measure {
        match self {
            Goal::Wall => Measure::Wall,
            Goal::Cpu => Measure::Cpu,
            Goal::PeakRss => Measure::PeakRss,
        }
    }

    /// The time on the front of time and memory.
    pub fn time(self) -> Measure {
        if self == Goal::Cpu { Measure::Cpu } else { Measure::Wall }
    }

    /// The measure that may get worse in exchange for the gain.
    pub(crate) fn other(self) -> Measure {
        if self == Goal::PeakRss { Measure::Wall } else { Measure::PeakRss }
    }
}

#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The reference was run, so the number of runs that fit into the budget is known.
    Planned {
        /// The approximate number of runs, at most.
        runs: usize,
        run: Duration,
    },
    /// A stage begins: some candidates are compared with the reference.
    Stage {
        /// Counted from one.
        number: usize,
        candidates: usize,
        /// Rounds, each with one run of each candidate and of the reference.
        rounds: usize,
        estimate: Duration,
        /// Whether this is the last stage, whose runs alone count.
        confirms: bool,
    },
    /// An event of the engine during a stage.
    Measuring(compare::Event<'a>),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tuning {
    /// `masu-tune`.
    pub schema: &'static str,
    /// Grows when a reader of the JSON would have to change.
    pub version: u32,
    pub command: Vec<String>,
    pub goal: Goal,
    pub budget_s: f64,
    pub spent_s: f64,
    /// Runs made, warm-ups included.
    pub runs: usize,
    /// Stages made, the confirmation included.
    pub stages: usize,
    pub stopped: bool,
    /// Whether every run had the same output and exit code.
    pub repeatable: bool,
    /// The smallest change that gets 95 % of the largest gain shown; none where no gain was shown.
    pub change: Option<Change>,
    /// Labels of the variants on the front of time and memory, the reference included if it is.
    pub front: Vec<String>,
    /// The results of fresh runs of the candidates that the search had left; none where it left none.
    pub confirmation: Option<Proof>,
    /// Every candidate that was tried, with the result of the last of its searching runs; these chose, and are no
    /// evidence.
    pub tried: Vec<Tried>,
    /// Labels of the candidates that there was no time for.
    pub not_tried: Vec<String>,
    /// Labels of settings that were not tried, because their malloc without them was in the worse half.
    pub passed_over: Vec<String>,
    /// The confidence that no other candidate that was tried is better; none where there was no other, or nothing is
    /// known.
    pub others: Option<Others>,
    /// A budget, in seconds, that has room for the candidates that there was no time for; none where there was time for
    /// all.
    pub enough_s: Option<f64>,
    pub left_out: Vec<LeftOut>,
}

/// A statement about the candidates that were tried and not confirmed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Others {
    pub count: usize,
    /// The least advantage over the best that was confirmed, relative to it, that counts: 0.03.
    pub by: f64,
    /// The confidence that none of them has this advantage, as a share.
    pub sure: f64,
    /// Labels of the candidates for which this is not 90 % sure.
    pub doubtful: Vec<String>,
}

/// A change that is worth making.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The variant's label.
    pub variant: String,
    /// The variant, as `masu run -a` takes it: with the path of a library that has a name for the page.
    pub run: String,
    pub step: Step,
    /// The variant that gains most; the same variant where no smaller one gains enough.
    pub best: String,
    /// The part of the largest gain that the change has: 0.97.
    pub share: f64,
    /// The change's time or memory over the best's, from runs of the same rounds; none where it is the best.
    pub against: Option<Ratio>,
    /// Whether these runs show that the change takes at most 3 % more than the best; true of the best.
    pub is_shown: bool,
    /// The price of the change: its memory over the reference's, or its time where memory was the goal.
    pub price: Option<Ratio>,
    /// Changes that are smaller still, and the part of the largest gain that each has.
    pub smaller: Vec<Smaller>,
    /// Lines to paste, each with its form.
    pub paste: Vec<Pasted>,
}

/// A smaller change that gains less.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Smaller {
    pub variant: String,
    /// The part of the largest gain that the change has.
    pub share: f64,
    /// The part that it surely has, at least and at most; none where there are too few runs.
    pub between: Option<(f64, f64)>,
}

/// A change as a line to paste.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pasted {
    pub form: Form,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    pub variant: String,
    pub step: Step,
    /// The last stage of the search that had this candidate.
    pub stage: usize,
    /// Rounds of that stage.
    pub rounds: usize,
    /// The candidate's time over the reference's; wall-clock time unless CPU time is the goal.
    pub time: Option<Ratio>,
    /// The candidate's peak resident memory over the reference's.
    pub peak_rss: Option<Ratio>,
    /// The variation of one round's ratio in that stage; none where the stage had one round.
    #[serde(skip)]
    pub(crate) noise: Option<f64>,
}

impl Tried {
    /// The measure to reduce, over the reference's.
    pub(crate) fn gain(&self, goal: Goal) -> Option<f64> {
        let ratio = if goal == Goal::PeakRss { self.peak_rss } else { self.time };
        Some(ratio?.estimate)
    }

    /// The measure that may get worse, over the reference's.
    fn price(&self, goal: Goal) -> Option<f64> {
        let ratio = if goal == Goal::PeakRss { self.time } else { self.peak_rss };
        Some(ratio?.estimate)
    }
}

/// Searches the rows of the only case of `plan`, the first of which is the reference, for the smallest change that gets
/// 95 % of the largest gain, in about `budget`. A budget in which nothing could be shown is an error. A stop before any
/// candidate was tried is [`Error::Stopped`]; a later one returns the results so far, with [`Tuning::stopped`] set.
pub fn tune(
    plan: &Plan,
    goal: Goal,
    budget: Duration,
    stop: &Stop,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<Tuning, Error> {
    let [case] = plan.cases.as_slice() else {
        return Err(Error::Request("tuning takes one command at a time".to_owned()));
    };
    if case.server.is_some() {
        return Err(Error::Request(
            "a server does not end by itself; `masu compare --server` compares variants of one"
                .to_owned(),
        ));
    }
    let variants: Vec<&Variant> = case.rows.iter().map(|row| &row.variant).collect();
    let candidates = candidates::of(&variants);
    if candidates.is_empty() {
        let refused = case.rows.first().and_then(|row| row.workload.program.refusal.as_deref());
        let reason = refused.unwrap_or("no variant but the one it runs on is given; name another");
        return Err(Error::Request(format!("there is nothing to try on this program: {reason}")));
    }
    compare::check(plan)?;
    let began = Instant::now();
    let mut engine = Engine {
        plan,
        goal,
        stop,
        observe,
        budget,
        longest: None,
        left_out: case.left_out.clone(),
    };
    let found = search::search(&candidates, goal, budget.as_secs_f64(), &mut engine);
    let left_out = engine.left_out;
    let found = found.map_err(|error| match error {
        Error::WarmUp { .. } if case.limits.time.is_none() && began.elapsed() >= budget => {
            Error::Request(format!(
                "the program did not end within {}; allow more (--budget), or give it less to do. \
                 Servers do not end by themselves: `masu compare --server` compares variants of one",
                seconds(budget.as_secs_f64())
            ))
        }
        other => other,
    })?;
    let command = case.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let tuning = came_to(goal, &variants[1..], &candidates, found, left_out);
    Ok(Tuning { command, budget_s: budget.as_secs_f64(), ..tuning })
}

/// The tuning in `found` about `candidates`, which are `variants`; the caller fills in the command and the budget.
fn came_to(
    goal: Goal,
    variants: &[&Variant],
    candidates: &[Candidate],
    mut found: Found,
    left_out: Vec<LeftOut>,
) -> Tuning {
    // A candidate that failed on the way is listed only with its reason.
    for (candidate, seen) in candidates.iter().zip(&mut found.tried) {
        seen.take_if(|_| left_out.iter().any(|one| one.label == candidate.label));
    }
    let change = found.proof.as_ref().and_then(|proof| {
        let confirmed: Vec<&Candidate> =
            found.confirmed.iter().map(|index| &candidates[*index]).collect();
        let chosen = choice::choose(&confirmed, proof, &found.values, goal)?;
        let variant = variants[found.confirmed[chosen.smallest]];
        let pasted = |form: Form| Pasted { form, text: paste(variant, form) };
        Some(Change {
            variant: variant.label.clone(),
            run: variant.spec.to_string(),
            price: proof.remedies[chosen.smallest].ratio(goal.other()),
            smaller: chosen.smaller,
            step: confirmed[chosen.smallest].step,
            best: confirmed[chosen.best].label.clone(),
            share: chosen.share,
            against: chosen.against,
            is_shown: chosen.is_shown,
            paste: Form::ALL.into_iter().map(pasted).collect(),
        })
    });
    let front = found.proof.as_ref().map(|proof| {
        let labels = std::iter::once(&proof.reference.label)
            .chain(proof.remedies.iter().map(|one| &one.medians.label));
        let on_it = labels.zip(choice::front(proof, goal)).filter(|(_, is_on)| *is_on);
        on_it.map(|(label, _)| label.clone()).collect()
    });
    let is_left_out = |label: &str| left_out.iter().any(|one| one.label == label);
    let mut tried: Vec<Tried> = Vec::new();
    let (mut not_tried, mut passed_over) = (Vec::new(), Vec::new());
    for (index, (candidate, seen)) in candidates.iter().zip(&found.tried).enumerate() {
        let label = candidate.label.clone();
        match seen {
            _ if is_left_out(&label) => {}
            Some(seen) => tried.push(seen.clone()),
            None if found.confirmed.contains(&index) => {}
            None if found.passed_over.contains(&index) => passed_over.push(label),
            None => not_tried.push(label),
        }
    }
    let best = best_ratio(&found, goal);
    let others = confidence::of_the_others(candidates, &found, goal, best);
    let gain = |one: &Tried| one.gain(goal).unwrap_or(f64::INFINITY);
    tried.sort_by(|a, b| gain(a).total_cmp(&gain(b)));
    Tuning {
        schema: "masu-tune",
        version: 1,
        command: Vec::new(),
        goal,
        budget_s: 0.0,
        spent_s: found.spent_s,
        runs: found.runs,
        stages: found.stages,
        stopped: found.stopped,
        repeatable: found.repeatable,
        change,
        front: front.unwrap_or_default(),
        confirmation: found.proof,
        tried,
        // A search that was stopped does not know a sufficient budget.
        enough_s: Some(found.enough_s).filter(|enough_s| *enough_s > 0.0 && !not_tried.is_empty()),
        not_tried,
        passed_over,
        others,
        left_out,
    }
}

/// The smallest ratio that was confirmed as a gain; 1 where nothing gains.
fn best_ratio(found: &Found, goal: Goal) -> f64 {
    let remedies = found.proof.iter().flat_map(|proof| &proof.remedies);
    let gains = remedies.filter(|remedy| remedy.shown == Shown::Gain);
    let ratios = gains.filter_map(|remedy| Some(remedy.ratio(goal.primary())?.estimate));
    ratios.fold(1.0, f64::min)
}

struct Engine<'a, 'o> {
    plan: &'a Plan,
    goal: Goal,
    stop: &'a Stop,
    observe: &'a mut (dyn FnMut(Event<'_>) + 'o),
    budget: Duration,
    /// The longest time of a run, once the duration of a run of the reference is known.
    longest: Option<Duration>,
    left_out: Vec<LeftOut>,
}

impl Engine<'_, '_> {
    fn stage(&self, candidates: &[usize], rounds: usize) -> Plan {
        let mut plan = self.plan.clone();
        plan.rounds = Rounds::Fixed(rounds);
        for case in &mut plan.cases {
            let rows = std::mem::take(&mut case.rows);
            let places = std::iter::once(0).chain(candidates.iter().map(|index| index + 1));
            case.rows = places.filter_map(|place| rows.get(place).cloned()).collect();
            case.left_out.clear();
            case.primary = self.goal.primary();
            let Limits { time, .. } = &mut case.limits;
            *time = time.or(self.longest).or(Some(self.budget));
        }
        plan
    }
}

impl Trials for Engine<'_, '_> {
    fn announce(&mut self, next: Event<'static>) {
        (self.observe)(next);
    }

    fn measure(
        &mut self,
        candidates: &[usize],
        rounds: usize,
        room: Room,
    ) -> Result<(Proof, Values), Error> {
        let plan = self.stage(candidates, rounds);
        let end = Duration::try_from_secs_f64(room.seconds.max(0.0)).ok();
        let end = end.and_then(|room| Instant::now().checked_add(room));
        let until = end.map(|end| Until { end, rounds: room.rounds, first: 0, spare: None });
        let options = CompareOptions { until, ..CompareOptions::default() };
        let observe = &mut *self.observe;
        let (proof, values) = prove::prove_with_values(&plan, &options, self.stop, &mut |event| {
            observe(Event::Measuring(event));
        })?;
        for remedy in &proof.remedies {
            let label = &remedy.medians.label;
            let is_known = self.left_out.iter().any(|one| one.label == *label);
            if let (Shown::LeftOut { reason }, false) = (&remedy.shown, is_known) {
                let (label, reason) = (label.clone(), reason.clone());
                self.left_out.push(LeftOut { label, reason });
            }
        }
        if let (None, Some(wall_s)) = (self.longest, proof.reference.wall_s) {
            let longest_s = wall_s * SLOWER_TIMES + SLOWER_BEYOND_S;
            self.longest = Duration::try_from_secs_f64(longest_s).ok();
        }
        Ok((proof, values))
    }
}
