//! `fork`: every lock is held across it, so that the child finds none held by a thread that it does not have.
//!
//! Relies on each module with locks to visit them, and on [`each_lock`], the one list of those modules. One thread at a
//! time has the *turn* to fork, with its signals blocked.
//!
//! The hard part is a signal handler that forks: the interrupted code may hold a lock, which stays as it is, because
//! that code continues in both processes. Another thread may wait for that lock while it holds one of a lower rank,
//! which then cannot be had; or it waits for the turn. So `fork` waits for a lock as long as no thread waits for the
//! interrupted code's or for the turn, and soon gives up where one does. If it interrupted nothing, it lets go of
//! everything and begins again. Else it goes on without the lock, which in the child belongs to a thread that does not
//! exist. The data may be half changed, so a thread of the child that needs the lock ends the program with a message.

use crate::blocks::{owner, shard, slot, transfer};
use crate::diagnostics::{guards, sampling, unwind};
use crate::memory::metadata;
#[cfg(feature = "secure")]
use crate::memory::random;
use crate::memory::ranges::stripes;
use crate::platform::sync::{
    AtomicBool, AtomicU32, AtomicUsize, Ordering, RawLock, Visit, Visitor, wait_briefly,
};
use crate::platform::{kernel, libc};
use crate::settings;
use crate::threads::cache::{User, all, idle};
use crate::threads::statistics::page;

/// The number of times that `fork` waits for a lock, about a millisecond each, while a thread may wait for this one. A
/// lock that is only busy is free long before: no lock is held for more than a few system calls, but its holder may be
/// off its CPU for some tens of milliseconds. One that is not free by then belongs, as far as anyone can see, to a
/// thread that waits for this one.
const PATIENCE: usize = 100;

/// The turn to fork.
static TURN: RawLock = RawLock::on(AtomicU32::new(0));
/// Whether this `fork` found other threads, and so holds the streams' lock too. This and the following are written by
/// the thread that has the turn.
static HAS_OTHERS: AtomicBool = AtomicBool::new(false);
/// Whether it holds the locks of registered threads too.
static HOLDS_ALL: AtomicBool = AtomicBool::new(false);
/// The signals that were blocked before it.
static SIGNALS: AtomicUsize = AtomicUsize::new(0);
/// The number of `fork`s inside this one: handlers of other libraries may fork.
static INNER: AtomicU32 = AtomicU32::new(0);

/// Registers the handlers.
pub(super) fn watch() {
    libc::at_fork(before, after_in_parent, after_in_child);
}

/// Visits the locks of all modules, in the order of their ranks. No table: it would be relocated at the start of every
/// program.
// COUPLING: Each module with a lock has a function that visits it, called here. `cargo xtask tidy` allows locks in
// these modules only (`xtask/src/tidy/doors.rs`).
#[inline(always)]
fn each_lock(visit: Visit<'_>) {
    all::each_lock(visit);
    idle::each_lock(visit);
    owner::each_lock(visit);
    // Only registered threads take these.
    // ORDERING: Relaxed: the thread that has the turn wrote it.
    if HOLDS_ALL.load(Ordering::Relaxed) {
        owner::each_lock_of_heaps(visit);
        shard::each_lock(visit);
        transfer::each_lock(visit);
    }
    unwind::each_lock(visit);
    sampling::each_lock(visit);
    guards::each_lock(visit);
    metadata::each_lock(visit);
    stripes::each_lock(visit);
    settings::each_lock(visit);
    #[cfg(feature = "secure")]
    random::each_lock(visit);
}

#[inline(never)]
extern "C" fn before() {
    if has_turn() {
        // ORDERING: Relaxed: this thread has the turn.
        INNER.fetch_add(1, Ordering::Relaxed);
        return;
    }
    while !hold_all() {
        after_in_parent();
        // Another thread gets the turn, or releases a lock. No thread wakes this one.
        wait_briefly(&INNER, 0);
    }
}

/// Takes the turn and holds all locks, the streams' too if there are other threads. False if this thread must begin
/// again.
#[inline(always)]
fn hold_all() -> bool {
    let signals = kernel::replace_blocked_signals(usize::MAX);
    while !TURN.try_hold_for_fork(false) {
        TURN.wait_briefly();
    }
    let has_others = slot::get().cache().is_none() || all::are_several();
    // The child's statistics page takes all of them, and must be able to.
    let holds_all = has_others || settings::statistics_page();
    // ORDERING: Relaxed in all: this thread has the turn.
    SIGNALS.store(signals, Ordering::Relaxed);
    HAS_OTHERS.store(has_others, Ordering::Relaxed);
    HOLDS_ALL.store(holds_all, Ordering::Relaxed);
    if has_others {
        // Other threads hold this lock while they wait for memory, so it comes first.
        libc::hold_streams();
    }
    // Another thread may have started since, and then no further one can.
    !any(hold) && (has_others || !all::are_several())
}

/// Holds a lock, for which it waits as long as no thread waits for this one. Notes if this thread must begin again.
#[inline(never)]
fn hold(lock: &'static RawLock, is_missed: &mut usize) {
    if *is_missed != 0 || lock.is_this_threads() {
        return;
    }
    let (mut patience, mut has_waited) = (PATIENCE, false);
    while !lock.try_hold_for_fork(has_waited) {
        if patience == 0 {
            lock.give_up();
            *is_missed = usize::from(!any(|lock, any| *any |= usize::from(lock.is_interrupted())));
            return;
        }
        lock.wait_briefly();
        has_waited = true;
        let is_waited_for = |lock: &'static RawLock, any: &mut usize| {
            *any |= usize::from(lock.is_interrupted() && lock.has_sleepers());
        };
        if TURN.has_sleepers() || any(is_waited_for) {
            patience -= 1;
        }
    }
}

#[inline(never)]
extern "C" fn after_in_parent() {
    if !has_turn() {
        return;
    }
    // ORDERING: Relaxed in this function: this thread has the turn.
    if INNER.load(Ordering::Relaxed) != 0 {
        INNER.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    any(|lock, _| _ = lock.let_go_after_fork());
    if HAS_OTHERS.load(Ordering::Relaxed) {
        libc::let_go_streams();
    }
    end_turn();
}

#[inline(never)]
extern "C" fn after_in_child() {
    // ORDERING: Relaxed in this function: there is one thread.
    let had_others = HAS_OTHERS.swap(false, Ordering::Relaxed);
    libc::forget_walkers(had_others);
    // SAFETY: `before` held the stripes, in the thread that this one is a copy of, except for those that it missed.
    unsafe { stripes::take_back_after_fork() };
    // SAFETY: As above.
    unsafe { all::bring_parked_home_after_fork() };
    // No other thread exists that could do the same.
    all::begin_generation();
    if let Some(cache) = slot::get().cache() {
        cache.traffic.note_user(User::Unknown, all::generation());
    }
    // A child must not sample as its parent does, whichever cache a thread of it goes on with.
    sampling::renew();
    let is_any_left = any(|lock, left| *left |= usize::from(!lock.let_go_in_child()));
    if had_others {
        libc::forget_streams();
    }
    INNER.store(0, Ordering::Relaxed);
    guards::after_fork();
    // It takes locks.
    page::after_fork(!is_any_left);
    end_turn();
}

/// Whether this thread has the turn.
fn has_turn() -> bool {
    TURN.is_held_for_fork()
}

/// Gives the turn to the next thread, and lets this one have its signals.
#[inline(never)]
fn end_turn() {
    // ORDERING: Relaxed: this thread has the turn, or does nothing with it.
    let signals = SIGNALS.load(Ordering::Relaxed);
    if TURN.let_go_after_fork() && signals != usize::MAX {
        kernel::replace_blocked_signals(signals);
    }
}

/// Visits all locks; whether `find` noted anything.
#[inline(never)]
fn any(find: fn(&'static RawLock, &mut usize)) -> bool {
    let mut found = Visitor::new(find);
    each_lock(&mut found);
    found.number() != 0
}

#[cfg(all(test, not(loom)))]
mod tests;
