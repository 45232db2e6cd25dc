//! Tests that each rule finds a planted effect, and is silent on healthy series.

use super::*;
use crate::statistics::Look;
use crate::summary::simulation::{Comparison, Machine, Noise, summary_of};
use masu_run::Run;

/// The warnings about a table of five equal variants on a machine with 1 % noise, with runs altered by `change`.
fn warned(rounds: usize, change: impl Fn(&mut Run)) -> Vec<String> {
    let mut runs =
        Comparison::of(&[1.0; 5]).runs(&mut Machine::new(Noise::Normal(0.01), 1), rounds);
    runs.iter_mut().for_each(change);
    summary_of(5, Measure::Wall, Look::ONLY, &runs).warnings
}

/// The only warning, which must begin with `name`.
fn only(warnings: &[String], name: &str) -> String {
    let [warning] = warnings else { panic!("{name}: {warnings:?}") };
    assert!(warning.starts_with(name), "{warning}");
    warning.clone()
}

fn round(run: &Run) -> f64 {
    run.round.unwrap() as f64
}

#[test]
fn healthy_series_are_warned_of_in_fewer_than_one_table_of_a_hundred() {
    for (rounds, variation) in [(10, 0.01), (12, 0.03), (20, 0.02), (30, 0.005), (60, 0.01)] {
        let mut machine = Machine::new(Noise::Normal(variation), 2);
        let mut counts = [("drift", 0), ("outliers", 0), ("two speeds", 0), ("", 0)];
        for _ in 0..500 {
            let runs = Comparison::of(&[1.0; 5]).runs(&mut machine, rounds);
            let warnings = summary_of(5, Measure::Wall, Look::ONLY, &runs).warnings;
            for (name, count) in &mut counts {
                *count += usize::from(warnings.iter().any(|warning| warning.starts_with(*name)));
            }
        }
        println!("{rounds} rounds at {variation}: {counts:?} of 500");
        assert!(counts.iter().all(|(_, count)| *count <= 5), "{rounds}: {counts:?}");
    }
}

#[test]
fn a_quiet_machine_as_it_was_recorded_is_seldom_warned_of() {
    let mut machine = Machine::new(Noise::Recorded("quiet"), 3);
    let warned = (0..500)
        .filter(|_| {
            let runs = Comparison::of(&[1.0; 5]).runs(&mut machine, 20);
            !summary_of(5, Measure::Wall, Look::ONLY, &runs).warnings.is_empty()
        })
        .count();
    println!("{warned} of 500");
    assert!(warned <= 15, "{warned} of 500");
}

#[test]
fn a_drift_of_the_whole_machine_is_named_with_its_size() {
    let warnings = warned(30, |run| run.wall_s *= 1.0 + 0.005 * round(run));
    let drift = only(&warnings, "drift: ");
    assert!(drift.contains("`a` by +1") && drift.contains("`e` by +1"), "{drift}");
    assert!(drift.contains("warm up or cool down"), "{drift}");
}

#[test]
fn a_drift_of_one_variant_points_to_what_it_leaves_behind() {
    let warnings = warned(30, |run| {
        if run.variant == 2 {
            run.wall_s *= 1.2 - 0.005 * round(run);
        }
    });
    let drift = only(&warnings, "drift: ");
    assert!(drift.contains("`c` by -1") && !drift.contains("`a`"), "{drift}");
    assert!(drift.contains("leave behind"), "{drift}");
}

#[test]
fn outliers_are_counted_with_their_variant_and_what_the_machine_did() {
    let wild = |run: &Run| run.variant == 1 && run.round.unwrap() % 6 == 1;
    let alone = warned(30, |run| {
        if wild(run) {
            run.wall_s *= 1.3 + round(run) / 60.0;
        }
    });
    let outliers = only(&alone, "outliers: ");
    assert!(outliers.contains("5 of 30 runs of `b`"), "{outliers}");
    assert!(outliers.contains("nothing seen of the machine"), "{outliers}");
    let disturbed = warned(30, |run| {
        if wild(run) {
            run.wall_s *= 1.3 + round(run) / 60.0;
            run.starved = run.round.unwrap() < 15;
        }
    });
    assert!(only(&disturbed, "outliers: ").contains("in 3 of them"), "{disturbed:?}");
}

#[test]
fn one_wild_run_is_not_worth_a_word() {
    let warnings = warned(30, |run| {
        if run.variant == 1 && run.round == Some(7) {
            run.wall_s *= 9.0;
        }
    });
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn two_speeds_are_named_with_centres_shares_and_their_likely_cause() {
    let slow = |run: &Run| run.variant == 3 && run.round.unwrap() % 5 < 2;
    let placed = warned(30, |run| {
        if slow(run) {
            run.wall_s *= 1.5;
        }
    });
    let speeds = only(&placed, "two speeds: ");
    let expected = "`d` is at 0.99 times its median in 60 % of its runs and at 1.48 times in 40 %";
    assert!(speeds.contains(expected), "{speeds}");
    assert!(speeds.contains("taskset"), "{speeds}");
    let huge = warned(30, |run| {
        run.minor_faults = 400;
        if slow(run) {
            run.wall_s *= 1.5;
            run.minor_faults = 25_000;
        }
    });
    assert!(only(&huge, "two speeds: ").contains("400 and 25000"), "{huge:?}");
    let mut runs = Comparison::of(&[1.0; 5]).runs(&mut Machine::new(Noise::Normal(0.01), 1), 30);
    runs.iter_mut().for_each(|run| run.minor_faults = 42 + u64::from(slow(run)));
    let counted = summary_of(5, Measure::MinorFaults, Look::ONLY, &runs).warnings;
    assert!(only(&counted, "two speeds: ").contains("it is no time"), "{counted:?}");
}

#[test]
fn most_tables_with_two_speeds_or_drift_are_named() {
    for (noise, name) in [(Noise::TwoSpeeds, "two speeds"), (Noise::Drifting, "drift")] {
        let mut machine = Machine::new(noise, 4);
        let named = (0..100)
            .filter(|_| {
                let runs = Comparison::of(&[1.0; 5]).runs(&mut machine, 30);
                let warnings = summary_of(5, Measure::Wall, Look::ONLY, &runs).warnings;
                warnings.iter().any(|warning| warning.starts_with(name))
            })
            .count();
        assert!(named >= 95, "{name}: {named} of 100");
    }
}
