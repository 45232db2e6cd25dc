//! Panics that are tested, and not printed.

use std::panic;
use std::sync::Mutex;

/// Runs without printing panics.
pub(crate) fn quietly<R>(body: impl FnOnce() -> R) -> R {
    static QUIET: Mutex<()> = Mutex::new(());
    let _one = QUIET.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let before = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = body();
    panic::set_hook(before);
    result
}
