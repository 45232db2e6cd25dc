//! Counts the shared locks that each thread holds, in debug builds, to check that no slow system call is made under one.
//!
//! Relies on locks to report when they are taken and released, and on the thread pointer to identify threads. Thread-local
//! storage is not available here, so counts are in a hash table; a thread that finds no place in it is not checked.

use super::thread_pointer;
use crate::platform::atomics::{AtomicUsize, Ordering};

const PLACES: usize = 512;
const TRIES: usize = 8;

struct Place {
    thread: AtomicUsize,
    /// Written by this thread only.
    locks: AtomicUsize,
}

static THREADS: [Place; PLACES] =
    [const { Place { thread: AtomicUsize::new(0), locks: AtomicUsize::new(0) } }; PLACES];

/// This thread's count; `None` where it has no place.
fn count() -> Option<&'static AtomicUsize> {
    let this = thread_pointer();
    let first = (this >> 12).wrapping_mul(0x9e37_79b9) >> 8;
    let place = (0..TRIES).map(|more| &THREADS[(first + more) % PLACES]).find(|place| {
        // ORDERING: Relaxed on both: a thread acts only on its own number.
        let owner = place.thread.load(Ordering::Relaxed);
        let takes = || place.thread.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed);
        owner == this || (owner == 0 && takes().is_ok())
    });
    place.filter(|_| this != 0).map(|place| &place.locks)
}

/// Counts one lock more, or one less.
pub(super) fn note(takes: bool) {
    if let Some(count) = count() {
        // ORDERING: Relaxed: only this thread reads it.
        let held = count.load(Ordering::Relaxed);
        let now = if takes { held + 1 } else { held.saturating_sub(1) };
        // ORDERING: As above.
        count.store(now, Ordering::Relaxed);
    }
}

/// The number of shared locks that this thread holds.
pub(super) fn held_by_this_thread() -> usize {
    // ORDERING: Relaxed, as above.
    count().map_or(0, |count| count.load(Ordering::Relaxed))
}
