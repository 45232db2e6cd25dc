//! Tests of the table on made-up runs.

use super::*;
use crate::prove::{Proof, Shown};
use masu_run::execute::{Burst, Latencies, Output};

fn run(variant: usize, round: usize, wall_s: f64) -> Run {
    Run {
        variant,
        round: Some(round),
        wall_s,
        user_s: wall_s,
        peak_rss_bytes: 1 << 20,
        minor_faults: 10,
        voluntary_switches: 1,
        involuntary_switches: 2,
        queued_s: Some(0.0),
        stdout: Output { bytes: 1, hash: "a".to_owned(), tail: String::new() },
        ..Run::default()
    }
}

/// Ten rounds of two variants, the second twice as fast; `change` alters the runs afterwards.
fn summary(change: impl Fn(&mut Run)) -> Summary {
    let mut runs: Vec<Run> =
        (0..10).flat_map(|round| [run(0, round, 2.0), run(1, round, 1.0)]).collect();
    runs.iter_mut().for_each(change);
    summarize(&["reference".to_owned(), "other".to_owned()], Measure::Wall, Look::ONLY, &runs)
}

fn warned(summary: &Summary, word: &str) -> bool {
    summary.warnings.iter().any(|warning| warning.contains(word))
}

#[test]
fn equal_work_gives_ratios_verdicts_and_no_warning() {
    let summary = summary(|_| {});
    assert_eq!(summary.rows[0].verdict, Verdict::Reference);
    assert_eq!(summary.rows[1].verdict, Verdict::Faster);
    let wall = &summary.rows[1].estimates[0];
    assert_eq!(wall.median, Some(1.0));
    assert!((wall.ratio.unwrap().estimate - 0.5).abs() < 1e-12);
    assert_eq!(summary.rows[1].estimates[2].ratio, None, "sys is zero everywhere");
    assert!(summary.repeatable && summary.warnings.is_empty(), "{:?}", summary.warnings);
}

#[test]
fn a_crash_does_not_make_a_variant_fast() {
    let summary = summary(|run| {
        if run.variant == 1 && run.round == Some(3) {
            run.ending = Ending::Signalled(11);
            run.wall_s = 0.001;
        }
    });
    assert_eq!(summary.rows[1].valid_runs, 9);
    assert_eq!(summary.rows[1].estimates[0].range, Some((1.0, 1.0)));
    assert_eq!(summary.rows[1].estimates[0].ratio.unwrap().pairs, 9);
    assert!(!summary.repeatable && warned(&summary, "`other` was ended by signal 11"));
}

#[test]
fn a_variant_that_always_crashes_does_not_set_the_standard() {
    let crashes = |variant: usize| {
        summary(move |run| {
            if run.variant == variant {
                run.ending = Ending::Signalled(11);
            }
        })
    };
    assert_eq!(crashes(1).rows[0].valid_runs, 10);
    assert_eq!(crashes(1).rows[1].valid_runs, 0);
    assert_eq!(crashes(0).rows[1].valid_runs, 0);
}

#[test]
fn a_variant_that_always_fails_gets_no_verdict() {
    let summary = summary(|run| {
        if run.variant == 1 {
            let round = run.round.unwrap();
            let process = format!("p ({round})");
            run.ending = Ending::OutOfMemory { process, bytes: (1 << 30) + round as u64 };
        }
    });
    assert_eq!(summary.rows[1].verdict, Verdict::RunsFailed { failed: 10, of: 10 });
    assert_eq!(summary.rows[1].estimates[0].median, None);
    assert!(warned(&summary, "(10 runs)") && warned(&summary, "more memory"));
    assert_eq!(summary.warnings.len(), 1, "{:?}", summary.warnings);
}

#[test]
fn where_slow_runs_are_cut_short_the_fast_ones_give_no_verdict() {
    // Every third run hangs: the remaining runs of either variant are fast, and say nothing about the others.
    for variant in [0, 1] {
        let hangs = summary(|run| {
            if run.variant == variant && run.round.is_some_and(|round| round % 3 == 0) {
                run.ending = Ending::TimedOut;
            }
        });
        assert_eq!(hangs.rows[1].verdict, Verdict::RunsFailed { failed: 4, of: 10 });
        let Gate::Undecided(undecided) = gate(&hangs, 5.0) else { panic!("passed: {hangs:?}") };
        assert_eq!(undecided[0].could_have_seen, None);
        assert_eq!(hangs.rows[1].estimates[0].ratio.unwrap().interval, None);
    }
    // A round that was stopped in the middle is no failure.
    let stopped = summary(|run| {
        if run.variant == 1 && run.round == Some(9) {
            run.ending = Ending::Stopped;
        }
    });
    assert_eq!(stopped.rows[1].verdict, Verdict::Faster);
}

#[test]
fn differing_output_is_named_and_keeps_the_verdict() {
    let between = summary(|run| {
        if run.variant == 1 {
            run.stdout.hash = "b".to_owned();
        }
    });
    assert!(warned(&between, "output of other differs from that of reference"));
    assert!(!between.repeatable);
    assert_eq!(between.rows[1].verdict, Verdict::Faster);
    let within = summary(|run| run.stdout.hash = format!("{:?}", run.round));
    assert!(warned(&within, "between runs of reference, other"), "{:?}", within.warnings);
}

#[test]
fn failing_starved_and_short_runs_are_said() {
    let gained = summary(|run| run.wall_s = if run.variant == 0 { 0.2 } else { 0.002 });
    let summary = summary(|run| {
        run.ending = Ending::Exited(2);
        run.stderr.tail = "first\nno such file\n".to_owned();
        run.starved = true;
        run.wall_s = 0.001;
        run.left_behind = vec!["sleep (9)".to_owned()];
    });
    for word in ["returned 2 and says: first / no such file", "waited long", "1.0 ms", "sleep (9)"]
    {
        assert!(warned(&summary, word), "{word}: {:?}", summary.warnings);
    }
    assert!(!warned(&gained, "program's start"), "{:?}", gained.warnings);
}

#[test]
fn a_measure_that_is_often_zero_has_no_ratio_and_says_so() {
    let mut runs: Vec<Run> =
        (0..30).flat_map(|round| [run(0, round, 2.0), run(1, round, 1.0)]).collect();
    for run in &mut runs {
        // The reference reads from disk in some runs, the other variant in all.
        let often = run.variant == 1 || run.round.is_some_and(|round| round % 3 == 0);
        run.major_faults = if often { 5 } else { 0 };
    }
    let labels = ["reference".to_owned(), "other".to_owned()];
    let summary = summarize(&labels, Measure::MajorFaults, Look::ONLY, &runs);
    assert_eq!(summary.rows[1].estimate(Measure::MajorFaults).unwrap().ratio, None);
    assert!(warned(&summary, "zero in 20 of 30 rounds"), "{:?}", summary.warnings);
    // More runs would not give a verdict, and no page may ask for them.
    assert_eq!(summary.rows[1].verdict, Verdict::NoRatio);
    let held = |text: &str| decide(&summary, &text.parse().unwrap()).holds;
    assert_eq!(held("other if major_faults <= 1"), Held::Unknown);
    assert_eq!(held("other if wall <= 0.6"), Held::Yes, "another measure has a ratio");
    assert_eq!(
        Proof::of(&labels, summary.primary, Some(&summary), &[]).remedies[0].shown,
        Shown::NoRatio
    );
    let said = crate::report::verdict(&summary.rows[1], Measure::MajorFaults);
    assert_eq!(said, "no verdict: there is no ratio; below it says why");
    let without = summarize(&labels, Measure::LatencyP99, Look::ONLY, &runs);
    assert!(warned(&without, "no run that counts has a value of `latency_p99`"), "{without:?}");
}

#[test]
fn a_server_that_died_is_not_blamed_on_the_run_before() {
    for (burst, is_blamed) in [(None, true), (Some(Burst::default()), false)] {
        let dead = summary(|run| {
            run.burst = burst;
            if run.variant == 1 && run.round == Some(9) {
                (run.ending, run.burst) = (Ending::Exited(3), None);
            }
        });
        assert_eq!(warned(&dead, "start from the same state"), is_blamed, "{:?}", dead.warnings);
    }
}

#[test]
fn bursts_in_which_nothing_was_answered_are_failures_where_latency_decides() {
    let mut runs: Vec<Run> =
        (0..30).flat_map(|round| [run(0, round, 2.0), run(1, round, 2.0)]).collect();
    for run in &mut runs {
        // The other variant answers fast, or not at all.
        let is_refused = run.variant == 1 && run.round.is_some_and(|round| round % 3 == 0);
        let p99 = if run.variant == 0 { 0.2 } else { 0.1 };
        let latency_s = (!is_refused).then(|| Latencies { p99, ..Latencies::default() });
        run.burst = Some(Burst { latency_s, ..Burst::default() });
    }
    let labels = ["reference".to_owned(), "other".to_owned()];
    let made = |runs: &[Run]| summarize(&labels, Measure::LatencyP99, Look::ONLY, runs);
    let selected = made(&runs);
    assert_eq!(selected.rows[1].verdict, Verdict::RunsFailed { failed: 10, of: 30 });
    runs.retain(|run| run.round.is_some_and(|round| round % 3 != 0));
    assert_eq!(made(&runs).rows[1].verdict, Verdict::Faster);
}

#[test]
fn memory_below_what_the_lab_holds_has_no_ratio() {
    for variant in [0, 1] {
        let hidden = summary(|run| {
            run.rss_floor_bytes = Some(1 << 20);
            if run.variant != variant {
                run.peak_rss_bytes = 8 << 20;
            }
        });
        assert_eq!(hidden.rows[1].estimate(Measure::PeakRss).unwrap().ratio, None);
        let name = ["`reference` may be", "`other` may be"][variant];
        assert!(hidden.notes[0].contains(name) && hidden.notes.len() == 1, "{:?}", hidden.notes);
        assert!(hidden.rows[1].estimates[0].ratio.is_some() && hidden.warnings.is_empty());
    }
    let seen = summary(|run| run.rss_floor_bytes = Some(1 << 19));
    assert!(seen.rows[1].estimate(Measure::PeakRss).unwrap().ratio.is_some());
    assert!(seen.notes.is_empty());
    let runs: Vec<Run> = (0..20)
        .map(|run| Run { rss_floor_bytes: Some(1 << 20), ..self::run(run % 2, run / 2, 1.0) })
        .collect();
    let labels = ["reference".to_owned(), "other".to_owned()];
    let deciding = summarize(&labels, Measure::PeakRss, Look::ONLY, &runs);
    assert_eq!(deciding.rows[1].verdict, Verdict::NoRatio);
    assert!(warned(&deciding, "there is no ratio of it") && deciding.notes.is_empty());
}

#[test]
fn no_runs_give_an_empty_table() {
    let summary =
        summarize(&["reference".to_owned(), "other".to_owned()], Measure::Wall, Look::ONLY, &[]);
    assert_eq!(summary.rows.len(), 2);
    assert!(summary.rows[0].estimates.is_empty());
}
