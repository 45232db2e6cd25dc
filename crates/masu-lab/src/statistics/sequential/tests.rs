//! Tests of the spending, and of whole series that stop at the first look that satisfies.

use super::super::tests::{Noise, is_alarm, sample};
use super::*;
use crate::random::Random;
use crate::statistics::{Measure, Ratio, Verdict, ratio, verdict};

/// Rounds after which a simulated budget ends.
const BUDGET: usize = 40;

#[test]
fn all_looks_together_spend_the_whole_and_no_more() {
    for budget in 1..500 {
        let mut looks = Looks::new(4);
        let taken: Vec<Look> = (1..budget).filter_map(|rounds| looks.due(rounds)).collect();
        let spent: f64 = taken.iter().map(|look| look.level.error()).sum();
        let all = spent + looks.last().level.error();
        assert!((all - Level::TABLE.error()).abs() < 1e-12, "{budget} rounds: {all}");
        assert_eq!(looks.last().number, taken.len() + 1);
    }
}

#[test]
fn a_first_look_can_give_a_verdict_and_looks_become_rare() {
    for others in 1..20 {
        let mut looks = Looks::new(others);
        let due: Vec<(usize, Look)> =
            (1..1000).filter_map(|rounds| Some((rounds, looks.due(rounds)?))).collect();
        let (rounds, first) = due[0];
        assert_eq!(pairs_needed(others, first.level), rounds);
        for (index, (rounds, look)) in due.iter().enumerate() {
            assert_eq!(look.number, index + 1);
            assert!(pairs_needed(others, look.level) <= *rounds, "{look:?} at {rounds}");
        }
        assert!(due.len() <= 13, "{}", due.len());
    }
}

#[test]
fn a_look_that_was_not_asked_for_in_time_is_taken_at_once() {
    let mut looks = Looks::new(1);
    assert_eq!(looks.due(5), None);
    assert_eq!(looks.due(50).map(|look| look.number), Some(1));
    assert_eq!(looks.due(51), None);
    assert_eq!(looks.due(75).map(|look| look.number), Some(2));
}

/// A series of one variant for each of `truth`, which stops at the first look at which
/// `satisfied`; the verdicts there, and the rounds made.
fn series(
    random: &mut Random,
    noise: Noise,
    truth: &[f64],
    satisfied: impl Fn(&[Option<Ratio>], &[Verdict]) -> bool,
) -> (Vec<Verdict>, usize) {
    let others = truth.len();
    let mut looks = Looks::new(others);
    let mut pairs = vec![Vec::new(); others];
    for rounds in 1.. {
        let reference = sample(random, noise, rounds);
        for (pairs, factor) in pairs.iter_mut().zip(truth) {
            pairs.push((reference, factor * sample(random, noise, rounds)));
        }
        let ends = rounds == BUDGET;
        let look = if ends { Some(looks.last()) } else { looks.due(rounds) };
        let Some(look) = look else { continue };
        let ratios: Vec<Option<Ratio>> =
            pairs.iter().map(|pairs| ratio(pairs, others, look.level)).collect();
        let judge =
            |ratio: &Option<Ratio>| verdict(Measure::Wall, ratio.as_ref(), others, look.level);
        let verdicts: Vec<Verdict> = ratios.iter().map(judge).collect();
        if ends || satisfied(&ratios, &verdicts) {
            return (verdicts, rounds);
        }
    }
    unreachable!("the budget ends")
}

#[test]
fn stopping_at_the_first_alarm_finds_nothing_in_null_tables() {
    // The worst way to stop: as soon as any look shows a difference.
    let greedy = |_: &[Option<Ratio>], verdicts: &[Verdict]| verdicts.iter().any(is_alarm);
    for (noise, seed) in [(Noise::Normal(0.015), 1), (Noise::Skewed, 2), (Noise::Drifting, 3)] {
        let mut random = Random::new(seed);
        let alarm =
            |_: &usize| series(&mut random, noise, &[1.0; 4], greedy).0.iter().any(is_alarm);
        let alarms = (0..1000).filter(alarm).count();
        assert!(alarms <= 10, "{alarms} of 1000");
    }
}

#[test]
fn a_quiet_series_stops_earlier_than_a_noisy_one() {
    let rounds = |variation: f64| {
        let mut random = Random::new(5);
        let narrow = |ratios: &[Option<Ratio>], _: &[Verdict]| {
            let within = |ratio: &Ratio| {
                let (low, high) = ratio.interval.unwrap();
                is_within(ratio.estimate, low, high, DEFAULT_PRECISION)
            };
            ratios.iter().flatten().all(within)
        };
        series(&mut random, Noise::Normal(variation), &[1.0, 1.1], narrow).1
    };
    assert_eq!(rounds(0.001), 10, "at the first look");
    assert!((11..BUDGET).contains(&rounds(0.006)), "{}", rounds(0.006));
    assert_eq!(rounds(0.05), BUDGET);
}
