//! A lock of one word that sleeps in the kernel. The word is 0 while free, else the holder's number and flags.
//!
//! Relies on its parent module for the atomics, a pause, a number of this thread, `wait_while` / `wake_one` (a futex), and the
//! end of the program;
//! `tests/loom.rs` supplies modelled ones. The hard idea: a thread that has slept takes the lock as "held, others sleep",
//! because it cannot know whether it was the last sleeper. One needless wake-up is the price for never losing one. (U.
//! Drepper, "Futexes Are Tricky", 2011, mutex 2.)
//!
//! The holder's number is for `fork` in a signal handler, which must not wait for a lock that the interrupted thread itself
//! holds. The interrupted code continues in the parent and in the child, and releases the lock in each. A lock that `fork`
//! could not have is *lost* in the child: its holder does not exist there.

use super::{
    AtomicU32, Ordering, holder_is_lost, spin_loop, this_holder, wait_briefly, wait_while, wake_one,
};

const FREE: u32 = 0;
/// Other threads sleep for the lock, or are about to.
const OTHERS_SLEEP: u32 = 1;
/// The lock is held across a `fork`.
const HELD_FOR_FORK: u32 = 2;
/// All other bits are the holder's number.
pub(crate) const FLAGS: u32 = OTHERS_SLEEP | HELD_FOR_FORK;
/// The number that stands for a holder that does not exist in this process. No thread has it.
const LOST: u32 = 2 * (FLAGS + 1);

/// The number of tries of a waiter before it sleeps; they take about as long as a batch of blocks. Each try multiplies
/// a model checker's work.
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
    #[cfg(test)]
    pub(crate) fn acquire(&self) {
        if !self.try_acquire() {
            self.acquire_slow();
        }
    }

    /// Takes the lock if it is free; returns whether it was free.
    #[inline]
    pub(crate) fn try_acquire(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `release`: this thread sees the last holder's writes. Failure is
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
            if seen & !FLAGS == LOST {
                holder_is_lost();
            }
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

    /// Takes the lock if it is free, to hold it across `fork`; returns whether it was free. A thread that has waited
    /// may have been woken in place of another thread. It wakes that thread when it releases the lock.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.fork.raw_lock_try_hold_for_fork")]
    pub(crate) fn try_hold_for_fork(&self, has_waited: bool) -> bool {
        let is_taken = self.try_acquire();
        if is_taken {
            let flags = HELD_FOR_FORK | if has_waited { OTHERS_SLEEP } else { 0 };
            // ORDERING: Relaxed: the lock is held, and the flags guard nothing.
            self.state.fetch_or(flags, Ordering::Relaxed);
        }
        is_taken
    }

    /// Gives up after [`RawLock::wait_briefly`]. This thread may have been woken in place of another thread, so it
    /// wakes one.
    pub(crate) fn give_up(&self) {
        wake_one(&self.state);
    }

    /// Sleeps about a millisecond, or until the lock is released. The holder sees a sleeper.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.fork.raw_lock_wait_briefly")]
    pub(crate) fn wait_briefly(&self) {
        // ORDERING: Relaxed in both: taking the lock afterwards acquires.
        let seen = self.state.load(Ordering::Relaxed);
        if seen == FREE {
            return;
        }
        let next = seen | OTHERS_SLEEP;
        if self.state.compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            wait_briefly(&self.state, next);
        }
    }

    /// Ends [`RawLock::try_hold_for_fork`], in the parent and in the child. Returns whether this thread held the lock
    /// across `fork`; if not, does nothing.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.fork.raw_lock_let_go_after_fork")]
    pub(crate) fn let_go_after_fork(&self) -> bool {
        let is_held = self.is_held_for_fork();
        if is_held {
            self.release();
        }
        is_held
    }

    /// The same in the child, where the lock of a thread that does not exist is lost. Returns whether the lock is free now.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.fork.raw_lock_let_go_in_child")]
    pub(crate) fn let_go_in_child(&self) -> bool {
        self.let_go_after_fork();
        if !self.is_free() && !self.is_this_threads() {
            // ORDERING: Relaxed: there is one thread.
            self.state.store(LOST, Ordering::Relaxed);
        }
        self.is_free()
    }

    /// Whether this thread holds the lock, across a `fork` or in code that a signal interrupted.
    pub(crate) fn is_this_threads(&self) -> bool {
        // ORDERING: Relaxed: only this thread writes its own number.
        self.state.load(Ordering::Relaxed) & !FLAGS == this_holder()
    }

    /// Whether this thread holds the lock across a `fork`.
    pub(crate) fn is_held_for_fork(&self) -> bool {
        // ORDERING: Relaxed, as above.
        self.state.load(Ordering::Relaxed) & !OTHERS_SLEEP == this_holder() | HELD_FOR_FORK
    }

    /// Whether this thread holds the lock in code that a signal interrupted.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_this_threads() && !self.is_held_for_fork()
    }

    /// Whether no thread holds the lock. The answer may be out of date at once.
    pub(crate) fn is_free(&self) -> bool {
        // ORDERING: Relaxed, as above.
        self.state.load(Ordering::Relaxed) == FREE
    }

    /// Whether threads went to sleep for the lock, or are about to, since it was taken.
    pub(crate) fn has_sleepers(&self) -> bool {
        // ORDERING: Relaxed: the answer may be out of date at once.
        self.state.load(Ordering::Relaxed) & OTHERS_SLEEP != 0
    }

    /// Releases the lock and wakes one sleeper if there may be one.
    #[inline]
    pub(crate) fn release(&self) {
        // ORDERING: Release publishes this holder's writes to the next holder's Acquire.
        if self.state.swap(FREE, Ordering::Release) & OTHERS_SLEEP != 0 {
            wake_one(&self.state);
        }
    }

    /// The same out of line, for callers with long work.
    // `extern "C"`, as elsewhere: callers are compiled apart and know by it that it does not unwind, so they are shorter.
    #[cold]
    #[inline(never)]
    pub(crate) extern "C" fn release_slow(&self) {
        self.release();
    }
}
