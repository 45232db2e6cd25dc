//! Processes that run on masu, seen from outside: their statistics page, and the kernel's facts about them.
//!
//! Relies on `/proc` and on the page that masu writes where `MASU_STATISTICS_PAGE=1` (`docs/observing.md`). The
//! process may be broken or hostile, so no number of its page is used as a length, a place or a reason to wait, and
//! sums saturate.
//!
//! [`find`] lists the processes that have a page, [`Observer`] reads one of them again and again, [`page`] explains the
//! bytes.

pub mod observer;
pub mod page;
mod reach;
mod system;

pub use observer::{Observation, Observer, Rates, Thread};
pub use system::{hidden, mappings};

use crate::proc_files;
use reach::Reach;

/// A process that has a statistics page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub pid: u32,
    /// The process's name, as the kernel has it: at most 15 bytes.
    pub name: String,
    /// The process's arguments, the program first.
    pub command: String,
}

/// The variable that makes a program keep its statistics where [`Observer`] finds them.
pub const VARIABLE: &str = "MASU_STATISTICS_PAGE";

/// The processes that have a statistics page and that this user may look into, by number.
pub fn find() -> Vec<Found> {
    let mut found: Vec<Found> = proc_files::numbers("/proc")
        .filter(|pid| Reach::find(*pid).is_ok_and(|reach| reach.read().is_ok()))
        .map(|pid| Found { pid, name: system::name(pid), command: system::command(pid) })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}
