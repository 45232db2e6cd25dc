//! The dirty flag of the statistics page: lower layers set it when they change what statistics show, and a layer above
//! updates the page.
//!
//! Relies on the option for the statistics page. A thread that makes or releases a page of blocks cannot sum up all
//! statistics there, so it writes nothing: the next slow path of any thread finds the flag.

use crate::platform::sync::{AtomicBool, Ordering};
use crate::settings;

static MARKED: AtomicBool = AtomicBool::new(false);

/// Sets the flag, if there is a statistics page.
#[inline]
pub(crate) fn mark() {
    if settings::statistics_page() {
        // ORDERING: Relaxed: a thread that misses the flag, or another one, checks again soon.
        MARKED.store(true, Ordering::Relaxed);
    }
}

/// Whether the flag is set.
#[inline(always)]
pub(crate) fn is_marked() -> bool {
    // ORDERING: Relaxed, as above.
    MARKED.load(Ordering::Relaxed)
}

/// Clears the flag; returns whether it was set.
pub(crate) fn take() -> bool {
    // ORDERING: Relaxed, as above.
    MARKED.swap(false, Ordering::Relaxed)
}
