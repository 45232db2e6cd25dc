//! Values as people write them in options and in suite files: spans of time, texts or numbers.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A time that is long enough, as [`parse_duration`] understands it: whole seconds or minutes, rounded up.
pub(crate) fn written_budget(seconds: f64) -> String {
    if seconds <= 90.0 {
        format!("{:.0}s", seconds.ceil())
    } else {
        format!("{:.0}m", (seconds / 60.0).ceil())
    }
}

/// The longest time that is understood, a century: sums of such times do not overflow.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// Understands `90s`, `500ms`, `10m`, `1.5h`, and a bare number of seconds; none for anything else,
/// for a time of zero, and for more than a century.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(masu_lab::suite::parse_duration("1.5m"), Some(Duration::from_secs(90)));
/// assert_eq!(masu_lab::suite::parse_duration("0"), None);
/// assert_eq!(masu_lab::suite::parse_duration("1e19"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("", 1.0)];
    let (number, unit_s) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)))?;
    if !number.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let seconds = number.parse::<f64>().ok()? * unit_s;
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (!time.is_zero() && time <= LONGEST).then_some(time)
}

/// A text, or a number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "write a text in quotes, or a number")]
pub(crate) enum Word {
    Text(String),
    Whole(i64),
    Number(f64),
}

impl Word {
    pub(crate) fn text(self) -> String {
        match self {
            Word::Text(text) => text,
            Word::Whole(number) => number.to_string(),
            Word::Number(number) => number.to_string(),
        }
    }
}

/// Reads a word, or says how to write it.
pub(crate) fn read<'de, D: Deserializer<'de>, T>(
    from: D,
    wanted: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, D::Error> {
    let understood = read(&Word::deserialize(from)?.text());
    understood.map(Some).ok_or_else(|| D::Error::custom(format!("write {wanted}")))
}

pub(crate) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    read(from, "a time such as \"90s\", \"10m\" or \"1.5h\"", parse_duration)
}
