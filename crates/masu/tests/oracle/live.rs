//! The intervals of live addresses, and the other data that the walkers share.
//!
//! Address-ordered maps, each with its own lock, divide the address space in turns of 1 MiB. The hard
//! idea: one lock for all would serialize the threads and hide the races that the test looks for. A
//! block that spans several turns is entered in pieces.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread::{self, ScopedJoinHandle};

use crate::finding::Finding;

const TURN: usize = 1 << 20;
const SHARES: usize = 64;

/// The live intervals of one allocator.
pub(crate) struct Live {
    shares: Vec<Mutex<BTreeMap<usize, usize>>>,
}

impl Live {
    pub(crate) fn new() -> Live {
        Live { shares: (0..SHARES).map(|_| Mutex::default()).collect() }
    }

    /// Enters an interval, unless it overlaps a live one. An empty interval counts as one byte, because
    /// its address must be unique.
    pub(crate) fn claim(&self, start: usize, length: usize) -> Result<(), Finding> {
        for (start, end) in pieces(start, length) {
            let mut share = self.share(start);
            let before = share.range(..end).next_back().map(|(&s, &e)| (s, e));
            if let Some((other_start, other_end)) = before
                && other_end > start
            {
                return Err(Finding::Overlap { start, end, other_start, other_end });
            }
            share.insert(start, end);
        }
        Ok(())
    }

    /// Removes an interval that [`Live::claim`] entered.
    pub(crate) fn release(&self, start: usize, length: usize) {
        for (start, end) in pieces(start, length) {
            let removed = self.share(start).remove(&start);
            assert_eq!(removed, Some(end), "released an interval that was not claimed");
        }
    }

    /// Whether nothing is live.
    pub(crate) fn is_empty(&self) -> bool {
        self.shares.iter().all(|share| lock(share).is_empty())
    }

    fn share(&self, address: usize) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        lock(&self.shares[address / TURN % SHARES])
    }
}

/// Takes a lock without the standard library's waiting code, which ThreadSanitizer cannot see and would report as
/// a race.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::WouldBlock) => thread::yield_now(),
            Err(TryLockError::Poisoned(_)) => panic!("another thread panicked"),
        }
    }
}

/// A bound on live bytes.
pub(crate) struct Budget {
    live: AtomicUsize,
    most: usize,
}

impl Budget {
    pub(crate) fn new(live: usize, most: usize) -> Budget {
        Budget { live: AtomicUsize::new(live), most }
    }

    /// Takes bytes, if that many are left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        // ORDERING: Relaxed: the count guards no memory.
        let before = self.live.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= self.most;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        // ORDERING: Relaxed, as above.
        self.live.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Joins a thread, and passes its panic on.
pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// An interval cut at multiples of [`TURN`].
fn pieces(start: usize, length: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = start + length.max(1);
    let turns = start / TURN..=(end - 1) / TURN;
    turns.map(move |turn| (start.max(turn * TURN), end.min((turn + 1) * TURN)))
}

#[test]
fn an_interval_that_shares_one_byte_with_a_live_one_is_found() {
    let live = Live::new();
    assert_eq!(live.claim(10 * TURN - 64, 5 * TURN), Ok(()));
    assert_eq!(live.claim(15 * TURN - 64, 16), Ok(()));
    assert_eq!(live.claim(10 * TURN - 80, 16), Ok(()));
    for (start, length) in [
        (10 * TURN - 65, 2),
        (15 * TURN - 65, 1),
        (12 * TURN, 0),
        (9 * TURN, 8 * TURN),
        (15 * TURN - 64, 16),
    ] {
        assert!(matches!(live.claim(start, length), Err(Finding::Overlap { .. })), "{start:#x}");
    }
}
