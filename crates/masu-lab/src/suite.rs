//! A suite: workloads × variants × parameters × measures, as asked for and not yet looked up on this machine.
//!
//! Every comparison is one: `masu compare -- CMD` makes a suite of one workload, a suite file ([`Suite::read`],
//! `docs/suites.md`) one of many. [`Plan::make`](crate::plan::Plan) looks up what a suite names, and the engine
//! measures the plan.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::results::Rounds;
use crate::{Measure, ServerPlan};
use masu_run::parameter::Values;
use masu_run::{Error, Hooks, Input, Limits, Parameter, Scratch, Spec};

mod file;

pub use crate::written::parse_duration;
pub use file::{DEFAULT_BUDGET, MEMORY, parse_measure, parse_memory};

/// Rounds when the caller does not say: under 2 % noise (a virtual machine left alone) enough to
/// find a 3 % difference in 19 of 20 tables of five variants. 20 rounds find it in 17.
pub const DEFAULT_ROUNDS: usize = 30;

#[derive(Debug, Clone)]
pub struct Suite {
    /// The suite's name; none for a single command.
    pub name: Option<String>,
    pub rounds: Rounds,
    /// The workloads: one table each, or one table for each value that a workload is repeated for.
    pub entries: Vec<Entry>,
    /// The values of `{NAME}` in every workload.
    pub values: Values,
}

/// One workload of a suite. Every text but the name may hold `{NAME}` of a parameter, and
/// `{variant}`.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    pub name: String,
    pub command: Vec<OsString>,
    /// The standard input of every run.
    pub input: Source,
    /// The folder that relative paths start at: the suite file's; empty for this process's own.
    pub base: PathBuf,
    /// The folder runs start in; none for `base`.
    pub folder: Option<PathBuf>,
    /// The variants, the reference first.
    pub variants: Choice,
    /// Parameters whose values are rows of one table.
    pub parameters: Vec<Parameter>,
    /// Parameters whose values are tables of their own.
    pub each: Vec<Parameter>,
    pub primary: Measure,
    pub limits: Limits,
    /// Shell commands around the runs. `{NAME}` of a parameter that makes the rows has a value only in
    /// the preparation, which belongs to one row.
    pub hooks: Hooks,
    pub scratch: Scratch,
    /// Whether masu places the blocks of each run at random.
    pub shuffle_heap: bool,
    /// The way to compare servers; none for commands that run to their end.
    pub server: Option<ServerPlan>,
}

#[derive(Debug, Clone, Default)]
pub enum Source {
    /// No input: runs meet the end of their input at once.
    #[default]
    Empty,
    Ready(Input),
    /// The file of this name, which may hold `{NAME}`.
    File(PathBuf),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Choice {
    /// Every malloc of this machine that fits the program; the system's alone where parameters make
    /// the rows. A malloc that does not fit or take effect is left out with its reason.
    #[default]
    Found,
    /// These variants, the first the reference; a single variant is compared with the system's malloc.
    Named(Vec<Named>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub spec: Spec,
    /// Whether a variant that does not work is left out, instead of ending the comparison.
    pub optional: bool,
}

impl Choice {
    /// These variants, all of which must work; every malloc found if `specs` is empty.
    pub fn of(specs: Vec<Spec>) -> Choice {
        if specs.is_empty() {
            return Choice::Found;
        }
        Choice::Named(specs.into_iter().map(|spec| Named { spec, optional: false }).collect())
    }

    /// The same choice, with relative paths of libraries starting at `base`.
    fn starting_at(mut self, base: &Path) -> Choice {
        if let Choice::Named(named) = &mut self {
            for Spec { allocator, .. } in named.iter_mut().map(|one| &mut one.spec) {
                if allocator.contains('/')
                    && let Some(path) = base.join(&*allocator).to_str()
                {
                    *allocator = path.to_owned();
                }
            }
        }
        self
    }
}

impl Suite {
    pub fn single(entry: Entry, rounds: Rounds) -> Suite {
        Suite { name: None, rounds, entries: vec![entry], values: Values::new() }
    }

    /// Replaces one of the suite's values. A name that the suite does not have is an error.
    pub fn set(&mut self, parameter: &Parameter) -> Result<(), Error> {
        let wrong = |reason: String| Error::Parameter { parameter: parameter.name.clone(), reason };
        let known: Vec<&str> = self.values.iter().map(|(name, _)| name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let Some(place) = self.values.iter_mut().find(|(name, _)| *name == parameter.name) else {
            return Err(wrong(format!("the suite's [values] have no such name; known: {known}")));
        };
        let [value] = parameter.values.as_slice() else {
            return Err(wrong("one of a suite's [values] takes one value".to_owned()));
        };
        place.1.clone_from(value);
        Ok(())
    }

    /// Drops every workload except `names`, and every value that only the dropped workloads used. A name that no
    /// workload has is an error.
    pub fn keep_only(&mut self, names: &[String]) -> Result<(), Error> {
        if let Some(name) = names.iter().find(|name| self.entries.iter().all(|e| e.name != **name))
        {
            let known: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
            let known = known.join(", ");
            return Err(Error::Request(format!("no workload `{name}`; known: {known}")));
        }
        self.entries.retain(|entry| names.contains(&entry.name));
        let Suite { entries, values, .. } = self;
        values.retain(|(name, _)| entries.iter().any(|entry| entry.mentions(name)));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
