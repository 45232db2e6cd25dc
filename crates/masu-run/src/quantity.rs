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

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_written(write: fn(f64) -> String, table: &[(f64, &str)]) {
        for (value, text) in table {
            assert_eq!(write(*value), *text);
        }
    }

    #[test]
    fn seconds_change_their_unit_where_digits_run_out() {
        let table = [
            (0.0, "0 µs"),
            (0.000_001_234, "1.23 µs"),
            (0.000_012_34, "12.3 µs"),
            (0.000_812, "812 µs"),
            (0.001_234, "1.23 ms"),
            (0.012_34, "12.3 ms"),
            (0.123_4, "123 ms"),
            (0.999_6, "1.00 s"),
            (1.234, "1.23 s"),
            (12.34, "12.34 s"),
            (123.4, "123 s"),
        ];
        assert_written(seconds, &table);
    }

    #[test]
    fn nanoseconds_have_three_digits_and_a_unit() {
        let table = [
            (9.0, "9.00 ns"),
            (112.4, "112 ns"),
            (999.7, "1.00 µs"),
            (12_340.0, "12.3 µs"),
            (2_345_678.0, "2.35 ms"),
        ];
        assert_written(nanoseconds, &table);
    }

    #[test]
    fn bytes_change_their_unit_at_powers_of_1024() {
        let table = [
            (0.0, "0 B"),
            (1023.0, "1023 B"),
            (1024.0, "1.00 KiB"),
            (33.1 * 1_048_576.0, "33.1 MiB"),
            (1.19 * 1_073_741_824.0, "1.19 GiB"),
            (5000.0 * 1_073_741_824.0, "5000 GiB"),
        ];
        assert_written(bytes, &table);
    }

    #[test]
    fn counts_are_grouped_by_three() {
        let table = [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (1.5e7, "15,000,000")];
        assert_written(count, &table);
    }

    #[test]
    fn ratios_shares_and_rates_keep_the_digits_that_matter() {
        let ratios = [
            (0.8931, "0.893"),
            (0.9999, "1.000"),
            (1.0044, "1.004"),
            (1.125, "1.125"),
            (2.251, "2.25"),
            (165.2, "165"),
            (0.0, "0.000"),
            (0.099_96, "0.100"),
            (0.0462, "0.046"),
            (0.000_431, "0.00043"),
            (0.000_999_6, "0.0010"),
        ];
        assert_written(ratio, &ratios);
        let shares = [(0.004, "0.4 %"), (0.02, "2 %"), (0.351, "35 %")];
        assert_written(percent, &shares);
        // A share of nothing has no sign.
        assert_written(percent, &[(-0.0, "0.0 %"), (-0.000_4, "0.0 %"), (-0.001, "-0.1 %")]);
        let rates = [(0.0, "0.00/s"), (8.512, "8.51/s"), (85.12, "85.1/s"), (12_345.4, "12,345/s")];
        assert_written(rate, &rates);
    }

    #[test]
    fn durations_are_rough() {
        let table = [
            (1.0, "a few seconds"),
            (37.0, "about 40 seconds"),
            (70.0, "about a minute"),
            (360.0, "about 6 minutes"),
            (7200.0, "about 2.0 hours"),
        ];
        assert_written(|seconds| about(Duration::from_secs_f64(seconds)), &table);
    }
}
