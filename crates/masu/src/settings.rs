//! Settings: what a program, or its user, has set about the allocator.
//!
//! Relies on the environment. All that may be set stands in one table (`settings/table.rs`); from it come the
//! functions of [`Masu`](crate::Masu) that build one (`Masu::new().retain(0)`), the variables
//! (`MASU_RETAIN=0`), their warnings, [`crate::options`], `masu list --options` and
//! `docs/options.md`. A variable counts more than what the program was built with, because it is
//! said later, by someone who knows the machine; what the running program sets counts most.
//!
//! The hard idea is that nothing waits for an option but a thread that begins. Options are read then, and by the
//! constructor of `libmasu.so`; until the environment can be had, the defaults hold. So every option is one that may
//! change under way, and only slow paths ask for it: one load each. A thread that begins while another reads them
//! waits for their values, for some of what follows from them stays with it (its shard). What else follows from a
//! setting is for the layers above: they learn from here whether variables were read.

#[macro_use]
mod table;
mod constructor;
mod line;
mod rule;
mod variables;

use core::ffi::{CStr, c_char};
use core::fmt;

use crate::platform::sync::{AtomicUsize, Lock, Ordering};
pub(crate) use constructor::{Chosen, layouts_are_used};
pub use table::{ALL, Description, TEXTS, Text, Unit};
pub(crate) use variables::{read, say, settle};

/// How many options there are.
const COUNT: usize = ALL.len();

/// Stands for an option that nobody has set; greater than every accepted value.
const UNSET: usize = usize::MAX;

macro_rules! indices {
    ($(
        $(#[doc = $meaning:literal])+
        $index:ident, $name:ident($argument:ident: $kind:ty), $variable:literal,
        $unit:ident $least:literal to $most:expr, accepts $accepted:literal,
        default $default:literal, holds $holds:literal;
    )+) => {
        /// A place in the table.
        #[derive(Clone, Copy)]
        #[repr(usize)]
        enum Index { $($index),+ }
    };
}

option_rows!(indices);

/// Who set an option; a later one counts more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Nobody,
    /// A variable of glibc's, or `mallopt`.
    Glibc,
    /// The program, when it was built.
    Built,
    /// A variable.
    Environment,
    /// The program, while it runs.
    Program,
}

/// What holds, plus one; 0 where nobody set it.
///
/// Among the data that is not zero at first, although it is: every program reads it, and of that data
/// there is so little that it lies on an OS page which every program reads anyway.
#[unsafe(link_section = ".data.masu_options")]
static VALUES: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];

/// Who set what. A thread that sets anything holds it until all that belongs together is set, and takes no other lock
/// in that time.
static SOURCES: Lock<Sources> =
    Lock::new(Sources { of: [Source::Nobody; COUNT], variables_are_read: false });

struct Sources {
    of: [Source; COUNT],
    /// Whether the environment's variables are all set, or are being set by the holder of this.
    variables_are_read: bool,
}

/// What was set for the option at `place`.
#[inline]
fn value(place: usize) -> Option<usize> {
    // ORDERING: Relaxed, for each value stands for itself.
    VALUES[place].load(Ordering::Relaxed).checked_sub(1)
}

impl Sources {
    /// Has `value` hold for the option at `place`, its default with [`UNSET`], unless someone who counts
    /// more has set it, or the first of two variables.
    #[cold]
    #[inline(never)]
    fn put(&mut self, place: usize, value: usize, by: Source) {
        let before = self.of[place];
        let repeats = by == before && matches!(by, Source::Built | Source::Environment);
        if by < before || repeats {
            return;
        }
        self.of[place] = by;
        // ORDERING: Relaxed: a thread that must not miss the value took the lock around this since.
        VALUES[place].store(value.wrapping_add(1), Ordering::Relaxed);
    }
}

/// Holds the lock of this room across `fork`.
pub(crate) fn hold_for_fork() {
    SOURCES.hold();
}

/// Ends [`hold_for_fork`].
///
/// # Safety
///
/// - This thread, or the one it was forked from, called `hold_for_fork`.
pub(crate) unsafe fn let_go_after_fork() {
    // SAFETY: The caller's condition.
    unsafe { SOURCES.let_go() };
}

#[inline]
fn held(index: Index) -> Option<usize> {
    value(index as usize)
}

/// The value that holds for the option `name`, or its default; `None` where the default follows the program.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.settings_get")]
pub(crate) fn get(name: &[u8]) -> Result<Option<usize>, Refusal> {
    let place = place_of(name)?;
    Ok(value(place).or_else(|| rule::all()[place].default()))
}

/// Has `value` hold for the option `name`, for the running program; its default with `None`.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.settings_set")]
pub(crate) fn set(name: &[u8], value: Option<usize>) -> Result<(), Refusal> {
    let place = place_of(name)?;
    if value.is_some_and(|value| !rule::all()[place].accepts(value)) {
        return Err(Refusal::Value);
    }
    SOURCES.lock().put(place, value.unwrap_or(UNSET), Source::Program);
    Ok(())
}

/// What a text means as a value of the option `name`.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.options.settings_parse")]
pub(crate) fn parse(name: &[u8], text: &[u8]) -> Result<usize, Refusal> {
    rule::all()[place_of(name)?].parse(text).ok_or(Refusal::Value)
}

/// Why an option could not be had or set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no option of that name.
    Unknown,
    /// The option does not accept the value; [`ALL`] has what it accepts.
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

/// Has `value` hold for the option `name` where nobody who means masu has set it: for what was set
/// about another malloc.
#[cold]
#[unsafe(link_section = ".text.masu_cold.options.options_suggest")]
pub(crate) fn suggest(name: &str, value: usize) {
    if let Ok(place) = place_of(name.as_bytes())
        && rule::all()[place].accepts(value)
    {
        SOURCES.lock().put(place, value, Source::Glibc);
    }
}

/// The name of the option at `place` in [`ALL`], as a string of C's; `None` behind the last.
#[must_use]
pub fn c_name(place: usize) -> Option<&'static CStr> {
    let name: *const c_char = rule::all().get(place)?.c_name().cast();
    // SAFETY: A name in the rules is shorter than its room, which is filled up with zeros.
    Some(unsafe { CStr::from_ptr(name) })
}

/// What one thread's cache may hold in bytes, if that was set.
pub(crate) fn cache_size() -> Option<usize> {
    held(Index::CacheSize)
}

/// What threads may pass on to each other of a class in bytes, if that was set.
pub(crate) fn transfer_size() -> Option<usize> {
    held(Index::TransferSize)
}

/// Bytes of free memory to keep, if that was set. Keeping it for no time is keeping none.
pub(crate) fn retain() -> Option<usize> {
    held(Index::Retain).or_else(|| held(Index::PurgeDelayMs).filter(|delay| *delay == 0))
}

/// Milliseconds that free memory is left, if that was set.
pub(crate) fn purge_delay_ms() -> Option<usize> {
    held(Index::PurgeDelayMs)
}

/// Bytes of free memory to keep at least, if that was set.
pub(crate) fn retain_min() -> Option<usize> {
    held(Index::RetainMin)
}

/// Bytes that runs may take, if there is a limit.
pub(crate) fn memory_limit() -> Option<usize> {
    held(Index::MemoryLimit)
}

/// Bytes of addresses to reserve at a time, if that was set.
pub(crate) fn arena_size() -> Option<usize> {
    held(Index::ArenaSize)
}

/// How many shards to use, if that was set.
pub(crate) fn shards() -> Option<usize> {
    held(Index::Shards)
}

/// Whether huge pages are wanted.
pub(crate) fn huge_pages() -> bool {
    held(Index::HugePages) != Some(0)
}

/// The size of a heap that gets huge pages, in bytes, if that was set.
pub(crate) fn huge_pages_from() -> Option<usize> {
    held(Index::HugePagesFrom)
}

/// Whether the program ends where there is no memory.
pub(crate) fn aborts_on_oom() -> bool {
    held(Index::AbortOnOom) == Some(1)
}

/// Whether the statistics page is wanted.
#[inline]
pub(crate) fn statistics_page() -> bool {
    held(Index::StatisticsPage) == Some(1)
}

/// Whether statistics are to be written when the program ends.
pub(crate) fn statistics_at_exit() -> bool {
    held(Index::StatisticsAtExit) == Some(1)
}

/// Bytes between two samples of a heap profile, if that was set.
pub(crate) fn profile_interval() -> Option<usize> {
    held(Index::ProfileInterval)
}

/// Whether it is to be said at the end what lives.
pub(crate) fn profile_leaks() -> bool {
    held(Index::ProfileLeaks) == Some(1)
}

/// One block in so many is to be guarded; 0 for none.
#[inline]
pub(crate) fn guard_rate() -> usize {
    held(Index::GuardRate).unwrap_or(0)
}

/// How many guarded blocks there may be at once, if that was set.
pub(crate) fn guard_slots() -> Option<usize> {
    held(Index::GuardSlots)
}

/// The most shards there may be.
pub(crate) const SHARDS_MAX: usize = ALL[Index::Shards as usize].most;
