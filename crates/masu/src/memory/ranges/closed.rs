//! Runs with closed slices, of the hardened build: opened before they are free.
//!
//! Relies on its parent for the runs. The kernel may refuse to open a run, because of a limit on data or on mappings. Such a run
//! waits in a list, closed, until that changes. In a child that was forked while another thread was opening a run, that run
//! stays closed.

use super::SharedRanges;
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Advice, Protection};
use crate::settings;

impl SharedRanges {
    /// Opens and frees a run of `count` slices; whether the kernel opened it. Else it waits.
    ///
    /// # Safety
    ///
    /// - It was handed out as one run or a part of one that is in no other use, and nothing uses it any more.
    pub(crate) unsafe fn free_closed(&self, run: &'static Slice, count: usize) -> bool {
        run.count.set(count as u32);
        // SAFETY: The caller's condition.
        let is_open = run.arena().is_dedicated() || unsafe { open(run, count) };
        let mut ranges = self.lock();
        if is_open {
            // SAFETY: The caller's condition; the run is open again, or is unmapped as a whole.
            unsafe { ranges.free(run, count, 0) };
        } else {
            ranges.closed.push_last(run);
        }
        is_open
    }

    /// Tries to open and free a run that waits for it; whether one was.
    pub(crate) fn open_one(&self) -> bool {
        let mut ranges = self.lock();
        let Some(run) = ranges.closed.first() else { return false };
        ranges.closed.remove(run);
        drop(ranges);
        // SAFETY: Only runs that nothing uses wait.
        unsafe { self.free_closed(run, run.count.get() as usize) }
    }
}

/// Opens a run of `count` slices; whether it is open. A new mapping becomes one with those beside it, which an old one does not
/// once it was written to: runs that come and go would use up all mappings.
///
/// # Safety
///
/// - Nothing uses the run.
unsafe fn open(run: &'static Slice, count: usize) -> bool {
    let (start, bytes) = (run.start(), count * SLICE_BYTES);
    // SAFETY: The caller's condition.
    if unsafe { kernel::replace(start, bytes) }.is_err() {
        // SAFETY: As above.
        return unsafe { kernel::protect(start, bytes, Protection::ReadWrite) }.is_ok();
    }
    if !settings::huge_pages() {
        // SAFETY: As above. The old mapping had this advice.
        let _ = unsafe { kernel::advise(start, bytes, Advice::NoHugePage) };
    }
    true
}
