//! Settings: the options that a program or its user has set.
//!
//! Relies on the environment. One table (`settings/table.rs`) lists all options. The `const` functions of
//! [`Masu`](crate::Masu), the variables (`MASU_RETAIN=0`) and their warnings, [`crate::options`], `masu list --options`
//! and `docs/options.md` are made from it. A variable overrides the value that the program was built with, because its
//! user knows the machine; an option that the running program sets overrides both.
//!
//! The hard idea is when options are read: when a thread starts, and in the constructor of `libmasu.so`. Until there is
//! an environment the defaults hold. So every option may change while the program runs, and only slow paths read
//! options, with one load. A thread that starts while another thread reads the variables waits for it, because some of
//! their effects stay with the thread, such as its shard. The layers above act on options; this layer only says that
//! they were read.

#[macro_use]
mod table;
mod constructor;
pub(crate) mod line;
mod rule;
mod variables;

use core::ffi::{CStr, c_char};
use core::fmt;

use crate::platform::bounds::Bounded;
use crate::platform::sync::{AtomicUsize, Lock, Ordering, Visit};
pub(crate) use constructor::{BuildOptions, layouts_are_used};
pub use table::{ALL, Description, TEXTS, Text, Unit};
pub(crate) use table::{BYTES_MAX, Index, MILLISECONDS_MAX};
pub(crate) use variables::{read, read_once, report};

/// The number of options.
const COUNT: usize = ALL.len();

/// Marks an option that is not set; greater than every accepted value.
const UNSET: usize = usize::MAX;

/// The source of an option's value; a later variant overrides an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Nobody,
    /// A variable of glibc's, or `mallopt`.
    Glibc,
    /// The program, at build time.
    Built,
    /// An environment variable.
    Environment,
    /// The program, at run time.
    Program,
}

/// Each option's value plus one; 0 where it is not set.
///
/// In the section of initialized data although it is zero: every program reads these, and they share an OS page with
/// other data that every program reads.
#[unsafe(link_section = ".data.masu_options")]
static VALUES: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

/// The source of each option's value. A thread that sets options holds this lock until all options that belong together
/// are set, and takes no other lock in that time.
static SOURCES: Lock<Sources> =
    Lock::new(Sources { of: [Source::Nobody; COUNT], variables_are_read: false });

struct Sources {
    of: [Source; COUNT],
    /// Whether all variables are set, or are being set by the thread that holds the lock.
    variables_are_read: bool,
}

/// The value of the option at `place`, if it was set.
#[inline]
fn value(place: usize) -> Option<usize> {
    // ORDERING: Relaxed: no other memory depends on a value.
    VALUES.at(place).load(Ordering::Relaxed).checked_sub(1)
}

impl Sources {
    /// Sets the option at `place` to `value`, or to its default with [`UNSET`], unless a source of higher priority has
    /// set it. Where two variables set one option, the first holds.
    #[cold]
    #[inline(never)]
    fn put(&mut self, place: usize, value: usize, by: Source) {
        let source = self.of.at_mut(place);
        let before = *source;
        let repeats = by == before && matches!(by, Source::Built | Source::Environment);
        if by < before || repeats {
            return;
        }
        *source = by;
        // ORDERING: Relaxed: a thread that must see the value takes the lock first.
        VALUES.at(place).store(value.wrapping_add(1), Ordering::Relaxed);
    }
}

/// Visits this module's lock, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    visit.see(SOURCES.raw());
}

#[inline]
fn held(index: Index) -> Option<usize> {
    value(index as usize)
}

/// The value of the option `name`, or its default; `None` where the default follows the program.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.settings_get")]
pub(crate) fn get(name: &[u8]) -> Result<Option<usize>, Refusal> {
    let place = place_of(name)?;
    Ok(value(place).or_else(|| rule::all().at(place).default()))
}

/// Sets the option `name` to `value`, or to its default with `None`, while the program runs.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.settings_set")]
pub(crate) fn set(name: &[u8], value: Option<usize>) -> Result<(), Refusal> {
    let place = place_of(name)?;
    if value.is_some_and(|value| !rule::all().at(place).accepts(value)) {
        return Err(Refusal::Value);
    }
    SOURCES.lock().put(place, value.unwrap_or(UNSET), Source::Program);
    Ok(())
}

/// Parses `text` as a value of the option `name`.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.settings_parse")]
pub(crate) fn parse(name: &[u8], text: &[u8]) -> Result<usize, Refusal> {
    rule::all().at(place_of(name)?).parse(text).ok_or(Refusal::Value)
}

/// The reason why an option could not be read or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such option.
    Unknown,
    /// The option does not accept the value; [`ALL`] lists the accepted values.
    Value,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::Unknown => "masu has no option of this name; masu::options::ALL lists them",
            Refusal::Value => "the option does not accept this value; see masu::options::ALL",
        })
    }
}

impl core::error::Error for Refusal {}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.options_place_of")]
fn place_of(name: &[u8]) -> Result<usize, Refusal> {
    rule::all().iter().position(|rule| rule.name() == name).ok_or(Refusal::Unknown)
}

/// Sets the option `name` to `value`, unless it was set as an option of masu: for settings of another malloc.
#[cold]
#[unsafe(link_section = ".text.masu_cold.options.options_suggest")]
pub(crate) fn suggest(name: &str, value: usize) {
    if let Ok(place) = place_of(name.as_bytes())
        && rule::all().at(place).accepts(value)
    {
        SOURCES.lock().put(place, value, Source::Glibc);
    }
}

/// The name of the option at `place` in [`ALL`] as a C string; `None` past the end.
#[must_use]
pub fn c_name(place: usize) -> Option<&'static CStr> {
    let name: *const c_char = rule::all().get(place)?.c_name().cast();
    // SAFETY: Names are shorter than their array, which is padded with zeros.
    Some(unsafe { CStr::from_ptr(name) })
}

/// Bytes that one thread's cache may hold, if set.
pub(crate) fn cache_size() -> Option<usize> {
    held(Index::CacheSize)
}

/// Bytes of free memory to keep, if set. A delay of 0 keeps none.
pub(crate) fn retain() -> Option<usize> {
    held(Index::Retain).or_else(|| held(Index::PurgeDelayMs).filter(|delay| *delay == 0))
}

/// Milliseconds before free memory is purged, if set.
pub(crate) fn purge_delay_ms() -> Option<usize> {
    held(Index::PurgeDelayMs)
}

/// Bytes of free memory to keep at least, if set.
pub(crate) fn retain_min() -> Option<usize> {
    held(Index::RetainMin)
}

/// The limit on bytes in runs, if set.
pub(crate) fn memory_limit() -> Option<usize> {
    held(Index::MemoryLimit)
}

/// Bytes of addresses to reserve at a time, if set.
pub(crate) fn arena_size() -> Option<usize> {
    held(Index::ArenaSize)
}

/// The number of shards, if set.
pub(crate) fn shards() -> Option<usize> {
    held(Index::Shards)
}

/// Whether to ask for huge pages.
pub(crate) fn huge_pages() -> bool {
    held(Index::HugePages) != Some(0)
}

/// Bytes of a heap from which on it gets huge pages, if set.
pub(crate) fn huge_pages_from() -> Option<usize> {
    held(Index::HugePagesFrom)
}

/// Whether the program ends where there is no memory.
pub(crate) fn aborts_on_oom() -> bool {
    held(Index::AbortOnOom) == Some(1)
}

/// Whether to keep a statistics page.
#[inline]
pub(crate) fn statistics_page() -> bool {
    held(Index::StatisticsPage) == Some(1)
}

/// Whether to write statistics at exit.
pub(crate) fn statistics_at_exit() -> bool {
    held(Index::StatisticsAtExit) == Some(1)
}

/// Bytes between two samples of a heap profile, if set.
pub(crate) fn profile_interval() -> Option<usize> {
    held(Index::ProfileInterval)
}

/// Whether to report live blocks at exit.
pub(crate) fn profile_leaks() -> bool {
    held(Index::ProfileLeaks) == Some(1)
}

/// One block in this many is guarded; 0 for none.
#[inline]
pub(crate) fn guard_rate() -> usize {
    held(Index::GuardRate).unwrap_or(0)
}

/// The number of guarded blocks that may exist at once, if set.
pub(crate) fn guard_slots() -> Option<usize> {
    held(Index::GuardSlots)
}

/// The seed of random placement, if blocks are placed at random.
#[inline]
pub(crate) fn shuffle() -> Option<usize> {
    held(Index::Shuffle).filter(|seed| *seed != 0)
}

/// The largest number of shards.
pub(crate) const SHARDS_MAX: usize = ALL[Index::Shards as usize].most;
