//! The atomics door: every lock, condition and atomic of this crate's protocols comes from here.
//!
//! Relies on the standard library, and on the kernel door for one fence; `tests/loom.rs` puts a door
//! with loom's in its place, which runs the protocols of `spans.rs`, `batch.rs`, `idle.rs`, `window.rs` and
//! `pool/seats.rs` in every interleaving.
//! The one hard idea is that a lock is never poisoned: what users' functions do is caught where
//! they are called, so a panic that reaches a lock unwinds out of the job anyway.

pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;
use std::sync::atomic::compiler_fence;

pub(crate) use crate::kernel::barrier_everywhere as heavy_fence;

/// The cheap side of a store-load pair: it costs nothing, because the thread on the other side
/// ([`heavy_fence`]) passes a full fence for both.
#[inline(always)]
pub(crate) fn light_fence() {
    // ORDERING: SeqCst for the compiler alone; it pairs with `heavy_fence`, which is one for this CPU too.
    compiler_fence(Ordering::SeqCst);
}

/// Takes the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until woken, without the lock.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// What a lock holds that nobody shares any more.
pub(crate) fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Rounds of [`spin`]: some ten microseconds, about what going to sleep and being woken costs.
const SPINS: usize = 300;

/// Tries again and again, for a short while, until something comes true.
pub(crate) fn spin(mut come: impl FnMut() -> bool) -> bool {
    for _ in 0..SPINS {
        if come() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}
