//! A plan: the request of a suite, looked up on this machine and ready to run.
//!
//! A case becomes a table, and a row of it a variant with its own workload: a parameter may stand for the program, so
//! each row looks its program up. A variant that was found by the lab and does not fit is left out with its reason; a
//! variant that the user named must fit.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::results::{Case, LeftOut, Rounds};
use crate::suite::{Choice, Entry, Named, Source, Suite};
use crate::{Measure, ServerPlan};
use masu_run::error::Doing;
use masu_run::parameter::{self, Values, combinations, substitute};
use masu_run::{
    Catalogue, Error, Hooks, Input, Libc, Limits, Parameter, Program, Row, Scratch, Spec, Variant,
    Workload,
};

#[derive(Debug, Clone)]
pub struct Plan {
    /// The suite's name; none for a single command.
    pub suite: Option<String>,
    pub rounds: Rounds,
    /// The cases that are compared, one table each.
    pub cases: Vec<Prepared>,
}

#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// The name of the case, also in the results.
    pub name: String,
    /// The command as written, placeholders included.
    pub command: Vec<OsString>,
    /// The rows, the reference first.
    pub rows: Vec<Row>,
    pub left_out: Vec<LeftOut>,
    /// The measure that carries the verdict.
    pub primary: Measure,
    pub limits: Limits,
    pub hooks: Hooks,
    pub scratch: Scratch,
    /// The way to compare servers; none for commands that run to their end.
    pub server: Option<ServerPlan>,
    /// Whether the runs of a round are made at the same time, on one CPU: see
    /// [`Prepared::side_by_side`](Prepared::side_by_side()).
    pub is_side_by_side: bool,
    /// Further settings of the request, by their names in a suite file.
    pub settings: Vec<(String, String)>,
}

/// The mallocs for programs of one C library.
#[derive(Debug, Clone, Default)]
pub struct Mallocs {
    pub catalogue: Catalogue,
    /// Mallocs that should exist and are missing, by name.
    pub absent: Vec<LeftOut>,
    /// The library that counts a server's allocations; see `masu_run::count`.
    pub counting: Option<PathBuf>,
}

impl Plan {
    /// Looks up everything that `suite` names; `mallocs` returns the available mallocs, and is called once for each C
    /// library. An error for parameters that appear nowhere or are declared twice, and when nothing is left to compare.
    pub fn make(suite: &Suite, mallocs: &mut dyn FnMut(Libc) -> Mallocs) -> Result<Plan, Error> {
        let mut known = KnownMallocs { ask: mallocs, known: HashMap::new() };
        check_names(suite)?;
        let mut cases = Vec::new();
        for entry in &suite.entries {
            for each in combinations(&entry.each) {
                let mut values = suite.values.clone();
                values.extend(each.clone());
                let name = format!("{}{}", entry.name, parameter::label(&each));
                let prepared = Making { entry, values, name }.prepared(&mut known);
                cases.push(prepared.map_err(|error| of_several(suite, entry, error))?);
            }
        }
        if cases.is_empty() {
            return Err(Error::Request("no workload given".to_owned()));
        }
        Ok(Plan { suite: suite.name.clone(), rounds: suite.rounds, cases })
    }

    pub fn single(workload: &Workload, variants: &[Variant], rounds: Rounds) -> Plan {
        let row = |variant: &Variant| Row {
            variant: variant.clone(),
            workload: workload.clone(),
            optional: false,
        };
        let prepared = Prepared {
            name: workload.arguments.first().map(lossy).unwrap_or_default(),
            command: workload.arguments.clone(),
            rows: variants.iter().map(row).collect(),
            ..Prepared::default()
        };
        Plan { suite: None, rounds, cases: vec![prepared] }
    }
}

impl Prepared {
    /// Sets the runs of each round to be made at the same time, on one CPU, and judged by their CPU time.
    ///
    /// The kernel runs each of them for a few milliseconds in turn. So all of them meet the same machine, whatever
    /// its clock rate or other machines on the same processor do from one second to the next, and their CPU times can
    /// be compared far more closely than those of runs one after the other. This suits programs of one thread that
    /// share nothing with another run of themselves: no files that they write, no locks, no sockets.
    /// It is not meant for preparations around the runs and folders made for them.
    pub fn side_by_side(&mut self) {
        self.is_side_by_side = true;
        self.primary = Measure::Cpu;
        self.settings.push(("rounds".to_owned(), "side by side on one CPU".to_owned()));
    }

    pub fn case(&self) -> Case {
        Case {
            name: self.name.clone(),
            command: self.command.iter().map(lossy).collect(),
            variants: self.rows.iter().map(|row| row.variant.clone()).collect(),
            primary: self.primary,
            left_out: self.left_out.clone(),
            settings: self.settings.clone(),
        }
    }
}

/// Adds to an error which of several workloads lacks its program: the others can be compared without it.
fn of_several(suite: &Suite, entry: &Entry, error: Error) -> Error {
    match error {
        Error::Program { command, reason } if suite.entries.len() > 1 => {
            let others =
                format!("workload `{}`; `--only` with names of others leaves it out", entry.name);
            Error::Program { command, reason: format!("{reason} ({others})") }
        }
        other => other,
    }
}

fn lossy(text: impl AsRef<OsStr>) -> String {
    text.as_ref().to_string_lossy().into_owned()
}

/// Checks that every name is declared once and is used.
fn check_names(suite: &Suite) -> Result<(), Error> {
    let wrong =
        |name: &str, reason: String| Error::Parameter { parameter: name.to_owned(), reason };
    for (name, _) in &suite.values {
        if !suite.entries.iter().any(|entry| entry.mentions(name)) {
            return Err(wrong(name, format!("no workload holds {{{name}}}; check its spelling")));
        }
    }
    for entry in &suite.entries {
        let mut names: Vec<&str> = suite.values.iter().map(|(name, _)| name.as_str()).collect();
        for Parameter { name, .. } in entry.parameters.iter().chain(&entry.each) {
            if names.contains(&name.as_str()) {
                return Err(wrong(name, "it is declared twice; take another name".to_owned()));
            }
            names.push(name);
            if !entry.mentions(name) {
                return Err(wrong(
                    name,
                    format!(
                        "nothing of `{}` holds {{{name}}}; put it where it belongs",
                        entry.name
                    ),
                ));
            }
        }
        for Parameter { name, .. } in &entry.parameters {
            if !entry.texts_of_a_row().into_iter().any(|text| parameter::mentions(text, name)) {
                return Err(wrong(
                    name,
                    format!(
                        "only what all rows of `{}` share (setup, cleanup, scratch folder) holds \
                         {{{name}}}, so its rows would be the same; put it into the command or the \
                         preparation, or make each value a table of its own (--each, `each`)",
                        entry.name
                    ),
                ));
            }
        }
    }
    Ok(())
}

impl Entry {
    /// Every text in which `{NAME}` of a row is replaced.
    fn texts_of_a_row(&self) -> Vec<&OsStr> {
        let mut texts: Vec<&OsStr> = self.command.iter().map(OsString::as_os_str).collect();
        texts.extend(self.folder.as_deref().map(Path::as_os_str));
        if let Source::File(path) = &self.input {
            texts.push(path.as_os_str());
        }
        texts.extend(self.hooks.prepare.as_deref());
        texts.extend(self.server.iter().flat_map(ServerPlan::texts));
        texts
    }

    /// The texts that belong to the whole table: only values that all its rows share are replaced in them.
    fn texts_of_all_rows(&self) -> Vec<&OsStr> {
        let Hooks { setup, prepare: _, cleanup } = &self.hooks;
        let mut texts: Vec<&OsStr> =
            [setup, cleanup].into_iter().flatten().map(OsString::as_os_str).collect();
        if let Scratch::CopyOf(folder) = &self.scratch {
            texts.push(folder.as_os_str());
        }
        texts
    }

    pub(crate) fn mentions(&self, name: &str) -> bool {
        let texts = self.texts_of_a_row().into_iter().chain(self.texts_of_all_rows());
        texts.into_iter().any(|text| parameter::mentions(text, name))
    }

    /// The settings of the request besides command, variants and measure, by their names in a suite file.
    fn settings(&self) -> Vec<(String, String)> {
        let seconds = |time: Duration| format!("{}s", time.as_secs_f64());
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let input = match &self.input {
            Source::Empty | Source::Ready(_) => None,
            Source::File(file) => Some(path(file)),
        };
        let scratch = match &self.scratch {
            Scratch::None => None,
            Scratch::Empty => Some(String::new()),
            Scratch::CopyOf(folder) => Some(path(folder)),
        };
        let settings = [
            ("input", input),
            ("setup", self.hooks.setup.as_ref().map(lossy)),
            ("prepare", self.hooks.prepare.as_ref().map(lossy)),
            ("cleanup", self.hooks.cleanup.as_ref().map(lossy)),
            ("scratch", scratch),
            ("folder", self.folder.as_deref().map(path)),
            ("timeout", self.limits.time.map(seconds)),
            ("memory-limit", self.limits.memory_bytes.map(|bytes| bytes.to_string())),
            ("shuffle-heap", self.shuffle_heap.then(|| "true".to_owned())),
        ];
        let given = settings.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut given: Vec<(String, String)> =
            given.map(|(name, value)| (name.to_owned(), value)).collect();
        given.extend(self.server.iter().flat_map(ServerPlan::settings));
        given
    }
}

/// The available mallocs; each C library is looked up once.
struct KnownMallocs<'a> {
    ask: &'a mut dyn FnMut(Libc) -> Mallocs,
    known: HashMap<Libc, Mallocs>,
}

impl KnownMallocs<'_> {
    fn of(&mut self, libc: Libc) -> &Mallocs {
        self.known.entry(libc).or_insert_with(|| (self.ask)(libc))
    }
}

struct Making<'a> {
    entry: &'a Entry,
    /// The values for the whole table.
    values: Values,
    name: String,
}

impl Making<'_> {
    fn prepared(self, known: &mut KnownMallocs<'_>) -> Result<Prepared, Error> {
        let combinations = combinations(&self.entry.parameters);
        let programs: Vec<Program> =
            combinations.iter().map(|values| self.program(values)).collect::<Result<_, Error>>()?;
        let mut left_out = Vec::new();
        let named = self.named(known, &programs[0], &mut left_out)?;
        let mut rows: Vec<Row> = Vec::new();
        for Named { spec, optional } in &named {
            for (values, program) in combinations.iter().zip(&programs) {
                let mut variant = match resolved(known, spec, program) {
                    Ok(variant) => variant,
                    Err(error) if *optional => {
                        let label = format!("{}{}", spec.label(), parameter::label(values));
                        left_out.push(LeftOut { label, reason: error.to_string() });
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                variant.label.push_str(&parameter::label(values));
                variant.parameters.clone_from(values);
                let workload = self.workload(&variant, program)?;
                rows.push(Row { variant, workload, optional: *optional });
            }
        }
        let server = self.entry.server.as_ref().map(|server| ServerPlan {
            counting: known.of(programs[0].libc).counting.clone(),
            ..server.with(&self.values)
        });
        if server.is_none() && self.entry.primary.is_of_servers() {
            return Err(Error::Request(format!(
                "{}: only a server has the measure that is to decide; choose another measure, or \
                 compare servers",
                self.name
            )));
        }
        let (entry, scratch) = (self.entry, self.scratch());
        let settle =
            |hook: &Option<OsString>| hook.as_ref().map(|text| substitute(text, &self.values));
        let Hooks { setup, prepare, cleanup } = &entry.hooks;
        let hooks =
            Hooks { setup: settle(setup), prepare: settle(prepare), cleanup: settle(cleanup) };
        Ok(Prepared {
            name: self.name,
            command: entry.command.clone(),
            rows,
            left_out,
            primary: entry.primary,
            limits: entry.limits.clone(),
            hooks,
            scratch,
            server,
            settings: entry.settings(),
            ..Prepared::default()
        })
    }

    /// The variants by name: those of the suite, or the mallocs found for `program`.
    fn named(
        &self,
        known: &mut KnownMallocs<'_>,
        program: &Program,
        left_out: &mut Vec<LeftOut>,
    ) -> Result<Vec<Named>, Error> {
        let has_rows = !self.entry.parameters.is_empty();
        match &self.entry.variants {
            Choice::Named(named) => {
                let mut named = named.clone();
                if let [alone] = named.as_slice()
                    && !has_rows
                {
                    let found = known.of(program.libc).catalogue.variants_for(program);
                    let system = found.into_iter().next().map(|variant| Spec::bare(variant.label));
                    let others =
                        system.filter(|it| ![it, &Spec::bare("system")].contains(&&alone.spec));
                    named.splice(0..0, others.map(|spec| Named { spec, optional: false }));
                }
                Ok(named)
            }
            Choice::Found if has_rows => {
                Ok(vec![Named { spec: Spec::bare("system"), optional: false }])
            }
            Choice::Found => {
                program.preloadable()?;
                let mallocs = known.of(program.libc);
                let variants = mallocs.catalogue.variants_for(program);
                left_out.extend(mallocs.absent.iter().cloned());
                left_out.extend(unfit(&mallocs.catalogue, &variants, program));
                let optional = |(index, variant): (usize, Variant)| Named {
                    spec: Spec::bare(variant.label),
                    optional: index > 0,
                };
                Ok(variants.into_iter().enumerate().map(optional).collect())
            }
        }
    }

    /// The folder runs start in; none for this process's own.
    fn folder(&self, values: &Values) -> Option<PathBuf> {
        let written = self.entry.folder.as_deref().unwrap_or(Path::new(""));
        let folder = self.entry.base.join(substitute(written.as_os_str(), values));
        // An empty path is this process's own folder, which has no absolute form here.
        let absolute = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
        (!folder.as_os_str().is_empty()).then_some(absolute)
    }

    fn scratch(&self) -> Scratch {
        match &self.entry.scratch {
            Scratch::CopyOf(folder) => {
                let folder = substitute(folder.as_os_str(), &self.values);
                Scratch::CopyOf(self.entry.base.join(folder))
            }
            other => other.clone(),
        }
    }

    /// All values except that of `{variant}`, which is no part of a program's name.
    fn values(&self, row: &Values) -> Values {
        self.values.iter().chain(row).cloned().collect()
    }

    fn program(&self, row: &Values) -> Result<Program, Error> {
        let values = self.values(row);
        let first = self.entry.command.first().map_or(OsStr::new(""), OsString::as_os_str);
        let command = substitute(first, &values);
        let folder = self.folder(&values);
        let beside = folder.filter(|_| command.to_string_lossy().contains('/'));
        match beside {
            Some(folder) => Program::find(folder.join(&command).as_os_str()),
            None => Program::find(&command),
        }
    }

    fn workload(&self, variant: &Variant, program: &Program) -> Result<Workload, Error> {
        let mut values = self.values(&variant.parameters);
        values.push(("variant".to_owned(), variant.label.clone()));
        let input = match &self.entry.input {
            Source::Empty => Input::Empty,
            Source::Ready(input) => input.clone(),
            Source::File(path) => {
                let path = self.entry.base.join(substitute(path.as_os_str(), &values));
                Input::keep(File::open(&path).doing(|| format!("opening {}", path.display()))?)?
            }
        };
        Ok(Workload {
            arguments: self.entry.command.iter().map(|word| substitute(word, &values)).collect(),
            program: program.clone(),
            input,
            folder: self.folder(&values),
            shuffles_heap: self.entry.shuffle_heap,
        })
    }
}

/// The variant of `spec` for `program`; the error says why a malloc that should exist is missing.
fn resolved(
    known: &mut KnownMallocs<'_>,
    spec: &Spec,
    program: &Program,
) -> Result<Variant, Error> {
    let mallocs = known.of(program.libc);
    let absent = mallocs.absent.iter().find(|absent| absent.label == spec.allocator);
    match absent {
        None => match mallocs.catalogue.resolve(spec, program) {
            // A program that takes no preload explains the missing malloc: no malloc was looked up for it.
            Err(error @ Error::UnknownAllocator { .. }) => program.preloadable().and(Err(error)),
            resolved => resolved,
        },
        Some(absent) => {
            program.preloadable()?;
            let (variant, reason) = (spec.to_string(), absent.reason.clone());
            Err(Error::Variant { variant, reason })
        }
    }
}

/// The found mallocs that `program` cannot run with.
fn unfit(catalogue: &Catalogue, fit: &[Variant], program: &Program) -> Vec<LeftOut> {
    let is_fit = |label: &str| fit.iter().any(|variant| variant.label == label);
    let others = catalogue.allocators.iter().filter(|one| one.preloaded && !is_fit(&one.name));
    let reason = |spec: Spec| {
        let error = catalogue.resolve(&spec, program).err()?;
        Some(LeftOut { label: spec.allocator, reason: error.to_string() })
    };
    others.filter_map(|one| reason(Spec::bare(one.name.clone()))).collect()
}

#[cfg(test)]
mod tests;
