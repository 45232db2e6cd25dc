//! A lock of one word that sleeps in the kernel: free, held, or held while others sleep.
//!
//! Relies on its parent module for the atomics, for a pause, and for `wait_while` / `wake_one`
//! (a futex); `tests/loom.rs` gives it modelled ones. The hard idea: whoever has slept takes the
//! lock as "held, others sleep", because it cannot know whether it was the last sleeper. One
//! needless wake-up is the price for never losing one. (After U. Drepper, "Futexes Are Tricky",
//! 2011, mutex 2.)

use super::{AtomicU32, Ordering, spin_loop, wait_while, wake_one};

const FREE: u32 = 0;
const HELD: u32 = 1;
const HELD_OTHERS_SLEEP: u32 = 2;

/// How often a waiter looks again before it sleeps: about the time a batch of blocks takes. Each
/// look multiplies a model checker's work.
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// The lock without a value; [`super::Lock`] holds one.
pub(crate) struct RawLock {
    /// Any thread, at any time.
    state: AtomicU32,
}

impl RawLock {
    /// The lock on a word that is 0. The caller makes the word, for a model checker's is not
    /// `const`.
    pub(crate) const fn on(word: AtomicU32) -> RawLock {
        RawLock { state: word }
    }

    /// Takes the lock, waiting for it where it must.
    #[inline]
    pub(crate) fn acquire(&self) {
        if !self.try_acquire() {
            self.acquire_slow();
        }
    }

    /// Takes the lock if it is free; whether it was.
    #[inline]
    pub(crate) fn try_acquire(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `release`: what the last holder wrote is
        // seen. Failure is Relaxed because the slow path looks again.
        self.state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits for the lock and takes it.
    #[cold]
    #[inline(never)]
    pub(crate) fn acquire_slow(&self) {
        for _ in 0..SPINS {
            // ORDERING: Relaxed, for this is only a look; the exchange below orders.
            if self.state.load(Ordering::Relaxed) == FREE && self.try_acquire() {
                return;
            }
            spin_loop();
        }
        // ORDERING: Acquire as in `acquire`; the swap also announces the sleeper before it sleeps,
        // and the kernel compares the word again under its own lock.
        while self.state.swap(HELD_OTHERS_SLEEP, Ordering::Acquire) != FREE {
            wait_while(&self.state, HELD_OTHERS_SLEEP);
        }
    }

    /// Whether others went to sleep for the lock, or are about to, since it was taken.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn others_sleep(&self) -> bool {
        // ORDERING: Relaxed: it is only a look.
        self.state.load(Ordering::Relaxed) == HELD_OTHERS_SLEEP
    }

    /// Gives the lock back and wakes one sleeper where there may be one.
    #[inline]
    pub(crate) fn release(&self) {
        // ORDERING: Release publishes what this holder wrote to the next one's Acquire.
        if self.state.swap(FREE, Ordering::Release) == HELD_OTHERS_SLEEP {
            wake_one(&self.state);
        }
    }
}
