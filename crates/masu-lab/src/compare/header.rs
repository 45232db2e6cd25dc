//! The header of a comparison, and whether another one is of the same plan.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::Options;
use crate::plan::{Plan, Prepared};
use crate::results::{FileMark, SCHEMA_VERSION};
use crate::{Header, Redact};
use masu_run::error::Doing;
use masu_run::quantity::clipped;
use masu_run::{Error, Machine};

/// The header of a comparison of `plan`, run in the order of `seed`, with the settings of `options`.
pub(super) fn header(plan: &Plan, seed: u64, options: &Options) -> Result<Header, Error> {
    Ok(Header {
        schema_version: SCHEMA_VERSION,
        masu_version: env!("CARGO_PKG_VERSION").to_owned(),
        began: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        suite: plan.suite.clone(),
        cases: plan.cases.iter().map(Prepared::case).collect(),
        rounds: plan.rounds,
        seed,
        machine: Machine::here(),
        decide: options.decide.as_ref().map(ToString::to_string),
        asked: options.asked.clone(),
        files: marks(plan)?,
    })
}

pub(super) fn seed_from_clock() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // Milliseconds keep the seed short enough to be typed again.
    u64::try_from(now.as_millis()).unwrap_or(0)
}

/// Every file that `plan` depends on, once.
fn marks(plan: &Plan) -> Result<Vec<FileMark>, Error> {
    let mut marks: Vec<FileMark> = Vec::new();
    let mut known: Vec<PathBuf> = Vec::new();
    for row in plan.cases.iter().flat_map(|prepared| &prepared.rows) {
        let program = &row.workload.program;
        for path in row.variant.library.iter().chain([&program.path, &program.binary]) {
            if !known.contains(path) {
                known.push(path.clone());
                let file = File::open(path).doing(|| format!("opening {}", path.display()))?;
                marks.push(mark(path.display().to_string(), file)?);
            }
        }
        if let Some(input) = row.workload.input.reader()? {
            let mark = mark("standard input".to_owned(), input)?;
            if !marks.contains(&mark) {
                marks.push(mark);
            }
        }
    }
    Ok(marks)
}

fn mark(path: String, mut file: File) -> Result<FileMark, Error> {
    let mut hash = Xxh3::new();
    let bytes = io::copy(&mut file, &mut hash).doing(|| format!("reading {path}"))?;
    Ok(FileMark { path, bytes, hash: format!("{:032x}", hash.digest128()) })
}

/// Removes from `plan` the variants that `earlier`, the header of the same comparison's results, was left
/// without, with the reasons in it.
pub(super) fn leave_out_again(plan: &mut Plan, earlier: &Header, redact: &Redact) {
    for (prepared, case) in plan.cases.iter_mut().zip(&earlier.cases) {
        for left_out in &case.left_out {
            let is_meant =
                |label: &str, optional: bool| optional && redact.text(label) == left_out.label;
            let place =
                prepared.rows.iter().position(|row| is_meant(&row.variant.label, row.optional));
            if let Some(place) = place {
                prepared.rows.remove(place);
                prepared.left_out.push(left_out.clone());
            }
        }
    }
}

/// Checks that `planned` is the comparison of `earlier`, so that its runs may go on.
pub(super) fn check_same(path: &Path, earlier: &Header, planned: &Header) -> Result<(), Error> {
    let plain = |header: &Header| {
        let mut value = serde_json::to_value(header).unwrap_or_default();
        if let Some(fields) = value.as_object_mut() {
            // The start and the words of the request are no part of what was compared.
            fields.remove("began");
            fields.remove("asked");
            // Files are compared below, by their names.
            fields.remove("files");
        }
        value
    };
    let reason = if let Some((place, was, is)) = difference("", &plain(earlier), &plain(planned)) {
        format!("{place} was {was} and is {is}; resume with what it was begun with")
    } else if let Some(name) = changed_file(&earlier.files, &planned.files) {
        format!("{name} is not what it was begun with; give it again as it was")
    } else {
        return Ok(());
    };
    let reason = format!("{reason}, or begin again in another file");
    Err(Error::Resume { path: path.to_owned(), reason })
}

/// The name of the first file that is not in both lists with the same content.
fn changed_file<'a>(was: &'a [FileMark], is: &'a [FileMark]) -> Option<&'a str> {
    let gone = was.iter().filter(|mark| !is.contains(mark));
    let new = is.iter().filter(|mark| !was.contains(mark));
    gone.chain(new).next().map(|mark| mark.path.as_str())
}

/// The first place at which two values differ, with both.
fn difference(place: &str, was: &Value, is: &Value) -> Option<(String, String, String)> {
    let below = |name: &str| {
        if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
    };
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let names: Vec<&String> =
                was.keys().chain(is.keys().filter(|name| !was.contains_key(*name))).collect();
            names.into_iter().find_map(|name| {
                let of = |fields: &serde_json::Map<String, Value>| {
                    fields.get(name).cloned().unwrap_or_default()
                };
                difference(&below(name), &of(was), &of(is))
            })
        }
        (Value::Array(was), Value::Array(is)) => {
            let of = |list: &[Value], index: usize| list.get(index).cloned().unwrap_or_default();
            (0..was.len().max(is.len())).find_map(|index| {
                difference(&below(&index.to_string()), &of(was, index), &of(is, index))
            })
        }
        _ if was == is => None,
        _ => Some((place.to_owned(), shown(was), shown(is))),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "absent".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => clipped(&other.to_string(), 80),
    }
}
