//! Tables of a suite file as they are taken apart: every key is asked for once, what was not asked
//! for is a mistake, and every mistake has its line.

use std::path::Path;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::Error;
use crate::variant::parse_size;

/// The file that a value stands in, to turn places into lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) path: &'a Path,
    pub(super) text: &'a str,
}

impl<'a> Text<'a> {
    pub(super) fn wrong(&self, place: usize, reason: impl Into<String>) -> Error {
        let before = self.text.get(..place).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Error::Suite { path: self.path.to_owned(), line, reason: reason.into() }
    }

    /// The file's folder; empty for a file in this process's own.
    pub(super) fn folder(&self) -> &'a Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

/// One table on its way to be understood.
#[derive(Debug)]
pub(super) struct Table<'a> {
    file: Text<'a>,
    place: usize,
    entries: Vec<(&'a str, usize, &'a Spanned<DeValue<'a>>)>,
    /// The keys that were asked for.
    known: Vec<&'static str>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a> {
    file: Text<'a>,
    key: &'a str,
    place: usize,
    value: &'a DeValue<'a>,
}

impl<'a> Table<'a> {
    pub(super) fn new(file: Text<'a>, place: usize, table: &'a DeTable<'a>) -> Table<'a> {
        let mut entries: Vec<_> = table
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), key.span().start, value))
            .collect();
        // The parser sorts keys by name; the order of parameters is the order they were written in.
        entries.sort_by_key(|(_, place, _)| *place);
        Table { file, place, entries, known: Vec::new() }
    }

    pub(super) fn file(&self) -> Text<'a> {
        self.file
    }

    pub(super) fn take(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.known.push(key);
        let (name, place, value) = self.entries.iter().find(|(name, _, _)| *name == key)?;
        Some(Value { file: self.file, key: name, place: *place, value: value.get_ref() })
    }

    pub(super) fn need(&mut self, key: &'static str, example: &str) -> Result<Value<'a>, Error> {
        let (file, place) = (self.file, self.place);
        self.take(key)
            .ok_or_else(|| file.wrong(place, format!("`{key}` is missing; write {example}")))
    }

    pub(super) fn all(self) -> impl Iterator<Item = Value<'a>> {
        let file = self.file;
        self.entries.into_iter().map(move |(key, place, value)| Value {
            file,
            key,
            place,
            value: value.get_ref(),
        })
    }

    /// Nothing may be left that nobody asked for.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self.entries.iter().find(|(name, _, _)| !self.known.contains(name)) {
            None => Ok(()),
            Some((name, place, _)) => {
                let known = self.known.join(", ");
                Err(self.file.wrong(*place, format!("no key `{name}` here; known: {known}")))
            }
        }
    }
}

impl<'a> Value<'a> {
    pub(super) fn key(&self) -> &'a str {
        self.key
    }

    pub(super) fn wrong(&self, reason: impl Into<String>) -> Error {
        self.file.wrong(self.place, format!("`{}`: {}", self.key, reason.into()))
    }

    fn not(&self, wanted: &str) -> Error {
        self.wrong(format!("this is {}; write {wanted}", kind(self.value)))
    }

    pub(super) fn text(&self) -> Result<&'a str, Error> {
        self.value.as_str().ok_or_else(|| self.not("a text in quotes"))
    }

    pub(super) fn truth(&self) -> Result<bool, Error> {
        self.value.as_bool().ok_or_else(|| self.not("true or false"))
    }

    /// A text, or a number as it was written.
    pub(super) fn word(&self) -> Result<String, Error> {
        match self.value {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(number) => Ok(number.as_str().to_owned()),
            DeValue::Float(number) => Ok(number.as_str().to_owned()),
            _ => Err(self.not("a text in quotes, or a number")),
        }
    }

    pub(super) fn count(&self) -> Result<usize, Error> {
        let number = self.value.as_integer().and_then(|number| number.as_str().parse().ok());
        number.filter(|number| *number > 0).ok_or_else(|| self.not("a whole number from 1 on"))
    }

    /// A number of per cent.
    pub(super) fn share(&self) -> Result<f64, Error> {
        let number = self.word().ok().and_then(|word| word.parse::<f64>().ok());
        let number = number.filter(|number| number.is_finite() && *number > 0.0);
        number
            .map(|per_cent| per_cent / 100.0)
            .ok_or_else(|| self.not("a number of per cent above 0, such as 1.5"))
    }

    pub(super) fn duration(&self) -> Result<Duration, Error> {
        let example = "a time such as \"90s\", \"10m\" or \"1.5h\"";
        parse_duration(&self.word().unwrap_or_default()).ok_or_else(|| self.not(example))
    }

    pub(super) fn size(&self) -> Result<u64, Error> {
        let size = parse_size(&self.word().unwrap_or_default());
        size.ok_or_else(|| self.not("a number of bytes such as \"512M\" or \"2G\""))
    }

    pub(super) fn list(&self) -> Result<Vec<Value<'a>>, Error> {
        let array: &'a DeArray<'a> = self.value.as_array().ok_or_else(|| self.not("a list"))?;
        let element = |value: &'a Spanned<DeValue<'a>>| Value {
            place: value.span().start,
            value: value.get_ref(),
            ..*self
        };
        Ok(array.iter().map(element).collect())
    }

    pub(super) fn is_list(&self) -> bool {
        self.value.is_array()
    }

    pub(super) fn is_text(&self) -> bool {
        self.value.is_str()
    }

    /// The table this is; `example` says how one is written.
    pub(super) fn table(&self, example: &str) -> Result<Table<'a>, Error> {
        let table = self.value.as_table().ok_or_else(|| self.not(example))?;
        Ok(Table::new(self.file, self.place, table))
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A time that is enough, as [`parse_duration`] understands it: whole seconds or minutes, rounded up.
pub(crate) fn written_budget(seconds: f64) -> String {
    if seconds <= 90.0 {
        format!("{:.0}s", seconds.ceil())
    } else {
        format!("{:.0}m", (seconds / 60.0).ceil())
    }
}

/// Understands `90s`, `500ms`, `10m`, `1.5h`, and a bare number of seconds; none for anything else
/// and for no time at all.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(masu_lab::suite::parse_duration("1.5m"), Some(Duration::from_secs(90)));
/// assert_eq!(masu_lab::suite::parse_duration("0"), None);
/// ```
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    let (number, unit_s) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    if !number.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? * unit_s;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero())
}
