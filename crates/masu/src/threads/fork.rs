//! `fork`: every lock is held across it, so that the child finds none held by a thread that it does not have.
//!
//! Relies on each module with locks to visit them, and on [`LOCKS`], the one list of those modules. The hard part is a
//! signal handler that forks: the interrupted code may hold a lock, which stays as it is, because that code continues in both
//! processes. Another thread may wait for that lock while it holds one of a lower rank, which then cannot be had. So `fork`
//! waits for a lock as long as no thread waits for one of its own, and soon gives up where one does. A lock that was *missed*
//! in this way belongs, in the child, to a thread that does not exist. What it guards may be half changed, so a thread of the
//! child that needs it ends the program with a message.
//!
//! A handler may also interrupt `fork` itself and fork. This inner `fork` takes what the outer one does not hold yet, and leaves
//! the release of all to it.

use crate::blocks::{owner, shard, slot, transfer};
use crate::diagnostics::{guards, sampling, unwind};
use crate::memory::metadata;
#[cfg(feature = "secure")]
use crate::memory::random;
use crate::memory::ranges::stripes;
use crate::platform::libc;
use crate::platform::sync::{
    AtomicBool, AtomicU32, Ordering, RawLock, Visit, this_holder, wait_briefly,
};
use crate::settings;
use crate::threads::cache::{User, all, idle};
use crate::threads::statistics::page;

/// How often `fork` waits for a lock, about a millisecond each time, while a thread may wait for one of its own.
const PATIENCE: usize = 100;

/// The locks of a rank, or of several.
struct Locks {
    visit: fn(Visit<'_>),
    /// Whether only registered threads take them. A `fork` in a program with one thread leaves these alone.
    of_registered: bool,
}

impl Locks {
    const fn of_all(visit: fn(Visit<'_>)) -> Locks {
        Locks { visit, of_registered: false }
    }

    const fn of_registered(visit: fn(Visit<'_>)) -> Locks {
        Locks { visit, of_registered: true }
    }
}

// COUPLING: Each module with a lock has a function that visits it, listed here in the order of the locks' ranks. `cargo xtask
// tidy` allows locks in these modules only (`xtask/src/tidy/doors.rs`).
static LOCKS: &[Locks] = &[
    Locks::of_all(all::each_lock),
    Locks::of_all(idle::each_lock),
    Locks::of_all(owner::each_lock),
    Locks::of_all(owner::each_lock_of_heaps),
    Locks::of_registered(shard::each_lock),
    Locks::of_registered(transfer::each_lock),
    Locks::of_all(unwind::each_lock),
    Locks::of_all(sampling::each_lock),
    Locks::of_all(guards::each_lock),
    Locks::of_all(metadata::each_lock),
    Locks::of_all(stripes::each_lock),
    Locks::of_all(settings::each_lock),
    #[cfg(feature = "secure")]
    Locks::of_all(random::each_lock),
];
/// The locks that say whether there are other threads: they come first.
const FIRST: usize = 2;

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
        let _ = hold(LOCKS, true);
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
    let (first, others) = LOCKS.split_at(FIRST);
    if !hold(first, true) {
        return false;
    }
    // SAFETY: This is the handler, and has visited these modules' locks.
    let has_others =
        slot::get().cache().is_none() || unsafe { all::were_several() || idle::was_reused() };
    if has_others {
        let_go(first.iter());
        // Other threads hold this lock while they wait for memory, so it comes first.
        libc::hold_streams();
        STREAMS.begin();
        if !hold(first, true) {
            return false;
        }
    }
    // The child's statistics page takes all of them, and must be able to.
    let holds_all = has_others || settings::statistics_page();
    if holds_all {
        // ORDERING: Relaxed: a thread acts on what it wrote itself.
        HELD_ALL.store(true, Ordering::Relaxed);
    }
    hold(others, holds_all)
}

/// Releases what [`hold_all`] took.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_let_go_all")]
fn let_go_all() {
    let_go(held_ever());
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
            let_go(held_ever());
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
    let mut all_are_free = true;
    each(held_ever().rev(), &mut |lock| all_are_free &= lock.let_go_in_child());
    STREAMS.note(0);
    INNER.note(0);
    // ORDERING: Relaxed: there is one thread.
    FORKING.store(0, Ordering::Relaxed);
    if had_others {
        libc::forget_streams();
    }
    // It takes locks.
    page::after_fork(all_are_free);
}

/// Counts one `fork` less. A handler that forked in the midst of another one's may have left none.
fn note_end() {
    let less = |forks: u32| forks.checked_sub(1);
    // ORDERING: Relaxed in both, as in `before`.
    let _ = FORKING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
}

/// The locks that a `fork` may have held.
fn held_ever() -> impl DoubleEndedIterator<Item = &'static Locks> {
    // ORDERING: Relaxed: a thread that forks knows what it held itself.
    let held_all = HELD_ALL.load(Ordering::Relaxed);
    LOCKS.iter().filter(move |locks| held_all || !locks.of_registered)
}

/// Whether this thread holds a lock for a `fork`.
fn holds_any() -> bool {
    let mut any = false;
    each(held_ever(), &mut |lock| any |= lock.is_held_for_fork());
    any
}

fn each(kinds: impl Iterator<Item = &'static Locks>, visit: Visit<'_>) {
    kinds.for_each(|locks| (locks.visit)(visit));
}

/// Ends [`hold`], in the parent.
fn let_go(kinds: impl DoubleEndedIterator<Item = &'static Locks>) {
    each(kinds.rev(), &mut RawLock::let_go_after_fork);
}

/// Holds these locks, except for those that this thread holds already and those that cannot be had. False if this thread
/// must let go of all and begin again.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.fork_hold")]
fn hold(kinds: &'static [Locks], holds_all: bool) -> bool {
    let (mut has_interrupted, mut has_all) = (None, true);
    let needed = kinds.iter().filter(|locks| holds_all || !locks.of_registered);
    each(needed, &mut |lock| {
        if !has_all || lock.is_this_threads() || lock.try_hold_for_fork(false) {
            return;
        }
        let is_interrupted = |lock: &RawLock| lock.is_this_threads() && !lock.is_held_for_fork();
        let has_interrupted = *has_interrupted.get_or_insert_with(|| any(is_interrupted));
        has_all = hold_if_possible(lock, has_interrupted) || has_interrupted;
    });
    has_all
}

/// Waits for a lock of another thread, as long as that one does not wait for this; whether this thread has the lock.
fn hold_if_possible(lock: &RawLock, has_interrupted: bool) -> bool {
    let is_waited_for = |lock: &RawLock| lock.is_this_threads() && lock.has_sleepers();
    let mut patience = PATIENCE;
    while !lock.try_hold_for_fork(true) {
        if patience == 0 {
            lock.give_up();
            return false;
        }
        lock.wait_briefly();
        // Another `fork` may wait for the streams' lock, which shows no sleepers.
        // ORDERING: Relaxed, as in `before`.
        if FORKING.load(Ordering::Relaxed) > 1 || has_interrupted && any(is_waited_for) {
            patience -= 1;
        }
    }
    true
}

/// Whether any lock is such.
fn any(is_such: impl Fn(&RawLock) -> bool) -> bool {
    let mut any = false;
    each(LOCKS.iter(), &mut |lock| any |= is_such(lock));
    any
}

#[cfg(all(test, not(loom)))]
mod tests;
