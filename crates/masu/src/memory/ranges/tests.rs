//! Properties of free runs, on ranges of the test's own.

extern crate std;

use super::held::{BATCH_BYTES, Held, STEP_BYTES};
use super::kept::{FADES_EVERY, FADES_EVERY_MS, FADES_WITHIN_MS};
use super::unmerged::{MERGED_AT_ONCE, UNMERGED_MAX};
use super::*;
use crate::platform::kernel;
use std::boxed::Box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::vec::Vec;

/// Calls `check` with new ranges.
pub(super) fn with_ranges(check: impl FnOnce(&mut Held<'_>)) {
    let ranges: &'static SharedRanges = Box::leak(Box::new(SharedRanges::new()));
    check(&mut ranges.lock());
}

/// Purges what nothing reuses.
fn pass_much_time(ranges: &mut Held<'_>) {
    ranges.pass_much_time();
    while ranges.owes() {
        ranges.end_call();
    }
}

pub(super) fn run_of(ranges: &mut Held<'_>, slices: usize) -> &'static Slice {
    ranges.allocate(slices, 1, Kind::Large).expect("memory").first
}

/// Frees a run that [`run_of`] handed out.
fn give_back(ranges: &mut Held<'_>, run: &'static Slice, slices: usize) {
    // SAFETY: The run was handed out, and nobody uses it.
    unsafe { ranges.free(run, slices, slices * SLICE_BYTES) };
}

/// Calls `check` with ranges in which 100 MiB went up and down until they stay.
fn with_a_past(check: impl FnOnce(&mut Held<'_>)) {
    with_ranges(|ranges| {
        for _ in 0..8 {
            rise_and_fall(ranges, 100);
            pass_much_time(ranges);
        }
        check(ranges);
    });
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
        assert_eq!(ranges.dirty_bytes, 8 * SLICE_BYTES);
        assert!(ranges.purge_down_to(0));
        assert_eq!(ranges.dirty_bytes, 0);
        assert!(!ranges.purge_down_to(0), "nothing is left");
    });
}

#[test]
fn a_purge_ends_although_another_thread_frees_as_fast() {
    const RUNS: usize = 1024;
    let ranges: &'static SharedRanges = Box::leak(Box::new(SharedRanges::new()));
    // Each between live ones.
    let dirty = |held: &mut Held<'_>| -> Vec<usize> {
        let runs = (0..RUNS).map(|_| [1, 1].map(|slices| run_of(held, slices))[0]);
        runs.map(Slice::address).collect()
    };
    let insert = |held: &mut Held<'_>, address: &usize| {
        // SAFETY: It is the address of a run that was handed out.
        let run = unsafe { Slice::at(*address) };
        // SAFETY: The run is this test's.
        unsafe { run.start().write_volatile(1) };
        held.insert(run, 1, SLICE_BYTES, false);
    };
    let mut held = ranges.lock();
    let (own, others) = (dirty(&mut held), dirty(&mut held));
    own.iter().for_each(|address| insert(&mut held, address));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut left = others.iter();
            while !is_over.load(Ordering::SeqCst) {
                let mut held = ranges.lock_in_others();
                // The other thread is in a system call.
                if held.away.first().is_some() {
                    left.next().into_iter().for_each(|address| insert(&mut held, address));
                }
            }
        });
        while !held.guard.has_sleepers() {
            std::thread::yield_now();
        }
        let (_, before) = kernel::advised_here();
        held.purge_down_to(0);
        let (_, after) = kernel::advised_here();
        is_over.store(true, Ordering::SeqCst);
        drop(held);
        assert_eq!((after - before) / SLICE_BYTES, RUNS, "what was dirty when it began");
    });
}

#[test]
fn trimming_leaves_nothing_resident_anywhere_in_a_run() {
    with_ranges(|ranges| {
        let [run, _] = [4, 1].map(|slices| run_of(ranges, slices));
        // SAFETY: The slice lies in the run.
        let end = unsafe { run.ahead(2) };
        // SAFETY: The run is this test's.
        unsafe { end.start().write_volatile(1) };
        ranges.insert(run, 2, 0, false);
        ranges.insert(end, 2, 2 * SLICE_BYTES, false);
        let front = ranges.split(run, 2);
        assert_eq!((front.first.address(), end.dirty.get()), (run.address(), 0));
        ranges.trim(0);
        // SAFETY: It may be read, free or not.
        assert_eq!(unsafe { end.start().read_volatile() }, 0);
        let before = kernel::advised_here();
        ranges.trim(0);
        assert!(end.zero.get() && kernel::advised_here() == before, "nothing is left");
    });
}

#[test]
fn a_long_run_is_purged_from_its_end_no_further_than_necessary() {
    with_ranges(|ranges| {
        let [run, _] = [40, 1].map(|slices| run_of(ranges, slices));
        // SAFETY: The slice lies in the run.
        let word = |slice: usize| unsafe { run.start().add(slice * SLICE_BYTES) };
        for slice in 0..40 {
            // SAFETY: The run is this test's.
            unsafe { word(slice).write_volatile(1) };
        }
        ranges.insert(run, 40, 40 * SLICE_BYTES, false);
        assert!(ranges.purge_down_to(10 * SLICE_BYTES + 1));
        assert_eq!(ranges.dirty_bytes, 10 * SLICE_BYTES);
        for slice in 0..40 {
            // SAFETY: As above.
            let left = unsafe { word(slice).read_volatile() };
            assert_eq!(left, u8::from(slice < 10), "slice {slice}");
        }
        let again = ranges.allocate(4, 1, Kind::Large).expect("memory");
        assert!(!again.zero && again.first.address() == run.address());
        assert_eq!(ranges.dirty_bytes, 6 * SLICE_BYTES);
    });
}

#[test]
fn resident_runs_are_taken_before_others_that_fit_better() {
    with_ranges(|ranges| {
        let [clean, _, dirty, _] = [4, 1, 9, 1].map(|slices| run_of(ranges, slices));
        ranges.insert(clean, 4, 0, true);
        ranges.insert(dirty, 9, 9 * SLICE_BYTES, false);
        assert_eq!(run_of(ranges, 4).address(), dirty.address());
        assert_eq!(run_of(ranges, 6).count.get(), 6, "from the front: neither is as long");
        assert_eq!(run_of(ranges, 5).count.get(), 5, "the rest of the dirty one");
        assert_eq!(ranges.dirty_bytes, 0);
        assert_eq!(run_of(ranges, 4).address(), clean.address());
    });
}

#[test]
fn the_parts_beside_an_aligned_block_are_no_more_dirty_than_its_run_was() {
    with_ranges(|ranges| {
        for dirty in [1, 20, 40] {
            let [run, _] = [64, 1].map(|slices| run_of(ranges, slices));
            ranges.insert(run, 64, dirty * SLICE_BYTES, false);
            ranges.allocate(1, 32 * SLICE_BYTES, Kind::Large).expect("memory");
            let left = ranges.dirty_bytes / SLICE_BYTES;
            assert!(left == dirty || left == dirty - 1, "{left} of {dirty} slices");
            ranges.trim(0);
        }
    });
}

/// A peak of `mib` MiB in runs of 1 MiB, freed again.
pub(super) fn rise_and_fall(ranges: &mut Held<'_>, mib: usize) {
    let run = |ranges: &mut Held<'_>| {
        let run = run_of(ranges, 16);
        ranges.end_call();
        run
    };
    let runs: Vec<_> = (0..mib).map(|_| run(ranges)).collect();
    for run in runs {
        give_back(ranges, run, 16);
        ranges.end_call();
    }
}

#[test]
fn memory_that_goes_up_and_down_is_retained_and_a_single_peak_is_not() {
    with_ranges(|ranges| {
        rise_and_fall(ranges, 24);
        assert_eq!(ranges.dirty_bytes, 24 << 20, "it has its grace");
        pass_much_time(ranges);
        assert!(ranges.dirty_bytes <= 4 << 20, "{}", ranges.dirty_bytes);
        for _ in 0..8 {
            rise_and_fall(ranges, 24);
            pass_much_time(ranges);
        }
        assert_eq!(ranges.dirty_bytes, 24 << 20);
        // Many short-lived runs do not reset it.
        for _ in 0..2 * FADES_EVERY {
            rise_and_fall(ranges, 1);
        }
        assert_eq!(ranges.dirty_bytes, 24 << 20);
        for _ in 0..2048 * FADES_EVERY {
            rise_and_fall(ranges, 1);
        }
        pass_much_time(ranges);
        assert!(ranges.dirty_bytes <= 5 << 20, "{}", ranges.dirty_bytes);
    });
}

#[test]
fn runs_of_ever_other_lengths_come_to_stay_for_as_long_as_that_lasts() {
    with_ranges(|ranges| {
        let mut random = 1_u64;
        let mut runs: Vec<_> = (0..4).map(|_| (run_of(ranges, 16), 16)).collect();
        // The bytes purged while so many blocks are replaced.
        let mut purged = |ranges: &mut Held<'_>, count: usize| {
            let before = kernel::advised_here().1;
            for _ in 0..count {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (place, slices) = ((random >> 33) as usize % 4, 2 << ((random >> 40) % 6));
                let (run, old) = runs[place];
                give_back(ranges, run, old);
                while ranges.owes() {
                    ranges.end_call();
                }
                runs[place] = (run_of(ranges, slices), slices);
            }
            kernel::advised_here().1 - before
        };
        let first = purged(ranges, 500);
        purged(ranges, 1500);
        let last = purged(ranges, 500);
        assert!(last < first / 3, "{last} bytes purged, {first} before");
    });
}

#[test]
fn the_past_fades_no_faster_than_time_passes() {
    with_a_past(|ranges| {
        let demand = |ranges: &mut Ranges, now, least| {
            ranges.fade(now, least);
            ranges.demand.bytes_max
        };
        let start = ranges.faded_at;
        let most = ranges.demand.bytes_max;
        assert!(most > 0 && demand(ranges, start + 99, FADES_EVERY_MS) == most);
        assert_eq!(demand(ranges, start + 199, FADES_EVERY_MS), most - most / 16);
        assert_eq!(demand(ranges, start + 298, FADES_EVERY_MS), most - most / 16);
        assert!(demand(ranges, start + 299, FADES_EVERY_MS) < most - most / 16);
    });
}

#[test]
fn a_clock_that_was_read_before_another_threads_ends_nothing() {
    with_a_past(|ranges| {
        ranges.fade(1_000_000, FADES_EVERY_MS);
        let most = ranges.demand.bytes_max;
        ranges.fade(999_999, FADES_EVERY_MS);
        assert_eq!((ranges.demand.bytes_max, ranges.faded_at), (most, 1_000_000));
    });
    with_ranges(|ranges| {
        rise_and_fall(ranges, 24);
        let now = now_ms() + 1_000_000;
        ranges.pass_time(now);
        let owed = ranges.owed_down_to;
        ranges.pass_time(now - 1);
        assert_eq!(ranges.owed_down_to, owed, "the period has just begun");
        ranges.pass_time(now + 100);
        assert_eq!(ranges.owed_down_to, Some(4 << 20));
    });
}

#[test]
fn memory_that_nothing_wants_back_goes_as_time_passes_although_no_run_is_taken() {
    with_a_past(|ranges| {
        let kept = ranges.dirty_bytes;
        assert!(kept > 90 << 20, "{kept}");
        let mut pass = |ms| {
            let now = ranges.faded_at + ms;
            ranges.fade(now, FADES_WITHIN_MS);
            pass_much_time(ranges);
            ranges.dirty_bytes
        };
        assert_eq!(pass(FADES_WITHIN_MS - 1), kept);
        let half = pass(8 * FADES_WITHIN_MS);
        assert!((40 << 20..70 << 20).contains(&half), "{half}");
        assert!(pass(100 * FADES_WITHIN_MS) < 7 << 20);
    });
}

#[test]
fn a_block_that_grows_in_place_bounds_free_memory_as_a_new_one_does() {
    with_ranges(|ranges| {
        let runs: Vec<_> = (0..100).map(|_| run_of(ranges, 16)).collect();
        let last = run_of(ranges, 1);
        runs.into_iter().for_each(|run| give_back(ranges, run, 16));
        for _ in 0..8 {
            pass_much_time(ranges);
            rise_and_fall(ranges, 100);
        }
        assert!(ranges.dirty_bytes > 90 << 20, "it is expected back");
        // Behind the last one nothing was handed out.
        assert!(ranges.grow(last, 1, 1600));
        while ranges.owes() {
            ranges.end_call();
        }
        let resident = ranges.live_bytes() + ranges.dirty_bytes;
        assert!(resident < 160 << 20, "{resident}");
    });
}

#[test]
fn no_more_has_a_grace_than_its_bound() {
    with_ranges(|ranges| {
        rise_and_fall(ranges, 100);
        let dirty = ranges.dirty_bytes;
        assert!((60 << 20..=68 << 20).contains(&dirty), "{dirty}");
    });
}

#[test]
fn memory_freed_while_other_memory_is_owed_has_its_own_grace() {
    with_ranges(|ranges| {
        rise_and_fall(ranges, 20);
        ranges.pass_much_time();
        assert_eq!(ranges.owed_down_to, Some(4 << 20));
        let run = run_of(ranges, 16);
        give_back(ranges, run, 16);
        assert_eq!(ranges.owed_down_to, Some(5 << 20));
    });
}

#[test]
fn purged_memory_counts_as_clean_when_its_run_is_freed() {
    with_ranges(|ranges| {
        let [run, _] = [4, 1].map(|slices| run_of(ranges, slices));
        // SAFETY: The run was handed out just now, and nobody uses it.
        unsafe { ranges.free(run, 4, SLICE_BYTES) };
        assert_eq!(ranges.dirty_bytes, SLICE_BYTES);
    });
}

#[test]
fn a_grown_block_seems_used_only_where_most_of_its_end_was_written() {
    with_ranges(|ranges| {
        let run = run_of(ranges, 40);
        let write = |slice: usize| {
            // SAFETY: The run is this test's, and that long.
            unsafe { run.start().add(slice * SLICE_BYTES).write_bytes(1, SLICE_BYTES) };
        };
        (0..24).for_each(write);
        assert!(!usage::is_end_used(run, 40), "the last MiB, 16 slices, was never written");
        (24..32).for_each(write);
        assert!(!usage::is_end_used(run, 40), "half of it was");
        write(32);
        assert!(usage::is_end_used(run, 40));
        assert!(usage::is_end_used(run, 3), "a shorter one is looked at as a whole");
    });
}

#[test]
fn only_the_last_of_two_runs_of_one_length_is_parked() {
    with_ranges(|ranges| {
        let [other, first, second] = [3, 2, 2].map(|slices| run_of(ranges, slices));
        let parked = Parked::new();
        let hand_out = |ranges: &mut Held<'_>, run| {
            ranges.bring_home(Some(&parked));
            ranges.note_handed_out(&parked, run);
        };
        hand_out(ranges, other);
        hand_out(ranges, first);
        assert!(!parked.wants(first, 2), "the one before was longer");
        hand_out(ranges, second);
        assert!(parked.wants(second, 2) && !parked.wants(first, 2) && !parked.wants(second, 1));
        assert!(parked.take(2).is_none(), "nothing is parked");
        parked.park(second, 2);
        assert!(parked.take(3).is_none(), "what is parked is no longer than 2");
        assert_eq!(parked.take(2).map(Slice::address), Some(second.address()));
        assert!(parked.take(2).is_none(), "it was taken");
    });
}

#[test]
fn a_parked_run_is_returned_before_another_is_taken() {
    with_ranges(|ranges| {
        let parked = Parked::new();
        let [first, second] = [2, 2].map(|slices| run_of(ranges, slices));
        ranges.note_handed_out(&parked, first);
        ranges.bring_home(Some(&parked));
        ranges.note_handed_out(&parked, second);
        parked.park(second, 2);
        assert_eq!((parked.slices(), ranges.parking_slices), (2, 2));
        ranges.bring_home(Some(&parked));
        assert_eq!((parked.slices(), ranges.parking_slices), (0, 0));
        assert_eq!(ranges.large(), (1, 2 * SLICE_BYTES), "the first one");
        assert!(!parked.has_right() && !parked.wants(second, 2));
        assert_eq!(second.kind.get(), Kind::Unmerged);
        assert_eq!(run_of(ranges, 1).address(), second.address());
    });
}

#[test]
fn parked_runs_together_stay_within_the_budget() {
    with_ranges(|ranges| {
        let threads = [const { Parked::new() }; 6];
        for parked in &threads {
            for run in [16, 16].map(|slices| run_of(ranges, slices)) {
                ranges.bring_home(Some(parked));
                ranges.note_handed_out(parked, run);
            }
        }
        assert_eq!(threads.iter().filter(|parked| parked.has_right()).count(), 4, "of 4 MiB");
        let kept = ranges.budget_bytes();
        assert_eq!(kept, 0, "what may be parked may stay instead of other memory");
        ranges.bring_home(Some(&threads[0]));
        assert_eq!(ranges.budget_bytes(), 1 << 20);
    });
}

#[test]
fn a_debt_is_purged_in_bounded_calls() {
    const MIB: usize = 1 << 20;
    with_ranges(|ranges| {
        // Too few for whole huge pages.
        let [run, _] = [500, 1].map(|slices| run_of(ranges, slices));
        ranges.end_call();
        ranges.insert(run, 500, 500 * SLICE_BYTES, false);
        ranges.owe_down_to(4 * MIB);
        while ranges.dirty_bytes > 4 * MIB {
            let (before, dirty) = (kernel::advised_here(), ranges.dirty_bytes);
            ranges.end_call();
            let now = kernel::advised_here();
            // The end of a run is purged, whatever is counted of it.
            assert_eq!(now.0 - before.0, 1);
            // Another test may just now have tried whether many ranges take one call.
            assert!([BATCH_BYTES, STEP_BYTES].contains(&(dirty - ranges.dirty_bytes)));
        }
        assert_eq!(ranges.dirty_bytes, 4 * MIB);
        assert!(!ranges.owes());
        // A call that frees much purges as much.
        let run = run_of(ranges, 400);
        ranges.end_call();
        ranges.expect_nothing_back();
        give_back(ranges, run, 400);
        pass_much_time(ranges);
        assert!(ranges.dirty_bytes <= 4 * MIB && !ranges.owes());
    });
}

#[test]
fn a_run_that_is_away_is_not_taken_or_merged() {
    with_ranges(|ranges| {
        let [before, run, behind, _] = [2, 4, 2, 1].map(|slices| run_of(ranges, slices));
        ranges.insert(run, 4, 4 * SLICE_BYTES, false);
        let away = ranges.send_away(0, usize::MAX).expect("it is dirty");
        assert_eq!((away.address(), ranges.dirty_bytes), (run.address(), 0));
        ranges.insert(before, 2, 0, true);
        ranges.insert(behind, 2, 0, true);
        assert_eq!([before, behind].map(|run| run.count.get()), [2, 2]);
        assert_ne!(run_of(ranges, 4).address(), run.address(), "nobody gets it");
        ranges.put_back(away, true);
        assert_eq!((before.count.get(), before.zero.get()), (8, true), "one run again");
    });
}

/// Ranges from which a run of four slices is away because of this thread.
fn with_a_run_away() -> (&'static SharedRanges, usize) {
    let ranges: &'static SharedRanges = Box::leak(Box::new(SharedRanges::new()));
    let mut held = ranges.lock();
    held.trim(0);
    let [run, _] = [4, 1].map(|slices| run_of(&mut held, slices));
    held.insert(run, 4, 4 * SLICE_BYTES, false);
    held.send_away(0, usize::MAX).expect("it is dirty");
    drop(held);
    (ranges, run.address())
}

/// The work of a child on its copy of the ranges.
fn fork(ranges: &SharedRanges) {
    assert!(ranges.raw().try_hold_for_fork(false));
    // SAFETY: The lock is held, as in the child.
    unsafe { ranges.take_back_after_fork() };
    ranges.raw().let_go_after_fork();
}

#[test]
fn a_child_gets_back_the_runs_that_other_threads_had_away() {
    let (ranges, address) = std::thread::spawn(with_a_run_away).join().expect("no panic there");
    fork(ranges);
    assert_eq!(run_of(&mut ranges.lock(), 4).address(), address);
}

#[test]
fn an_interrupted_thread_puts_its_own_runs_back() {
    let (ranges, address) = with_a_run_away();
    fork(ranges);
    let mut held = ranges.lock();
    let run = held.away.first().expect("it is away still");
    assert_eq!(run.address(), address);
    held.put_back(run, false);
    assert_eq!(run_of(&mut held, 4).address(), address);
}

fn give_back_all(ranges: &mut Held<'_>, runs: &[(&'static Slice, usize)]) {
    runs.iter().for_each(|(run, slices)| give_back(ranges, run, *slices));
}

#[test]
fn a_request_takes_a_freed_run_of_its_length_before_neighbors_are_merged() {
    with_ranges(|ranges| {
        let [a, b, c, _] = [2, 4, 2, 1].map(|slices| run_of(ranges, slices));
        give_back_all(ranges, &[(a, 2), (b, 4), (c, 2)]);
        let again = [4, 2, 2].map(|slices| run_of(ranges, slices).address());
        assert_eq!(again, [b, c, a].map(Slice::address), "those freed last first");
        give_back_all(ranges, &[(a, 2), (b, 4), (c, 2)]);
        assert_eq!(run_of(ranges, 8).address(), a.address(), "all of them together");
        assert_eq!(ranges.dirty_bytes, 0);
    });
}

#[test]
fn a_block_grows_into_runs_that_are_not_merged() {
    with_ranges(|ranges| {
        let [block, b, c, _] = [1, 2, 3, 1].map(|slices| run_of(ranges, slices));
        give_back(ranges, c, 3);
        give_back(ranges, b, 2);
        assert!(ranges.grow(block, 1, 5), "over the border of both");
        assert!(!ranges.grow(block, 5, 7) && ranges.grow(block, 5, 6), "up to a live one");
        assert_eq!(ranges.dirty_bytes, 0);
    });
}

#[test]
fn a_bounded_number_of_runs_is_not_merged_and_a_purge_finds_them() {
    const MORE: usize = 3;
    with_ranges(|ranges| {
        let runs: Vec<_> = (0..UNMERGED_MAX + MORE).map(|_| run_of(ranges, 1)).collect();
        run_of(ranges, 1);
        runs.iter().for_each(|run| give_back(ranges, run, 1));
        let merged = MERGED_AT_ONCE as usize;
        assert_eq!((runs[0].kind.get(), runs[0].count.get() as usize), (Kind::Free, merged));
        assert_eq!(ranges.unmerged.count, UNMERGED_MAX - merged + MORE);
        assert_eq!(runs[merged].kind.get(), Kind::Unmerged);
        assert_eq!(ranges.dirty_bytes, runs.len() * SLICE_BYTES);
        ranges.trim(0);
        assert_eq!((ranges.dirty_bytes, ranges.unmerged.count), (0, 0));
        assert_eq!(runs[0].count.get() as usize, runs.len(), "one run again");
    });
}

#[test]
fn what_is_freed_after_a_block_grew_merges_at_once() {
    with_ranges(|ranges| {
        let [block, a, b, _] = [1, 1, 1, 1].map(|slices| run_of(ranges, slices));
        assert!(!ranges.grow(block, 1, 2), "its neighbor lives");
        give_back_all(ranges, &[(a, 1), (b, 1)]);
        assert_eq!((a.kind.get(), a.count.get()), (Kind::Free, 2));
    });
}
