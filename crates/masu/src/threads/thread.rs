//! Threads' start and end: a cache at the first slow call, which an ended thread leaves to the next one or empties.
//!
//! Relies on the C library for a destructor at a thread's end. The order there is the hard part: other destructors may free
//! and even allocate after masu's ran. So an ended thread's slot holds inert stacks in the state `Ended`; its later blocks
//! come from pages and return to them one by one, and it never gets a cache again. (A thread that first allocates in the last
//! round of its destructors leaves its cache behind: the C library does not call masu's destructor any more.)

use core::ffi::c_void;
use core::ptr;

use crate::blocks::{shard, slot};
use crate::diagnostics::sampling;
use crate::memory::ranges::stripes;
use crate::platform::environment::Environment;
use crate::platform::libc::{self, Key};
use crate::settings;
pub(crate) use crate::threads::cache::all::apply_guard_rate;
use crate::threads::cache::all::{self, THREADS, Threads};
use crate::threads::cache::{ThreadCache, User, idle};
use crate::threads::fork;
use crate::threads::statistics::page;

/// This thread's cache, made if it has none yet. `None` without memory, or where the thread has ended.
pub(crate) fn cache() -> Option<&'static ThreadCache> {
    let stacks = slot::get();
    if stacks.state() == slot::State::Empty { start() } else { stacks.cache() }
}

/// Reads the variables if that was not done before, and applies them.
pub(crate) fn read_options_once() {
    if let Some(environment) = settings::read_once() {
        apply(&environment);
    }
}

/// The same for a given environment.
pub(crate) fn read_variables(environment: &Environment) {
    if settings::read(environment) {
        apply(environment);
    }
}

fn apply(environment: &Environment) {
    if sampling::is_requested(environment) && all::start_profile(None).is_ok() {
        libc::at_exit(sampling::end);
    }
    apply_guard_rate();
    settings::report();
}

#[cold]
fn start() -> Option<&'static ThreadCache> {
    read_options_once();
    apply_guard_rate();
    // A profile that a variable starts makes this thread's cache.
    if let Some(begun) = slot::get().cache() {
        return Some(begun);
    }
    all::note_start();
    let (cache, watches_fork) = match idle::take() {
        Some(idle) => (Some(idle), true),
        None => make(),
    };
    if let Some(cache) = cache {
        slot::set(&cache.stacks);
        cache.traffic.note_user(User::Unknown, all::generation());
        // The thread has its cache now, so the C library may allocate in this call, and in the one below.
        if let Some(key) = cache.key() {
            key.set(ptr::from_ref(cache).cast());
        }
        cache.notice_profile();
    } else {
        // It tries again with its next call, and is counted again then.
        all::note_end();
    }
    // Even without memory for a cache: requests that fail take locks, which a child must not find taken.
    if !watches_fork {
        fork::watch();
    }
    if cache.is_some() {
        page::begin();
    }
    cache
}

/// A new cache, if there is memory for it; and whether the handlers of `fork` are registered, which the caller does otherwise.
#[inline(never)]
fn make() -> (Option<&'static ThreadCache>, bool) {
    let mut threads = THREADS.lock();
    let watches_fork = register(&mut threads);
    let key = threads.key;
    (threads.make(key), watches_fork)
}

/// Makes the key that notices the end of threads. Returns whether the handlers of `fork` are registered; the caller registers
/// them otherwise, without the lock.
fn register(threads: &mut Threads) -> bool {
    if threads.key.is_none() {
        threads.key = Key::new(end);
    }
    core::mem::replace(&mut threads.watches_fork, true)
}

/// Registers the handlers of `fork` and of thread exit, which the first allocation does otherwise. A library that replaces
/// the C library's malloc calls this before the program runs: glibc allocates while handlers are registered, under a lock
/// that a nested registration would wait for; and the program may use up all keys.
pub(crate) fn prepare() {
    let watches_fork = register(&mut THREADS.lock());
    if !watches_fork {
        fork::watch();
    }
}

/// The destructor of a thread's cache, called by the C library at the thread's end.
///
/// # Safety
///
/// - `cache` is the thread's cache, as [`start`] gave it to the key.
unsafe extern "C" fn end(cache: *mut c_void) {
    // SAFETY: The key's value is the thread's cache, and caches are never unmapped.
    let cache: &'static ThreadCache = unsafe { &*cache.cast_const().cast() };
    slot::set(slot::ended());
    cache.traffic.note_user(User::Nobody, cache.traffic.generation());
    if cache.parked.has_right() {
        stripes::for_thread(cache.number).lock().bring_home(Some(&cache.parked));
    }
    cache.flush_heaps();
    idle::put(cache);
    all::note_end();
    shard::purge_steps_at_exit();
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use super::*;
    use crate::memory::metadata;
    use crate::options;
    use crate::platform::alone::{self, run_alone};

    #[test]
    fn a_thread_without_a_cache_is_not_counted() {
        run_alone!();
        assert!(cache().is_some());
        options::set("memory_limit", Some(1 << 20)).expect("an option");
        for words in [metadata::WORDS_MAX, metadata::WORDS_MIN] {
            while metadata::words(words).is_some() {}
        }
        let before = all::threads();
        let calls = std::thread::spawn(|| (0..100).all(|_| cache().is_none()));
        assert!(calls.join().expect("it ends"), "there is no memory for a cache");
        assert_eq!(all::threads(), before);
    }
}
