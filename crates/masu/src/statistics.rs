//! Statistics: what is handed out, what is free, what the kernel was asked for, what came and went.
//!
//! They are read from the books that each part of the allocator keeps anyway and from counts of slow paths; nothing is
//! counted on a fast path. Nobody waits: each number is true at the moment it is read, and while other threads allocate the
//! numbers of different parts are of different moments. When no other thread allocates, they are exact and sums agree.

mod json;
mod named;
mod text;

use crate::settings;
pub use crate::threads::books::{CLASSES, ClassStatistics, Statistics, ThreadStatistics, VERSION};
use crate::threads::{books, thread};
pub use json::json;
pub use text::text;

/// The numbers of the process now.
#[must_use]
pub fn now() -> Statistics {
    begin();
    books::collect(&mut |_, _| {})
}

/// Whether statistics are to be written when the program ends: for a library that can see to that.
#[must_use]
pub fn is_wanted_at_exit() -> bool {
    settings::statistics_at_exit()
}

/// The numbers of each size class, smallest first: [`CLASSES`] of them, each as of the moment it is
/// asked for.
pub fn classes() -> impl Iterator<Item = ClassStatistics> {
    begin();
    books::classes()
}

/// The numbers of each thread cache that there is now, the youngest first, each as of the moment it is
/// asked for.
pub fn threads() -> impl Iterator<Item = ThreadStatistics> {
    begin();
    books::threads()
}

/// A thread that takes locks must have begun: see `thread::before_fork`.
fn begin() {
    let _ = thread::cache();
}
