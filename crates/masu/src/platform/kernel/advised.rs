//! Counts of advice: memory purged, and memory for which huge pages were requested.
//!
//! Relies on the door's `advise`, which all advice passes. Beside a system call an atomic addition costs nothing.

use super::{Advice, Errno};
use crate::platform::atomics::{AtomicUsize, Ordering};

/// Counts since the start of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Advised {
    /// Calls that purged, and their bytes.
    pub(crate) purges: usize,
    pub(crate) purged_bytes: usize,
    /// Purges that the kernel refused.
    pub(crate) refused_purges: usize,
    /// Bytes for which huge pages were requested.
    pub(crate) huge_page_bytes: usize,
}

/// On their own cache line, apart from words that are only read.
#[repr(align(64))]
struct Counts {
    purges: AtomicUsize,
    purged_bytes: AtomicUsize,
    refused_purges: AtomicUsize,
    huge_page_bytes: AtomicUsize,
}

static COUNTS: Counts = Counts {
    purges: AtomicUsize::new(0),
    purged_bytes: AtomicUsize::new(0),
    refused_purges: AtomicUsize::new(0),
    huge_page_bytes: AtomicUsize::new(0),
};

/// Counts advice and its outcome.
#[inline]
pub(super) fn count(advice: Advice, length: usize, done: Result<(), Errno>) {
    #[cfg(test)]
    if advice == Advice::DontNeed {
        here::count(length);
    }
    // ORDERING: Relaxed in this file: counts publish nothing.
    match (advice, done) {
        (Advice::DontNeed, Ok(())) => {
            COUNTS.purges.fetch_add(1, Ordering::Relaxed);
            COUNTS.purged_bytes.fetch_add(length, Ordering::Relaxed);
        }
        (Advice::DontNeed, Err(_)) => {
            COUNTS.refused_purges.fetch_add(1, Ordering::Relaxed);
        }
        (Advice::HugePage, Ok(())) => {
            COUNTS.huge_page_bytes.fetch_add(length, Ordering::Relaxed);
        }
        _ => {}
    }
}

/// The counts now.
pub(crate) fn advised() -> Advised {
    // ORDERING: Relaxed, as above.
    let load = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    Advised {
        purges: load(&COUNTS.purges),
        purged_bytes: load(&COUNTS.purged_bytes),
        refused_purges: load(&COUNTS.refused_purges),
        huge_page_bytes: load(&COUNTS.huge_page_bytes),
    }
}

/// Calls and bytes that this thread purged, for tests.
#[cfg(test)]
pub(crate) fn advised_here() -> (usize, usize) {
    here::GIVEN_BACK.get()
}

#[cfg(test)]
mod here {
    extern crate std;

    use core::cell::Cell;

    std::thread_local! {
        pub(super) static GIVEN_BACK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
    }

    pub(super) fn count(length: usize) {
        let (calls, bytes) = GIVEN_BACK.get();
        GIVEN_BACK.set((calls + 1, bytes + length));
    }
}
