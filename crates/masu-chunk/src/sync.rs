//! The atomics door: every lock, condition and atomic of this crate's protocols comes from here.
//!
//! Relies on the standard library, and on the kernel door for one fence. `tests/loom.rs` replaces it
//! by loom's, and runs the protocols of `spans.rs`, `batch.rs`, `idle.rs`, `tasks.rs`, `window.rs` and
//! `pool/seats.rs` in every interleaving. The hard part is that a lock is never poisoned: panics of
//! users' functions are caught at the call, so a panic that reaches a lock unwinds out of the job anyway.

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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until woken, with the lock released.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// The contents of a lock that is not shared any more.
pub(crate) fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Rounds of [`spin`]: some ten microseconds, about the cost of a sleep and a wake-up.
const SPINS: usize = 300;

/// Repeats `come` for a short while, until it is true.
pub(crate) fn spin(mut come: impl FnMut() -> bool) -> bool {
    for _ in 0..SPINS {
        if come() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}
