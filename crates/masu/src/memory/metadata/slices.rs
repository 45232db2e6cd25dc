//! Where the allocator's own memory lies: a slice at a time, beside what blocks lie in.
//!
//! Relies on ranges. In the hardened build `guarded.rs` stands in its place.

use crate::memory::ranges::stripes;
use crate::memory::slice::{Kind, SLICE_BYTES};

/// Takes memory for good; returns where it begins and ends. `None` where there is none.
#[inline(always)]
pub(super) fn take() -> Option<(usize, usize)> {
    let run = stripes::first().lock_in_others().allocate(1, 1, Kind::Metadata)?;
    let start = run.first.address();
    Some((start, start + SLICE_BYTES))
}
