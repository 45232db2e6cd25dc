//! A few programs again under each policy for transparent huge pages. Only root may change the policy;
//! without that right, stderr says that nothing was shown.

use std::fs;
use std::sync::{Mutex, PoisonError};

use crate::program::named;

/// The kernel's policy for backing memory with huge pages unasked: the word of the list in brackets.
const TRANSPARENT_HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// The policy before a test, put back at its end, also by a panic.
struct Before(String);

impl Drop for Before {
    fn drop(&mut self) {
        if let Err(error) = fs::write(TRANSPARENT_HUGE_PAGES, &self.0) {
            eprintln!("write {} to {TRANSPARENT_HUGE_PAGES} by hand: {error}", self.0);
        }
    }
}

/// Programs of every kind.
const PROGRAMS: [&str; 4] = [
    "sort_in_parallel_sorts_the_same",
    "python_threads_compute_the_same",
    "gcc_makes_the_same_object_file",
    "sqlite3_builds_the_same_database",
];

/// Checks that the programs run the same under this policy for huge pages.
pub(crate) fn same_with(policy: &str) -> Result<(), String> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let list = fs::read_to_string(TRANSPARENT_HUGE_PAGES).unwrap_or_default();
    let chosen = list.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
    if let Err(error) = fs::write(TRANSPARENT_HUGE_PAGES, policy) {
        eprintln!("not shown: {TRANSPARENT_HUGE_PAGES} cannot be set (root can): {error}");
        return Ok(());
    }
    let _before = Before(chosen);
    PROGRAMS.into_iter().try_for_each(|name| named(name).test())
}
