//! Options: what a program, or whoever starts it, may set about the allocator.
//!
//! Relies on the environment. All there is stands in one table, [`ALL`]; from it come the functions
//! of [`Masu`](crate::Masu) that build one (`Masu::new().retain(0)`), the variables (`MASU_RETAIN=0`), the warnings
//! and `docs/options.md`. A variable counts more than what the program was built with, because it is
//! said later, by someone who knows the machine.
//!
//! The hard idea is that nothing waits for an option. Options are read when the first memory is
//! reserved, when a thread begins, and by the constructor of `libmasu.so`; until the environment can
//! be had, the defaults hold. So every option is one that may change under way, and only slow paths
//! ask for it.

use core::ffi::CStr;

use crate::environment::Environment;
use crate::kernel;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// What an option counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; in a variable `K`, `M` and `G` behind the number stand for 2¹⁰, 2²⁰ and 2³⁰ of them.
    Bytes,
    /// Things.
    Count,
    /// Off or on, 0 or 1 in a variable.
    Switch,
}

/// One option, as the table has it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Description {
    /// The function of [`Masu`](crate::Masu) that sets it.
    pub name: &'static str,
    /// The environment variable that sets it.
    pub variable: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// The least value that is accepted.
    pub least: usize,
    /// The greatest value that is accepted.
    pub most: usize,
    /// What holds where nobody sets it, in words: most defaults follow the program.
    pub default: &'static str,
    /// What it does, in words.
    pub meaning: &'static str,
}

/// The part of an option that a running program needs: libraries do not carry the rest about.
struct Rule {
    variable: &'static str,
    unit: Unit,
    least: usize,
    most: usize,
    /// What is written to standard error when the variable holds something else.
    warning: &'static str,
}

/// The greatest number of bytes: no block is longer.
const BYTES_MAX: usize = isize::MAX as usize;

/// Stands for an option that nobody has set; greater than every accepted value.
const UNSET: usize = usize::MAX;

macro_rules! table {
    ($(
        $(#[doc = $meaning:literal])+
        $index:ident, $name:ident($argument:ident: $kind:ty), $variable:literal,
        $unit:ident $least:literal to $most:expr, accepts $accepted:literal,
        default $default:literal;
    )+) => {
        /// A place in the table.
        #[derive(Clone, Copy)]
        #[repr(usize)]
        enum Index { $($index),+ }

        /// Every option there is.
        pub const ALL: &[Description] = &[$(Description {
            name: stringify!($name),
            variable: $variable,
            unit: Unit::$unit,
            least: $least,
            most: $most,
            default: $default,
            meaning: concat!($($meaning),+),
        }),+];

        static RULES: [Rule; ALL.len()] = [$(Rule {
            variable: $variable,
            unit: Unit::$unit,
            least: $least,
            most: $most,
            warning: concat!("masu: ", $variable, " must be ", $accepted, "; its default holds\n"),
        }),+];

        /// Building an allocator with options; see `masu::options` for all of them.
        impl crate::Masu {$(
            $(#[doc = $meaning])+
            ///
            #[doc = concat!("By default: ", $default, ". The variable `", $variable, "` counts more.")]
            ///
            /// # Panics
            ///
            #[doc = concat!("If the argument is not ", $accepted, "; in a `static`, at compile time.")]
            #[must_use]
            pub const fn $name(self, $argument: $kind) -> crate::Masu {
                let value = $argument as usize;
                assert!(
                    accepts($least, $most, value),
                    concat!("this option must be ", $accepted)
                );
                crate::Masu(self.0.with(Index::$index, value))
            }
        )+}
    };
}

table! {
    /// The most that one thread's cache of free blocks may hold, in bytes. Less saves memory where
    /// there are many threads, more saves time where threads free much before they allocate again;
    /// with 0 nothing is cached, and every block comes from a page under a lock.
    CacheSize, cache_size(bytes: usize), "MASU_CACHE_SIZE",
    Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 65536, 64K or 1M",
    default "about 512K, and 1M once there is a second thread";

    /// Free memory that is kept for the next use instead of going back to the kernel, in bytes. With
    /// 0 it goes back at once; with more than the program ever holds it never does. Blocks of
    /// 1 GiB and more always go back when they are freed.
    Retain, retain(bytes: usize), "MASU_RETAIN",
    Bytes 0 to BYTES_MAX, accepts "a number of bytes, such as 0, 4096K or 64M",
    default "4M or an eighth of what is live, whichever is more, and what is wanted back soon";

    /// How many shards own pages. Threads of different shards do not wait for each other when their
    /// caches run empty or full; each shard has pages of its own that are not full.
    Shards, shards(count: usize), "MASU_SHARDS",
    Count 1 to 16, accepts "a count from 1 to 16",
    default "one for each CPU that the program may run on, at most 16";

    /// Whether the kernel is asked for huge pages. With 1 it is, for memory that is added to a heap of
    /// 16 MiB and more, unless its own policy is `never`; with 0 it is asked to give none, even where
    /// its policy is `always`.
    HugePages, huge_pages(on: bool), "MASU_HUGE_PAGES",
    Switch 0 to 1, accepts "0 or 1",
    default "1";
}

/// The most shards there may be.
pub(crate) const SHARDS_MAX: usize = ALL[Index::Shards as usize].most;

/// The options that a program chose when it was built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen([usize; ALL.len()]);

impl Chosen {
    /// None of them.
    pub(crate) const NONE: Chosen = Chosen([UNSET; ALL.len()]);

    const fn with(mut self, index: Index, value: usize) -> Chosen {
        self.0[index as usize] = value;
        self
    }

    /// Has these hold from now on, unless others did already.
    #[inline]
    pub(crate) fn apply(&self) {
        static APPLIED: AtomicBool = AtomicBool::new(false);
        // ORDERING: Relaxed in both: whoever misses the values for a moment works with the defaults.
        if !APPLIED.load(Ordering::Relaxed) && !APPLIED.swap(true, Ordering::Relaxed) {
            CHOSEN.set(&self.0);
        }
    }
}

/// A value for each option, or none.
struct Values([AtomicUsize; ALL.len()]);

static CHOSEN: Values = Values::none();
static SAID: Values = Values::none();

impl Values {
    const fn none() -> Values {
        Values([const { AtomicUsize::new(UNSET) }; ALL.len()])
    }

    fn get(&self, index: Index) -> Option<usize> {
        // ORDERING: Relaxed, for each value stands for itself.
        Some(self.0[index as usize].load(Ordering::Relaxed)).filter(|value| *value != UNSET)
    }

    fn set(&self, values: &[usize; ALL.len()]) {
        for (place, value) in self.0.iter().zip(values) {
            // ORDERING: Relaxed, as in `get`.
            place.store(*value, Ordering::Relaxed);
        }
    }
}

fn get(index: Index) -> Option<usize> {
    SAID.get(index).or_else(|| CHOSEN.get(index))
}

/// What one thread's cache may hold in bytes, if that was set.
pub(crate) fn cache_size() -> Option<usize> {
    get(Index::CacheSize)
}

/// Bytes of free memory to keep, if that was set.
pub(crate) fn retain() -> Option<usize> {
    get(Index::Retain)
}

/// How many shards to use, if that was set.
pub(crate) fn shards() -> Option<usize> {
    get(Index::Shards)
}

/// Whether huge pages are wanted.
pub(crate) fn huge_pages() -> bool {
    get(Index::HugePages) != Some(0)
}

static IS_READ: AtomicBool = AtomicBool::new(false);

/// Reads the variables, if the environment can be had and nobody did so before.
pub(crate) fn settle() {
    // ORDERING: Relaxed: whoever misses that they were read finds so in `read`.
    if !IS_READ.load(Ordering::Relaxed)
        && let Some(environment) = Environment::current()
    {
        read(&environment);
    }
}

/// Reads the variables, if nobody did so before.
#[cold]
#[inline(never)]
pub(crate) fn read(environment: &Environment) {
    // ORDERING: Relaxed: whoever misses the values for a moment works with the defaults.
    if IS_READ.swap(true, Ordering::Relaxed) {
        return;
    }
    SAID.set(&RULES.each_ref().map(|rule| {
        let Some(text) = environment.get(rule.variable) else { return UNSET };
        rule.parse(text).unwrap_or_else(|| {
            kernel::write_error(rule.warning.as_bytes());
            UNSET
        })
    }));
}

const fn accepts(least: usize, most: usize, value: usize) -> bool {
    least <= value && value <= most
}

impl Rule {
    /// The value that a variable's text stands for; `None` where this option does not accept it.
    fn parse(&self, text: &CStr) -> Option<usize> {
        let text = text.to_bytes();
        let (digits, unit) = match (self.unit, text.split_last()) {
            (Unit::Bytes, Some((b'K' | b'k', digits))) => (digits, 1 << 10),
            (Unit::Bytes, Some((b'M' | b'm', digits))) => (digits, 1 << 20),
            (Unit::Bytes, Some((b'G' | b'g', digits))) => (digits, 1 << 30),
            _ => (text, 1),
        };
        if digits.is_empty() {
            return None;
        }
        let mut value = 0_usize;
        for digit in digits {
            let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
            value = value.checked_mul(10)?.checked_add(usize::from(digit))?;
        }
        value.checked_mul(unit).filter(|value| accepts(self.least, self.most, *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(index: Index, text: &CStr) -> Option<usize> {
        RULES[index as usize].parse(text)
    }

    #[test]
    fn bytes_may_have_a_unit() {
        for (text, bytes) in [
            (c"0", 0),
            (c"007", 7),
            (c"65536", 65_536),
            (c"64K", 64 << 10),
            (c"64k", 64 << 10),
            (c"3M", 3 << 20),
            (c"2G", 2 << 30),
            (c"9223372036854775807", BYTES_MAX),
        ] {
            assert_eq!(parse(Index::Retain, text), Some(bytes), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_number_in_range_is_refused() {
        for text in [
            c"",
            c"K",
            c"-1",
            c"+1",
            c" 1",
            c"1 ",
            c"1KB",
            c"1.5M",
            c"0x10",
            c"1T",
            c"M1",
            c"\xff",
            c"9223372036854775808",
            c"18446744073709551615",
            c"18446744073709551616",
            c"99999999999999999999999",
            c"8589934592G",
        ] {
            assert_eq!(parse(Index::Retain, text), None, "{text:?}");
        }
        for (index, text) in [
            (Index::Shards, c"0"),
            (Index::Shards, c"17"),
            (Index::Shards, c"1K"),
            (Index::HugePages, c"2"),
            (Index::HugePages, c"yes"),
        ] {
            assert_eq!(parse(index, text), None, "{text:?}");
        }
    }

    #[test]
    fn every_accepted_value_tells_from_none() {
        for option in ALL {
            assert!(option.least <= option.most && option.most < UNSET, "{}", option.name);
        }
    }

    #[test]
    fn warnings_are_one_line_that_names_the_variable() {
        for option in &RULES {
            let line = option.warning.strip_suffix('\n').expect("ends a line");
            assert!(!line.contains('\n') && line.contains(option.variable), "{line}");
        }
        // The one limit that stands in words too.
        assert_eq!(ALL[Index::Shards as usize].most, 16);
    }
}
