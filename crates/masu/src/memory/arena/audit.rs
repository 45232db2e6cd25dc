//! Visits every run of all arenas, for tests.
//!
//! Relies on the ranges, which keep the length of a run in its first slice.

use super::{all, hold_growth};
use crate::memory::slice::{SLICE_BYTES, Slice};

/// Calls `visit` with the first slice of each run that was handed out or is free again. No other thread uses masu.
pub(crate) fn each_run(visit: &mut dyn FnMut(&'static Slice)) {
    let _growth = hold_growth();
    for arena in all() {
        let mut index = arena.head.get();
        while index < arena.front.get() {
            // SAFETY: The slice lies in the first GiB: a longer arena has one run.
            let first = unsafe { Slice::at(arena.address() + index * SLICE_BYTES) };
            visit(first);
            let slices =
                if arena.is_dedicated() { arena.front.get() } else { first.count.get() as usize };
            assert!(slices > 0, "a run of no slices");
            index += slices;
        }
    }
}
