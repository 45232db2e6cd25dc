//! The atomics door, with loom's types behind it.

pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap()
}

/// Once is as good as often, for loom tries everything that can happen meanwhile.
pub(crate) fn spin(mut come: impl FnMut() -> bool) -> bool {
    come()
}
