//! Statistics: memory handed out, free and committed, and how often blocks and memory moved.
//!
//! Each part of the allocator keeps counts for its own work or on its slow paths; nothing is counted on a fast path.
//! Reading stops no other thread: while other threads allocate, numbers of different parts are from different moments. When no
//! other thread allocates, they are exact and sums agree.

mod json;
mod named;
mod text;

use crate::settings;
#[cfg(debug_assertions)]
use crate::threads::audit;
pub use crate::threads::statistics::{
    CLASSES, ClassStatistics, Statistics, ThreadStatistics, VERSION,
};
use crate::threads::{statistics, thread};
pub use json::json;
pub use text::text;

/// The statistics of the process now.
///
/// ```
/// let block = masu::c::malloc(1000);
/// assert!(masu::statistics::now().live_bytes >= 1000);
/// # unsafe { masu::c::free(block) };
/// ```
#[must_use]
pub fn now() -> Statistics {
    begin();
    statistics::collect(&mut |_, _| {})
}

/// Whether to write statistics when the program ends, for a library with an exit handler.
///
/// ```
/// if masu::statistics::is_wanted_at_exit() {
///     println!("{:?}", masu::statistics::now());
/// }
/// ```
#[must_use]
pub fn is_wanted_at_exit() -> bool {
    settings::statistics_at_exit()
}

/// The numbers of each size class, smallest first: [`CLASSES`] of them, each read when the iterator reaches it.
///
/// ```
/// use masu::statistics::{CLASSES, classes};
///
/// assert_eq!(classes().count(), CLASSES);
/// for class in classes() {
///     println!("{class:?}");
/// }
/// ```
pub fn classes() -> impl Iterator<Item = ClassStatistics> {
    begin();
    statistics::classes()
}

/// The numbers of each thread cache, youngest first, each read when the iterator reaches it.
///
/// ```
/// let _ = masu::c::malloc(1);
/// assert!(masu::statistics::threads().count() >= 1);
/// ```
pub fn threads() -> impl Iterator<Item = ThreadStatistics> {
    begin();
    statistics::threads()
}

/// Checks the counts of all parts against each other and against their memory; ends the program where they differ. Shows each
/// free block in a cache, and its size. For tests, where no other thread uses masu, nor `see`: locks are held while it is
/// called, so the program's own allocator must be another one.
#[doc(hidden)]
#[cfg(debug_assertions)]
pub fn audit(see: &mut dyn FnMut(usize, usize)) {
    begin();
    audit::audit(see);
}

/// Makes this thread known: only a registered thread may take locks (`threads/fork.rs`).
fn begin() {
    let _ = thread::cache();
}
