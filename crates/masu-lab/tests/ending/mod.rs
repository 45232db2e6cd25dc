//! What tests that kill ask: whether a process has ended, and when. The command's tests use it too.
//!
//! Relies on `/proc`. Time only ends a test that has failed.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than a busy machine takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until something holds.
///
/// # Panics
///
/// If it does not within five minutes.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "in vain until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process has ended; who inherits it may not have noticed yet.
pub(crate) fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("X", |(_, rest)| &rest[..1]);
    matches!(state, "X" | "Z")
}
