//! The part of the table that a running program carries, and the parser of values.
//!
//! Relies on the table. The hard idea: nothing here holds an address. A `&str` in a static is relocated whenever
//! `libmasu.so` is loaded, in every program, for the few that set an option. So names are stored in place, padded with
//! zeros, and sentences are built where they are written.

use super::COUNT;
use super::line::Line;
use super::table::{ALL, MILLISECONDS_MAX, Unit};
use crate::platform::bounds::Bounded;

/// Room for the longest name and a zero.
const NAME_BYTES: usize = 20;

/// The prefix of every variable.
pub(super) const PREFIX: &[u8] = b"MASU_";

/// One option, as a running program needs it.
pub(super) struct Rule {
    name: [u8; NAME_BYTES],
    name_length: u8,
    unit: Unit,
    // `u32`, because every program carries the table.
    least: u32,
    /// The default where it is a number, else [`NO_VALUE`].
    default: u32,
    most: usize,
}

const NO_VALUE: u32 = u32::MAX;

// Read where a variable of masu's is set, or the program asks for an option: in few programs.
#[unsafe(link_section = ".rodata.masu_cold.options")]
static RULES: [Rule; COUNT] = rules();

/// Every rule, in the table's order. `black_box` hides the length, because the compiler would unroll each search.
#[inline]
pub(super) fn all() -> &'static [Rule] {
    core::hint::black_box(&RULES)
}

const fn rules() -> [Rule; COUNT] {
    let mut rules = [const {
        Rule {
            name: [0; NAME_BYTES],
            name_length: 0,
            unit: Unit::Count,
            least: 0,
            most: 0,
            default: NO_VALUE,
        }
    }; COUNT];
    let mut place = 0;
    while place < COUNT {
        let option = &ALL[place];
        let rule = &mut rules[place];
        rule.unit = option.unit;
        assert!(option.least < NO_VALUE as usize);
        rule.least = option.least as u32;
        rule.most = option.most;
        let name = option.name.as_bytes();
        assert!(name.len() < NAME_BYTES, "make NAME_BYTES longer");
        rule.name_length = name.len() as u8;
        let mut at = 0;
        while at < name.len() {
            rule.name[at] = name[at];
            at += 1;
        }
        if let Some(value) = parse(option.unit, option.default.as_bytes()) {
            assert!(value < NO_VALUE as usize);
            rule.default = value as u32;
        }
        place += 1;
    }
    rules
}

impl Rule {
    pub(super) fn name(&self) -> &[u8] {
        self.name.at(..usize::from(self.name_length))
    }

    /// The name with a terminating zero, for C.
    pub(super) fn c_name(&self) -> *const u8 {
        self.name.as_ptr()
    }

    /// Whether `end` is this option's variable without `MASU_`.
    #[cold]
    #[inline(never)]
    pub(super) fn has_variable(&self, end: &[u8]) -> bool {
        let name = self.name();
        name.len() == end.len()
            && name.iter().zip(end).all(|(own, other)| own.to_ascii_uppercase() == *other)
    }

    /// The default where it is a number.
    pub(super) fn default(&self) -> Option<usize> {
        (self.default != NO_VALUE).then_some(self.default as usize)
    }

    pub(super) fn accepts(&self, value: usize) -> bool {
        (self.least as usize..=self.most).contains(&value)
    }

    /// Parses a value; `None` where this option does not accept it.
    #[cold]
    #[inline(never)]
    pub(super) fn parse(&self, text: &[u8]) -> Option<usize> {
        parse(self.unit, text).filter(|value| self.accepts(*value))
    }

    /// Appends the accepted values.
    #[cold]
    #[inline(never)]
    pub(super) fn write_accepted(&self, line: &mut Line) {
        let (least, most) = (self.least as usize, self.most);
        match self.unit {
            Unit::Switch => line.text("0 or 1"),
            Unit::Milliseconds => line
                .text("a number of milliseconds from ")
                .number(least)
                .text(" to ")
                .number(most)
                .text(", or -1 for never"),
            Unit::Count => line.text("a count from ").number(least).text(" to ").number(most),
            Unit::Bytes if least == 0 && most == super::table::BYTES_MAX => {
                line.text("a number of bytes, such as 65536, 64K or 1M")
            }
            Unit::Bytes if most == super::table::BYTES_MAX => {
                line.text("a number of bytes, at least ").size(least)
            }
            Unit::Bytes => line.text("a number of bytes from ").size(least).text(" to ").size(most),
        };
    }

    /// Appends a value in the form of its variable.
    #[cold]
    #[inline(never)]
    pub(super) fn write_value(&self, line: &mut Line, value: usize) {
        match self.unit {
            Unit::Bytes => line.size(value),
            Unit::Count | Unit::Milliseconds | Unit::Switch => line.number(value),
        };
    }
}

/// Parses a decimal number; bytes may have a unit behind it.
const fn parse(unit: Unit, text: &[u8]) -> Option<usize> {
    if let (Unit::Milliseconds, b"-1") = (unit, text) {
        return Some(MILLISECONDS_MAX);
    }
    let (digits, factor): (&[u8], usize) = match (unit, text) {
        (Unit::Bytes, [digits @ .., b'K' | b'k']) => (digits, 1 << 10),
        (Unit::Bytes, [digits @ .., b'M' | b'm']) => (digits, 1 << 20),
        (Unit::Bytes, [digits @ .., b'G' | b'g']) => (digits, 1 << 30),
        _ => (text, 1),
    };
    if digits.is_empty() {
        return None;
    }
    let (mut value, mut at) = (0_usize, 0);
    while at < digits.len() {
        let digit = digits[at].wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = match value.checked_mul(10) {
            Some(tens) => match tens.checked_add(digit as usize) {
                Some(value) => value,
                None => return None,
            },
            None => return None,
        };
        at += 1;
    }
    value.checked_mul(factor)
}

#[cfg(test)]
#[path = "rule/tests.rs"]
mod tests;
