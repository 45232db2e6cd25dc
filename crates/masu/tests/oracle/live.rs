//! The live intervals: which addresses are handed out now.
//!
//! Address-ordered maps, each with its own lock, share the address space in turns of 1 MiB. The
//! hard idea: one map under one lock would make the threads take turns and hide the very races the
//! test is for. A block that spans several turns is entered as one piece in each.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;

use crate::finding::Finding;

const TURN: usize = 1 << 20;
const SHARES: usize = 64;

/// The live intervals of one allocator.
pub(crate) struct Live {
    shares: Vec<Mutex<BTreeMap<usize, usize>>>,
}

impl Live {
    /// Nothing is live.
    pub(crate) fn new() -> Live {
        Live { shares: (0..SHARES).map(|_| Mutex::default()).collect() }
    }

    /// Enters an interval; the overlap, where it shares a byte with one that is live. An interval
    /// of no bytes counts as one byte, for its address must be its own.
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
            assert_eq!(removed, Some(end), "the oracle released what it had not claimed");
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

/// Takes a lock without the standard library's code for waiting, which ThreadSanitizer cannot see: it would take
/// what one thread hands to another for a race.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(guard) => return guard,
            Err(TryLockError::WouldBlock) => thread::yield_now(),
            Err(TryLockError::Poisoned(_)) => panic!("another thread panicked"),
        }
    }
}

/// An interval cut where turns begin.
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
