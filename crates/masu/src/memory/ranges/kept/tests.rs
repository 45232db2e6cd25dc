//! Properties of the hysteresis, on ranges of the test's own.

use super::*;
use crate::memory::ranges::tests::{rise_and_fall, run_of, with_ranges};

#[test]
fn a_long_run_is_purged_from_the_start_of_a_huge_page_where_that_is_little() {
    let unit = arena::huge_page_bytes();
    // Other tests may have freed memory that they hardly used.
    if unit > HUGE_PAGE_MAX || USAGE.is_sparse() {
        return;
    }
    with_ranges(|ranges| {
        for (slices, aligns) in [(16 * unit / SLICE_BYTES, true), (unit / SLICE_BYTES, false)] {
            let [run, _] = [slices, 1].map(|slices| run_of(ranges, slices));
            (ranges.live_slices, ranges.peak_bytes) = (slices, slices * SLICE_BYTES);
            ranges.insert(run, slices, slices * SLICE_BYTES, false);
            assert!(ranges.purge_down_to(ranges.dirty_bytes - SLICE_BYTES));
            let purged = slices * SLICE_BYTES - ranges.dirty_bytes;
            let end = run.address() + ranges.dirty_bytes;
            assert!(if aligns { purged <= unit } else { purged == SLICE_BYTES }, "{purged}");
            assert!(end.is_multiple_of(unit) || !aligns, "{end:#x}");
            ranges.purge_down_to(0);
        }
    });
}

#[test]
fn what_was_purged_too_early_has_a_grace() {
    const MIB: usize = 1 << 20;
    with_ranges(|ranges| {
        rise_and_fall(ranges, 200);
        assert!(ranges.dirty_bytes < 70 * MIB, "nothing is known of what comes back");
        let begun = stripes::passes_begun();
        ranges.passes_begun = begun;
        rise_and_fall(ranges, 200);
        // Passes of other tests end it.
        let is_calm = || stripes::passes_begun() == begun && !stripes::is_passing();
        assert!(ranges.dirty_bytes > 180 * MIB || !is_calm(), "{}", ranges.dirty_bytes);
        ranges.passes_begun = begun;
        assert!(ranges.grace_bytes() > 180 * MIB || !is_calm());
        ranges.passes_begun = begun.wrapping_sub(1);
        assert!(ranges.grace_bytes() == GRACE_BYTES, "few blocks keep many pages");
    });
}
