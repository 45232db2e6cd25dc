//! Tests of the commands and folders around the runs of a table.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use super::*;
use crate::Comparison;
use crate::compare::{Destination, Options, compare};
use crate::plan::Plan;
use crate::results::{self, Record, Rounds};
use masu_run::{Catalogue, Input, Places, Scratch, Variant, Workload};

/// A file that hooks write into.
struct Log(tempfile::TempPath);

impl Log {
    fn new() -> Log {
        Log(tempfile::NamedTempFile::new().unwrap().into_temp_path())
    }

    /// A shell command that adds `text` as a line.
    fn add(&self, text: &str) -> OsString {
        format!("echo \"{text}\" >> '{}'", self.0.display()).into()
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn variants(workload: &Workload) -> Vec<Variant> {
    let catalogue = Catalogue::find(&Places::default());
    let resolve = |name: &str| catalogue.resolve(&name.parse().unwrap(), &workload.program);
    ["system", "system:env.A=1"].map(|name| resolve(name).unwrap()).to_vec()
}

struct Around {
    runs: usize,
    hooks: Hooks,
    scratch: Scratch,
    options: Options,
}

impl Default for Around {
    fn default() -> Around {
        let (hooks, options) = (Hooks::default(), Options::default());
        Around { runs: 20, hooks, scratch: Scratch::None, options }
    }
}

impl Around {
    fn compare(
        self,
        workload: &Workload,
        variants: &[Variant],
        stop: &Stop,
    ) -> Result<Comparison, Error> {
        let mut plan = Plan::single(workload, variants, Rounds::Fixed(self.runs));
        plan.cases[0].hooks = self.hooks;
        plan.cases[0].scratch = self.scratch;
        compare(&plan, &self.options, stop, &mut |_| {})
    }
}

fn comparison(script: &str, around: Around, stop: &Stop) -> Result<Comparison, Error> {
    let workload = Workload::new(["sh", "-c", script], Input::Empty).unwrap();
    around.compare(&workload, &variants(&workload), stop)
}

#[test]
fn hooks_run_once_before_every_run_and_once_after_all() {
    let log = Log::new();
    let hooks = Hooks {
        setup: Some(log.add("setup")),
        prepare: Some(log.add("{variant}")),
        cleanup: Some(log.add("cleanup")),
    };
    let options = Around { runs: 2, hooks, ..Around::default() };
    let comparison = comparison("true", options, &Stop::never()).unwrap();
    let lines = log.lines();
    assert_eq!(lines[..3], ["setup", "system", "system:env.A=1"]);
    // On a busy machine some runs are repeated.
    let runs = comparison.tables[0].runs.len();
    assert_eq!(lines.len(), 1 + 2 + runs + 1, "{lines:?}");
    assert_eq!(lines.iter().filter(|line| *line == "setup").count(), 1);
    assert_eq!(lines.iter().position(|line| line == "cleanup"), Some(lines.len() - 1));
}

#[test]
fn the_cleanup_runs_after_an_error_and_after_a_stop() {
    let log = Log::new();
    let failing = |hooks: Hooks, stop: &Stop| {
        let hooks = Hooks { cleanup: Some(log.add("cleanup")), ..hooks };
        comparison("true", Around { hooks, ..Around::default() }, stop).unwrap_err()
    };
    let setup = Hooks { setup: Some("exit 5".into()), ..Hooks::default() };
    let error = failing(setup, &Stop::never()).to_string();
    assert!(error.contains("setup") && error.contains("exit 5"), "{error}");
    let prepare = Hooks { prepare: Some("exit 6".into()), ..Hooks::default() };
    let error = failing(prepare, &Stop::never()).to_string();
    assert!(error.contains("prepare") && error.contains("returned 6"), "{error}");
    let stop = Stop::never();
    stop.request();
    let endless = Hooks { setup: Some("sleep 1000".into()), ..Hooks::default() };
    assert!(matches!(failing(endless, &stop), Error::Stopped));
    assert_eq!(log.lines(), ["cleanup"; 3]);
}

#[test]
fn a_failing_cleanup_is_an_error_that_leaves_whole_results() {
    let file = Log::new();
    let hooks = Hooks { cleanup: Some("exit 7".into()), ..Hooks::default() };
    let results = Destination::New(file.0.to_path_buf());
    let options = Options { results, ..Options::default() };
    let around = Around { runs: 1, hooks, options, ..Around::default() };
    let error = comparison("true", around, &Stop::never()).unwrap_err().to_string();
    assert!(error.contains("cleanup") && error.contains("returned 7"), "{error}");
    let records = results::read(&file.0).unwrap();
    assert!(matches!(records.last(), Some(Record::Summary { .. })), "{records:?}");
}

#[test]
fn every_run_starts_in_a_fresh_folder_that_its_preparation_may_fill() {
    // Without a fresh folder `mkdir` would fail from the second run on.
    let script = "mkdir made && cat prepared && pwd >&2";
    let hooks = Hooks {
        prepare: Some("echo x > {scratch}/prepared && [ -e prepared ]".into()),
        ..Hooks::default()
    };
    let scratch = Scratch::Empty;
    let options = Around { runs: 2, hooks, scratch, ..Around::default() };
    let comparison = comparison(script, options, &Stop::never()).unwrap();
    let runs = &comparison.tables[0].runs;
    assert!(runs.len() >= 4);
    assert!(runs.iter().all(|run| run.stdout.bytes == 2), "{runs:?}");
    let place = PathBuf::from(runs[0].stderr.tail.trim_end());
    assert!(place.is_absolute() && !place.exists(), "{place:?}");
}

#[test]
fn a_program_named_by_a_relative_path_is_found_from_the_scratch_folder() {
    // The tests run in the folder of the crate.
    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count() - 1);
    let workload = Workload::new([format!("{up}bin/pwd")], Input::Empty).unwrap();
    let scratch = Scratch::CopyOf("src/compare".into());
    let options = Around { runs: 1, scratch, ..Around::default() };
    let variants = &variants(&workload)[..1];
    let comparison = options.compare(&workload, variants, &Stop::never()).unwrap();
    assert!(comparison.tables[0].runs[0].stdout.bytes > 1, "{:?}", comparison.tables[0].runs);
}

#[test]
fn a_stop_during_a_preparation_keeps_what_was_measured() {
    let log = Log::new();
    // The third preparation is that of the first timed run, the fourth never ends by itself; the
    // first run may have been starved and due for a repeat.
    let count = format!("[ $(wc -l < '{}') -lt 4 ] || sleep 1000", log.0.display());
    let mut prepare = log.add("prepare");
    prepare.push("; ");
    prepare.push(count);
    let hooks = Hooks { prepare: Some(prepare), ..Hooks::default() };
    let stop = Stop::never();
    let comparison = std::thread::scope(|scope| {
        scope.spawn(|| {
            while log.lines().len() < 4 {
                std::thread::yield_now();
            }
            stop.request();
        });
        comparison("true", Around { runs: 5, hooks, ..Around::default() }, &stop).unwrap()
    });
    assert!(comparison.stopped);
    assert_eq!(comparison.tables[0].runs.len(), 1);
}

#[test]
fn a_command_that_depends_on_the_run_before_is_reported_and_cured_by_a_fresh_folder() {
    let mark = Log::new();
    let repeatable = |path: &str, scratch: Scratch| {
        let script = format!("printf x >> '{path}'; wc -c < '{path}'");
        let options = Around { runs: 2, scratch, ..Around::default() };
        comparison(&script, options, &Stop::never()).unwrap().tables.remove(0).summary
    };
    let verdict = repeatable(mark.0.to_str().unwrap(), Scratch::None);
    assert!(
        !verdict.repeatable && verdict.warnings.iter().any(|one| one.contains("not repeatable"))
    );
    let cured = repeatable("mark", Scratch::Empty);
    assert!(cured.repeatable, "{:?}", cured.warnings);
}

#[test]
fn an_exit_code_that_changes_is_reported_and_does_not_count() {
    let mark = Log::new();
    let path = mark.0.display();
    // Every second run fails.
    let script = format!("printf x >> '{path}'; exit $(($(wc -c < '{path}') % 2))");
    let options = Around { runs: 2, ..Around::default() };
    let table = comparison(&script, options, &Stop::never()).unwrap().tables.remove(0);
    assert!(!table.summary.repeatable);
    let valid: usize = table.summary.rows.iter().map(|row| row.valid_runs).sum();
    let lasting = table.runs.iter().filter(|run| !run.replaced).count();
    assert_eq!(lasting, 4);
    assert!((1..4).contains(&valid), "{table:?}");
}

#[test]
fn every_run_has_an_offset_that_its_seed_repeats() {
    let offsets = |seed: u64| -> Vec<u32> {
        let options = Options { seed: Some(seed), ..Options::default() };
        let around = Around { runs: 2, options, ..Around::default() };
        let table = comparison("true", around, &Stop::never()).unwrap().tables.remove(0);
        // On a busy machine some runs are repeated, each with an offset of its own.
        table.runs.iter().map(|run| run.offset_bytes).take(4).collect()
    };
    let drawn = offsets(1);
    assert_eq!(drawn.len(), 4);
    assert!(drawn.iter().collect::<std::collections::HashSet<_>>().len() > 1, "{drawn:?}");
    assert_eq!(drawn, offsets(1));
    assert_ne!(drawn, offsets(2));
}
