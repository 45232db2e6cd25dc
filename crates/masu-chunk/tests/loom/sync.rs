//! The atomics door, with loom's types behind it.

pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

use std::cell::Cell;

thread_local! {
    /// Whether the system refuses a fence for others. Loom's threads are all one of the system's.
    pub(crate) static REFUSES: Cell<bool> = const { Cell::new(false) };
}

pub(crate) fn light_fence() {
    fence(Ordering::SeqCst);
}

/// Returns `false` if the system refuses the fence. Then there is none here either, because no thread may rely on it.
pub(crate) fn heavy_fence() -> bool {
    let refuses = REFUSES.get();
    if !refuses {
        fence(Ordering::SeqCst);
    }
    !refuses
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap()
}

/// One call is enough, because loom tries everything that can happen in that time.
pub(crate) fn spin(mut come: impl FnMut() -> bool) -> bool {
    come()
}
