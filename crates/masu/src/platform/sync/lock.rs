//! The lock: a value that one thread at a time may touch.
//!
//! Relies on its parent module for the atomics and the cell, and on `platform/sync/raw_lock.rs` for the waiting. The models
//! of `tests/models` run this file unchanged.

use core::ops::{Deref, DerefMut};

use super::raw_lock::{FLAGS, RawLock};
use super::{AtomicU32, UnsafeCell};
use crate::platform::kernel;

/// A value that one thread at a time may touch; waiting threads sleep in the kernel.
///
/// Locks are taken in the order of their *rank*: the threads, idle caches, the list of first-class heaps, the pages and
/// large blocks of one heap, a class's pages in a shard, a class's transfer cache, the unwinder's cache of rules, the
/// profile, the guards' ring, metadata, the arenas' growth, the ranges, the options' sources, the key of random
/// numbers. No thread holds two locks of one rank, except around `fork`.
///
/// `SHARED` says whether threads with nothing in common may wait for it. No slow system call is made while such a lock is
/// held; debug builds check that with [`kernel::no_lock_is_held`].
// `repr(C)`, so that a long value's first fields lie beside the lock's word.
#[repr(C)]
pub(crate) struct Lock<T, const SHARED: bool = true> {
    raw: RawLock,
    value: UnsafeCell<T>,
}

// SAFETY: The raw lock gives the value to one thread at a time.
unsafe impl<T: Send, const SHARED: bool> Sync for Lock<T, SHARED> {}

impl<T, const SHARED: bool> Lock<T, SHARED> {
    pub(crate) const fn new(value: T) -> Lock<T, SHARED> {
        Lock { raw: RawLock::on(AtomicU32::new(0)), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T, SHARED> {
        if self.raw.try_acquire() { self.acquired() } else { self.lock_slow() }
    }

    /// Takes the lock, if no thread holds it.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T, SHARED>> {
        self.raw.try_acquire().then(|| self.acquired())
    }

    #[inline(always)]
    fn acquired(&self) -> Guard<'_, T, SHARED> {
        if SHARED {
            kernel::note_lock(true);
        }
        Guard { lock: self, releases: true }
    }

    #[cold]
    #[inline(never)]
    fn lock_slow(&self) -> Guard<'_, T, SHARED> {
        // This thread holds the lock across `fork`, and another library's fork handler may allocate now.
        if self.raw.is_held_for_fork() {
            return Guard { lock: self, releases: false };
        }
        self.raw.acquire_slow();
        self.acquired()
    }

    /// The lock without its value, for `fork`.
    pub(crate) fn raw(&self) -> &RawLock {
        &self.raw
    }

    /// Whether this thread, or the thread of the parent that it is a copy of, holds the lock across `fork`.
    pub(crate) fn is_held_for_fork(&self) -> bool {
        self.raw.is_held_for_fork()
    }

    /// The value, while the lock is held across `fork`. After an interruption it may be half changed.
    ///
    /// # Safety
    ///
    /// - This thread, or the thread that it was forked from, holds the lock, and has no other reference to the value
    ///   while it uses this one.
    #[expect(clippy::mut_from_ref, reason = "the lock that is held gives the right")]
    pub(crate) unsafe fn held(&self) -> &mut T {
        // SAFETY: The caller's condition.
        unsafe { &mut *self.value.get() }
    }
}

/// A number for this thread, not 0 and without [`FLAGS`]. Its copy in a forked child has the same.
///
/// It is made of the thread pointer. No OS page holds that data of two threads: it lies at the end of each thread's stack.
/// Threads whose pointers are a multiple of 2 TiB apart may share a number, which matters only where one of them holds a
/// lock while the other forks.
#[inline(always)]
pub(crate) fn this_holder() -> u32 {
    const OS_PAGE_SHIFT: u32 = 12;
    const NOT_0: u32 = FLAGS + 1;
    let page_shift = NOT_0.trailing_zeros() + 1;
    let number = (kernel::thread_pointer() >> (OS_PAGE_SHIFT - page_shift)) as u32;
    number & !(FLAGS | NOT_0) | NOT_0
}

/// The right to touch the value of a [`Lock`], which its drop releases.
pub(crate) struct Guard<'a, T, const SHARED: bool = true> {
    lock: &'a Lock<T, SHARED>,
    /// False where this thread holds the lock across `fork`.
    releases: bool,
}

impl<T, const SHARED: bool> Guard<'_, T, SHARED> {
    /// Runs `work` without the lock; other threads may have changed the value when it returns.
    #[inline]
    pub(crate) fn unlocked<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.pause();
        let result = work();
        self.resume();
        result
    }

    #[inline(never)]
    extern "C" fn pause(&self) {
        if self.releases {
            if SHARED {
                kernel::note_lock(false);
            }
            self.lock.raw.release_slow();
        }
    }

    #[inline(never)]
    extern "C" fn resume(&self) {
        if self.releases {
            self.lock.raw.acquire_slow();
            if SHARED {
                kernel::note_lock(true);
            }
        }
    }

    #[inline(always)]
    fn release(&self) {
        if self.releases {
            if SHARED {
                kernel::note_lock(false);
            }
            self.lock.raw.release();
        }
    }
}

#[cfg(test)]
impl<T, const SHARED: bool> Guard<'_, T, SHARED> {
    /// Whether a thread sleeps for this lock, or is about to.
    pub(crate) fn has_sleepers(&self) -> bool {
        self.lock.raw.has_sleepers()
    }
}

impl<T, const SHARED: bool> Drop for Guard<'_, T, SHARED> {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}

impl<T, const SHARED: bool> Deref for Guard<'_, T, SHARED> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: The guard holds the lock, so no other thread touches the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, const SHARED: bool> DerefMut for Guard<'_, T, SHARED> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The guard holds the lock, so no other thread touches the value.
        unsafe { &mut *self.lock.value.get() }
    }
}
