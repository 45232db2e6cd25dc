//! Values of settings.
//!
//! Most mallocs and the C library's loader pass silently over a value that they do not understand, so values out of
//! range are refused here.

use super::options::{self, Description};

/// The unit of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes within these bounds, both included: `4096`, `64K`, `64M`, `1G`.
    Size(u64, u64),
    /// A whole number within these bounds, both included.
    Count(u64, u64),
    /// Milliseconds; `-1` is never.
    Milliseconds,
    /// `1` or `0`.
    Switch,
    /// A number from 0 to 10 that may have a fraction.
    Rate,
}

/// Any number of bytes that a malloc can count.
pub(super) const ANY_SIZE: Unit = Unit::Size(0, i64::MAX as u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    /// A delay that does not end.
    Never,
    Switch(bool),
    /// The text as it was written.
    Rate(String),
}

impl Unit {
    /// The placeholder for a value of this kind in help: `SIZE`.
    pub fn placeholder(self) -> &'static str {
        match self {
            Unit::Size(..) => "SIZE",
            Unit::Count(..) => "N",
            Unit::Milliseconds => "MS",
            Unit::Switch => "0|1",
            Unit::Rate => "RATE",
        }
    }

    pub(super) fn of(option: &Description) -> Unit {
        let Description { least, most, .. } = *option;
        match option.unit {
            options::Unit::Bytes => Unit::Size(least as u64, most as u64),
            options::Unit::Count => Unit::Count(least as u64, most as u64),
            options::Unit::Milliseconds => Unit::Milliseconds,
            options::Unit::Switch => Unit::Switch,
        }
    }

    /// Understands `text`; the error says what values are accepted.
    pub(super) fn read(self, text: &str) -> Result<Value, String> {
        let value = match self {
            Unit::Size(least, most) => {
                parse_size(text).filter(|bytes| (least..=most).contains(bytes)).map(Value::Number)
            }
            Unit::Count(least, most) => {
                whole(text).filter(|count| (least..=most).contains(count)).map(Value::Number)
            }
            Unit::Milliseconds if text == "-1" => Some(Value::Never),
            // mimalloc reads a long and multiplies it; jemalloc's limit is its nanoseconds.
            Unit::Milliseconds => {
                whole(text).filter(|&delay| delay <= u64::from(u32::MAX)).map(Value::Number)
            }
            Unit::Switch => match text {
                "0" => Some(Value::Switch(false)),
                "1" => Some(Value::Switch(true)),
                _ => None,
            },
            Unit::Rate => is_rate(text).then(|| Value::Rate(text.to_owned())),
        };
        value.ok_or_else(|| self.wanted())
    }

    fn wanted(self) -> String {
        match self {
            Unit::Size(0, most) if most == i64::MAX as u64 => {
                "a whole number, with K, M or G if you like".to_owned()
            }
            Unit::Size(least, most) => {
                format!("a size from {} to {}", in_bytes(least), in_bytes(most))
            }
            Unit::Count(least, most) => format!("a whole number from {least} to {most}"),
            Unit::Milliseconds => format!("milliseconds from 0 to {}, or -1 for never", u32::MAX),
            Unit::Switch => "1 for on or 0 for off".to_owned(),
            Unit::Rate => "a number from 0 to 10".to_owned(),
        }
    }

    pub(super) fn example(self) -> String {
        match self {
            Unit::Size(_, most) => in_bytes(most.min(64 << 20)),
            Unit::Count(least, most) => 2.clamp(least, most).to_string(),
            Unit::Milliseconds => "1000".to_owned(),
            Unit::Switch => "1".to_owned(),
            Unit::Rate => "2.5".to_owned(),
        }
    }
}

/// `bytes` with the largest suffix that fits.
fn in_bytes(bytes: u64) -> String {
    for (shift, suffix) in [(30, 'G'), (20, 'M'), (10, 'K')] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{suffix}", bytes >> shift);
        }
    }
    bytes.to_string()
}

fn is_rate(text: &str) -> bool {
    // `parse` would take `inf`, `1e1` and `+1` too, which strtod of another locale need not.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_plain && text.parse::<f64>().is_ok_and(|rate| rate <= 10.0)
}

fn whole(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain { text.parse().ok() } else { None }
}

/// Understands `4096`, `64K`, `64M`, `1G` (powers of 1024, either case); none for anything else.
pub fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    whole(digits)?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_suffixes_and_nothing_else() {
        assert_eq!(parse_size("0"), Some(0));
        assert_eq!(parse_size("1k"), Some(1024));
        assert_eq!(parse_size("2G"), Some(2 << 30));
        for wrong in [
            "", "M", "-1", "+1", "1.5M", "1MB", "64 M", "99999999999999999999",
            "18446744073709551615K",
        ] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_unit_takes_its_values() {
        let taken = [
            (ANY_SIZE, "64K", Value::Number(65536)),
            (Unit::Count(1, 8), "8", Value::Number(8)),
            (Unit::Milliseconds, "0", Value::Number(0)),
            (Unit::Milliseconds, "-1", Value::Never),
            (Unit::Switch, "1", Value::Switch(true)),
            (Unit::Rate, "2.5", Value::Rate("2.5".to_owned())),
        ];
        for (unit, text, value) in taken {
            assert_eq!(unit.read(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn an_example_is_a_value() {
        let units = [ANY_SIZE, Unit::Size(0, 1032), Unit::Size(512 << 10, 1 << 30)];
        let others = [Unit::Count(1, 16), Unit::Milliseconds, Unit::Switch, Unit::Rate];
        for unit in units.into_iter().chain(others) {
            assert!(unit.read(&unit.example()).is_ok(), "{unit:?}");
        }
    }

    #[test]
    fn each_unit_refuses_the_others_and_says_what_it_takes() {
        let refused = [
            (ANY_SIZE, "-1", "K, M or G"),
            (Unit::Size(512 << 10, 1 << 30), "1K", "from 512K to 1G"),
            (Unit::Size(1000, 2000), "2001", "from 1000 to 2000"),
            (Unit::Count(1, 8), "0", "from 1 to 8"),
            (Unit::Count(1, 8), "1K", "from 1 to 8"),
            (Unit::Milliseconds, "-2", "-1 for never"),
            (Unit::Milliseconds, "10s", "-1 for never"),
            (Unit::Switch, "yes", "1 for on"),
            (Unit::Rate, "11", "0 to 10"),
            (Unit::Rate, "inf", "0 to 10"),
            (Unit::Rate, "", "0 to 10"),
        ];
        for (unit, text, said) in refused {
            let reason = unit.read(text).unwrap_err();
            assert!(reason.contains(said), "{text}: {reason}");
        }
    }
}
