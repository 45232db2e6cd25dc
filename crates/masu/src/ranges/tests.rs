//! Properties of free runs, on ranges of this test's own.

use super::*;

#[test]
fn list_of_grows_with_the_length() {
    let mut last = 0;
    for count in 1..1 << 20 {
        let list = list_of(count);
        assert!(list >= last && list < LISTS);
        last = list;
    }
}

/// A place that no thread of the tests parks in.
const UNUSED_SHARD: u8 = SHARDS_MAX as u8 - 1;

/// Calls `check` with ranges of its own; arenas are everybody's, so the lock for them is held.
fn with_ranges(check: impl FnOnce(&mut Ranges)) {
    let _arenas = RANGES.lock();
    check(&mut Ranges::new());
}

fn run_of(ranges: &mut Ranges, slices: usize) -> &'static Slice {
    ranges.allocate(slices, 1, Kind::Large).expect("memory").first
}

#[test]
fn the_longest_dirty_runs_are_purged_first_and_no_more_than_needed() {
    with_ranges(|ranges| {
        let [clean, _, long, _, short, _] =
            [90, 1, 65, 1, 8, 1].map(|slices| run_of(ranges, slices));
        ranges.insert(clean, 90, 0, true);
        ranges.insert(long, 65, SLICE_BYTES, false);
        ranges.insert(short, 8, 8 * SLICE_BYTES, false);
        assert!(ranges.purge_down_to(8 * SLICE_BYTES));
        assert_eq!((long.dirty.get(), short.dirty.get() as usize), (0, 8 * SLICE_BYTES));
        assert_eq!(ranges.dirty_bytes(), 8 * SLICE_BYTES);
        assert!(ranges.purge_down_to(0));
        assert_eq!(ranges.dirty_bytes(), 0);
        assert!(!ranges.purge_down_to(0), "nothing is left");
    });
}

#[test]
fn memory_given_back_before_counts_as_clean_when_its_run_is_freed() {
    with_ranges(|ranges| {
        let [run, _] = [4, 1].map(|slices| run_of(ranges, slices));
        // SAFETY: The run was handed out just now, and nobody uses it.
        unsafe { ranges.free(run, 4, SLICE_BYTES) };
        assert_eq!(ranges.dirty_bytes(), SLICE_BYTES);
    });
}

#[test]
fn a_grown_block_seems_used_only_where_most_of_its_end_was_written() {
    with_ranges(|ranges| {
        let run = run_of(ranges, 40);
        let write = |slice: usize| {
            // SAFETY: The run is this test's, and that long.
            unsafe { run.start().add(slice * SLICE_BYTES).write(1) };
        };
        (0..24).for_each(write);
        assert!(!seems_used(run, 40), "the last MiB, 16 slices, was never written");
        (24..32).for_each(write);
        assert!(!seems_used(run, 40), "half of it was");
        write(32);
        assert!(seems_used(run, 40));
        assert!(seems_used(run, 3), "a shorter one is looked at as a whole");
    });
}

#[test]
fn only_the_run_handed_out_last_is_parked_and_only_if_the_one_before_was_as_long() {
    with_ranges(|ranges| {
        let [other, first, second] = [3, 2, 2].map(|slices| run_of(ranges, slices));
        let hand_out = |run, slices| parked::note_handed_out(UNUSED_SHARD, run, slices);
        let wants = |run, slices| parked::wants(UNUSED_SHARD, run, slices);
        let park = |run| parked::park(UNUSED_SHARD, run, 2).map(Slice::address);
        let take = |slices| parked::take(UNUSED_SHARD, slices).map(Slice::address);
        hand_out(other, 3);
        hand_out(first, 2);
        assert!(!wants(first, 2), "the one before was longer");
        hand_out(second, 2);
        assert!(wants(second, 2) && !wants(first, 2) && !wants(second, 1));
        assert_eq!(take(2), None, "nothing is parked");
        assert_eq!(park(second), None);
        assert_eq!(take(3), None, "what is parked is no longer than 2");
        assert_eq!(take(2), Some(second.address()));
        assert_eq!(take(2), None, "it was taken");
        assert_eq!((park(second), park(first)), (None, Some(second.address())));
        assert_eq!(parked::take_any(UNUSED_SHARD).map(Slice::address), Some(first.address()));
        assert!(parked::take_any(UNUSED_SHARD).is_none());
    });
}

#[test]
fn a_parked_run_comes_home_before_another_is_taken() {
    with_ranges(|ranges| {
        let run = run_of(ranges, 2);
        ranges.count_large(1, 2);
        let _ = parked::park(UNUSED_SHARD, run, 2);
        assert_eq!(parked::count(), (1, 2));
        assert_eq!(ranges.large(), (0, 0), "parked is not live");
        ranges.bring_home(UNUSED_SHARD);
        assert_eq!((parked::count(), ranges.large()), ((0, 0), (0, 0)));
        assert_eq!(run.kind.get(), Kind::Free);
        assert_eq!(run_of(ranges, 1).address(), run.address());
    });
}
