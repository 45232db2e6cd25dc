//! Suite files: TOML, taken apart key by key. COUPLING: `docs/suites.md` describes the format.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use toml::de::DeTable;

use super::table::{Table, Text, Value};
use super::{Choice, DEFAULT_ROUNDS, Entry, Named, Source, Suite};
use crate::error::Doing;
use crate::named::find;
use crate::parameter::Values;
use crate::results::Rounds;
use crate::server::{ServerRequest, urls_of};
use crate::statistics::DEFAULT_PRECISION;
use crate::{Error, Hooks, Limits, Measure, Parameter, Scratch};

/// What timed runs may take where only a precision is asked for.
pub const DEFAULT_BUDGET: Duration = Duration::from_secs(600);

impl Suite {
    /// Reads the suite file at `path`. Relative paths in it start at its own folder.
    ///
    /// # Errors
    ///
    /// [`Error::System`] when the file cannot be read; [`Error::Suite`] with the line for anything
    /// in it that is not understood, unknown keys included.
    pub fn read(path: &Path) -> Result<Suite, Error> {
        let text =
            fs::read_to_string(path).doing(|| format!("reading the suite {}", path.display()))?;
        Suite::parse(path, &text)
    }

    /// The suite that `text` is, as if it stood in the file at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Suite`], as for [`read`](Self::read).
    pub fn parse(path: &Path, text: &str) -> Result<Suite, Error> {
        understand(Text { path, text })
    }
}

fn understand(file: Text<'_>) -> Result<Suite, Error> {
    let parsed = DeTable::parse(file.text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        file.wrong(place, error.message())
    })?;
    let mut top = Table::new(file, 0, parsed.get_ref());
    let name = match top.take("name") {
        Some(name) => name.text()?.to_owned(),
        None => file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    let values = top.take("values").map_or(Ok(Values::new()), |values| constants(&values))?;
    let rounds = rounds(&mut top)?;
    let usual = usual(&mut top)?;
    let example = "[[workload]] with its keys below";
    let mut entries: Vec<Entry> = Vec::new();
    for workload in top.need("workload", example)?.list()? {
        let entry = entry(workload.table(example)?, &usual)?;
        if entries.iter().any(|known| known.name == entry.name) {
            return Err(workload.wrong(format!("two workloads are called `{}`", entry.name)));
        }
        entries.push(entry);
    }
    top.finish()?;
    Ok(Suite { name: Some(name), rounds, entries, values })
}

/// What stands for `{NAME}` everywhere.
fn constants(values: &Value<'_>) -> Result<Values, Error> {
    let mut constants = Values::new();
    for value in values.table("[values] with NAME = \"VALUE\" below")?.all() {
        let one = parameter(&value, vec![value.word()?])?;
        constants.push((one.name, one.values.into_iter().next().unwrap_or_default()));
    }
    Ok(constants)
}

fn rounds(top: &mut Table<'_>) -> Result<Rounds, Error> {
    let (fixed, budget, precision) =
        (top.take("rounds"), top.take("budget"), top.take("precision"));
    if let (Some(fixed), Some(_)) = (fixed, budget.or(precision)) {
        return Err(fixed.wrong(
            "so many rounds, and as many as a budget or a precision takes, exclude each other",
        ));
    }
    match (fixed, budget, precision) {
        (Some(fixed), ..) => Ok(Rounds::Fixed(fixed.count()?)),
        (None, None, None) => Ok(Rounds::Fixed(DEFAULT_ROUNDS)),
        (None, budget, precision) => Ok(Rounds::Budget {
            seconds: budget.map_or(Ok(DEFAULT_BUDGET), |one| one.duration())?.as_secs_f64(),
            precision: precision.map_or(Ok(DEFAULT_PRECISION), |one| one.share())?,
        }),
    }
}

/// What holds for workloads that do not say otherwise. Relative paths start at the suite's own
/// folder, so that they mean the same wherever masu is started.
fn usual(top: &mut Table<'_>) -> Result<Entry, Error> {
    let mut entry = Entry { base: top.file().folder().to_owned(), ..Entry::default() };
    settings(top, &mut entry)?;
    Ok(entry)
}

/// What can stand at the top and in each workload.
fn settings(table: &mut Table<'_>, entry: &mut Entry) -> Result<(), Error> {
    if let Some(variants) = table.take("variants") {
        entry.variants = choice(&variants)?;
    }
    if let Some(primary) = table.take("primary") {
        entry.primary = measure(&primary)?;
    }
    let Limits { time, memory_bytes } = &mut entry.limits;
    if let Some(timeout) = table.take("timeout") {
        *time = Some(timeout.duration()?);
    }
    if let Some(limit) = table.take("memory-limit") {
        *memory_bytes = Some(limit.size()?);
    }
    let Hooks { setup, prepare, cleanup } = &mut entry.hooks;
    for (key, hook) in [("setup", setup), ("prepare", prepare), ("cleanup", cleanup)] {
        if let Some(command) = table.take(key) {
            *hook = Some(command.text()?.into());
        }
    }
    if let Some(written) = table.take("scratch") {
        entry.scratch = scratch(&written)?;
    }
    Ok(())
}

fn entry(mut table: Table<'_>, usual: &Entry) -> Result<Entry, Error> {
    let mut entry = usual.clone();
    let name = table.need("name", "name = \"NAME\"")?;
    name.text()?.clone_into(&mut entry.name);
    if entry.name.is_empty() {
        return Err(name.wrong("a workload needs a name"));
    }
    let written = table.need("command", "command = [\"PROGRAM\", \"ARGUMENT\"]")?;
    entry.command = command(&written)?;
    if let Some(input) = table.take("input") {
        entry.input = Source::File(input.text()?.into());
    }
    if let Some(folder) = table.take("folder") {
        entry.folder = Some(folder.text()?.into());
    }
    if let Some(rows) = table.take("parameters") {
        entry.parameters = parameters(&rows)?;
    }
    if let Some(each) = table.take("each") {
        entry.each = parameters(&each)?;
    }
    settings(&mut table, &mut entry)?;
    if let Some(asked) = table.take("server") {
        let plan = server(&asked, &entry.base)?.plan();
        let plan = plan.map_err(|error| asked.wrong(error.to_string()))?;
        // A burst of HTTP load always takes as long, so that can be nobody's measure.
        if entry.primary == Measure::Wall {
            entry.primary = plan.primary();
        }
        entry.server = Some(plan);
    }
    table.finish()?;
    Ok(entry)
}

/// The table `[workload.server]`.
fn server(written: &Value<'_>, base: &Path) -> Result<ServerRequest, Error> {
    let mut table = written.table("[workload.server] with load = \"URL\" below")?;
    let load = table.need("load", "load = \"http://127.0.0.1:{port}/\", or a command")?;
    let load = if load.is_list() {
        let texts = load.list()?.into_iter().map(|one| one.text().map(str::to_owned));
        texts.collect::<Result<Vec<String>, Error>>()?
    } else {
        vec![load.text()?.to_owned()]
    };
    let load = urls_of(load, base).map_err(|error| written.wrong(error.to_string()))?;
    let mut asked = ServerRequest { load, ..ServerRequest::default() };
    if let Some(ready) = table.take("ready") {
        asked.ready = Some(ready.text()?.to_owned());
    }
    if let Some(file) = table.take("load-body") {
        let path = base.join(file.text()?);
        let body = fs::read(&path)
            .map_err(|error| file.wrong(format!("{} cannot be read: {error}", path.display())))?;
        asked.body = Some(body);
    }
    if let Some(count) = table.take("connections") {
        asked.connections = Some(count.count()?);
    }
    if let Some(rate) = table.take("rate") {
        let number = rate.word()?.parse::<f64>();
        asked.rate = Some(number.map_err(|_| rate.wrong("write requests a second: 500"))?);
    }
    if let Some(rate) = table.take("latency-rate") {
        asked.latency_rate =
            Some(rate.word()?.parse().map_err(|advice: String| rate.wrong(advice))?);
    }
    for (key, time) in [
        ("ready-within", &mut asked.ready_within),
        ("request-timeout", &mut asked.request_timeout),
        ("burst", &mut asked.burst),
    ] {
        if let Some(value) = table.take(key) {
            *time = Some(value.duration()?);
        }
    }
    if let Some(alone) = table.take("one-at-a-time") {
        asked.one_at_a_time = alone.truth()?;
    }
    table.finish()?;
    Ok(asked)
}

/// A list of words, or a text for the shell.
fn command(written: &Value<'_>) -> Result<Vec<OsString>, Error> {
    if written.is_list() {
        let words = written.list()?;
        let words: Vec<OsString> =
            words.iter().map(|word| Ok(word.word()?.into())).collect::<Result<_, Error>>()?;
        if words.is_empty() {
            return Err(written.wrong("it names no program"));
        }
        return Ok(words);
    }
    if !written.is_text() {
        return Err(written.wrong(
            "write a list of words, [\"PROGRAM\", \"ARGUMENT\"], or a text that `sh -c` runs",
        ));
    }
    Ok(["sh", "-c", written.text()?].map(OsString::from).into())
}

fn choice(variants: &Value<'_>) -> Result<Choice, Error> {
    if variants.is_text() {
        return match variants.text()? {
            "found" => Ok(Choice::Found),
            _ => Err(variants.wrong("write \"found\" for every malloc found, or a list")),
        };
    }
    let named: Vec<Named> = variants.list()?.iter().map(named).collect::<Result<_, Error>>()?;
    if named.is_empty() {
        return Err(variants.wrong("the list is empty; write \"found\" for every malloc found"));
    }
    Ok(Choice::Named(named))
}

/// `"jemalloc"`, or `{ variant = "jemalloc", optional = true }`.
fn named(element: &Value<'_>) -> Result<Named, Error> {
    let spec = |text: &Value<'_>| {
        text.text()?.parse().map_err(|error: Error| text.wrong(error.to_string()))
    };
    if element.is_text() {
        return Ok(Named { spec: spec(element)?, optional: false });
    }
    let example = "a variant in quotes, or { variant = \"NAME\", optional = true }";
    let mut table = element.table(example)?;
    let variant = table.need("variant", "variant = \"NAME\"")?;
    let optional = table.take("optional").map_or(Ok(false), |optional| optional.truth())?;
    table.finish()?;
    Ok(Named { spec: spec(&variant)?, optional })
}

/// `true` for an empty folder, or the folder whose copy each run gets.
fn scratch(written: &Value<'_>) -> Result<Scratch, Error> {
    if written.is_text() {
        return Ok(Scratch::CopyOf(written.text()?.into()));
    }
    Ok(if written.truth()? { Scratch::Empty } else { Scratch::None })
}

fn measure(primary: &Value<'_>) -> Result<Measure, Error> {
    parse_measure(primary.text()?).map_err(|reason| primary.wrong(reason))
}

/// The measure that results call `name`; a `-` may stand for `_`.
///
/// # Errors
///
/// A sentence with the names there are.
pub fn parse_measure(name: &str) -> Result<Measure, String> {
    find("measure", &Measure::ALL, Measure::name, &name.replace('-', "_"))
}

fn parameters(table: &Value<'_>) -> Result<Vec<Parameter>, Error> {
    let example = "{ NAME = [\"VALUE\", \"VALUE\"] }";
    let one = |value: Value<'_>| {
        let words = value.list()?.iter().map(Value::word).collect::<Result<_, Error>>()?;
        parameter(&value, words)
    };
    table.table(example)?.all().map(one).collect()
}

/// The parameter that the key of `value` names.
fn parameter(value: &Value<'_>, values: Vec<String>) -> Result<Parameter, Error> {
    Parameter::new(value.key(), values).map_err(|error| value.wrong(error.to_string()))
}
