//! Tests of the judgement's promises on whole simulated comparisons: false alarms, power, early stops.

use super::*;
use crate::results::Row;
use crate::statistics::{DEFAULT_PRECISION, Looks, Verdict};
use crate::suite::DEFAULT_ROUNDS;
use masu_run::execute::Burst;

/// The number of tables for a rate: a thousand, or with `MASU_SOAK=1` twenty thousand.
fn tables() -> usize {
    let soak = std::env::var_os("MASU_SOAK").is_some_and(|value| value == "1");
    if soak { 20_000 } else { 1000 }
}

/// Five variants between which there is no difference.
const NULL: Comparison = Comparison { truth: &[1.0; 5], starved: 0.0, repeats: 0, crashes: 0.0 };
/// A budget in rounds for series that may stop early.
const BUDGET: usize = 40;

fn judged(compared: &Comparison, look: Look, runs: &[Run]) -> Summary {
    summary_of(compared.truth.len(), Measure::Wall, look, runs)
}

fn differences(summary: &Summary) -> usize {
    let differs = |verdict: &Verdict| matches!(verdict, Verdict::Faster | Verdict::Slower);
    summary.rows.iter().filter(|row| differs(&row.verdict)).count()
}

/// The number of tables, of `rounds` rounds each, that show a difference, true or not.
fn alarms(compared: &Comparison, noise: Noise, rounds: usize) -> usize {
    let mut machine = Machine::new(noise, 1);
    let alarm = |_: &usize| {
        let runs = compared.runs(&mut machine, rounds);
        differences(&judged(compared, Look::ONLY, &runs)) > 0
    };
    (0..tables()).filter(alarm).count()
}

/// The runs of the first `rounds` rounds.
fn first(rounds: usize, runs: &[Run]) -> &[Run] {
    &runs[..runs.partition_point(|run| run.round < Some(rounds))]
}

/// The summary at the first look that meets `satisfied`, or at the last one, and the rounds made.
fn looked_at(
    compared: &Comparison,
    machine: &mut Machine,
    satisfied: impl Fn(&Summary) -> bool,
) -> (Summary, usize) {
    let runs = compared.runs(machine, BUDGET);
    let mut looks = Looks::new(compared.truth.len() - 1);
    for rounds in 1..BUDGET {
        let Some(look) = looks.due(rounds) else { continue };
        let summary = judged(compared, look, first(rounds, &runs));
        if satisfied(&summary) {
            return (summary, rounds);
        }
    }
    (judged(compared, looks.last(), &runs), BUDGET)
}

/// Checks that false alarms are rare: at most one table in a hundred over all kinds of noise, and for each kind no more
/// than chance may add to one in a hundred.
fn assert_rare(alarms: &[(Noise, usize)]) {
    let tables = tables();
    println!("of {tables}: {alarms:?}");
    let all: usize = alarms.iter().map(|(_, alarms)| alarms).sum();
    assert!(all * 100 <= alarms.len() * tables, "of {tables}: {alarms:?}");
    // 17 of 1000 are three and a half deviations above the rate measured over twenty thousand.
    let of_one = if tables > 1000 { tables / 100 } else { 17 };
    assert!(alarms.iter().all(|(_, alarms)| *alarms <= of_one), "of {tables}: {alarms:?}");
}

#[test]
fn at_most_one_null_table_in_a_hundred_raises_an_alarm() {
    assert_rare(&Noise::ALL.map(|noise| (noise, alarms(&NULL, noise, DEFAULT_ROUNDS))));
}

#[test]
fn stopping_at_the_first_difference_finds_none_in_null_tables() {
    // The worst way to stop: as soon as any look shows anything.
    let greedy = |noise| {
        let mut machine = Machine::new(noise, 2);
        let alarm = |_: &usize| {
            let seen = |summary: &Summary| differences(summary) > 0;
            differences(&looked_at(&NULL, &mut machine, seen).0) > 0
        };
        (0..tables()).filter(alarm).count()
    };
    let noises = [
        Noise::Normal(0.015),
        Noise::Skewed,
        Noise::Moods,
        Noise::Lingering,
        Noise::Recorded("waking"),
    ];
    assert_rare(&noises.map(|noise| (noise, greedy(noise))));
}

#[test]
fn without_spending_repeated_looks_would_find_what_is_not_there() {
    // The test above can fail: here every look is at the whole level.
    let mut machine = Machine::new(Noise::Normal(0.015), 3);
    let alarm = |_: &usize| {
        let runs = NULL.runs(&mut machine, BUDGET);
        [11, 17, 26, 39]
            .into_iter()
            .any(|rounds| differences(&judged(&NULL, Look::ONLY, first(rounds, &runs))) > 0)
    };
    let alarms = (0..tables()).filter(alarm).count();
    println!("{alarms} of {}", tables());
    assert!(alarms * 100 > tables(), "{alarms} of {}", tables());
}

#[test]
fn starved_runs_kept_or_made_again_and_crashes_raise_no_alarm() {
    for (repeats, crashes) in [(0, 0.0), (2, 0.05)] {
        let compared = Comparison { starved: 0.15, repeats, crashes, ..NULL };
        let noises = [Noise::Normal(0.015), Noise::Lingering, Noise::Recorded("waking")];
        assert_rare(&noises.map(|noise| (noise, alarms(&compared, noise, DEFAULT_ROUNDS))));
    }
}

#[test]
fn a_shift_of_three_per_cent_is_found_within_the_default_rounds() {
    for noise in [Noise::Normal(0.015), Noise::Normal(0.02), Noise::Recorded("quiet")] {
        let tables = tables();
        let compared = Comparison::of(&[1.0, 1.03, 1.0, 0.97, 1.0]);
        let mut machine = Machine::new(noise, 4);
        let (mut slower, mut faster, mut wrong) = (0, 0, 0);
        for _ in 0..tables {
            let runs = compared.runs(&mut machine, DEFAULT_ROUNDS);
            let rows = judged(&compared, Look::ONLY, &runs).rows;
            slower += usize::from(rows[1].verdict == Verdict::Slower);
            faster += usize::from(rows[3].verdict == Verdict::Faster);
            let shown = |row: &Row| !matches!(row.verdict, Verdict::NoDifferenceShown { .. });
            wrong += usize::from(shown(&rows[2]) || shown(&rows[4]));
        }
        let found = format!("{noise:?}: {slower} and {faster} found, {wrong} wrong of {tables}");
        println!("{found}");
        assert!(slower.min(faster) * 100 >= tables * 95 && wrong * 100 <= tables, "{found}");
    }
}

#[test]
fn the_smallest_difference_it_could_have_seen_is_found_nine_times_of_ten() {
    for primary in [Measure::Wall, Measure::Throughput] {
        for look in [Look::ONLY, late_look()] {
            for up in [true, false] {
                let tables = tables() / 5;
                let found = found_at_what_could_be_seen(primary, look, up, tables);
                let text = format!("{primary:?} {} {up}: {found} of {tables}", look.number);
                println!("{text}");
                assert!((80..=97).contains(&(found * 100 / tables)), "{text}");
            }
        }
    }
}

/// The number of `tables` tables in which a variant is found that differs by the amount that the table before says it
/// could have seen.
fn found_at_what_could_be_seen(primary: Measure, look: Look, up: bool, tables: usize) -> usize {
    let mut machine = Machine::new(Noise::Normal(0.03), 5);
    let found = |_: &usize| {
        let seen = could_have_seen(&mut machine, primary, look);
        let truth = [1.0, if up { 1.0 + seen } else { 1.0 / (1.0 + seen) }, 1.0];
        let runs = bursts(Comparison::of(&truth).runs(&mut machine, DEFAULT_ROUNDS));
        let rows = summary_of(3, primary, look, &runs).rows;
        matches!(rows[1].verdict, Verdict::Faster | Verdict::Slower)
    };
    (0..tables).filter(found).count()
}

/// The fourth look at a table of three variants.
fn late_look() -> Look {
    let mut looks = Looks::new(2);
    (1..1000).filter_map(|rounds| looks.due(rounds)).nth(3).unwrap()
}

/// The amount that a null table on `machine` says it could have seen.
fn could_have_seen(machine: &mut Machine, primary: Measure, look: Look) -> f64 {
    loop {
        let runs = bursts(Comparison::of(&[1.0; 3]).runs(machine, DEFAULT_ROUNDS));
        let summary = summary_of(3, primary, look, &runs);
        // Now and then there is a false alarm instead.
        if let Verdict::NoDifferenceShown { could_have_seen } = summary.rows[1].verdict {
            return could_have_seen;
        }
    }
}

/// The runs as bursts on a server: a shorter run gives more answers a second.
fn bursts(mut runs: Vec<Run>) -> Vec<Run> {
    for run in &mut runs {
        run.burst = Some(Burst { throughput: Some(1.0 / run.wall_s), ..Burst::default() });
    }
    runs
}

#[test]
fn a_quiet_series_stops_earlier_than_a_noisy_one() {
    let rounds = |variation: f64| {
        let compared = Comparison::of(&[1.0, 1.0, 1.1]);
        let mut machine = Machine::new(Noise::Normal(variation), 6);
        looked_at(&compared, &mut machine, |summary| summary.is_narrow(DEFAULT_PRECISION)).1
    };
    assert_eq!(rounds(0.001), 10, "at the first look");
    assert!((11..BUDGET).contains(&rounds(0.006)), "{}", rounds(0.006));
    assert_eq!(rounds(0.05), BUDGET);
}

#[test]
fn a_variant_that_never_works_does_not_keep_a_series_from_ending() {
    let mut runs = Comparison::of(&[1.0; 3]).runs(&mut Machine::new(Noise::Normal(0.001), 7), 20);
    for run in runs.iter_mut().filter(|run| run.variant == 2) {
        run.ending = Ending::Signalled(6);
    }
    let summary = summary_of(3, Measure::Wall, Look::ONLY, &runs);
    assert!(summary.is_narrow(0.01) && !summary.is_narrow(0.0001), "{summary:?}");
}
