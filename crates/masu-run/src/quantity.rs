//! Quantities as people read them: a unit that fits, three or four digits that matter.
//!
//! Relies on nothing. Seconds come in as `f64`, as the lab measures them.

use std::time::Duration;

/// Seconds of one run: `812 µs`, `12.3 ms`, `1.23 s`, `12.34 s`, `123 s`.
pub fn seconds(value: f64) -> String {
    // From these bounds on rounding would need one digit more.
    match value {
        _ if value < 0.000_000_000_5 => "0 µs".to_owned(),
        _ if value < 0.000_999_5 => format!("{} µs", digits(value * 1e6)),
        _ if value < 0.999_5 => format!("{} ms", digits(value * 1e3)),
        _ if value < 99.995 => format!("{value:.2} s"),
        _ => format!("{value:.0} s"),
    }
}

/// Nanoseconds of a call: `9.00 ns`, `112 ns`, `12.3 µs`, `2.35 ms`.
pub fn nanoseconds(value: f64) -> String {
    match value {
        _ if value < 999.5 => format!("{} ns", digits(value)),
        _ if value < 999_500.0 => format!("{} µs", digits(value / 1e3)),
        _ => format!("{} ms", digits(value / 1e6)),
    }
}

/// Three digits that matter: `1.23`, `12.3`, `123`, `1234`.
pub fn digits(value: f64) -> String {
    match value.abs() {
        size if size < 9.995 => format!("{value:.2}"),
        size if size < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Bytes in powers of 1024: `512 B`, `1.5 KiB`, `33.1 MiB`, `1.19 GiB`.
pub fn bytes(value: f64) -> String {
    let mut value = value;
    let mut units = ["B", "KiB", "MiB", "GiB"].into_iter().peekable();
    while let Some(unit) = units.next() {
        if value < 1023.5 || units.peek().is_none() {
            return match unit {
                "B" => format!("{value:.0} B"),
                _ => format!("{} {unit}", digits(value)),
            };
        }
        value /= 1024.0;
    }
    unreachable!("the last unit takes any value")
}

/// A count with a comma every three digits: `8,512`.
pub fn count(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate a second: `8.51/s`, `12,345/s`.
pub fn rate(value: f64) -> String {
    if value < 99.95 { format!("{}/s", digits(value)) } else { format!("{}/s", count(value)) }
}

/// A ratio with the digits that matter: `0.893`, `1.004`, `2.25`, `12.3`, `165`. A ratio that differs from 1 by a
/// thousandth must not read as 1.
pub fn ratio(value: f64) -> String {
    match value {
        _ if value > 0.0 && value < 0.099_95 => format!("{value:.*}", leading_zeros(value) + 2),
        _ if value < 1.999_5 => format!("{value:.3}"),
        _ => digits(value),
    }
}

/// Zeros behind the point of a value below one, before its first other digit.
fn leading_zeros(value: f64) -> usize {
    // Written so that rounding to two digits is done already: 0.0099996 has one zero.
    let text = format!("{value:.1e}");
    let exponent = text.rsplit_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    exponent.map_or(0, |exponent| usize::try_from(-exponent - 1).unwrap_or(0))
}

/// A share as per cent: `0.4 %`, `2 %`, `35 %`.
pub fn percent(value: f64) -> String {
    // Zero has no sign here.
    let value = if value.abs() < 0.0005 { 0.0 } else { value * 100.0 };
    if value < 1.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// A rough duration: `a few seconds`, `about 40 seconds`, `about 6 minutes`.
pub fn about(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        _ if seconds < 5.0 => "a few seconds".to_owned(),
        _ if seconds < 55.0 => format!("about {:.0} seconds", (seconds / 5.0).ceil() * 5.0),
        _ if seconds < 90.0 => "about a minute".to_owned(),
        _ if seconds < 90.0 * 60.0 => format!("about {:.0} minutes", seconds / 60.0),
        _ => format!("about {:.1} hours", seconds / 3600.0),
    }
}

/// A text of at most so many letters: names of C++ may be longer than a page.
pub fn clipped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_has_no_room_says_so() {
        assert_eq!([clipped("four", 4), clipped("fünfe", 4)], ["four", "fün…"]);
        assert_eq!([clipped("", 0), clipped("four", 0)], ["", "…"]);
    }

    #[test]
    fn quantities_keep_the_digits_that_matter() {
        let mut lines = include_str!("quantity/written.txt").lines();
        assert_eq!(lines.next(), Some("# A quantity, its value, and how it is written."));
        for line in lines {
            let [name, value, text] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let value: f64 = value.parse().unwrap();
            let written = match name {
                "seconds" => seconds(value),
                "nanoseconds" => nanoseconds(value),
                "bytes" => bytes(value),
                "count" => count(value),
                "ratio" => ratio(value),
                "percent" => percent(value),
                "rate" => rate(value),
                "about" => about(Duration::from_secs_f64(value)),
                _ => panic!("{line}"),
            };
            assert_eq!(written, text, "{line}");
        }
    }
}
