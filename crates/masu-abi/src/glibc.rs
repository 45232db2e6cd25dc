//! What programs and their users set about glibc's malloc: `mallopt`, `MALLOC_…` and
//! `GLIBC_TUNABLES`.
//!
//! It relies on masu's options, which these become where they ask for something that masu has. The
//! hard idea is to do no harm: they were chosen for another malloc, often by someone who made an
//! image or a package years ago. So only those are heard that can at most cost memory which was
//! asked for; a user of masu says so with a variable of its own, which counts more. The table
//! has every setting with its reason.

#[macro_use]
mod table;

use core::ffi::c_int;

use alloc_core::c::{self, Environment};
use alloc_core::options;
pub use table::{ALL, Becomes, Setting};

/// What glibc's variables begin with.
const PREFIX: &str = "MALLOC_";

/// One huge page, in bytes.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Parameters of `mallopt` that glibc does nothing with either, from `M_NLBLKS` to `M_KEEP`.
const LONG_UNUSED: core::ops::RangeInclusive<c_int> = 2..=4;

macro_rules! finders {
    ($(
        $(#[doc = $remark:literal])+
        $parameter:literal, $number:literal, $variable:literal, $tunable:literal, $becomes:ident;
    )+) => {
        /// What a parameter of `mallopt` becomes.
        #[unsafe(link_section = ".text.masu_cold.options")]
        fn of_parameter(number: c_int) -> Option<Becomes> {
            match number {
                0 => None,
                $(number if number == $number => Some(Becomes::$becomes),)+
                _ => None,
            }
        }

        /// What a variable becomes, whose name without `MALLOC_` is `end`.
        #[unsafe(link_section = ".text.masu_cold.options")]
        fn of_variable(end: &[u8]) -> Becomes {
            $(if Becomes::$becomes as u8 != Becomes::Ignored as u8
                && $variable.strip_prefix(PREFIX).is_some_and(|name| name.as_bytes() == end)
            {
                return Becomes::$becomes;
            })+
            Becomes::Ignored
        }

        /// What a tunable becomes.
        #[unsafe(link_section = ".text.masu_cold.options")]
        fn of_tunable(name: &[u8]) -> Becomes {
            $(if Becomes::$becomes as u8 != Becomes::Ignored as u8
                && $tunable.as_bytes() == name
            {
                return Becomes::$becomes;
            })+
            Becomes::Ignored
        }
    };
}

glibc_rows!(finders);

/// Hears the variables.
#[cfg(target_env = "gnu")]
#[cold]
pub(crate) fn read(environment: &Environment) {
    for variable in environment.beginning_with(PREFIX.as_bytes()) {
        hear_assignment(variable.to_bytes(), of_variable);
    }
    if let Some(tunables) = environment.get("GLIBC_TUNABLES") {
        tunables
            .to_bytes()
            .split(|byte| *byte == b':')
            .for_each(|assignment| hear_assignment(assignment, of_tunable));
    }
}

/// Hears `name=number`.
#[cfg(target_env = "gnu")]
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options")]
fn hear_assignment(assignment: &[u8], meaning: fn(&[u8]) -> Becomes) {
    let mut parts = assignment.splitn(2, |byte| *byte == b'=');
    if let (Some(name), Some(value)) = (parts.next(), parts.next().and_then(number)) {
        hear(meaning(name), value);
    }
}

/// As `mallopt(3)`: 1 for every parameter that glibc has, else 0, which programs take for a failure
/// worth ending for.
#[cold]
#[unsafe(link_section = ".text.masu_cold.options")]
pub(crate) fn set(parameter: c_int, value: c_int) -> c_int {
    match of_parameter(parameter) {
        // As in glibc, -1 is a size beyond all others.
        Some(becomes) => hear(becomes, (value as isize).cast_unsigned()),
        None if LONG_UNUSED.contains(&parameter) => {}
        None => return 0,
    }
    1
}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options")]
fn hear(becomes: Becomes, value: usize) {
    match becomes {
        Becomes::RetainMin => {
            let value = value.min(isize::MAX.cast_unsigned());
            let held = options::get("retain_min").ok().flatten();
            if held.is_none_or(|held| value > held) {
                c::suggest("retain_min", value);
            }
        }
        Becomes::HugePagesFrom if value > 0 => c::suggest("huge_pages_from", HUGE_PAGE_BYTES),
        Becomes::HugePagesFrom | Becomes::Ignored => {}
    }
}

/// A number as glibc reads it: decimal, hexadecimal behind `0x`, octal behind `0`; below 0 it is one
/// beyond all others.
#[cfg(target_env = "gnu")]
#[cold]
#[unsafe(link_section = ".text.masu_cold.options")]
fn number(text: &[u8]) -> Option<usize> {
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (base, digits) = match text {
        [b'0', b'x' | b'X', digits @ ..] => (16, digits),
        [b'0', digits @ ..] if !digits.is_empty() => (8, digits),
        _ => (10, text),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_usize;
    for digit in digits {
        let digit = char::from(*digit).to_digit(base)?;
        value = value.saturating_mul(base as usize).saturating_add(digit as usize);
    }
    Some(if is_negative { value.wrapping_neg() } else { value })
}
