//! The ending of processes, for tests that kill: whether a process has ended, and when. The command's tests use it too.
//!
//! Relies on `/proc`. Time only ends a test that has failed.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// A time longer than a busy machine takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until `holds` returns true.
///
/// # Panics
///
/// If `holds` does not return true within five minutes.
pub(crate) fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "in vain until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the process has ended; the process that inherits it may not have noticed yet.
pub(crate) fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("X", |(_, rest)| &rest[..1]);
    matches!(state, "X" | "Z")
}
