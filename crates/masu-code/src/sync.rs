//! Every atomic, ordering and lock of this crate comes from here, so that loom can test
//! the protocol of quiescent states (`tests/loom.rs`).

use std::sync::TryLockError;
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The lock; a thread that panicked under it left what it guards whole.
pub(crate) fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The lock, if no thread has it.
pub(crate) fn try_hold<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
