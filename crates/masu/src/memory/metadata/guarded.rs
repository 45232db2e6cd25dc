//! Where the allocator's own memory lies in the hardened build: some slices at a time, between two that
//! nothing may be done with, so that no block runs over into it.
//!
//! Relies on ranges. `slices.rs` stands in its place in the other builds.

use crate::memory::ranges::stripes;
use crate::memory::slice::{Kind, SLICE_BYTES};
use crate::platform::kernel::{self, Protection};

/// Slices between two guards.
const SLICES: usize = 4;

/// Takes memory for good; returns where it begins and ends. `None` where there is none.
pub(super) fn take() -> Option<(usize, usize)> {
    let run = stripes::first().lock_in_others().allocate(SLICES + 2, 1, Kind::Metadata)?;
    // SAFETY: The run was handed out to this function.
    for guard in [run.first, unsafe { run.first.ahead(SLICES + 1) }] {
        // SAFETY: Nobody uses it, and nobody will. Refused, there is no guard.
        let _ = unsafe { kernel::protect(guard.start(), SLICE_BYTES, Protection::None) };
    }
    let start = run.first.address() + SLICE_BYTES;
    Some((start, start + SLICES * SLICE_BYTES))
}
