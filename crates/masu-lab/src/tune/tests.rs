//! The promises of tuning, on simulated programs whose best change is known. The noise is that of the
//! simulated machines on which the judgement is tested; seconds are counted, and no clock is read.

use super::candidates::{Candidate, Step};
use super::search::{CONFIRMING, Found, Room, Trials, search};
use super::{Event, Goal, choice, confidence};
use crate::Measure;
use crate::prove::{Proof, Shown, Values};
use crate::statistics::Look;
use crate::summary::simulation::{Comparison, Machine, Noise};
use crate::summary::summarize_measures;
use masu_run::Error;
use masu_run::random::Random;

/// The number of searches for a rate, for each noise: some, or with `MASU_SOAK=1` two thousand.
fn searches() -> usize {
    let soak = std::env::var_os("MASU_SOAK").is_some_and(|value| value == "1");
    if soak { 2000 } else { 40 }
}

/// The noises a search meets: a quiet machine, one with neighbors, two speeds, and measured ones.
const NOISES: [Noise; 5] = [
    Noise::Normal(0.02),
    Noise::Skewed,
    Noise::TwoSpeeds,
    Noise::Recorded("quiet"),
    Noise::Recorded("waking"),
];

/// A change of a simulated program: its kind and its effect on a run.
#[derive(Debug, Clone, Copy)]
struct Made {
    step: Step,
    settings: usize,
    parent: Option<usize>,
    /// Seconds of a run, where a run of the reference takes one.
    time: f64,
    /// Memory over that of the reference.
    memory: f64,
}

const fn made(step: Step, settings: usize, time: f64, memory: f64) -> Made {
    Made { step, settings, parent: None, time, memory }
}

/// The candidates that masu has for a program on glibc where five other mallocs are found; none of them
/// changes anything.
fn nothing_helps() -> Vec<Made> {
    let mut all = vec![made(Step::Settings, 2, 1.0, 1.0); 4];
    all.extend([made(Step::Setting, 1, 1.0, 1.0); 5]);
    all.extend([made(Step::Malloc, 0, 1.0, 1.0); 5]);
    let child =
        |parent| Made { parent: Some(parent), ..made(Step::MallocAndSettings, 1, 1.0, 1.0) };
    all.extend((9..14).flat_map(|parent| [child(parent); 4]));
    all
}

/// Places in this list.
const PAIR: usize = 0;
const SINGLE: usize = 4;
const MALLOC: usize = 10;
const CHILD: usize = 19;

/// A machine on which a simulated program runs.
struct MadeUp<'a> {
    all: &'a [Made],
    goal: Goal,
    machine: Machine,
    random: Random,
    /// Candidates that crash in their warm-up.
    broken: &'a [usize],
    /// Stages after which the search is stopped.
    stages_most: usize,
    /// Rounds that the stopped stage has had.
    rounds_of_stopped: usize,
    /// The slowdown of everything from the first stage on, because other processes are at work.
    slowed: f64,
    announced: Vec<Event<'static>>,
}

impl<'a> MadeUp<'a> {
    fn new(all: &'a [Made], noise: Noise, seed: u64) -> MadeUp<'a> {
        MadeUp {
            all,
            goal: Goal::Wall,
            machine: Machine::new(noise, seed),
            random: Random::new(seed),
            broken: &[],
            stages_most: usize::MAX,
            rounds_of_stopped: 0,
            slowed: 1.0,
            announced: Vec::new(),
        }
    }

    fn candidates(&self) -> Vec<Candidate> {
        let candidate = |(index, made): (usize, &Made)| Candidate {
            label: index.to_string(),
            step: made.step,
            settings: made.settings,
            parent: made.parent,
        };
        self.all.iter().enumerate().map(candidate).collect()
    }

    fn search(&mut self, budget_s: f64) -> Result<Found, Error> {
        let (candidates, goal) = (self.candidates(), self.goal);
        search(&candidates, goal, budget_s, self)
    }

    /// The result of the search: the smallest change, as its place.
    fn named(&mut self, budget_s: f64) -> (Option<usize>, Found) {
        let found = self.search(budget_s).unwrap();
        let candidates = self.candidates();
        let chosen = found.proof.as_ref().and_then(|proof| {
            let confirmed: Vec<&Candidate> =
                found.confirmed.iter().map(|index| &candidates[*index]).collect();
            choice::choose(&confirmed, proof, &found.values, self.goal)
        });
        (chosen.map(|chosen| found.confirmed[chosen.smallest]), found)
    }

    /// A little noise of memory's own.
    fn wobble(&mut self) -> f64 {
        let drawn = u32::try_from(self.random.below(2001)).unwrap();
        1.0 + 0.002 * (f64::from(drawn) / 1000.0 - 1.0)
    }
}

impl Trials for MadeUp<'_> {
    fn announce(&mut self, next: Event<'static>) {
        self.announced.push(next);
    }

    fn measure(
        &mut self,
        candidates: &[usize],
        rounds: usize,
        room: Room,
    ) -> Result<(Proof, Values), Error> {
        let stages =
            self.announced.iter().filter(|next| matches!(next, Event::Stage { .. })).count();
        let stopped = stages > self.stages_most;
        if stopped && self.rounds_of_stopped == 0 {
            return Err(Error::Stopped);
        }
        let works = |index: &&usize| !self.broken.contains(index);
        let working: Vec<usize> = candidates.iter().filter(works).copied().collect();
        let made = |index: &usize| self.all[*index];
        let (times, sizes): (Vec<f64>, Vec<f64>) =
            working.iter().map(made).map(|made| (made.time, made.memory)).unzip();
        let times = [&[1.0][..], &times].concat();
        let sizes = [&[1.0][..], &sizes].concat();
        let slowed = if stages > 0 { self.slowed } else { 1.0 };
        let round_s = slowed * times.iter().sum::<f64>();
        let fitting = ((room.seconds / round_s) as usize).saturating_sub(1);
        let rounds = rounds.min(fitting.max(room.rounds));
        let rounds = if stopped { self.rounds_of_stopped } else { rounds };
        let mut runs = Comparison::of(&times).runs(&mut self.machine, rounds);
        for run in &mut runs {
            run.peak_rss_bytes = (sizes[run.variant] * 1e8 * self.wobble()) as u64;
            run.user_s = run.wall_s;
        }
        let label = |index: &usize| index.to_string();
        let reference = "as it is".to_owned();
        let there: Vec<String> =
            std::iter::once(reference.clone()).chain(working.iter().map(label)).collect();
        let all: Vec<String> =
            std::iter::once(reference).chain(candidates.iter().map(label)).collect();
        let primary = self.goal.primary();
        let summary = summarize_measures(&MEASURES, &there, primary, Look::ONLY, &runs);
        let seconds =
            slowed * (runs.iter().map(|run| run.wall_s).sum::<f64>() + times.iter().sum::<f64>());
        let proof = Proof::of(&all, self.goal.primary(), Some(&summary), &[]);
        let values = Values::of(&all, &there, self.goal.primary(), &runs);
        let runs = runs.len() + times.len();
        Ok((Proof { rounds, seconds, runs, stopped, ..proof }, values))
    }
}

/// All measures that a search reads; the others would be most of the work.
const MEASURES: [Measure; 3] = [Measure::Wall, Measure::Cpu, Measure::PeakRss];

/// A budget for a program whose runs take a second: ten minutes.
const BUDGET_S: f64 = 600.0;

/// The number of searches on each noise that satisfy `is_so`.
fn count(
    all: &[Made],
    budget_s: f64,
    is_so: impl Fn(Option<usize>, &Found) -> bool,
) -> Vec<(Noise, usize)> {
    let of = |noise: Noise| {
        let mut yes = 0;
        for seed in 0..searches() {
            let (named, found) = MadeUp::new(all, noise, seed as u64).named(budget_s);
            yes += usize::from(is_so(named, &found));
        }
        (noise, yes)
    };
    let counted: Vec<(Noise, usize)> = NOISES.map(of).into();
    println!("of {}: {counted:?}", searches());
    counted
}

#[track_caller]
fn assert_share(counted: &[(Noise, usize)], per_cent: usize) {
    let enough = |(_, yes): &(Noise, usize)| yes * 100 >= per_cent * searches();
    assert!(counted.iter().all(enough), "of {}, less than {per_cent} %: {counted:?}", searches());
}

#[test]
fn a_gain_is_hardly_ever_reported_where_all_variants_are_the_same() {
    let alarms = count(&nothing_helps(), BUDGET_S, |named, _| named.is_some());
    let all: usize = alarms.iter().map(|(_, alarms)| alarms).sum();
    // One in a hundred is promised; chance may add four deviations to so few.
    let searches = alarms.len() * searches();
    let allowed = searches / 100 + 4 * (searches / 100).isqrt();
    assert!(all <= allowed, "{all} of {searches}: {alarms:?}");
}

#[test]
fn without_fresh_runs_the_lucky_would_be_believed() {
    // The test above can fail: here the search's own ratio of the best is taken for the truth.
    let all = nothing_helps();
    let believed = count(&all, BUDGET_S, |_, found| {
        let ratios = found.tried.iter().flatten().filter_map(|tried| tried.time);
        ratios.map(|ratio| ratio.estimate).fold(1.0, f64::min) < 1.0 - choice::WORTH
    });
    assert!(believed.iter().all(|(_, yes)| *yes * 10 > searches()), "{believed:?}");
}

#[test]
fn the_change_that_gains_is_found_wherever_it_stands_and_of_equals_the_smallest() {
    for (times, place, per_cent) in [
        (&[(PAIR, 0.8)][..], PAIR, 80),
        (&[(SINGLE, 0.8)], SINGLE, 80),
        (&[(MALLOC, 0.8)], MALLOC, 80),
        // The malloc gains something without the setting.
        (&[(CHILD, 0.8), (MALLOC, 0.9)], CHILD, 80),
        (&[(PAIR, 0.6), (MALLOC, 0.6), (CHILD, 0.595)], PAIR, 90),
    ] {
        let mut all = nothing_helps();
        times.iter().for_each(|(changed, time)| all[*changed].time = *time);
        assert_share(&count(&all, BUDGET_S, |named, _| named == Some(place)), per_cent);
    }
}

#[test]
fn the_best_of_several_gains_is_found() {
    let mut all = nothing_helps();
    for (index, made) in all.iter_mut().enumerate().take(14) {
        made.time = if index % 2 == 0 { 0.9 } else { 1.1 };
    }
    all[MALLOC].time = 0.7;
    let found = count(&all, BUDGET_S, |named, _| named == Some(MALLOC));
    assert_share(&found, 95);
}

#[test]
fn the_end_of_the_front_that_needs_least_memory_is_confirmed() {
    let mut all = nothing_helps();
    all[PAIR].time = 0.8;
    // The candidate loses in its step, where others are faster, and is kept all the same.
    (all[MALLOC].time, all[MALLOC].memory) = (1.1, 0.6);
    let kept = count(&all, BUDGET_S, |_, found| {
        let Some(proof) = &found.proof else { return false };
        let front = choice::front(proof, Goal::Wall);
        let place = found.confirmed.iter().position(|index| *index == MALLOC);
        place.is_some_and(|place| front[place + 1])
    });
    assert_share(&kept, 95);
}

#[test]
fn what_is_asked_for_is_gained() {
    let mut all = nothing_helps();
    (all[SINGLE].memory, all[MALLOC].time) = (0.7, 0.5);
    for (goal, place) in [(Goal::PeakRss, SINGLE), (Goal::Cpu, MALLOC)] {
        let mut trials = MadeUp { goal, ..MadeUp::new(&all, Noise::Normal(0.02), 1) };
        let (named, found) = trials.named(BUDGET_S);
        assert_eq!((named, found.proof.unwrap().primary), (Some(place), goal.primary()));
    }
}

#[test]
fn the_budget_is_kept_and_a_part_of_it_left_for_fresh_runs() {
    // A machine that gets slower costs rounds and not time.
    for (budget_s, slowed) in [(150.0, 1.7), (300.0, 2.5), (600.0, 2.5)] {
        let all = nothing_helps();
        let mut trials = MadeUp { slowed, ..MadeUp::new(&all, Noise::Normal(0.02), 1) };
        let found = trials.search(budget_s).unwrap();
        assert!(found.spent_s < budget_s * 1.15, "{} of {budget_s}", found.spent_s);
        let proof = found.proof.unwrap();
        assert!(!matches!(proof.remedies[0].shown, Shown::TooFewRuns { .. }), "{proof:?}");
    }
    for (budget_s, noise) in
        [(60.0, Noise::Normal(0.02)), (600.0, Noise::TwoSpeeds), (6000.0, Noise::Skewed)]
    {
        let mut all = nothing_helps();
        all[MALLOC].time = 3.0;
        let mut trials = MadeUp::new(&all, noise, 1);
        let found = trials.search(budget_s).unwrap();
        assert!(found.spent_s < budget_s * 1.1, "{} of {budget_s}", found.spent_s);
        let proof = found.proof.unwrap();
        let is_enough = proof.seconds > budget_s * CONFIRMING * 0.5 || proof.rounds == 60;
        assert!(is_enough, "{} of {budget_s}", proof.seconds);
        assert!(!matches!(proof.remedies[0].shown, Shown::TooFewRuns { .. }), "{proof:?}");
        let Event::Planned { runs, .. } = trials.announced[0] else {
            panic!("nothing was announced")
        };
        assert!(found.runs <= runs * 11 / 10 + 2, "{} of {runs}", found.runs);
    }
}

#[test]
fn what_there_was_no_time_for_was_not_tried_and_the_first_were() {
    let all = nothing_helps();
    let found = MadeUp::new(&all, Noise::Normal(0.02), 1).search(60.0).unwrap();
    let tried: Vec<bool> = found.tried.iter().map(Option::is_some).collect();
    assert!(tried[0] && tried.contains(&false), "{tried:?}");
    let long = MadeUp::new(&all, Noise::Normal(0.02), 1).search(6000.0).unwrap();
    let tried = long.tried.iter().take(14).filter(|one| one.is_some()).count();
    assert_eq!(tried, 14);
}

#[test]
fn with_little_time_more_are_run_once_than_would_be_three_times() {
    let mut all = nothing_helps();
    all[MALLOC].time = 0.7;
    let mut trials = MadeUp::new(&all, Noise::Normal(0.02), 1);
    let found = trials.search(60.0).unwrap();
    let Event::Stage { candidates, rounds, .. } = trials.announced[1] else { panic!("no stage") };
    // A minute has room for 21 runs of a second in one stage: with a warm-up each, three rounds of four.
    assert!(candidates > 4 && rounds < 3, "{candidates} in {rounds} rounds");
    assert!(found.enough_s > 60.0 && found.enough_s < 900.0, "{}", found.enough_s);
    let long = MadeUp::new(&all, Noise::Normal(0.02), 1).search(found.enough_s).unwrap();
    let not_tried = (0..all.len()).filter(|one| long.tried[*one].is_none());
    let untimely = not_tried.filter(|one| !long.passed_over.contains(one)).count();
    assert_eq!(untimely, 0, "what is said to be enough is: {:?}", long.passed_over);
}

#[test]
fn what_is_denied_of_the_others_is_true() {
    // One of the candidates that are tried first is better than all that the noise lets the search see.
    let mut all = nothing_helps();
    (all[MALLOC].time, all[SINGLE].time) = (0.9, 0.85);
    let (mut missed, mut denied) = (0, 0);
    for noise in NOISES {
        for seed in 0..searches() {
            let mut trials = MadeUp::new(&all, noise, seed as u64);
            let candidates = trials.candidates();
            let (named, found) = trials.named(100.0);
            let confirmed = |index: &usize| found.confirmed.contains(index);
            if named.is_none() || confirmed(&SINGLE) || found.tried[SINGLE].is_none() {
                continue;
            }
            missed += 1;
            let best = named.map_or(1.0, |named| all[named].time);
            let sure = confidence::of_the_others(&candidates, &found, Goal::Wall, best);
            denied += usize::from(sure.is_some_and(|sure| sure.sure >= 0.95));
        }
    }
    println!("missed {missed}, of which denied {denied}");
    let searches = NOISES.len() * searches();
    assert!(denied <= searches / 20, "{denied} of {missed} missed in {searches}");
}

#[test]
fn where_one_is_far_ahead_it_is_sure_that_no_other_is_better() {
    let mut all = nothing_helps();
    all[PAIR].time = 0.6;
    let mut trials = MadeUp::new(&all, Noise::Normal(0.02), 1);
    let (candidates, found) = (trials.candidates(), trials.search(BUDGET_S).unwrap());
    let sure = confidence::of_the_others(&candidates, &found, Goal::Wall, 0.6).unwrap();
    assert!(sure.sure >= 0.99 && sure.doubtful.is_empty() && sure.count > 9, "{sure:?}");
    // Many candidates are near the best where nothing gains, and a few rounds cannot distinguish them.
    let near = confidence::of_the_others(&candidates, &found, Goal::Wall, 1.06).unwrap();
    assert!(near.sure < 0.9 && !near.doubtful.is_empty(), "{near:?}");
}

#[test]
fn a_budget_in_which_nothing_can_be_shown_is_refused_with_one_that_is_enough() {
    let all = nothing_helps();
    let error = MadeUp::new(&all, Noise::Normal(0.02), 1).search(10.0).unwrap_err().to_string();
    assert!(error.contains("--budget") && error.contains("a run takes 990 ms"), "{error}");
}

#[test]
fn what_crashes_is_out_and_the_others_go_on() {
    let mut all = nothing_helps();
    all[MALLOC].time = 0.7;
    let mut trials = MadeUp::new(&all, Noise::Normal(0.02), 1);
    let broken: Vec<usize> = (0..14).filter(|index| *index != MALLOC).collect();
    trials.broken = &broken;
    let (named, found) = trials.named(BUDGET_S);
    assert_eq!(named, Some(MALLOC));
    assert!(!found.confirmed.iter().any(|index| broken.contains(index)));
}

#[test]
fn a_candidate_that_is_alone_is_confirmed_without_a_search() {
    let all = [made(Step::Malloc, 0, 0.7, 1.0)];
    let (named, found) = MadeUp::new(&all, Noise::Normal(0.02), 1).named(60.0);
    assert_eq!((named, found.stages), (Some(0), 1));
}

#[test]
fn a_search_that_is_stopped_tells_what_it_saw_and_shows_nothing() {
    let all = nothing_helps();
    let mut trials = MadeUp::new(&all, Noise::Normal(0.02), 1);
    trials.stages_most = 1;
    let found = trials.search(BUDGET_S).unwrap();
    assert!(found.stopped && found.proof.is_none() && found.tried[0].is_some());
    trials.announced.clear();
    trials.stages_most = 0;
    // The probe is no stage, so the search found nothing and still returns its progress.
    let found = trials.search(BUDGET_S);
    assert!(found.is_ok_and(|found| found.stopped && found.tried[0].is_none()));
    trials.announced.clear();
    trials.rounds_of_stopped = 4;
    let found = trials.search(BUDGET_S).unwrap();
    let tried = found.tried[0].as_ref().unwrap();
    assert!(found.stopped && found.proof.is_none());
    assert!(tried.rounds == 4 && tried.gain(Goal::Wall).is_some(), "{tried:?}");
}
