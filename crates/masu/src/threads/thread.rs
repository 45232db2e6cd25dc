//! The life of threads: a cache at the first slow call, left to the next thread or sent home at the
//! end, and what `fork` needs.
//!
//! Relies on the C library for a call at a thread's end. The order at an end is the hard part:
//! C++ and other destructors may free, and even allocate, after ours ran. So an ended thread's slot
//! holds an inert cache that says so, its late blocks come from and go to pages one by one, and no
//! cache is ever made again for it. (A thread whose very first use comes in the last round of its
//! destructors leaves a cache behind: the C library does not call for it any more.)

use core::ffi::c_void;
use core::ptr;

use crate::blocks::{owner, shard, slot, transfer};
use crate::diagnostics::{guards, sampling};
use crate::memory::metadata;
use crate::memory::ranges::stripes;
use crate::platform::environment::Environment;
use crate::platform::libc::{self, Key};
use crate::platform::sync;
use crate::settings;
use crate::threads::books::page;
pub(crate) use crate::threads::cache::all::follow_guards;
use crate::threads::cache::all::{self, THREADS};
use crate::threads::cache::{ThreadCache, User, idle};

/// This thread's cache for a slow path: makes one where the thread has none yet. `None` where there
/// is no memory for one, or where the thread has ended.
pub(crate) fn cache() -> Option<&'static ThreadCache> {
    let stacks = slot::get();
    if stacks.state() == slot::State::Empty { begin() } else { stacks.cache() }
}

/// Reads the variables if nobody did so, and does what follows from them.
pub(crate) fn settle() {
    if let Some(environment) = settings::settle() {
        follow(&environment);
    }
}

/// The same where the environment is known.
pub(crate) fn read_variables(environment: &Environment) {
    if settings::read(environment) {
        follow(environment);
    }
}

fn follow(environment: &Environment) {
    if sampling::is_asked_for(environment) && all::start_profile(None).is_ok() {
        libc::at_exit(sampling::end);
    }
    follow_guards();
    settings::say();
}

#[cold]
fn begin() -> Option<&'static ThreadCache> {
    settle();
    follow_guards();
    // A profile that a variable asks for begins with this thread's cache.
    if let Some(begun) = slot::get().cache() {
        return Some(begun);
    }
    let Some(cache) = idle::take() else { return begin_anew() };
    slot::set(&cache.stacks);
    cache.traffic.note_user(User::Unknown, all::generation());
    // From here on the thread has a cache, so the C library may allocate in this call.
    if let Some(key) = cache.key() {
        key.set(ptr::from_ref(cache).cast());
    }
    page::begin();
    cache.notice_profile();
    Some(cache)
}

/// Begins with a cache that is made for it.
#[inline(never)]
fn begin_anew() -> Option<&'static ThreadCache> {
    let mut threads = THREADS.lock();
    if threads.key.is_none() {
        threads.key = Key::new(end);
    }
    let key = threads.key;
    let cache = threads.make(key);
    let watches_fork = core::mem::replace(&mut threads.watches_fork, true);
    drop(threads);
    if let Some(cache) = cache {
        cache.traffic.note_user(User::Unknown, all::generation());
        slot::set(&cache.stacks);
        // As above.
        if let Some(key) = key {
            key.set(ptr::from_ref(cache).cast());
        }
        cache.notice_profile();
    }
    // Where there is no memory for a cache, too: requests that fail take locks, which a child must not find taken.
    if !watches_fork {
        libc::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
    if cache.is_some() {
        page::begin();
    }
    cache
}

/// Prepares for `fork` and for threads' ends, as the first allocation of a process does otherwise. A library that
/// stands for the C library's malloc does so before the program runs: glibc allocates while handlers are registered,
/// under a lock that a second registration on the way would wait for; and the program may take all keys.
pub(crate) fn prepare() {
    let mut threads = THREADS.lock();
    let watches_fork = core::mem::replace(&mut threads.watches_fork, true);
    if threads.key.is_none() {
        threads.key = Key::new(end);
    }
    drop(threads);
    if !watches_fork {
        libc::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
}

/// Called by the C library at a thread's end with the thread's cache.
///
/// # Safety
///
/// - `cache` is the thread's cache, as [`begin`] gave it to the key.
unsafe extern "C" fn end(cache: *mut c_void) {
    // SAFETY: The key's value is the thread's cache, and caches are never unmapped.
    let cache: &'static ThreadCache = unsafe { &*cache.cast_const().cast() };
    slot::set(slot::ended());
    cache.traffic.note_user(User::Nobody, cache.traffic.generation());
    if cache.parked.has_right() {
        stripes::for_shard(cache.shard.0).lock().bring_home(Some(&cache.parked));
    }
    cache.empty_near();
    idle::put(cache);
    shard::go_on_at_end();
}

/// Takes every lock, so that the child finds none held by a thread that it does not have. A
/// program with one thread needs few: nobody touches shards and the transfer cache without having
/// begun. Where a signal handler forks, locks that its own thread holds stay as they are: what it interrupted
/// goes on in both processes.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.thread_before_fork")]
extern "C" fn before_fork() {
    THREADS.hold();
    idle::hold_for_fork();
    // SAFETY: Held just now.
    let has_others =
        unsafe { slot::get().cache().is_none() || THREADS.held().made > 1 || idle::has_served() };
    if has_others {
        // SAFETY: As above.
        unsafe {
            idle::let_go_after_fork();
            THREADS.let_go();
        }
        // Others hold this one while they wait for memory, so it comes first.
        libc::hold_streams();
        THREADS.hold();
        idle::hold_for_fork();
    }
    owner::hold_for_fork();
    // The child's statistics take all of them, and must know whether they can.
    let holds_all = has_others || settings::statistics_page();
    if holds_all {
        shard::hold_for_fork();
        transfer::hold_for_fork();
    }
    sampling::hold_for_fork();
    guards::hold_for_fork();
    metadata::hold_for_fork();
    stripes::hold();
    settings::hold_for_fork();
    // SAFETY: Held above.
    let threads = unsafe { THREADS.held() };
    (threads.has_others, threads.holds_all) = (has_others, holds_all);
}

#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.thread_after_fork_in_parent")]
extern "C" fn after_fork_in_parent() {
    if after_fork() {
        libc::let_go_streams();
    }
    let _ = sync::has_interrupted();
}

#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.thread_after_fork_in_child")]
extern "C" fn after_fork_in_child() {
    // SAFETY: `before_fork` took the lock, in the thread that this one is a copy of.
    libc::forget_asking(unsafe { THREADS.held() }.has_others);
    // SAFETY: As above.
    unsafe { stripes::take_back_after_fork() };
    // There is no other thread here that could do the same.
    all::begin_generation();
    if let Some(cache) = slot::get().cache() {
        cache.traffic.note_user(User::Unknown, all::generation());
        cache.forget_draw();
    }
    if after_fork() {
        libc::forget_streams();
    }
    page::after_fork(!sync::has_interrupted());
}

/// Gives back what [`before_fork`] took, but for the lock of streams; whether that was taken too.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.thread_after_fork")]
fn after_fork() -> bool {
    // SAFETY: `before_fork` took these locks, in this thread or in the one it was forked from.
    unsafe {
        let threads = THREADS.held();
        let (has_others, holds_all) = (threads.has_others, threads.holds_all);
        settings::let_go_after_fork();
        stripes::let_go();
        metadata::let_go_after_fork();
        guards::let_go_after_fork();
        sampling::let_go_after_fork();
        if holds_all {
            transfer::let_go_after_fork();
            shard::let_go_after_fork();
        }
        owner::let_go_after_fork();
        idle::let_go_after_fork();
        THREADS.let_go();
        has_others
    }
}
