//! Spans of time as people write them.

use std::time::Duration;

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
