//! The atomics door: every atomic type, every ordering and every lock of this crate comes from
//! here, so that a model checker can stand behind it (`tests/loom.rs` does).
//!
//! Relies on the kernel door for sleeping. The one hard idea, a lock that sleeps in the kernel
//! without losing a wake-up, is in `sync/raw_lock.rs`.

mod count;
mod pair;
mod raw_lock;
mod table;

pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
};

use core::cell::UnsafeCell;
use core::hint::spin_loop;
use core::ops::{Deref, DerefMut};

use crate::kernel::{wait_while, wake_one};
use crate::libc;
pub(crate) use count::Count;
pub(crate) use pair::Pair;
use raw_lock::RawLock;
pub(crate) use table::Table;

/// A value that one thread at a time may touch; it sleeps in the kernel when it has to wait.
///
/// Locks are taken in one order only, the *rank*: the threads, idle caches, the list of first-class
/// heaps, what one of them owns, a class's pages in a shard, a class's transfer cache, what the
/// unwinder knows, the profile, metadata, the ranges, who set options. Nobody holds two of one
/// rank, except around `fork`.
// In this order, so that a long value's first fields lie beside the lock's word.
#[repr(C)]
pub(crate) struct Lock<T> {
    raw: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: The raw lock gives the value to one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Lock<T> {
        Lock { raw: RawLock::on(AtomicU32::new(0)), value: UnsafeCell::new(value) }
    }

    /// Waits until the value is this thread's.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if self.raw.try_acquire() { Guard { lock: self, releases: true } } else { self.lock_slow() }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) -> Guard<'_, T> {
        // The thread that forks holds the locks already; a handler of the program that runs
        // between ours may still allocate.
        if forks_now() {
            return Guard { lock: self, releases: false };
        }
        self.raw.acquire_slow();
        Guard { lock: self, releases: true }
    }

    /// Holds the lock across `fork`, beyond any scope.
    pub(crate) fn hold(&self) {
        self.raw.acquire();
    }

    /// The value while the lock is held across `fork`.
    ///
    /// # Safety
    ///
    /// - This thread, or the one it was forked from, called `hold` and not yet `let_go`, and holds
    ///   no other reference to the value.
    #[expect(clippy::mut_from_ref, reason = "the lock that is held gives the right")]
    pub(crate) unsafe fn held(&self) -> &mut T {
        // SAFETY: The caller's condition.
        unsafe { &mut *self.value.get() }
    }

    /// Ends [`Lock::hold`], in the parent and in the child.
    ///
    /// # Safety
    ///
    /// - This thread, or the one that it was forked from, called `hold` and not yet `let_go`.
    pub(crate) unsafe fn let_go(&self) {
        self.raw.release();
    }
}

/// The thread that holds every lock because it forks; 0 for none.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// Says that this thread holds every lock from here on, or no longer does.
pub(crate) fn set_forks_now(forks: bool) {
    let thread = if forks { libc::this_thread() } else { 0 };
    // ORDERING: Relaxed: only this thread, or its copy in the child, acts on its own number.
    FORKING.store(thread, Ordering::Relaxed);
}

fn forks_now() -> bool {
    // ORDERING: Relaxed, as above.
    FORKING.load(Ordering::Relaxed) == libc::this_thread()
}

/// The right to touch the value of a [`Lock`], given back when dropped.
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    /// False where the lock is held across `fork` by this very thread.
    releases: bool,
}

#[cfg(test)]
impl<T> Guard<'_, T> {
    /// Whether others went to sleep for this lock, or are about to.
    pub(crate) fn others_sleep(&self) -> bool {
        self.lock.raw.others_sleep()
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.releases {
            self.lock.raw.release();
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: The guard holds the lock, so nobody else touches the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The guard holds the lock, so nobody else touches the value.
        unsafe { &mut *self.lock.value.get() }
    }
}
