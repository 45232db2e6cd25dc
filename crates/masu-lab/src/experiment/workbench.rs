//! The workbench of an experiment: folders, the checkout, programs and builds, comparisons, a diagnosis. Each step has
//! a message for the waiting user, and each missing part is noted with a remedy.
//!
//! Relies on the engine and on `diagnose`. The hard idea is that a missing part, or a failed build,
//! ends nothing: it is noted, and the parts that do not need it go on.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::compare::{Destination, Event};
use crate::diagnose::{self, Diagnosis, Options as DiagnoseOptions};
use crate::plan::Mallocs;
use crate::results::Rounds;
use crate::suite::Entry;
use crate::tables::Table;
use crate::{Checkup, CompareOptions, Comparison, Plan, Suite, compare};
use masu_run::calls::{self, Calls};
use masu_run::error::Doing;
use masu_run::execute::{self, Conditions, Ending};
use masu_run::once::gathered;
use masu_run::{
    Error, Input, Libc, Limits, Parameter, Prices, Program, Run, Spec, Stop, Variant, Workload,
};

use super::outcome::{self, Outcome};
use super::{Block, Experiment, Page, format, found, kept_files};

mod step;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// The least that shows that everything works; for tests.
    Tiny,
    /// Small sizes, the fewest rounds that a verdict needs: minutes.
    Quick,
    /// The report's questions at sizes that a coffee break takes.
    #[default]
    Usual,
    /// The report's sizes.
    Full,
}

impl Depth {
    /// The value for this depth, from values for all depths, the smallest first.
    pub(super) fn choose<T>(self, [tiny, quick, usual, full]: [T; 4]) -> T {
        match self {
            Depth::Tiny => tiny,
            Depth::Quick => quick,
            Depth::Usual => usual,
            Depth::Full => full,
        }
    }
}

pub struct Asked<'a> {
    pub depth: Depth,
    pub output: PathBuf,
    /// The folder for built programs and kept inputs; every experiment has a folder of its own in it.
    pub cache: PathBuf,
    /// The tree that masu is built from, for experiments whose programs are in it.
    pub source: Option<PathBuf>,
    /// Whether missing packages of the system are installed.
    pub install: bool,
    pub checkup: &'a Checkup,
    /// The mallocs for programs of each C library.
    pub mallocs: &'a mut dyn FnMut(Libc) -> Mallocs,
    pub stop: &'a Stop,
    pub tell: &'a mut dyn FnMut(News<'_>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The part that is missing in the figures.
    pub what: String,
    /// The reason, and the remedy.
    pub reason: String,
}

/// An event that the waiting user may want to know.
#[derive(Debug)]
#[non_exhaustive]
pub enum News<'a> {
    /// A step begins: `building xquo 0.2.3 for musl`.
    Begins(&'a str),
    Done(Duration),
    /// A part is missing, and the rest goes on.
    Missing(&'a Missing),
    Comparing(Event<'a>),
    Compared,
}

pub struct Workbench<'a> {
    name: &'static str,
    asked: Asked<'a>,
    missing: Vec<Missing>,
    has_runs: bool,
    is_put_aside: bool,
}

/// The tree that masu is built from: the nearest folder at or above `start` that has it.
pub fn source_above(start: &Path) -> Option<PathBuf> {
    let is_it = |folder: &&Path| {
        ["workloads/quote/Cargo.toml", "crates/masu-chunk/Cargo.toml", "Cargo.toml"]
            .iter()
            .all(|file| folder.join(file).is_file())
    };
    start.ancestors().find(is_it).map(Path::to_owned)
}

impl<'a> Workbench<'a> {
    /// The workbench of `experiment`; makes its folders. Their paths must be text, which commands and suites take paths
    /// for.
    pub fn open(experiment: &Experiment, asked: Asked<'a>) -> Result<Workbench<'a>, Error> {
        let bench = Workbench {
            name: experiment.name,
            asked,
            missing: Vec::new(),
            has_runs: false,
            is_put_aside: false,
        };
        for folder in [&bench.asked.output, &bench.cache()] {
            fs::create_dir_all(folder).doing(|| format!("making {}", folder.display()))?;
            tempfile::tempfile_in(folder).doing(|| format!("writing into {}", folder.display()))?;
        }
        for folder in [Some(&bench.asked.cache), bench.asked.source.as_ref()].into_iter().flatten()
        {
            if folder.to_str().is_none() {
                let folder = folder.display();
                return Err(Error::Request(format!("{folder} is no UTF-8; choose another folder")));
            }
        }
        Ok(bench)
    }

    pub(super) fn depth(&self) -> Depth {
        self.asked.depth
    }

    pub(super) fn choose<T>(&self, tiny: T, quick: T, usual: T, full: T) -> T {
        self.asked.depth.choose([tiny, quick, usual, full])
    }

    /// The experiment's own folder for builds and inputs; it may be gone the next time.
    pub(super) fn cache(&self) -> PathBuf {
        let folder = self.asked.cache.join(self.name);
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// The file of the experiment's name that ends in `end`, in the folder for pages and results.
    pub(super) fn output(&self, end: &str) -> PathBuf {
        self.asked.output.join(format!("{}.{end}", self.name))
    }

    pub(super) fn source(&self) -> Option<&Path> {
        self.asked.source.as_deref()
    }

    pub(super) fn prices(&self) -> &Prices {
        &self.asked.checkup.prices
    }

    /// Notes that `what` is missing, with the reason and the remedy.
    pub(super) fn miss(&mut self, what: impl Into<String>, reason: impl Into<String>) {
        let missing = Missing { what: what.into(), reason: reason.into() };
        if !self.missing.contains(&missing) {
            (self.asked.tell)(News::Missing(&missing));
            self.missing.push(missing);
        }
    }

    /// Looks a program up; if it is missing, notes `what` as missing, with `remedy`.
    pub(super) fn tool(&mut self, name: &str, what: &str, remedy: &str) -> Option<PathBuf> {
        let found = Program::find(name.as_ref()).ok().map(|program| program.path);
        if found.is_none() {
            self.miss(what, format!("there is no `{name}` here; {remedy}"));
        }
        found
    }

    /// The tree; if there is none, notes `what` as missing.
    pub(super) fn tree(&mut self, what: &str) -> Option<PathBuf> {
        if self.asked.source.is_none() {
            let reason = "it is built from masu's sources, and they are neither here nor above this folder; \
                          start it in a checkout, or name one with --source";
            self.miss(what, reason);
        }
        self.asked.source.clone()
    }

    pub(super) fn say(&mut self, what: &str) {
        if !self.asked.stop.requested() {
            (self.asked.tell)(News::Begins(what));
        }
    }

    /// The value of `made`; none after an error, which is noted as missing for `what`, unless the experiment is over.
    pub(super) fn noted<T>(&mut self, what: &str, made: Result<T, Error>) -> Option<T> {
        match made {
            Ok(made) => Some(made),
            Err(_) if self.is_over() => None,
            Err(error) => {
                self.miss(what, error.to_string());
                None
            }
        }
    }

    /// Whether the user asked to stop, so that nothing more is measured: the page has the figures so far.
    fn is_over(&mut self) -> bool {
        let is_over = self.asked.stop.requested();
        let rest = Missing {
            what: "the rest".to_owned(),
            reason: "stopped before it was measured".to_owned(),
        };
        if is_over && !self.missing.contains(&rest) {
            self.missing.push(rest);
        }
        is_over
    }

    /// Whether the experiment was stopped before there was anything to show.
    pub(super) fn is_empty_handed(&self) -> bool {
        self.asked.stop.requested() && !self.has_runs
    }

    /// Moves the files of an earlier experiment aside, before this one writes its first file.
    pub(super) fn put_aside(&mut self) -> Result<(), Error> {
        if self.is_put_aside {
            return Ok(());
        }
        let kept = kept_files::put_aside(&self.asked.output, self.name)?;
        self.is_put_aside = true;
        if let Some(folder) = kept {
            self.say(&format!("what was there is kept in {}", folder.display()));
        }
        Ok(())
    }

    /// Adds to `entry` the found mallocs that can be preloaded into `program`, behind its own; each library once.
    pub(crate) fn add_found(&mut self, entry: &mut Entry, program: &str) {
        let Ok(program) = Program::find(program.as_ref()) else { return };
        let mallocs = (self.asked.mallocs)(program.libc);
        for absent in &mallocs.absent {
            self.miss(absent.label.clone(), absent.reason.clone());
        }
        let named = std::mem::take(&mut entry.variants);
        entry.variants = found::behind(named, &mallocs.catalogue, &program);
    }

    /// Measures `suite`; the results stay in the file named after the experiment and `part`. None where it cannot be
    /// measured, which is noted. A stopped comparison has the results so far.
    fn compare(&mut self, suite: &Suite, part: &str) -> Option<Comparison> {
        if self.is_over() {
            return None;
        }
        self.say(&format!("measuring {part}"));
        let results = self.output(&format!("{part}.jsonl"));
        let destination = Destination::New(results.clone());
        let options = CompareOptions { results: destination, ..CompareOptions::default() };
        let put_aside = self.put_aside();
        let Asked { mallocs, stop, tell, .. } = &mut self.asked;
        let made = put_aside.and_then(|()| Plan::make(suite, *mallocs)).and_then(|plan| {
            compare(&plan, &options, stop, &mut |event| tell(News::Comparing(event)))
        });
        (self.asked.tell)(News::Compared);
        if fs::metadata(&results).is_ok_and(|file| file.len() == 0) {
            // No warm-up came to its end, and `masu report` refuses an empty file.
            let _ = fs::remove_file(&results);
        }
        let comparison = self.noted(part, made)?;
        self.is_over();
        for table in &comparison.tables {
            self.has_runs |= !table.runs.is_empty();
            for left_out in &table.case.left_out {
                // The variant is noted once, whatever the values of its parameters.
                let (variant, _) = left_out.label.split_once(' ').unwrap_or((&left_out.label, ""));
                let what = format!("{} under {variant}", table.case.name);
                self.miss(what, left_out.reason.clone());
            }
            for (what, reason) in failures(table) {
                self.miss(what, reason);
            }
        }
        Some(comparison)
    }

    pub(super) fn table(&mut self, suite: &Suite, part: &str) -> Option<Table> {
        self.compare(suite, part)?.tables.into_iter().next()
    }

    /// The tables of all workloads of `suite`. Each is measured by itself: one that cannot be measured, such as one whose
    /// warm-up runs out of time, leaves the others as they are.
    pub(super) fn tables(&mut self, suite: &Suite) -> Vec<Table> {
        let mut tables = Vec::new();
        for entry in &suite.entries {
            let (mut one, part) = (suite.clone(), entry.name.replace(' ', "-"));
            let kept = one.keep_only(std::slice::from_ref(&entry.name));
            if self.noted(&part, kept).is_some() {
                let made = self.compare(&one, &part);
                tables.extend(made.into_iter().flat_map(|comparison| comparison.tables));
            }
        }
        tables
    }

    /// A diagnosis of one run as parts of a page that call it `what`; empty where it cannot be made.
    pub(super) fn diagnosis(
        &mut self,
        what: &str,
        words: &[&str],
        input: Option<&Path>,
    ) -> Vec<Block> {
        self.say(&format!("diagnosing: {what}"));
        let diagnosis = self.examine(words, input);
        diagnosis.map(|diagnosis| format::diagnosis(what, &diagnosis)).unwrap_or_default()
    }

    /// A diagnosis of one run of a command as it is; none where that is not possible, which is noted.
    pub(super) fn examine(&mut self, words: &[&str], input: Option<&Path>) -> Option<Diagnosis> {
        if self.is_over() {
            return None;
        }
        let limits = Limits { time: Some(Duration::from_secs(600)), memory_bytes: None };
        let options = DiagnoseOptions { limits, ..DiagnoseOptions::default() };
        let Asked { mallocs, stop, .. } = &mut self.asked;
        let made = workload(words, input).and_then(|workload| {
            let catalogue = mallocs(workload.program.libc).catalogue;
            let variant = catalogue.resolve(&system(), &workload.program)?;
            diagnose::diagnose(&workload, &variant, &catalogue, &options, stop, &mut |_| {})
        });
        self.noted("the diagnosis", made).filter(|_| !self.is_over())
    }

    /// One run of `workload` as it is; none where it is stopped or fails, which is noted as missing for `what`.
    pub(super) fn run_once(&mut self, what: &str, workload: &Workload) -> Option<Run> {
        if self.is_over() {
            return None;
        }
        let conditions = Conditions::default();
        let made = execute::execute(workload, &Variant::default(), &conditions, self.asked.stop);
        self.succeeded(what, made)
    }

    /// The system calls of one run of `workload` under `variant`; none where they cannot be counted.
    pub(super) fn count(&mut self, workload: &Workload, variant: &Variant) -> Option<Calls> {
        if self.is_over() {
            return None;
        }
        let conditions = Conditions::default();
        let counted = calls::count(workload, variant, &conditions, self.asked.stop);
        let what = format!("the calls under {}", variant.label);
        let (run, calls) = self.noted(&what, counted)?;
        self.succeeded(&what, Ok(run)).map(|_| calls)
    }

    /// The run if it did its work; else the reason is noted as missing for `what`, unless the experiment is over.
    fn succeeded(&mut self, what: &str, made: Result<Run, Error>) -> Option<Run> {
        let run = self.noted(what, made)?;
        match run.ending {
            Ending::Exited(0) => return Some(run),
            _ if self.is_over() => {}
            _ => self.miss(what, failure(&run)),
        }
        None
    }

    pub(super) fn page(&self, experiment: &Experiment, outcome: Outcome) -> Page {
        let checkup = self.asked.checkup;
        let date = to_the_minute(SystemTime::now());
        let limits = outcome::limits(checkup);
        outcome.page(experiment, &date, &checkup.machine, limits, &self.missing)
    }
}

/// The rows of `table` with runs that failed, and the reason; rows with one reason together.
fn failures(table: &Table) -> Vec<(String, String)> {
    let failed = table.case.variants.iter().enumerate().filter_map(|(index, variant)| {
        let mut own = table.runs.iter().filter(|run| run.variant == index);
        let failed = own.find(|run| run.ending != Ending::Exited(0))?;
        Some((failure(failed), variant.label.as_str()))
    });
    let named = |(reason, labels): (String, Vec<&str>)| {
        (format!("runs of {} under {}", table.case.name, labels.join(", ")), reason)
    };
    gathered(failed).into_iter().map(named).collect()
}

/// The ending of a run that failed, with the program's last words.
fn failure(run: &Run) -> String {
    let last = run.stderr.tail.lines().rfind(|line| !line.trim().is_empty());
    format!("the program {}: {}", run.ending, last.unwrap_or("it said nothing"))
}

/// The program's own malloc.
pub(super) fn system() -> Spec {
    Spec::bare("system")
}

pub(super) fn workload(words: &[&str], input: Option<&Path>) -> Result<Workload, Error> {
    let input = match input {
        None => Input::Empty,
        Some(path) => {
            Input::keep(File::open(path).doing(|| format!("opening {}", path.display()))?)?
        }
    };
    Workload::new(words.iter().map(OsString::from), input)
}

pub(super) fn set(suite: &mut Suite, name: &str, value: impl AsRef<OsStr>) -> Result<(), Error> {
    // The workbench has refused folders that are no UTF-8.
    let value = value.as_ref().to_string_lossy().into_owned();
    suite.set(&Parameter { name: name.to_owned(), values: vec![value] })
}

/// Gives the parameter `name` these values, in every workload that has it.
pub(super) fn vary(suite: &mut Suite, name: &str, values: &[&str]) {
    let all = suite.entries.iter_mut().flat_map(|entry| &mut entry.parameters);
    for parameter in all.filter(|parameter| parameter.name == name) {
        parameter.values = values.iter().map(ToString::to_string).collect();
    }
}

/// Makes each value that tables were repeated for a row of one table, so that all of them take turns.
pub(super) fn in_one_table(suite: &mut Suite, rounds: usize) {
    suite.rounds = Rounds::Fixed(rounds);
    for entry in &mut suite.entries {
        let each = std::mem::take(&mut entry.each);
        entry.parameters.extend(each);
    }
}

/// Keeps only those values of the parameter `name` for which `keep` is true.
pub(super) fn keep(entry: &mut Entry, name: &str, keep: impl Fn(&str) -> bool) {
    for parameter in entry.parameters.iter_mut().filter(|parameter| parameter.name == name) {
        parameter.values.retain(|value| keep(value));
    }
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let made = fs::create_dir_all(parent).and_then(|()| fs::write(path, text));
    made.doing(|| format!("writing {}", path.display()))
}

/// A time to the minute: `2026-11-24 05:52 UTC`.
fn to_the_minute(time: SystemTime) -> String {
    let whole = humantime::format_rfc3339_seconds(time).to_string();
    let (day, clock) = whole.split_once('T').unwrap_or((&whole, ""));
    format!("{day} {} UTC", clock.get(.."05:52".len()).unwrap_or(clock))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_tree_is_found_from_any_folder_in_it() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = source_above(&here.join("src/experiment"));
        assert!(found.is_none_or(|root| root.join("crates/masu-lab").is_dir()));
        assert_eq!(source_above(Path::new("/")), None);
    }

    /// Calls `act` with a workbench in a folder that is removed afterwards.
    fn at_a_bench(stop: &Stop, act: impl FnOnce(&mut Workbench<'_>, &Path)) {
        let place = tempfile::tempdir().unwrap();
        let machine = crate::report::fixtures::machine("Made-Up 9000");
        let (facts, prices, noise) =
            (Vec::new(), Prices::default(), crate::doctor::Noise::default());
        let checkup = Checkup { schema: "", version: 1, machine, facts, prices, noise };
        let catalogue = masu_run::Catalogue::find(&masu_run::Places::default());
        let asked = Asked {
            depth: Depth::Tiny,
            output: place.path().join("out"),
            cache: place.path().join("cache"),
            source: None,
            install: false,
            checkup: &checkup,
            mallocs: &mut |_| Mallocs { catalogue: catalogue.clone(), ..Mallocs::default() },
            stop,
            tell: &mut |_| {},
        };
        act(&mut Workbench::open(&super::super::brk::BRK, asked).unwrap(), place.path());
    }

    #[test]
    fn a_comparison_that_fails_before_its_runs_leaves_no_empty_file() {
        let text = r#"
            name = "t"
            rounds = 1
            timeout = "1ms"
            variants = ["system"]
            workload = [{ name = "long", command = ["sleep", "60"] }]
        "#;
        at_a_bench(&Stop::never(), |bench, place| {
            let suite = Suite::parse(&place.join("t.toml"), text).unwrap();
            assert!(bench.tables(&suite).is_empty());
            assert_eq!(bench.missing[0].what, "long");
            assert_eq!(fs::read_dir(place.join("out")).unwrap().count(), 0);
        });
    }

    #[test]
    fn a_build_that_is_stopped_leaves_no_compiler_at_work() {
        let stop = Stop::never();
        at_a_bench(&stop, |bench, place| {
            let pids = place.join("pids");
            let script = "echo $$ > new; sleep 1000 & echo $! >> new; mv new pids; wait";
            let mut build = Command::new("sh");
            build.args(["-c", script]).current_dir(place);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !pids.exists() {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    stop.request();
                });
                assert_eq!(bench.step("building", &mut build), None);
            });
            for pid in fs::read_to_string(&pids).unwrap().lines() {
                let runs = || {
                    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                    !stat.is_empty() && !stat.contains(") Z")
                };
                let began = Instant::now();
                while runs() {
                    assert!(began.elapsed() < Duration::from_secs(120), "{pid} works on");
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        });
    }

    #[test]
    fn a_page_is_dated_to_the_minute() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_499_565);
        assert_eq!(to_the_minute(time), "2026-11-24 05:52 UTC");
    }
}
