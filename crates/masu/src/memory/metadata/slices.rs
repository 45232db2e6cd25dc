//! Where metadata lie: a slice at a time, beside blocks.
//!
//! Relies on ranges. `guarded.rs` replaces this file in the hardened build.

use crate::memory::ranges::stripes;
use crate::memory::slice::{Kind, SLICE_BYTES};

/// Takes memory forever; returns its start and end. `None` without memory.
#[inline(always)]
pub(super) fn take() -> Option<(usize, usize)> {
    let run = stripes::first().lock_in_others().allocate(1, 1, Kind::Metadata)?;
    let start = run.first.address();
    Some((start, start + SLICE_BYTES))
}
