//! Idle caches: their threads have ended, and they serve threads that start.
//!
//! Relies on the caches to flush their blocks. A program that starts a thread for each piece of work would otherwise fetch
//! blocks from pages for every thread and return them at its end. So an ended thread's cache stays *warm*, with all its
//! blocks, and the next thread continues with it. The hard idea is the bound, because blocks that are never fetched keep
//! pages: all warm caches together hold at most one live cache's budget, and are emptied when a class's pages turn out to be
//! sparse.

use super::ThreadCache;
#[cfg(debug_assertions)]
use super::User;
use super::depth::budget;
use crate::platform::sync::{Lock, Visit};

/// The caches without a thread.
struct Idle {
    /// Caches with blocks, the one that ended last first.
    warm: Option<&'static ThreadCache>,
    /// Bytes of their blocks.
    warm_bytes: usize,
    empty: Option<&'static ThreadCache>,
}

// SAFETY: A cache without a thread is touched only by the thread that took it out of here under the lock.
unsafe impl Send for Idle {}

static IDLE: Lock<Idle> = Lock::new(Idle { warm: None, warm_bytes: 0, empty: None });

/// A cache for a thread that starts, if there is one without a thread.
pub(crate) fn take() -> Option<&'static ThreadCache> {
    let cache = take_any()?;
    cache.update_share(0);
    Some(cache)
}

fn take_any() -> Option<&'static ThreadCache> {
    let mut idle = IDLE.lock();
    match idle.warm {
        Some(warm) => {
            idle.warm = warm.next_idle.take();
            idle.warm_bytes -= warm.idle_bytes.get();
            Some(warm)
        }
        None => {
            let empty = idle.empty?;
            idle.empty = empty.next_idle.take();
            Some(empty)
        }
    }
}

/// Takes the cache of a thread that ends.
pub(crate) fn put(cache: &'static ThreadCache) {
    // Blocks of other lanes are of no use to the next thread.
    cache.empty_remote();
    let bytes = cache.kept_bytes();
    if bytes > 0 && keep_warm(cache, bytes) {
        return;
    }
    put_empty(cache);
}

/// Empties a cache and keeps it for a thread that starts.
fn put_empty(cache: &'static ThreadCache) {
    cache.close();
    let mut idle = IDLE.lock();
    cache.next_idle.set(idle.empty);
    idle.empty = Some(cache);
}

/// Keeps a cache with its `bytes` of blocks, unless that exceeds the budget.
fn keep_warm(cache: &'static ThreadCache, bytes: usize) -> bool {
    let mut idle = IDLE.lock();
    let all_bytes = idle.warm_bytes + bytes;
    if all_bytes > budget::of_few() {
        return false;
    }
    idle.warm_bytes = all_bytes;
    cache.idle_bytes.set(bytes);
    cache.next_idle.set(idle.warm);
    idle.warm = Some(cache);
    true
}

/// Empties all warm caches.
#[cold]
pub(crate) fn empty_warm() {
    let mut idle = IDLE.lock();
    // Detached as a whole: emptying one may call this again, which then finds none.
    let mut warm = idle.warm.take();
    idle.warm_bytes = 0;
    drop(idle);
    while let Some(cache) = warm {
        warm = cache.next_idle.take();
        put_empty(cache);
    }
}

/// Checks the caches without a thread. No other thread uses masu.
#[cfg(debug_assertions)]
pub(crate) fn audit() {
    let idle = IDLE.lock();
    let from = |first: Option<&'static ThreadCache>| {
        core::iter::successors(first, |cache| cache.next_idle.get())
    };
    assert!(from(idle.warm).all(|cache| cache.idle_bytes.get() == cache.kept_bytes()));
    let bytes = from(idle.warm).map(|cache| cache.idle_bytes.get()).sum::<usize>();
    assert_eq!(idle.warm_bytes, bytes, "bytes of warm caches");
    assert!(from(idle.empty).all(|cache| cache.kept_bytes() == 0));
    assert!(from(idle.warm).chain(from(idle.empty)).all(|it| it.traffic.user() == User::Nobody));
}

/// Visits this module's lock, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    visit.see(IDLE.raw());
}
