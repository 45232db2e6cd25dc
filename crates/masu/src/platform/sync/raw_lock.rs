//! A lock of one word that sleeps in the kernel. The word is 0 while free, else the holder's number and flags.
//!
//! Relies on its parent module for the atomics, a pause, a number of this thread, and `wait_while` / `wake_one` (a futex);
//! `tests/loom.rs` supplies modelled ones. The hard idea: a thread that has slept takes the lock as "held, others sleep",
//! because it cannot know whether it was the last sleeper. One needless wake-up is the price for never losing one. (U.
//! Drepper, "Futexes Are Tricky", 2011, mutex 2.)
//!
//! The holder's number is for `fork` in a signal handler, which must not wait for a lock that the interrupted thread itself
//! holds. The interrupted code continues in the parent and in the child, and releases the lock in each.

use super::{AtomicU32, Ordering, spin_loop, this_holder, wait_while, wake_one};

const FREE: u32 = 0;
/// Other threads sleep for the lock, or are about to.
const OTHERS_SLEEP: u32 = 1;
/// The lock is held across a `fork`.
const HELD_FOR_FORK: u32 = 2;
/// All other bits are the holder's number.
pub(crate) const FLAGS: u32 = OTHERS_SLEEP | HELD_FOR_FORK;

/// How often a waiter tries again before it sleeps: about as long as a batch of blocks takes. Each try multiplies a model
/// checker's work.
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// The lock without a value; [`super::Lock`] adds one.
pub(crate) struct RawLock {
    /// Accessed by any thread, at any time.
    state: AtomicU32,
}

impl RawLock {
    /// The lock on a word that is 0. The caller makes the word, because a model checker's is not `const`.
    pub(crate) const fn on(word: AtomicU32) -> RawLock {
        RawLock { state: word }
    }

    /// Takes the lock, waiting if needed.
    #[inline]
    pub(crate) fn acquire(&self) {
        if !self.try_acquire() {
            self.acquire_slow();
        }
    }

    /// Takes the lock if it is free; whether it was.
    #[inline]
    pub(crate) fn try_acquire(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `release`: this thread sees what the last holder wrote. Failure is
        // Relaxed because the slow path tries again.
        let held = this_holder();
        self.state.compare_exchange(FREE, held, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits for the lock and takes it.
    #[cold]
    #[inline(never)]
    pub(crate) fn acquire_slow(&self) {
        for _ in 0..SPINS {
            // ORDERING: Relaxed: the exchange in `try_acquire` orders.
            if self.state.load(Ordering::Relaxed) == FREE && self.try_acquire() {
                return;
            }
            spin_loop();
        }
        let mut seen = FREE;
        loop {
            let next = if seen == FREE { this_holder() } else { seen } | OTHERS_SLEEP;
            // ORDERING: Acquire as in `try_acquire`. Where the lock is held this announces the sleeper before it sleeps,
            // and the kernel compares the word again under its own lock.
            match self.state.compare_exchange(seen, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(FREE) => return,
                Ok(_) => {
                    wait_while(&self.state, next);
                    seen = FREE;
                }
                Err(changed) => seen = changed,
            }
        }
    }

    /// Takes the lock to hold it across `fork`, waiting if another thread holds it; whether it was taken. A lock that this
    /// thread holds already, in code that a signal interrupted, stays as it is.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.fork.raw_lock_hold_for_fork")]
    pub(crate) fn hold_for_fork(&self) -> bool {
        // ORDERING: Relaxed: only this thread writes its own number.
        if self.state.load(Ordering::Relaxed) & !FLAGS == this_holder() {
            return false;
        }
        self.acquire();
        // ORDERING: Relaxed: only this thread, or its copy in the child, acts on the flag.
        self.state.fetch_or(HELD_FOR_FORK, Ordering::Relaxed);
        true
    }

    /// Ends [`RawLock::hold_for_fork`], in the parent and in the child. Does nothing if that did not take the lock.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.fork.raw_lock_let_go_after_fork")]
    pub(crate) fn let_go_after_fork(&self) {
        // ORDERING: Relaxed, as above.
        if self.state.load(Ordering::Relaxed) & HELD_FOR_FORK != 0 {
            self.release();
        }
    }

    /// Whether this thread holds the lock across a `fork`.
    pub(crate) fn is_held_for_fork(&self) -> bool {
        // ORDERING: Relaxed, as above.
        self.state.load(Ordering::Relaxed) & !OTHERS_SLEEP == this_holder() | HELD_FOR_FORK
    }

    /// Whether threads went to sleep for the lock, or are about to, since it was taken.
    #[cfg(test)]
    #[cfg_attr(loom, allow(dead_code, reason = "`tests/loom.rs` has no use for it"))]
    pub(crate) fn has_sleepers(&self) -> bool {
        // ORDERING: Relaxed: the answer may be out of date at once.
        self.state.load(Ordering::Relaxed) & OTHERS_SLEEP != 0
    }

    /// Releases the lock and wakes one sleeper if there may be one.
    #[inline]
    pub(crate) fn release(&self) {
        // ORDERING: Release publishes what this holder wrote to the next one's Acquire.
        if self.state.swap(FREE, Ordering::Release) & OTHERS_SLEEP != 0 {
            wake_one(&self.state);
        }
    }
    /// The same out of line, for callers with long work.
    #[cold]
    #[inline(never)]
    pub(crate) fn release_slow(&self) {
        self.release();
    }
}
