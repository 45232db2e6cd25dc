//! Tests of the statistics on simulated series, where the truth is known.

use super::*;
use crate::compare::DEFAULT_RUNS;
use crate::random::Random;

const TABLE: Level = Level::TABLE;

/// How a simulated machine behaves.
#[derive(Clone, Copy)]
pub(super) enum Noise {
    /// Normal, with this coefficient of variation.
    Normal(f64),
    /// Mostly quiet, one run in ten up to a third slower: a neighbour woke up.
    Skewed,
    /// Normal, on a machine that gets slower all the time.
    Drifting,
}

#[expect(clippy::cast_precision_loss, reason = "random bits become a fraction")]
fn fraction(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Twelve uniform numbers make a normal one that is good to four deviations.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| fraction(random)).sum::<f64>() - 6.0
}

#[expect(clippy::cast_precision_loss, reason = "rounds are few")]
pub(super) fn sample(random: &mut Random, noise: Noise, round: usize) -> f64 {
    match noise {
        Noise::Normal(variation) => 1.0 + variation * normal(random),
        Noise::Skewed => {
            let quiet = 1.0 + 0.005 * normal(random);
            let disturbed = fraction(random) < 0.1;
            quiet + if disturbed { fraction(random) / 3.0 } else { 0.0 }
        }
        Noise::Drifting => (1.0 + 0.015 * normal(random)) * (1.0 + 0.02 * round as f64),
    }
}

/// The verdicts on a table whose variants besides the reference take `truth` times its time.
fn table(random: &mut Random, noise: Noise, truth: &[f64], rounds: usize) -> Vec<Verdict> {
    let mut pairs = vec![Vec::new(); truth.len()];
    for round in 0..rounds {
        let reference = sample(random, noise, round);
        for (pairs, factor) in pairs.iter_mut().zip(truth) {
            pairs.push((reference, factor * sample(random, noise, round)));
        }
    }
    let judge = |pairs: &Vec<_>| {
        verdict(Measure::Wall, ratio(pairs, truth.len(), TABLE).as_ref(), truth.len(), TABLE)
    };
    pairs.iter().map(judge).collect()
}

pub(super) fn is_alarm(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

fn false_alarms(noise: Noise, tables: usize, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let one = |_: &usize| table(&mut random, noise, &[1.0; 4], DEFAULT_RUNS).iter().any(is_alarm);
    (0..tables).filter(one).count()
}

#[test]
fn at_most_one_null_table_in_a_hundred_raises_an_alarm() {
    for (noise, seed) in [(Noise::Normal(0.015), 1), (Noise::Skewed, 2), (Noise::Drifting, 3)] {
        let alarms = false_alarms(noise, 1000, seed);
        assert!(alarms <= 10, "{alarms} of 1000");
    }
}

#[test]
fn the_alarm_can_ring() {
    // The test above would pass if verdicts were never given.
    let mut random = Random::new(4);
    let verdicts = table(&mut random, Noise::Normal(0.015), &[1.2, 0.8], DEFAULT_RUNS);
    assert_eq!(verdicts, [Verdict::Slower, Verdict::Faster]);
}

#[test]
fn a_shift_of_three_per_cent_is_found_mostly() {
    let mut random = Random::new(5);
    let truth = [1.03, 1.0, 0.97, 1.0];
    let mut found = [0; 4];
    for _ in 0..200 {
        let verdicts = table(&mut random, Noise::Normal(0.015), &truth, DEFAULT_RUNS);
        for (found, verdict) in found.iter_mut().zip(&verdicts) {
            *found += usize::from(is_alarm(verdict));
        }
    }
    assert!(found[0] >= 180 && found[2] >= 180, "{found:?} of 200");
    assert!(found[1] <= 4 && found[3] <= 4, "{found:?} of 200");
}

#[test]
fn the_smallest_difference_it_could_have_seen_is_honest() {
    // Shifts of 1.5 times what a quiet table says it could have seen are mostly found.
    let mut random = Random::new(6);
    let verdicts = table(&mut random, Noise::Normal(0.015), &[1.0; 4], DEFAULT_RUNS);
    let Verdict::NoDifferenceShown { could_have_seen } = verdicts[0] else { panic!() };
    assert!((0.005..0.03).contains(&could_have_seen), "{could_have_seen}");
    let shifted = [1.0 + 1.5 * could_have_seen; 4];
    let found: usize = (0..50)
        .flat_map(|_| table(&mut random, Noise::Normal(0.015), &shifted, DEFAULT_RUNS))
        .filter(is_alarm)
        .count();
    assert!(found >= 160, "{found} of 200");
}

#[test]
fn one_wild_run_decides_nothing() {
    let mut random = Random::new(7);
    let mut pairs: Vec<(f64, f64)> = (0..DEFAULT_RUNS)
        .map(|round| {
            let noise = Noise::Normal(0.015);
            (sample(&mut random, noise, round), 0.95 * sample(&mut random, noise, round))
        })
        .collect();
    pairs[3].1 *= 50.0;
    let ratio = ratio(&pairs, 4, TABLE).unwrap();
    assert!((ratio.estimate - 0.95).abs() < 0.02, "{ratio:?}");
    assert_eq!(verdict(Measure::Wall, Some(&ratio), 4, TABLE), Verdict::Faster);
}

#[test]
fn too_few_pairs_give_ratios_but_no_verdict() {
    let pairs = vec![(1.0, 2.0); 7];
    let few = ratio(&pairs, 1, TABLE).unwrap();
    assert!((few.estimate - 2.0).abs() < 1e-12);
    assert_eq!(
        verdict(Measure::Wall, Some(&few), 1, TABLE),
        Verdict::TooFewRuns { pairs: 7, needed: 8 }
    );
    assert_eq!(verdict(Measure::Wall, None, 1, TABLE), Verdict::TooFewRuns { pairs: 0, needed: 8 });
    assert_eq!([1, 4, 9].map(|others| pairs_needed(others, TABLE)), [8, 10, 11]);
}

#[test]
fn with_as_many_pairs_as_needed_there_is_a_verdict() {
    for others in 1..20 {
        let pairs = vec![(1.0, 2.0); pairs_needed(others, TABLE)];
        assert_eq!(
            verdict(Measure::Wall, ratio(&pairs, others, TABLE).as_ref(), others, TABLE),
            Verdict::Slower
        );
    }
}

#[test]
fn zeros_have_no_ratio() {
    assert_eq!(ratio(&[(0.0, 1.0), (1.0, 0.0)], 1, TABLE), None);
    assert_eq!(ratio(&[(0.0, 1.0), (1.0, 3.0)], 1, TABLE).unwrap().pairs, 1);
}

#[test]
fn medians_and_spreads_interpolate() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(spread(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some(1.0));
}
