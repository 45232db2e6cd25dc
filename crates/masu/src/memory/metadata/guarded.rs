//! Where metadata lie in the hardened build: a few slices at a time between two inaccessible ones, so that no block overruns
//! into them.
//!
//! Relies on ranges. `slices.rs` replaces this file in the other builds.

use crate::memory::ranges::stripes;
use crate::memory::slice::{Kind, SLICE_BYTES};
use crate::platform::kernel::{self, Protection};

/// Slices between two guards.
const SLICES: usize = 4;

/// Takes memory forever; returns its start and end. `None` without memory.
pub(super) fn take() -> Option<(usize, usize)> {
    let run = stripes::first().lock_in_others().allocate(SLICES + 2, 1, Kind::Metadata)?;
    // SAFETY: The run was handed out to this function.
    for guard in [run.first, unsafe { run.first.ahead(SLICES + 1) }] {
        // SAFETY: Nothing uses it. If refused, there is no guard.
        let _ = unsafe { kernel::protect(guard.start(), SLICE_BYTES, Protection::None) };
    }
    let start = run.first.address() + SLICE_BYTES;
    Some((start, start + SLICES * SLICE_BYTES))
}
