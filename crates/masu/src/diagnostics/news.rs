//! News: layers below note that they changed what readers outside look at, and a layer above shows it to them.
//!
//! Relies on the option for the statistics page. A thread that makes a page or gives one back cannot know what all rooms together
//! hold, so nothing is written there: the next slow path of any thread finds the note.

use crate::platform::sync::{AtomicBool, Ordering};
use crate::settings;

static NEWS: AtomicBool = AtomicBool::new(false);

/// Notes that there is something to be seen, if anyone may look.
#[inline]
pub(crate) fn note() {
    if settings::statistics_page() {
        // ORDERING: Relaxed: a thread that misses it comes by again, or another does.
        NEWS.store(true, Ordering::Relaxed);
    }
}

/// Whether something was noted and not taken yet.
#[inline(always)]
pub(crate) fn are_there() -> bool {
    // ORDERING: Relaxed, as above.
    NEWS.load(Ordering::Relaxed)
}

/// Takes the note; whether there was one.
pub(crate) fn take() -> bool {
    // ORDERING: Relaxed, as above.
    NEWS.swap(false, Ordering::Relaxed)
}
