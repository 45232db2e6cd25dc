//! Turns of tests that compare sums over the process.
//!
//! It relies on `/proc` for the list of threads. The hard idea is the end of a turn: a test's thread flushes its cache
//! after the test has returned, so the next test waits until that thread is gone.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, thread};

/// The right to be alone, until it is dropped.
pub(crate) struct Turn(#[expect(dead_code, reason = "held")] MutexGuard<'static, Option<PathBuf>>);

/// Keeps the other tests waiting, so that counts over the process are this test's.
pub(crate) fn alone() -> Turn {
    static LAST: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let link = fs::read_link("/proc/thread-self").expect("proc is mounted");
    let this = Path::new("/proc").join(link);
    while last.as_ref().is_some_and(|last| *last != this && last.exists()) {
        thread::yield_now();
    }
    *last = Some(this);
    Turn(last)
}
