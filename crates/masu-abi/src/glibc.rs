//! Settings of glibc's malloc: `mallopt`, `MALLOC_…` and `GLIBC_TUNABLES`.
//!
//! It relies on masu's options: a setting becomes a similar option of masu, where there is one. The hard idea is to
//! do no harm: these settings were chosen for another malloc, often years ago by the author of an image or a package.
//! So only settings apply that cost at most the memory they ask for, and a variable of masu's own overrides them. The
//! table gives every setting with its reason.

#[macro_use]
mod table;

use core::ffi::c_int;

use alloc_core::c;
#[cfg(target_env = "gnu")]
use alloc_core::c::Environment;
use alloc_core::options;
pub use table::{ALL, Becomes, Setting};

/// The prefix of glibc's variables.
#[cfg(target_env = "gnu")]
const PREFIX: &str = "MALLOC_";

const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Parameters of `mallopt` that glibc ignores too, from `M_NLBLKS` to `M_KEEP`.
const LONG_UNUSED: core::ops::RangeInclusive<c_int> = 2..=4;

macro_rules! finders {
    ($(
        $(#[doc = $remark:literal])+
        $parameter:literal, $number:literal, $variable:literal, $tunable:literal, $becomes:ident;
    )+) => {
        #[unsafe(link_section = ".text.masu_cold.options")]
        fn of_parameter(number: c_int) -> Option<Becomes> {
            match number {
                0 => None,
                $(number if number == $number => Some(Becomes::$becomes),)+
                _ => None,
            }
        }

        #[cfg(target_env = "gnu")]
        #[unsafe(link_section = ".text.masu_cold.options")]
        fn of_variable(end: &[u8]) -> Becomes {
            $(if Becomes::$becomes as u8 != Becomes::Ignored as u8
                && $variable.strip_prefix(PREFIX).is_some_and(|name| name.as_bytes() == end)
            {
                return Becomes::$becomes;
            })+
            Becomes::Ignored
        }

        #[cfg(target_env = "gnu")]
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

#[cfg(target_env = "gnu")]
#[cold]
pub(crate) fn read(environment: &Environment) {
    for variable in environment.beginning_with(PREFIX.as_bytes()) {
        apply_assignment(variable.to_bytes(), of_variable);
    }
    if let Some(tunables) = environment.get("GLIBC_TUNABLES") {
        tunables
            .to_bytes()
            .split(|byte| *byte == b':')
            .for_each(|assignment| apply_assignment(assignment, of_tunable));
    }
}

/// Applies `name=number`.
#[cfg(target_env = "gnu")]
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options")]
fn apply_assignment(assignment: &[u8], meaning: fn(&[u8]) -> Becomes) {
    let mut parts = assignment.splitn(2, |byte| *byte == b'=');
    if let (Some(name), Some(value)) = (parts.next(), parts.next().and_then(number)) {
        apply(meaning(name), value);
    }
}

/// `mallopt(3)`: 1 for every parameter that glibc has, else 0, on which some programs end.
#[cold]
#[unsafe(link_section = ".text.masu_cold.options")]
pub(crate) fn set(parameter: c_int, value: c_int) -> c_int {
    match of_parameter(parameter) {
        // As in glibc, -1 is larger than any size.
        Some(becomes) => apply(becomes, (value as isize).cast_unsigned()),
        None if LONG_UNUSED.contains(&parameter) => {}
        None => return 0,
    }
    1
}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options")]
fn apply(becomes: Becomes, value: usize) {
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

/// A number as glibc reads it: decimal, hexadecimal behind `0x`, octal behind `0`. A negative number is larger than any
/// size.
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
