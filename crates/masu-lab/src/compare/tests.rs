//! Tests of whole comparisons, on commands short enough for a test.

use super::*;
use crate::Verdict;
use crate::results;
use masu_run::{Catalogue, Input, Limits, Places, Workload};
use mock::{Mock, taking};

mod mock;
mod resume;

fn workload(arguments: &[&str]) -> Workload {
    Workload::new(arguments.iter().copied(), Input::Empty).unwrap()
}

fn variant(text: &str, workload: &Workload) -> Variant {
    Catalogue::find(&Places::default())
        .resolve(&text.parse().unwrap(), &workload.program)
        .unwrap_or_else(|error| panic!("{error}; this test needs: apt-get install libjemalloc2"))
}

fn plan(rounds: usize, work: &Workload, variants: &[Variant]) -> Plan {
    Plan::single(work, variants, Rounds::Fixed(rounds))
}

fn made(plan: &Plan, stop: &Stop) -> Result<Comparison, Error> {
    compare(plan, &Options::default(), stop, &mut |_| {})
}

#[test]
fn every_round_has_every_variant_and_all_are_reported() {
    let work = workload(&["sh", "-c", "echo hello | sed s/h/H/"]);
    let variants = ["system", "jemalloc", "system:top_pad=1M"].map(|text| variant(text, &work));
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let options = Options { results: Destination::New(path.to_path_buf()), ..Options::default() };
    let (mut ran, mut lasting) = (0, 0);
    let mut observe = |event: Event<'_>| {
        if let Event::Ran { done, .. } = event {
            (ran, lasting) = (ran + 1, done);
        }
    };
    let comparison =
        compare(&plan(3, &work, &variants), &options, &Stop::never(), &mut observe).unwrap();
    let runs = &comparison.tables[0].runs;
    assert_eq!((ran, lasting), (runs.len(), 9));
    for round in 0..3 {
        // On a busy machine some runs are repeated.
        let of_round = runs.iter().filter(|run| run.round == Some(round) && !run.replaced);
        let mut indices: Vec<usize> = of_round.map(|run| run.variant).collect();
        indices.sort_unstable();
        assert_eq!(indices, [0, 1, 2]);
    }
    assert!(comparison.tables[0].summary.repeatable, "{:?}", comparison.tables[0].summary.warnings);
    assert!(!comparison.tables[0].evidence[1].served.is_empty());
    assert_eq!(comparison.tables[0].summary.rows.len(), 3);
    let records = results::read(&path).unwrap();
    assert_eq!(records.len(), 1 + 3 + ran + 1);
    assert_eq!(
        records.last(),
        Some(&Record::Summary { case: 0, summary: comparison.tables[0].summary.clone() })
    );
}

#[test]
fn a_stop_before_the_first_run_is_an_error() {
    let work = workload(&["sleep", "1000"]);
    let variants = [variant("system", &work)];
    let stop = Stop::never();
    stop.request();
    let error = made(&plan(2, &work, &variants), &stop).unwrap_err();
    assert!(matches!(error, Error::Stopped), "{error}");
}

#[test]
fn a_warm_up_that_is_cut_short_is_an_error() {
    let work = workload(&["sleep", "1000"]);
    let variants = [variant("system", &work)];
    let limits = Limits { time: Some(Duration::from_millis(20)), memory_bytes: None };
    let mut plan = plan(2, &work, &variants);
    plan.cases[0].limits = limits;
    let error = made(&plan, &Stop::never()).unwrap_err();
    assert!(error.to_string().contains("out of time"), "{error}");
}

#[test]
fn nothing_to_compare_is_an_error() {
    let work = workload(&["true"]);
    let one = variant("system", &work);
    for (variants, runs) in [(vec![], 1), (vec![one.clone()], 0), (vec![one.clone(), one], 1)] {
        let result = made(&plan(runs, &work, &variants), &Stop::never());
        assert!(matches!(result, Err(Error::Request(_))));
    }
}

#[test]
fn what_warm_ups_needed_is_known_where_the_timed_runs_are_made_later() {
    let machine = mock::Mock::new(|_| Ok(mock::taking(1.0)));
    let plan = mock::plan(&["x", "y"], Rounds::Fixed(2));
    machine.compare(&plan, &Options::default(), &Stop::never()).unwrap();
    let peaks = ["x 100", "x 101", "x 102", "y 100", "y 101", "y 102"];
    assert_eq!(machine.of("recall"), peaks);
}

#[test]
fn rounds_end_with_their_time_but_not_before_so_many() {
    let rounds_made = |until: Option<Until>| {
        let mock = Mock::new(|_| Ok(taking(1.0)));
        let options = Options { until, ..Options::default() };
        let made = mock.compare(&mock::plan(&["a"], Rounds::Fixed(9)), &options, &Stop::never());
        made.unwrap();
        mock.of("run").len() / 3
    };
    let now = Instant::now();
    let later = now + Duration::from_secs(3600);
    assert_eq!(rounds_made(None), 9);
    assert_eq!(rounds_made(Some(Until { end: later, rounds: 1, first: 0, spare: None })), 9);
    assert_eq!(rounds_made(Some(Until { end: now, rounds: 4, first: 0, spare: None })), 4);
}

#[test]
fn without_time_for_all_the_first_ones_have_their_rounds() {
    let mock = Mock::new(|_| Ok(taking(1.0)));
    let until = Some(Until { end: Instant::now(), rounds: 5, first: 5, spare: None });
    let open: Open = |variants, _, _| (1..variants).collect();
    let options = Options { until, open: Some(open), ..Options::default() };
    mock.compare(&mock::plan(&["x"], Rounds::Fixed(9)), &options, &Stop::never()).unwrap();
    let runs = mock.of("run");
    let count = |name: &&str| runs.iter().filter(|run| run == name).count();
    assert_eq!(["x a", "x b", "x c"].iter().map(count).collect::<Vec<_>>(), [5, 5, 1], "{runs:?}");
}

#[test]
fn time_that_other_runs_need_is_left_after_enough_rounds() {
    let (now, second) = (Instant::now(), Duration::from_secs(1));
    let until = Until { end: now + 10 * second, rounds: 1, first: 0, spare: Some((8, 6 * second)) };
    assert!(!until.is_over(now + 6 * second, 7, second), "too few rounds yet");
    assert!(until.is_over(now + 6 * second, 8, second));
    assert!(!until.is_over(now + 2 * second, 8, second), "there is time for both");
    assert!(until.is_over(now + 10 * second, 3, second));
    // Nine of ten seconds are left: four rounds of nine runs of 250 ms, and 17 of two.
    let until = Until { first: 5, ..until };
    let fitting = |rounds| until.fitting(now + second, rounds, second / 4, 12);
    assert_eq!([1, 3, 4, 5].map(fitting), [8, 12, 12, 12]);
    assert_eq!(until.fitting(now + second, 1, 9 * second, 12), 1, "one goes on in any case");
}

#[test]
fn rounds_go_on_while_something_is_undecided() {
    let row_of = |record: &Record| match record {
        Record::Run(run) => Some(format!("x {}", ["a", "b", "c"][run.variant])),
        _ => None,
    };
    // The runs of `b` differ by this share, in the same way each time.
    let rounds_made = |noise: f64, cut: bool| {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let run = move |(_, label, count): (&str, &str, usize)| {
            let off =
                if label == "b" { noise * [1.0, -0.8, 0.6, -1.0, 0.9][count % 5] } else { 0.0 };
            Ok(taking(if label == "c" { 0.8 } else { 1.0 + off }))
        };
        let plan = mock::plan(&["x"], Rounds::UntilDecided { most: 30 });
        let made = |results, mock: &Mock| {
            let options = Options { seed: Some(3), results, ..Options::default() };
            mock.compare(&plan, &options, &Stop::never()).unwrap()
        };
        let mock = Mock::new(run);
        let comparison = made(Destination::New(file.to_path_buf()), &mock);
        let (rounds, rows) = (mock.of("run").len() / 3, &comparison.tables[0].summary.rows);
        assert_eq!(rows[2].verdict, Verdict::Faster);
        if cut {
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::write(&file, &text[..text.len() * 2 / 3]).unwrap();
            let left: Vec<String> =
                results::read(&file).unwrap().iter().filter_map(row_of).collect();
            for (row, count) in mock.counts.borrow_mut().iter_mut() {
                *count = left.iter().filter(|one| *one == row).count();
            }
            let again = made(Destination::Resume(file.to_path_buf()), &mock);
            assert_eq!(again.tables[0].summary, comparison.tables[0].summary);
        }
        rounds
    };
    // The first look is as soon as a verdict is possible, the last at the end.
    assert_eq!(rounds_made(0.001, false), 10);
    assert_eq!(rounds_made(0.001, true), 10);
    assert_eq!(rounds_made(0.3, false), 30);
    assert_eq!(rounds_made(0.3, true), 30);
}

#[test]
fn what_is_decided_is_run_no_more_and_the_reference_with_what_is_open() {
    fn open(variants: usize, primary: Measure, runs: &[Run]) -> Vec<usize> {
        assert_eq!((variants, primary), (3, Measure::Wall));
        match runs.iter().filter(|run| run.variant == 0).count() {
            0..2 => vec![1, 2],
            2..5 => vec![2],
            _ => Vec::new(),
        }
    }
    let mock = Mock::new(|_| Ok(taking(1.0)));
    let options = Options { open: Some(open), ..Options::default() };
    let made = mock.compare(&mock::plan(&["x"], Rounds::Fixed(9)), &options, &Stop::never());
    let runs = mock.of("run");
    let count = |label: &str| runs.iter().filter(|run| run.ends_with(label)).count();
    assert_eq!(["x a", "x b", "x c"].map(count), [5, 2, 5]);
    assert!(!made.unwrap().stopped);
}
