//! The choice: from the confirmed candidates to the smallest change that is worth making, and to the front of
//! time and memory.
//!
//! Relies on the runs of the last stage alone. The hard idea is DESIGN's ladder: a setting goes before
//! another malloc, few settings before many, and a larger change must gain noticeably more to be
//! named instead. A smaller change is called nearly as good only where its own runs show it, round by round:
//! an estimate that happens to lie near the best is no claim.

use super::candidates::Candidate;
use super::{Goal, Smaller};
use crate::prove::{Proof, Proved, Shown, Values};
use crate::statistics::Ratio;

/// The share of the largest gain that is enough.
pub(crate) const ENOUGH: f64 = 0.95;

/// The relative difference below which two changes are equally good, and a gain not worth a line.
pub(super) const WORTH: f64 = 0.01;

/// The most that a smaller change may take more than the best and still be shown to be nearly as good.
pub(super) const NEAR: f64 = 0.03;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chosen {
    /// The smallest change that gains enough.
    pub(super) smallest: usize,
    /// Whether its own runs show that the change takes at most [`NEAR`] more than the best.
    pub(super) is_shown: bool,
    /// The change that gains most.
    pub(super) best: usize,
    /// The part of that gain that the smallest change has.
    pub(super) share: f64,
    /// The smallest change's time or memory over the best's; none where it is the best.
    pub(super) against: Option<Ratio>,
    /// Changes that are smaller still, and the part of that gain that they have.
    pub(super) smaller: Vec<Smaller>,
}

/// The smallest change among `confirmed`, whose runs gave `proof` and `values`, that gets [`ENOUGH`] of the
/// largest gain shown; none where no gain of [`WORTH`] was shown.
pub(super) fn choose(
    confirmed: &[&Candidate],
    proof: &Proof,
    values: &Values,
    goal: Goal,
) -> Option<Chosen> {
    let gain = |proved: &Proved| match proved.shown {
        Shown::Gain => Some(1.0 - proved.ratio(goal.primary())?.estimate),
        _ => None,
    };
    let gains: Vec<(usize, f64)> = proof
        .remedies
        .iter()
        .enumerate()
        .filter_map(|(place, proved)| Some((place, gain(proved)?)))
        .filter(|(_, gain)| *gain >= WORTH)
        .collect();
    let (best, most) = gains.iter().copied().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let price = |place: usize| {
        proof.remedies[place].ratio(goal.other()).map_or(1.0, |ratio| ratio.estimate)
    };
    let size = |place: usize| (confirmed[place].step, confirmed[place].settings);
    // The runs that are compared also choose the best, so any pair may be compared: all pairs count as claims.
    let claims = confirmed.len() * confirmed.len().saturating_sub(1) / 2;
    let against = |place: usize| values.between(place, best, claims).filter(|_| place != best);
    let is_near = |ratio: Ratio| ratio.interval.is_some_and(|(_, high)| high <= 1.0 + NEAR);
    let enough = gains.iter().copied().filter(|(_, gain)| *gain >= ENOUGH * most);
    let smallest = enough.min_by(|(a, _), (b, _)| {
        size(*a).cmp(&size(*b)).then_with(|| price(*a).total_cmp(&price(*b)))
    });
    let (smallest, gain) = smallest?;
    let is_smaller = |(place, _): &(usize, f64)| size(*place) < size(smallest);
    // 1 − ρ(1 − g) of g, where ρ is the change's time or memory over the best's.
    let share = |ratio: f64| (1.0 - ratio * (1.0 - most)) / most;
    let part = |(place, gain): (usize, f64)| Smaller {
        variant: confirmed[place].label.clone(),
        share: gain / most,
        between: against(place)
            .and_then(|ratio| ratio.interval)
            .map(|(low, high)| (share(high), share(low))),
    };
    Some(Chosen {
        smallest,
        is_shown: smallest == best || against(smallest).is_some_and(is_near),
        best,
        share: gain / most,
        against: against(smallest),
        smaller: gains.iter().copied().filter(is_smaller).map(part).collect(),
    })
}

/// Whether the reference, and then each confirmed candidate, is on the front of time and memory: no other
/// is better in one of them by more than [`WORTH`] without being worse in the other by more than that.
pub(super) fn front(proof: &Proof, goal: Goal) -> Vec<bool> {
    let place = |proved: &Proved| {
        let ratio = |measure| Some(proved.ratio(measure)?.estimate);
        Some((ratio(goal.time())?, ratio(crate::Measure::PeakRss)?))
    };
    let reference = Some((1.0, 1.0));
    let places: Vec<Option<(f64, f64)>> =
        std::iter::once(reference).chain(proof.remedies.iter().map(place)).collect();
    let is_clear = |a: f64, b: f64| a < b * (1.0 - WORTH);
    let beats = |one: &(f64, f64), other: &(f64, f64)| {
        let better = is_clear(one.0, other.0) || is_clear(one.1, other.1);
        let worse = is_clear(other.0, one.0) || is_clear(other.1, one.1);
        better && !worse
    };
    let is_on = |place: &Option<(f64, f64)>| {
        let beaten = |own: &(f64, f64)| places.iter().flatten().any(|other| beats(other, own));
        place.as_ref().is_some_and(|own| !beaten(own))
    };
    places.iter().map(is_on).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measure;
    use crate::prove::Medians;
    use crate::summary::simulation::runs_off;
    use crate::tune::candidates::Step;

    fn ratio(estimate: f64) -> Option<Ratio> {
        Some(Ratio { estimate, interval: Some((estimate - 0.01, estimate + 0.01)), pairs: 20 })
    }

    fn proved(time: f64, memory: f64, shown: Shown) -> Proved {
        let (wall, peak_rss) = (ratio(time), ratio(memory));
        Proved { medians: Medians::default(), shown, wall, cpu: wall, peak_rss }
    }

    fn proof(remedies: Vec<Proved>) -> Proof {
        let empty = Proof::of(&["a".to_owned()], Measure::Wall, None, &[]);
        Proof { remedies, ..empty }
    }

    /// The values of twenty rounds in which remedies take these seconds and the reference takes one, each run off by up
    /// to `noise`.
    fn values(times: &[f64], noise: f64) -> Values {
        let labels: Vec<String> = (0..=times.len()).map(|index| index.to_string()).collect();
        Values::of(&labels, &labels, Measure::Wall, &runs_off(times, 20, noise))
    }

    fn candidate(step: Step, settings: usize) -> Candidate {
        Candidate { label: format!("{step:?} {settings}"), step, settings, parent: None }
    }

    /// The choice among changes that all gain, each with its time, where single runs are off by up to `noise`.
    fn chosen<const N: usize>(changes: [(Step, usize); N], times: [f64; N], noise: f64) -> Chosen {
        let all = changes.map(|(step, settings)| candidate(step, settings));
        // The first of them takes twice the memory.
        let gains = times.iter().zip([2.0, 1.0, 1.0]);
        let proof = proof(gains.map(|(time, size)| proved(*time, size, Shown::Gain)).collect());
        let all: Vec<&Candidate> = all.iter().collect();
        choose(&all, &proof, &values(&times, noise), Goal::Wall).expect("all of them gain")
    }

    const PAIR: (Step, usize) = (Step::Settings, 2);
    const MALLOC: (Step, usize) = (Step::Malloc, 0);

    #[test]
    fn the_smaller_change_is_taken_within_five_per_cent_of_the_gain() {
        for (times, expected, why) in [
            ([0.615, 0.7, 0.60], (0, 2), "38.5 of 40 are over 95 per cent"),
            ([0.63, 0.61, 0.60], (1, 2), "37 of 40 are not"),
            ([0.9, 0.8, 0.6], (2, 2), "the others gain much less"),
        ] {
            let chosen = chosen([PAIR, MALLOC, (Step::MallocAndSettings, 1)], times, 0.001);
            assert_eq!((chosen.smallest, chosen.best), expected, "{why}");
        }
    }

    #[test]
    fn a_smaller_change_that_was_not_shown_to_be_as_good_is_not_called_so() {
        let at = |noise| chosen([PAIR, MALLOC], [0.605, 0.6], noise);
        let shown = at(0.001);
        assert_eq!((shown.smallest, shown.best, shown.is_shown), (0, 1, true));
        assert!(shown.against.unwrap().interval.unwrap().1 <= 1.0 + NEAR, "{shown:?}");
        let unclear = at(0.2);
        assert_eq!((unclear.smallest, unclear.best, unclear.is_shown), (0, 1, false));
        let (low, high) = unclear.against.unwrap().interval.unwrap();
        assert!(low < 1.0 && high > 1.0 + NEAR, "it may be either: {unclear:?}");
        let [pair, malloc] = [PAIR, MALLOC].map(|(step, settings)| candidate(step, settings));
        let proof = proof([0.605, 0.6].map(|time| proved(time, 1.0, Shown::Gain)).to_vec());
        let few = choose(&[&pair, &malloc], &proof, &Values::default(), Goal::Wall).unwrap();
        assert_eq!((few.smallest, few.is_shown, few.against), (0, false, None));
    }

    #[test]
    fn the_cheaper_of_two_changes_of_one_size_is_taken() {
        let chosen = chosen([MALLOC, MALLOC], [0.5, 0.51], 0.001);
        assert_eq!((chosen.smallest, chosen.best), (1, 0));
        assert!((chosen.share - 0.98).abs() < 1e-9);
        assert_eq!(chosen.smaller, []);
    }

    #[test]
    fn smaller_changes_that_gain_less_are_named_with_what_they_have() {
        let chosen = chosen([PAIR, MALLOC], [0.8, 0.6], 0.001);
        let [Smaller { variant, share, between: Some((low, high)) }] = &chosen.smaller[..] else {
            panic!("{chosen:?}")
        };
        assert_eq!((chosen.smallest, &**variant), (1, "Settings 2"));
        assert!((share - 0.5).abs() < 1e-9, "{chosen:?}");
        assert!(*low < 0.5 && *high > 0.5 && high - low < 0.01, "{low} {high}");
    }

    #[test]
    fn only_a_gain_that_was_shown_and_is_asked_for_is_one() {
        let malloc = candidate(Step::Malloc, 0);
        let nothing = Shown::NoDifference { could_have_seen: 0.1 };
        for (time, memory, shown, goal, is_gain) in [
            (0.8, 1.0, nothing, Goal::Wall, false),
            (0.995, 1.0, Shown::Gain, Goal::Wall, false),
            (1.3, 1.0, Shown::Worse, Goal::Wall, false),
            (1.2, 0.5, Shown::Gain, Goal::PeakRss, true),
            (1.2, 0.5, Shown::Gain, Goal::Wall, false),
        ] {
            let proof = proof(vec![proved(time, memory, shown)]);
            let chosen = choose(&[&malloc], &proof, &Values::default(), goal);
            assert_eq!(chosen.is_some(), is_gain, "{time} {memory}");
        }
    }

    #[test]
    fn on_the_front_is_who_is_beaten_by_nobody_in_both() {
        let gain = || Shown::Gain;
        let remedies = vec![
            proved(0.5, 2.0, gain()),
            proved(0.505, 1.0, gain()),
            proved(0.8, 0.7, gain()),
            proved(0.9, 0.9, gain()),
            Proved { wall: None, ..proved(0.1, 0.1, gain()) },
        ];
        // The fastest is not faster by enough to pay for twice the memory, and three candidates
        // beat the reference.
        assert_eq!(front(&proof(remedies), Goal::Wall), [false, false, true, true, false, false]);
    }

    #[test]
    fn alone_on_the_front_is_the_program_as_it_is_where_nothing_is_better() {
        let remedies = vec![proved(1.002, 0.999, Shown::Worse), proved(1.5, 1.2, Shown::Worse)];
        assert_eq!(front(&proof(remedies), Goal::Wall), [true, true, false]);
    }
}
