//! Tests of single ratios and verdicts; whole simulated tables are in `summary/simulation/tests.rs`.

use super::*;
const TABLE: Level = Level::TABLE;

#[test]
fn one_wild_run_decides_nothing() {
    // Ratios of 0.93 to 0.97, and one of 50.
    let mut pairs: Vec<(f64, f64)> =
        (0..20).map(|round| (1.0, 0.95 + f64::from(round % 5 - 2) / 100.0)).collect();
    pairs[3].1 = 50.0;
    let ratio = ratio(&pairs, 4, TABLE).unwrap();
    assert!((ratio.estimate - 0.95).abs() < 0.02, "{ratio:?}");
    assert_eq!(verdict(Measure::Wall, Some(&ratio), ratio.pairs, 4, TABLE), Verdict::Faster);
}

#[test]
fn an_interval_that_leaves_out_1_lies_on_a_side_and_of_a_throughput_more_is_better() {
    let side =
        |measure: Measure, interval| measure.side(&Ratio { estimate: 1.0, interval, pairs: 9 });
    assert_eq!(side(Measure::Wall, Some((0.8, 0.99))), Side::Better);
    assert_eq!(side(Measure::Wall, Some((1.01, 1.2))), Side::Worse);
    assert_eq!(side(Measure::Throughput, Some((1.01, 1.2))), Side::Better);
    assert_eq!(side(Measure::Throughput, Some((0.8, 0.99))), Side::Worse);
    assert_eq!(side(Measure::Wall, Some((0.8, 1.0))), Side::Open);
    assert_eq!(side(Measure::Wall, None), Side::Open);
}

#[test]
fn too_few_pairs_give_ratios_but_no_verdict() {
    let pairs = vec![(1.0, 2.0); 7];
    let few = ratio(&pairs, 1, TABLE).unwrap();
    assert!((few.estimate - 2.0).abs() < 1e-12);
    assert_eq!(
        verdict(Measure::Wall, Some(&few), 7, 1, TABLE),
        Verdict::TooFewRuns { pairs: 7, needed: 8 }
    );
    let without = |pairs| verdict(Measure::Wall, None, pairs, 1, TABLE);
    assert_eq!(without(7), Verdict::TooFewRuns { pairs: 7, needed: 8 });
    assert_eq!(without(8), Verdict::NoRatio);
    assert_eq!([1, 4, 9].map(|others| pairs_needed(others, TABLE)), [8, 10, 12]);
}

#[test]
fn with_as_many_pairs_as_needed_there_is_a_verdict() {
    for others in 1..20 {
        let pairs = vec![(1.0, 2.0); pairs_needed(others, TABLE)];
        assert_eq!(
            verdict(
                Measure::Wall,
                ratio(&pairs, others, TABLE).as_ref(),
                pairs.len(),
                others,
                TABLE
            ),
            Verdict::Slower
        );
    }
}

#[test]
fn zeros_count_as_less_than_anything_and_never_leave_a_choice() {
    assert_eq!(ratio(&[], 1, TABLE), None);
    assert_eq!(ratio(&[(0.0, 0.0); 30], 1, TABLE), None);
    assert_eq!(ratio(&[(0.0, 1.0); 30], 1, TABLE), None);
    // The reference is almost always zero; the rare rounds in which it is not say "equal".
    let mut pairs = vec![(0.0, 1.0); 30];
    pairs.extend([(1.0, 1.0); 10]);
    assert_eq!(ratio(&pairs, 1, TABLE), None);
    // The estimate lies halfway between a boundless average and one below zero.
    assert_eq!(ratio(&[(0.0, 1.0), (2.0, 1.0), (2.0, 1.0)], 1, TABLE), None);
    // Zeros on both sides in most pairs are no difference.
    let mut pairs = vec![(0.0, 0.0); 30];
    pairs.extend([(0.0, 1.0), (2.0, 0.0), (1.0, 3.0)]);
    let equal = ratio(&pairs, 1, TABLE).unwrap();
    assert_eq!((equal.estimate, equal.interval, equal.pairs), (1.0, Some((1.0, 1.0)), 33));
    // One zero among many moves an end by a place, like any wild run.
    let mut pairs: Vec<(f64, f64)> =
        (0..30).map(|round| (1.0, 0.95 + f64::from(round % 5 - 2) / 100.0)).collect();
    pairs[7] = (1.0, 0.0);
    let one = ratio(&pairs, 1, TABLE).unwrap();
    assert_eq!(verdict(Measure::Wall, Some(&one), one.pairs, 1, TABLE), Verdict::Faster);
    assert!(one.interval.unwrap().0 > 0.9, "{one:?}");
}

#[test]
fn zeros_on_either_side_in_turn_are_no_proof_of_equality() {
    // Ups and downs without bound cancel out in the averages, and say nothing of the size of a difference.
    for times in [1, 3, 50] {
        let pairs: Vec<(f64, f64)> = [(0.0, 1.0), (1.0, 0.0)].repeat(times);
        assert_eq!(ratio(&pairs, 1, TABLE), None);
    }
}

#[test]
fn ups_and_downs_of_one_size_cancel_out() {
    // Where an end of the interval is an up beside a down, it is 1, whichever numbers they came from.
    for (least, most) in [(42.0, 43.0), (47.0, 48.0), (55.0, 56.0), (100.0, 101.0)] {
        let mut pairs = vec![(most, least); 13];
        pairs.extend([(least, most); 4]);
        pairs.extend([(least, least); 3]);
        let down = ratio(&pairs, 1, TABLE).unwrap();
        assert_eq!(down.interval.unwrap().1, 1.0, "{least} {most}");
        pairs.iter_mut().for_each(|(reference, value)| std::mem::swap(reference, value));
        assert_eq!(ratio(&pairs, 1, TABLE).unwrap().interval.unwrap().0, 1.0, "{least} {most}");
    }
}

#[test]
fn medians_and_spreads_interpolate() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    assert_eq!(Sorted::new(&[1.0, 2.0, 3.0, 4.0, 5.0]).spread(), Some(1.0));
}
