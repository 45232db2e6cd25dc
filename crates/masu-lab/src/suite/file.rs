//! Suite files: TOML, read by serde. COUPLING: `docs/suites.md` describes the format.
//!
//! The tables of a file are the structs below; further rules for a value are checked where it is read, so that
//! every mistake has its line.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::{Choice, DEFAULT_ROUNDS, Entry, Named, Source, Suite};
use crate::Measure;
use crate::results::Rounds;
use crate::server::ServerRequest;
use crate::statistics::DEFAULT_PRECISION;
use crate::written::{Word, read, time};
use masu_run::error::Doing;
use masu_run::variant::parse_size;
use masu_run::{Error, Parameter, Scratch};

/// The most time for timed runs where only a precision is asked for.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(600);

/// A table with the keys that may stand at the top and in each workload, and with its own keys.
macro_rules! table {
    ($name:ident { $($own:tt)* }) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        struct $name {
            $($own)*
            #[serde(default, deserialize_with = "choice")]
            variants: Option<Choice>,
            #[serde(default, deserialize_with = "measure")]
            primary: Option<Measure>,
            #[serde(default, deserialize_with = "time")]
            timeout: Option<Duration>,
            #[serde(default, deserialize_with = "size")]
            memory_limit: Option<u64>,
            setup: Option<String>,
            prepare: Option<String>,
            cleanup: Option<String>,
            scratch: Option<Folder>,
            shuffle_heap: Option<bool>,
        }

        impl $name {
            /// Sets in `entry` every setting that the table has.
            fn settle(&mut self, entry: &mut Entry) {
                if let Some(choice) = self.variants.take() {
                    entry.variants = choice.starting_at(&entry.base);
                }
                entry.primary = self.primary.unwrap_or(entry.primary);
                entry.limits.time = self.timeout.or(entry.limits.time);
                entry.limits.memory_bytes = self.memory_limit.or(entry.limits.memory_bytes);
                entry.shuffle_heap = self.shuffle_heap.unwrap_or(entry.shuffle_heap);
                let hooks = &mut entry.hooks;
                for (asked, hook) in [
                    (self.setup.take(), &mut hooks.setup),
                    (self.prepare.take(), &mut hooks.prepare),
                    (self.cleanup.take(), &mut hooks.cleanup),
                ] {
                    *hook = asked.map(Into::into).or(hook.take());
                }
                match self.scratch.take() {
                    None => {}
                    Some(Folder::Fresh(true)) => entry.scratch = Scratch::Empty,
                    Some(Folder::Fresh(false)) => entry.scratch = Scratch::None,
                    Some(Folder::CopyOf(folder)) => entry.scratch = Scratch::CopyOf(folder),
                }
            }
        }
    };
}

table! { File {
    name: Option<String>,
    #[serde(default)]
    values: BTreeMap<Spanned<String>, Word>,
    rounds: Option<Spanned<NonZero<usize>>>,
    #[serde(default, deserialize_with = "time")]
    budget: Option<Duration>,
    #[serde(default, deserialize_with = "share")]
    precision: Option<f64>,
    workload: Vec<Workload>,
} }

table! { Workload {
    name: Spanned<String>,
    command: Words,
    input: Option<PathBuf>,
    folder: Option<PathBuf>,
    #[serde(default, deserialize_with = "parameters")]
    parameters: Vec<Parameter>,
    #[serde(default, deserialize_with = "parameters")]
    each: Vec<Parameter>,
    server: Option<Spanned<ServerRequest>>,
} }

/// A list of words, or a text for the shell.
#[derive(Deserialize)]
#[serde(untagged, expecting = "write [\"PROGRAM\", \"ARGUMENT\"], or a text that `sh -c` runs")]
enum Words {
    Shell(String),
    Words(Vec<Word>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write true for an empty folder, or the folder to copy")]
enum Folder {
    Fresh(bool),
    CopyOf(PathBuf),
}

/// `"jemalloc"`, or `{ variant = "jemalloc", optional = true }`.
#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "write a variant in quotes, or { variant = \"NAME\", optional = true }"
)]
enum Written {
    Name(String),
    Table {
        variant: String,
        #[serde(default)]
        optional: bool,
    },
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "write \"found\" for every malloc found, or a list of variants")]
enum Variants {
    Word(String),
    List(Vec<Written>),
}

fn choice<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Choice>, D::Error> {
    let list = match Variants::deserialize(from)? {
        Variants::Word(word) if word == "found" => return Ok(Some(Choice::Found)),
        Variants::List(list) if !list.is_empty() => list,
        _ => {
            let advice = "write \"found\" for every malloc found, or a list of variants";
            return Err(D::Error::custom(advice));
        }
    };
    let named = |one: Written| {
        let (text, optional) = match one {
            Written::Name(text) => (text, false),
            Written::Table { variant, optional } => (variant, optional),
        };
        Ok(Named { spec: text.parse().map_err(|error: Error| D::Error::custom(error))?, optional })
    };
    Ok(Some(Choice::Named(list.into_iter().map(named).collect::<Result<_, _>>()?)))
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    read(from, MEMORY, parse_memory)
}

fn share<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let share = |text: &str| {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
        number.map(|per_cent| per_cent / 100.0)
    };
    read(from, "a number of per cent above 0, such as 1.5", share)
}

fn measure<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Measure>, D::Error> {
    parse_measure(&String::deserialize(from)?).map(Some).map_err(D::Error::custom)
}

/// The parameters, in the order in which they are written.
fn parameters<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Parameter>, D::Error> {
    let tables = BTreeMap::<Spanned<String>, Vec<Word>>::deserialize(from)?;
    let mut tables: Vec<_> = tables.into_iter().collect();
    tables.sort_by_key(|(name, _)| name.span().start);
    let one = |(name, values): (Spanned<String>, Vec<Word>)| {
        let values = values.into_iter().map(Word::text).collect();
        Parameter::new(name.get_ref(), values).map_err(D::Error::custom)
    };
    tables.into_iter().map(one).collect()
}

/// A memory limit in words.
pub const MEMORY: &str = "a number of bytes from 1M on, such as 512M or 2G";

/// Understands a memory limit; none for one below which no program can even start: it was meant in other units.
pub fn parse_memory(text: &str) -> Option<u64> {
    parse_size(text).filter(|size| *size >= 1 << 20)
}

/// The measure that results call `name`; a `-` may stand for `_`. The error has all names.
pub fn parse_measure(name: &str) -> Result<Measure, String> {
    name.replace('-', "_").parse()
}

impl Suite {
    /// Reads the suite file at `path`. Relative paths in it start at its own folder. Anything that is not understood is
    /// an error with its line, unknown keys included.
    pub fn read(path: &Path) -> Result<Suite, Error> {
        let text =
            fs::read_to_string(path).doing(|| format!("reading the suite {}", path.display()))?;
        Suite::parse(path, &text)
    }

    /// The suite in `text`, as if `text` stood in the file at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Suite, Error> {
        let wrong = |place: usize, reason: String| {
            let before = text.get(..place).unwrap_or(text);
            let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
            Error::Suite { path: path.to_owned(), line, reason }
        };
        let file: File = toml::from_str(text).map_err(|error| {
            wrong(error.span().map_or(0, |span| span.start), error.message().to_owned())
        })?;
        file.suite(path, &wrong)
    }
}

impl File {
    /// The suite; `wrong` makes an error from a place in the file and a reason.
    fn suite(
        mut self,
        path: &Path,
        wrong: &dyn Fn(usize, String) -> Error,
    ) -> Result<Suite, Error> {
        let rounds = match (&self.rounds, self.budget, self.precision) {
            (Some(fixed), None, None) => Rounds::Fixed(fixed.get_ref().get()),
            (None, None, None) => Rounds::Fixed(DEFAULT_ROUNDS),
            (Some(fixed), ..) => {
                let reason =
                    "`rounds` and what a `budget` or a `precision` takes exclude each other";
                return Err(wrong(fixed.span().start, reason.to_owned()));
            }
            (None, budget, precision) => Rounds::Budget {
                seconds: budget.unwrap_or(DEFAULT_BUDGET).as_secs_f64(),
                precision: precision.unwrap_or(DEFAULT_PRECISION),
            },
        };
        // Relative paths start at the suite's own folder, so that they mean the same wherever masu is started.
        let base = path.parent().unwrap_or(Path::new("")).to_owned();
        let mut usual = Entry { base, ..Entry::default() };
        self.settle(&mut usual);
        let mut entries: Vec<Entry> = Vec::new();
        for workload in self.workload {
            let (place, name) = (workload.name.span().start, workload.name.get_ref());
            let reason = match name.as_str() {
                "" => Some("a workload needs a name".to_owned()),
                name if entries.iter().any(|known| known.name == name) => {
                    Some(format!("two workloads are called `{name}`"))
                }
                _ => None,
            };
            if let Some(reason) = reason {
                return Err(wrong(place, reason));
            }
            entries.push(workload.entry(usual.clone(), wrong)?);
        }
        let mut values = Vec::new();
        for (name, value) in self.values {
            let parameter = Parameter::new(name.get_ref(), vec![value.text()]);
            let one = parameter.map_err(|error| wrong(name.span().start, error.to_string()))?;
            values.push((one.name, one.values.into_iter().next().unwrap_or_default()));
        }
        let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Suite { name: Some(self.name.unwrap_or_else(stem)), rounds, entries, values })
    }
}

impl Workload {
    fn entry(
        mut self,
        mut entry: Entry,
        wrong: &dyn Fn(usize, String) -> Error,
    ) -> Result<Entry, Error> {
        let is_its_own = self.scratch.is_some() || self.input.is_some();
        self.settle(&mut entry);
        let place = self.name.span().start;
        entry.name = self.name.into_inner();
        entry.command = match self.command {
            Words::Shell(line) => ["sh".into(), "-c".into(), line.into()].into(),
            Words::Words(words) => words.into_iter().map(|word| word.text().into()).collect(),
        };
        if entry.command.is_empty() {
            return Err(wrong(place, "the `command` names no program".to_owned()));
        }
        entry.input = self.input.map_or(Source::Empty, Source::File);
        entry.folder = self.folder;
        (entry.parameters, entry.each) = (self.parameters, self.each);
        if let Some(server) = self.server {
            let place = server.span().start;
            if is_its_own {
                let reason = "a server has its data in {dir} and reads no input; leave `scratch` and `input` out";
                return Err(wrong(place, reason.to_owned()));
            }
            let plan = server.into_inner().plan(&entry.base);
            let plan = plan.map_err(|error| wrong(place, error.to_string()))?;
            // A burst of HTTP load always takes the same time, so wall time cannot be its measure.
            if entry.primary == Measure::Wall {
                entry.primary = plan.primary();
            }
            entry.server = Some(plan);
        }
        Ok(entry)
    }
}
