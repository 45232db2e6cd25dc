//! `fork`: every lock is held across it, so that the child finds none held by a thread that it does not have.
//!
//! Relies on each module with locks to visit them, and on [`visit_module`], the one list of those modules. The hard part is a
//! signal handler that forks: the interrupted code may hold a lock, which stays as it is, because that code continues in both
//! processes. Another thread may wait for that lock while it holds one of a lower rank, which then cannot be had. So `fork`
//! waits for a lock as long as no thread waits for one of its own, and soon gives up where one does. A lock that was *missed*
//! in this way belongs, in the child, to a thread that does not exist. What it guards may be half changed, so a thread of the
//! child that needs it ends the program with a message.
//!
//! A handler may also interrupt `fork` itself and fork. This inner `fork` takes what the outer one does not hold yet, and leaves
//! the release of all to it.

use core::ops::Range;

use crate::blocks::{owner, shard, slot, transfer};
use crate::diagnostics::{guards, sampling, unwind};
use crate::memory::metadata;
#[cfg(feature = "secure")]
use crate::memory::random;
use crate::memory::ranges::stripes;
use crate::platform::libc;
use crate::platform::sync::{
    AtomicBool, AtomicU32, Ordering, RawLock, Visit, Visitor, this_holder, wait_briefly,
};
use crate::settings;
use crate::threads::cache::{User, all, idle};
use crate::threads::statistics::page;

/// How often `fork` waits for a lock, about a millisecond each time, while a thread may wait for one of its own.
const PATIENCE: usize = 100;

/// How many modules have locks.
const MODULES: usize = if cfg!(feature = "secure") { 13 } else { 12 };
/// The modules whose locks say whether there are other threads.
const FIRST: Range<usize> = 0..2;
/// The modules whose locks only registered threads take. A `fork` in a program with one thread leaves these alone.
const OF_REGISTERED: Range<usize> = 4..6;

/// Visits the locks of a module: all of them, in the order of their ranks. No table: it would be relocated at the start of
/// every program.
// COUPLING: Each module with a lock has a function that visits it, called here. `cargo xtask tidy` allows locks in these
// modules only (`xtask/src/tidy/doors.rs`).
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_visit_module")]
fn visit_module(module: usize, visit: Visit<'_>) {
    match module {
        0 => all::each_lock(visit),
        1 => idle::each_lock(visit),
        2 => owner::each_lock(visit),
        3 => owner::each_lock_of_heaps(visit),
        4 => shard::each_lock(visit),
        5 => transfer::each_lock(visit),
        6 => unwind::each_lock(visit),
        7 => sampling::each_lock(visit),
        8 => guards::each_lock(visit),
        9 => metadata::each_lock(visit),
        10 => stripes::each_lock(visit),
        11 => settings::each_lock(visit),
        #[cfg(feature = "secure")]
        12 => random::each_lock(visit),
        _ => {}
    }
}

/// Whether any `fork` held the locks of registered threads too.
static HELD_ALL: AtomicBool = AtomicBool::new(false);
/// How often a thread holds the streams' lock for its `fork`s. Written by the holder of that lock.
static STREAMS: Holds = Holds::new();
/// How many `fork`s of a thread are inside another one of its own. Written by the thread that has the other locks.
static INNER: Holds = Holds::new();
/// How many calls of `fork` are under way.
static FORKING: AtomicU32 = AtomicU32::new(0);

/// How often a thread does what one thread at a time does.
struct Holds {
    /// 0 if none does.
    thread: AtomicU32,
    times: AtomicU32,
}

impl Holds {
    const fn new() -> Holds {
        Holds { thread: AtomicU32::new(0), times: AtomicU32::new(0) }
    }

    /// Whether this thread, or the one that it is a copy of, does it.
    fn are_this_threads(&self) -> bool {
        // ORDERING: Relaxed: only this thread, or its copy, acts on its own number.
        self.thread.load(Ordering::Relaxed) == this_holder()
    }

    /// Once more. For the one thread that may do it.
    fn begin(&self) {
        // ORDERING: Relaxed: only this thread reads and writes it now.
        self.note(self.times.load(Ordering::Relaxed) + 1);
    }

    /// Once less, if this thread does it; whether it does.
    fn end(&self) -> bool {
        let are_this_threads = self.are_this_threads();
        if are_this_threads {
            // ORDERING: As in `begin`.
            self.note(self.times.load(Ordering::Relaxed) - 1);
        }
        are_this_threads
    }

    fn note(&self, times: u32) {
        // ORDERING: Relaxed in both: only one thread writes.
        self.times.store(times, Ordering::Relaxed);
        self.thread.store(if times == 0 { 0 } else { this_holder() }, Ordering::Relaxed);
    }
}

/// Registers the handlers.
pub(super) fn watch() {
    libc::at_fork(before, after_in_parent, after_in_child);
}

#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_before")]
extern "C" fn before() {
    // ORDERING: Relaxed in both: the number guards nothing.
    FORKING.fetch_add(1, Ordering::Relaxed);
    if holds_any() {
        // ORDERING: Relaxed: a thread acts on what it wrote itself.
        HELD_ALL.store(true, Ordering::Relaxed);
        let _ = hold(0..MODULES, true);
        return INNER.begin();
    }
    while !hold_all() {
        let_go_all();
        wait_briefly(&FORKING, FORKING.load(Ordering::Relaxed));
    }
}

/// Holds all locks, the streams' too if there are other threads. False if another `fork` may wait for the latter, while it
/// holds a lock in interrupted code.
fn hold_all() -> bool {
    if !hold(FIRST, true) {
        return false;
    }
    // SAFETY: This is the handler, and has visited these modules' locks.
    let has_others =
        slot::get().cache().is_none() || unsafe { all::were_several() || idle::was_reused() };
    if has_others {
        let_go(FIRST);
        // Other threads hold this lock while they wait for memory, so it comes first.
        libc::hold_streams();
        STREAMS.begin();
        if !hold(FIRST, true) {
            return false;
        }
    }
    // The child's statistics page takes all of them, and must be able to.
    let holds_all = has_others || settings::statistics_page();
    if holds_all {
        // ORDERING: Relaxed: a thread acts on what it wrote itself.
        HELD_ALL.store(true, Ordering::Relaxed);
    }
    hold(FIRST.end..MODULES, holds_all)
}

/// Releases what [`hold_all`] took.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_let_go_all")]
fn let_go_all() {
    let_go(0..MODULES);
    if STREAMS.end() {
        libc::let_go_streams();
    }
}

#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_after_in_parent")]
extern "C" fn after_in_parent() {
    if !INNER.end() {
        let_go_all();
        // An inner `fork` has taken again what was released before it.
        while holds_any() {
            let_go(0..MODULES);
        }
    }
    note_end();
}

#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_after_in_child")]
extern "C" fn after_in_child() {
    let had_others = STREAMS.are_this_threads();
    libc::forget_walkers(had_others);
    // SAFETY: `before` held the stripes, in the thread that this one is a copy of, except for those that it missed.
    unsafe { stripes::take_back_after_fork() };
    // No other thread exists that could do the same.
    all::begin_generation();
    if let Some(cache) = slot::get().cache() {
        cache.traffic.note_user(User::Unknown, all::generation());
        cache.forget_draw();
    }
    let mut release = Visitor::new(|lock, left| *left += usize::from(!lock.let_go_in_child()));
    each(0..MODULES, held_all(), &mut release);
    STREAMS.note(0);
    INNER.note(0);
    // ORDERING: Relaxed: there is one thread.
    FORKING.store(0, Ordering::Relaxed);
    if had_others {
        libc::forget_streams();
    }
    // It takes locks.
    page::after_fork(release.number() == 0);
}

/// Counts one `fork` less. In a child whose parent was in the midst of another one there is none.
fn note_end() {
    // ORDERING: Relaxed in both, as in `before`.
    if FORKING.load(Ordering::Relaxed) != 0 {
        FORKING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a `fork` may have held the locks of registered threads.
fn held_all() -> bool {
    // ORDERING: Relaxed: a thread that forks knows what it held itself.
    HELD_ALL.load(Ordering::Relaxed)
}

/// Visits the locks of these modules, those of registered threads only if `all`.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_each")]
fn each(modules: Range<usize>, all: bool, visit: Visit<'_>) {
    for module in modules {
        if all || !OF_REGISTERED.contains(&module) {
            visit_module(module, visit);
        }
    }
}

/// Whether this thread holds a lock for a `fork`.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_holds_any")]
fn holds_any() -> bool {
    any(held_all(), |lock, held| *held |= usize::from(lock.is_held_for_fork()))
}

/// Ends [`hold`], in the parent.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_let_go")]
fn let_go(modules: Range<usize>) {
    each(modules, held_all(), &mut Visitor::new(|lock, _| lock.let_go_after_fork()));
}

/// Bits of the number of a visit by [`hold`].
const MISSED: usize = 1;
const IS_KNOWN: usize = 2;
const HAS_INTERRUPTED: usize = 4;

/// Holds these locks, except for those that this thread holds already and those that cannot be had. False if this thread
/// must let go of all and begin again.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_hold")]
fn hold(modules: Range<usize>, holds_all: bool) -> bool {
    let mut holding = Visitor::new(hold_one);
    each(modules, holds_all, &mut holding);
    holding.number() & MISSED == 0
}

#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_hold_one")]
fn hold_one(lock: &'static RawLock, state: &mut usize) {
    if *state & MISSED != 0 || lock.is_this_threads() || lock.try_hold_for_fork(false) {
        return;
    }
    if *state & IS_KNOWN == 0 {
        let is_interrupted = any(true, |lock, any| {
            *any |= usize::from(lock.is_this_threads() && !lock.is_held_for_fork());
        });
        *state |= IS_KNOWN | if is_interrupted { HAS_INTERRUPTED } else { 0 };
    }
    let has_interrupted = *state & HAS_INTERRUPTED != 0;
    if !hold_if_possible(lock, has_interrupted) && !has_interrupted {
        *state |= MISSED;
    }
}

/// Waits for a lock of another thread, as long as that one does not wait for this; whether this thread has the lock.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_hold_if_possible")]
fn hold_if_possible(lock: &RawLock, has_interrupted: bool) -> bool {
    let is_waited_for = |lock: &'static RawLock, any: &mut usize| {
        *any |= usize::from(lock.is_this_threads() && lock.has_sleepers());
    };
    let mut patience = PATIENCE;
    while !lock.try_hold_for_fork(true) {
        if patience == 0 {
            lock.give_up();
            return false;
        }
        lock.wait_briefly();
        // Another `fork` may wait for the streams' lock, which shows no sleepers.
        // ORDERING: Relaxed, as in `before`.
        if FORKING.load(Ordering::Relaxed) > 1 || has_interrupted && any(true, is_waited_for) {
            patience -= 1;
        }
    }
    true
}

/// Whether this finds anything in any lock.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_any")]
fn any(all: bool, find: fn(&'static RawLock, &mut usize)) -> bool {
    let mut found = Visitor::new(find);
    each(0..MODULES, all, &mut found);
    found.number() != 0
}

#[cfg(all(test, not(loom)))]
mod tests;
