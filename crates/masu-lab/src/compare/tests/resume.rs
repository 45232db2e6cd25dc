//! Simulated comparisons that are cut off and go on: the file ends up as if nothing had
//! happened.

use std::cell::Cell;
use std::fs;
use std::rc::Rc;

use super::mock::{Mock, plan, taking};
use super::*;
use crate::statistics::Look;

struct File(tempfile::TempPath);

impl File {
    fn new() -> File {
        File(tempfile::NamedTempFile::new().unwrap().into_temp_path())
    }

    fn anew(&self) -> Options {
        Options {
            seed: Some(5),
            results: Destination::New(self.0.to_path_buf()),
            ..Options::default()
        }
    }

    fn on(&self) -> Options {
        Options {
            seed: None,
            results: Destination::Resume(self.0.to_path_buf()),
            ..Options::default()
        }
    }

    /// The case, variant, round and replacement flag of every run in the file.
    fn order(&self) -> Vec<(usize, usize, usize, bool)> {
        let records = results::read(&self.0).unwrap();
        let place = |record: Record| match record {
            Record::Run(run) => Some((run.case, run.variant, run.round?, run.replaced)),
            _ => None,
        };
        records.into_iter().filter_map(place).collect()
    }

    fn kinds(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.0).unwrap();
        let kind = |line: &str| line.split('"').nth(3).unwrap().to_owned();
        text.lines().map(kind).collect()
    }
}

/// Every second run of `b` is starved: more than may be repeated.
fn machine() -> Mock {
    Mock::new(|(_, label, count)| {
        Ok(Run { starved: label == "b" && count % 2 == 1, ..taking(1.0) })
    })
}

/// The same machine, but it ends in an error once `runs` runs are made.
fn machine_that_breaks(runs: usize) -> Mock {
    let left = Rc::new(Cell::new(runs));
    let whole = machine();
    let run = Rc::clone(&whole.run);
    Mock::new(move |place| {
        let Some(rest) = left.get().checked_sub(1) else {
            return Err(Error::Request("the power went out".to_owned()));
        };
        left.set(rest);
        run(place)
    })
}

#[test]
fn a_comparison_that_goes_on_has_the_order_of_one_that_never_stopped() {
    let plan = plan(&["x", "y"], Rounds::Fixed(8));
    let whole = File::new();
    let uninterrupted = machine().compare(&plan, &whole.anew(), &Stop::never()).unwrap();
    assert!(!uninterrupted.stopped);
    let expected = whole.order();
    assert!(expected.iter().any(|(.., replaced)| *replaced), "some runs were repeated");
    assert!(expected.len() > 48);
    for cut in 0..expected.len() {
        let file = File::new();
        let broken = machine_that_breaks(cut);
        broken.compare(&plan, &file.anew(), &Stop::never()).unwrap_err();
        assert_eq!(file.order(), expected[..cut]);
        let rest = Mock { counts: Rc::clone(&broken.counts), ..machine() };
        let resumed = rest.compare(&plan, &file.on(), &Stop::never()).unwrap();
        assert_eq!(file.order(), expected, "cut after {cut} runs");
        assert_eq!(rest.of("run").len(), expected.len() - cut, "nothing is made twice");
        assert_eq!(file.kinds(), whole.kinds());
        assert_eq!(resumed.tables[1].summary.rows, uninterrupted.tables[1].summary.rows);
    }
}

#[test]
fn rounds_that_take_too_long_are_fewer_and_stay_so() {
    // Warm-ups take a second each, so a round takes three.
    let plan = plan(&["x"], Rounds::Fixed(30));
    let quiet = || Mock::new(|_| Ok(taking(1.0)));
    for (seconds, rounds) in [(60, 20), (1, 12), (600, 30)] {
        let file = File::new();
        let within = Some(Duration::from_secs(seconds));
        let options = Options { within, ..file.anew() };
        let stop = Stop::never();
        quiet().compare(&plan, &options, &stop).unwrap();
        assert_eq!(file.order().len(), 3 * rounds, "within {seconds} s");
        let whole = fs::read(&file.0).unwrap();
        fs::write(&file.0, &whole[..whole.len() * 3 / 4]).unwrap();
        // The present duration of the runs does not change the settled number.
        let within = Some(Duration::from_secs(600));
        quiet().compare(&plan, &Options { within, ..file.on() }, &stop).unwrap();
        assert_eq!(file.order().len(), 3 * rounds, "within {seconds} s, resumed");
    }
}

#[test]
fn a_last_line_that_was_cut_off_is_made_again() {
    let plan = plan(&["x"], Rounds::Fixed(3));
    let file = File::new();
    let quiet = || Mock::new(|_| Ok(taking(1.0)));
    quiet().compare(&plan, &file.anew(), &Stop::never()).unwrap();
    let (expected, whole) = (file.order(), fs::read(&file.0).unwrap());
    let header_end = whole.iter().position(|byte| *byte == b'\n').unwrap();
    // The cuts are anywhere: within a run, a warm-up, the summary, the header itself.
    for length in [whole.len() - 1, whole.len() / 2, header_end + 10, header_end, 40, 0] {
        fs::write(&file.0, &whole[..length]).unwrap();
        let options = Options { seed: Some(5), ..file.on() };
        quiet().compare(&plan, &options, &Stop::never()).unwrap();
        let order: Vec<_> = file.order().into_iter().map(|(case, ..)| case).collect();
        assert_eq!(order.len(), expected.len(), "cut to {length} bytes");
        assert_eq!(file.kinds().last().map(String::as_str), Some("summary"));
    }
}

#[test]
fn what_is_finished_is_left_as_it_is() {
    let plan = plan(&["x", "y"], Rounds::Fixed(2));
    let file = File::new();
    machine().compare(&plan, &file.anew(), &Stop::never()).unwrap();
    let before = fs::read(&file.0).unwrap();
    let again = machine();
    let comparison = again.compare(&plan, &file.on(), &Stop::never()).unwrap();
    assert_eq!((again.done.borrow().len(), comparison.tables.len()), (0, 2));
    assert_eq!(fs::read(&file.0).unwrap(), before);
}

#[test]
fn another_plan_is_refused_with_the_first_difference() {
    let begun = plan(&["x"], Rounds::Fixed(2));
    let file = File::new();
    machine_that_breaks(1).compare(&begun, &file.anew(), &Stop::never()).unwrap_err();
    let before = fs::read(&file.0).unwrap();
    let refusal = |plan: &Plan, options: Options| {
        let error = machine().compare(plan, &options, &Stop::never()).unwrap_err();
        assert!(matches!(error, Error::Resume { .. }), "{error}");
        error.to_string()
    };
    let rounds = Plan { rounds: Rounds::Fixed(3), ..begun.clone() };
    let message = refusal(&rounds, file.on());
    assert!(message.contains("rounds.fixed was 2 and is 3"), "{message}");
    let mut label = begun.clone();
    "d".clone_into(&mut label.cases[0].rows[1].variant.label);
    let message = refusal(&label, file.on());
    assert!(message.contains("cases.0.variants.1.label was `b` and is `d`"), "{message}");
    let mut program = begun.clone();
    let other = Workload::new(["cat"], Input::Empty).unwrap();
    program.cases[0].rows[1].workload = other;
    assert!(refusal(&program, file.on()).contains("cat is not what it was begun with"));
    let mut input = begun.clone();
    let other = fs::File::open("/etc/passwd").unwrap();
    input.cases[0].rows[1].workload.input = Input::keep(other).unwrap();
    let message = refusal(&input, file.on());
    assert!(message.contains("standard input is not what it was begun with"), "{message}");
    let seed = Options { seed: Some(6), ..file.on() };
    assert!(refusal(&begun, seed).contains("seed was 5 and is 6"));
    assert_eq!(fs::read(&file.0).unwrap(), before, "what was measured is not touched");
}

#[test]
fn a_file_that_is_no_results_file_or_is_not_there_is_refused() {
    let plan = plan(&["x"], Rounds::Fixed(2));
    let file = File::new();
    let refusal = || machine().compare(&plan, &file.on(), &Stop::never()).unwrap_err().to_string();
    fs::remove_file(&file.0).unwrap();
    assert!(refusal().contains("No such file"));
    fs::write(&file.0, "hello\n").unwrap();
    assert!(refusal().contains("no results file"));
    fs::write(&file.0, "{\"record\":\"header\",\"schema_version\":1}\n").unwrap();
    assert!(refusal().contains("earlier masu"));
    fs::write(&file.0, "{\"record\":\"header\",\"schema_version\":999}\n").unwrap();
    assert!(refusal().contains("later masu"));
    assert!(fs::read_to_string(&file.0).unwrap().contains("999"), "it is not touched");
}

#[test]
fn a_file_that_another_masu_writes_is_refused() {
    let plan = plan(&["x"], Rounds::Fixed(2));
    let file = File::new();
    let busy = Journal::create(Some(&file.0), &Redact::default()).unwrap();
    for options in [file.anew(), file.on()] {
        let error = machine().compare(&plan, &options, &Stop::never()).unwrap_err().to_string();
        assert!(error.contains("another masu writes it"), "{error}");
    }
    drop(busy);
    machine().compare(&plan, &file.anew(), &Stop::never()).unwrap();
}

#[test]
fn a_variant_that_was_left_out_is_in_the_header_and_stays_out() {
    let plan = plan(&["x"], Rounds::Fixed(2));
    let whole = File::new();
    let quiet = || Mock::new(|_| Ok(taking(1.0)));
    let broken = || Mock { broken: vec!["c"], ..quiet() };
    let comparison = broken().compare(&plan, &whole.anew(), &Stop::never()).unwrap();
    let case = &comparison.header.cases[0];
    assert_eq!(case.labels(), ["a", "b"]);
    let left_out = LeftOut { label: "c".to_owned(), reason: "made up".to_owned() };
    assert_eq!(case.left_out, [left_out]);
    assert_eq!(comparison.tables[0].summary.rows.len(), 2);
    // The left-out variant stays out even if it would work by now: the table is that of two.
    let file = File::new();
    let text = fs::read_to_string(&whole.0).unwrap();
    let lines: Vec<&str> = text.lines().take(5).collect();
    fs::write(&file.0, lines.join("\n") + "\n").unwrap();
    let rest = quiet();
    rest.compare(&plan, &file.on(), &Stop::never()).unwrap();
    assert_eq!(rest.of("warm"), ["x a", "x b"]);
    assert_eq!(file.order(), whole.order());
}

#[test]
fn a_variant_that_was_left_out_from_the_middle_leaves_the_others_their_runs() {
    let mut plan = plan(&["x"], Rounds::Fixed(2));
    plan.cases[0].rows[1].optional = true;
    let by_label = Mock::new(|(_, label, _)| Ok(taking(if label == "a" { 1.0 } else { 3.0 })));
    let mock = Mock { broken: vec!["b"], ..by_label };
    let comparison = mock.compare(&plan, &Options::default(), &Stop::never()).unwrap();
    for kind in ["begin", "run"] {
        let mut ran = mock.of(kind);
        ran.sort();
        assert_eq!(ran, ["x a", "x a", "x c", "x c"], "{kind}");
    }
    let case = &comparison.header.cases[0];
    assert_eq!(case.labels(), ["a", "c"]);
    let times = comparison.tables[0].runs.iter().map(|run| (run.variant, run.wall_s));
    assert!(times.clone().all(|(row, wall_s)| wall_s == [1.0, 3.0][row]), "{times:?}");
}

#[test]
fn neither_the_reference_nor_one_that_was_named_is_left_out() {
    let plan = plan(&["x"], Rounds::Fixed(2));
    for label in ["a", "b"] {
        let mock = Mock { broken: vec![label], ..machine() };
        let options = Options::default();
        let error = mock.compare(&plan, &options, &Stop::never()).unwrap_err();
        assert!(matches!(error, Error::NotInEffect { .. }), "{error}");
        assert_eq!(mock.of("finish"), ["x"], "what was started is ended");
    }
    let mut pair = plan.clone();
    pair.cases[0].rows.remove(1);
    let mock = Mock { broken: vec!["c"], ..machine() };
    mock.compare(&pair, &Options::default(), &Stop::never()).unwrap_err();
}

#[test]
fn a_starved_run_is_repeated_within_bounds_and_does_not_count() {
    let one = plan(&["x"], Rounds::Fixed(12));
    let always = Mock::new(|(_, label, _)| Ok(Run { starved: label == "b", ..taking(1.0) }));
    let comparison = always.compare(&one, &Options::default(), &Stop::never()).unwrap();
    let table = &comparison.tables[0];
    let replaced = table.runs.iter().filter(|run| run.replaced).count();
    assert_eq!((replaced, table.runs.len()), (9, 36 + 9), "a quarter of all runs");
    let first: Vec<bool> =
        table.runs.iter().filter(|run| run.variant == 1).map(|run| run.replaced).collect();
    assert_eq!(first[..4], [true, true, false, true], "twice, then it stays, flagged");
    assert_eq!(table.summary.rows[1].valid_runs, 12);
    assert_eq!(table.summary.rows[1].starved_runs, 12);
}

#[test]
fn a_budget_ends_when_every_interval_is_narrow_or_the_time_is_over() {
    let run = |seconds: f64, noise: f64| {
        Mock::new(move |(_, label, count)| {
            // A swing that differs between any two variants.
            let phase = f64::from(label.as_bytes()[0]) * f64::from(u32::try_from(count).unwrap());
            Ok(taking(seconds * (1.0 + noise * phase.sin())))
        })
    };
    let budget = |seconds| plan(&["x"], Rounds::Budget { seconds, precision: 0.05 });
    let (options, stop) = (Options::default(), Stop::never());
    let quiet = run(0.001, 0.001).compare(&budget(3600.0), &options, &stop).unwrap();
    let runs = quiet.tables[0].runs.len();
    assert!((24..60).contains(&runs), "soon narrow: {runs}");
    assert!(!quiet.stopped && quiet.tables[0].extent == Extent::Whole);
    assert!(quiet.tables[0].summary.look.level < Look::ONLY.level, "a look spends its part");
    // The simulated runs take no time, but runs in a file count with the time recorded in them.
    let file = File::new();
    let noisy = run(1.0, 0.5);
    let stop_after = Stop::never();
    let counted = {
        let (stop, run, made) = (stop_after.clone(), Rc::clone(&noisy.run), Cell::new(0));
        Mock::new(move |place| {
            made.set(made.get() + 1);
            if made.get() == 60 {
                stop.request();
            }
            run(place)
        })
    };
    counted.compare(&budget(55.0), &file.anew(), &stop_after).unwrap();
    let rest = Mock { counts: counted.counts, ..noisy };
    let resumed = rest.compare(&budget(55.0), &file.on(), &stop).unwrap();
    assert_eq!(resumed.tables[0].runs.len(), 60, "the time was over already");
    assert_eq!(resumed.tables[0].extent, Extent::Whole);
}

#[test]
fn what_must_stay_warm_is_warmed_up_again_for_its_timed_runs() {
    let server = || Mock { kept_warm: true, ..machine() };
    let one = server();
    let single = plan(&["x"], Rounds::Fixed(1));
    one.compare(&single, &Options::default(), &Stop::never()).unwrap();
    assert_eq!((one.of("warm").len(), one.of("finish").len()), (3, 1), "an only case stays warm");
    let two = server();
    let double = plan(&["x", "y"], Rounds::Fixed(1));
    two.compare(&double, &Options::default(), &Stop::never()).unwrap();
    assert_eq!((two.of("warm").len(), two.of("finish").len()), (12, 4));
    let commands = machine();
    commands.compare(&double, &Options::default(), &Stop::never()).unwrap();
    assert_eq!(commands.of("warm").len(), 6);
}

#[test]
fn runs_that_do_not_fit_together_are_refused_and_not_cleared_away() {
    let plan = plan(&["x"], Rounds::Fixed(3));
    let file = File::new();
    assert!(machine_that_breaks(4).compare(&plan, &file.anew(), &Stop::never()).is_err());
    let good = fs::read_to_string(&file.0).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    // The odd files: a missing warm-up; two files in one; a run of a case, and of a variant, that does not exist.
    let without_warm_up = [&lines[..1], &lines[2..]].concat().join("\n") + "\n";
    let elsewhere = good.replace("\"case\":0,\"variant\":1", "\"case\":7,\"variant\":1");
    let nobody = good.replace("\"case\":0,\"variant\":1", "\"case\":0,\"variant\":7");
    for odd in [without_warm_up, good.repeat(2), elsewhere, nobody] {
        assert_ne!(odd, good);
        fs::write(&file.0, &odd).unwrap();
        let refused = machine().compare(&plan, &file.on(), &Stop::never()).unwrap_err();
        assert!(matches!(refused, Error::Resume { .. } | Error::Results { .. }), "{refused}");
        assert_eq!(fs::read_to_string(&file.0).unwrap(), odd);
    }
}
