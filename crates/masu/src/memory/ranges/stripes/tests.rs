//! The promises of all stripes together.
//!
//! The stripes are the process's, and never become fewer. So each test has a process of its own.

extern crate std;

use core::alloc::Layout;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::vec::Vec;

use super::*;
use crate::memory::arena::GROWTH;
use crate::memory::ranges::kept::{FADES_WITHIN_MS, VISITS_EVERY};
use crate::memory::slice::Kind;
use crate::platform::alone::{self, run_alone};
use crate::platform::sync::Lock;
use crate::{Heap, c, options};

const MIB: usize = 1 << 20;
const MIB_SLICES: usize = MIB / SLICE_BYTES;

/// Makes this many stripes, which must be the first number of them.
fn begin_with(stripes: usize) {
    allow(stripes.max(MANY_SHARDS));
    while count() < stripes {
        let _ = widen_now();
    }
    assert_eq!(count(), stripes);
}

fn stripe(place: usize) -> &'static SharedRanges {
    &STRIPES[place]
}

fn take(from: &SharedRanges, slices: usize) -> Option<&'static Slice> {
    Some(from.lock().allocate(slices, 1, Kind::Page)?.first)
}

fn free(run: &'static Slice) {
    let slices = run.count.get() as usize;
    // SAFETY: Handed out by `take`, and nobody uses it.
    unsafe { of(run).lock().free(run, slices, slices * SLICE_BYTES) };
}

/// Leaves so many MiB free and maybe resident in a stripe, of which there was never more.
fn leave_dirty(stripe: &SharedRanges, mib: usize) {
    let runs: Vec<_> = (0..mib).map(|_| take(stripe, MIB_SLICES).expect("memory")).collect();
    options::set("retain", Some(1 << 40)).expect("an option");
    runs.into_iter().for_each(free);
    options::set("retain", None).expect("there is a default");
    assert_eq!(stripe.dirty_bytes.get(), mib * MIB);
}

/// Takes many steps of giving back what is owed, as a slow call takes one.
fn settle_all() {
    for _ in 0..10_000 {
        if any_owes() {
            purge_step(first(), 8, next_step());
        }
    }
    assert!(!any_owes());
}

fn dirty_bytes() -> usize {
    all().iter().map(|stripe| stripe.dirty_bytes.get()).sum()
}

/// As if nobody had used the stripe for long.
fn make_idle(stripe: &SharedRanges) {
    let mut ranges = stripe.lock();
    ranges.looked_ticks = ranges.ticks;
    ranges.looked_at = now_ms().wrapping_sub(100_000);
}

/// Does `work` while the kernel gives no memory.
fn without_kernel<R>(work: impl FnOnce() -> R) -> R {
    // 0 would be none.
    under_data_limit(4096, work)
}

/// Does `work` under a limit on writable memory.
fn under_data_limit<R>(bytes: u64, work: impl FnOnce() -> R) -> R {
    // SAFETY: Both are the caller's own.
    under_limit(bytes, |new, old| unsafe { libc::prlimit(0, libc::RLIMIT_DATA, new, old) }, work)
}

/// Does `work` while the kernel gives no addresses.
fn without_addresses<R>(work: impl FnOnce() -> R) -> R {
    // SAFETY: As above.
    under_limit(4096, |new, old| unsafe { libc::prlimit(0, libc::RLIMIT_AS, new, old) }, work)
}

/// Does `work` under a limit.
fn under_limit<R>(
    bytes: u64,
    limit: fn(*const libc::rlimit, *mut libc::rlimit) -> i32,
    work: impl FnOnce() -> R,
) -> R {
    let during = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    let mut before = during;
    assert_eq!(limit(&raw const during, &raw mut before), 0);
    let result = work();
    assert_eq!(limit(&raw const before, ptr::null_mut()), 0);
    result
}

/// Does `work` while another thread holds a stripe, until this one waits for it; the result, and whether it waited.
fn while_held<R>(stripe: &SharedRanges, work: impl FnOnce() -> R) -> (R, bool) {
    let (held, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let ranges = stripe.lock_waiting();
            held.store(true, Ordering::SeqCst);
            while !ranges.has_sleepers() && !is_over.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            ranges.has_sleepers()
        });
        while !held.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let result = work();
        is_over.store(true, Ordering::SeqCst);
        (result, holder.join().expect("it ends"))
    })
}

#[test]
fn a_run_among_many_shorter_ones_is_found_before_a_request_fails() {
    run_alone!();
    options::set("retain", Some(1 << 40)).expect("an option");
    // All are in one list, and none has a free neighbor.
    let alone = |slices| [slices, 1].map(|slices| take(first(), slices).expect("memory"))[0];
    let long = alone(79);
    let short: Vec<_> = (0..100).map(|_| alone(64)).collect();
    free(long);
    short.into_iter().for_each(free);
    let found = without_kernel(|| {
        while take(first(), 80).is_some() {}
        take(first(), 79)
    });
    assert_eq!(found.map(Slice::address), Some(long.address()));
}

#[test]
fn large_blocks_take_from_the_pages_arena_where_they_get_none() {
    run_alone!();
    let mut ranges = first().lock();
    let large = |ranges: &mut Held<'_>, slices| ranges.allocate(slices, 1, Kind::Large);
    let pages = ranges.allocate(128 * MIB_SLICES, 1, Kind::Page).expect("memory").first;
    large(&mut ranges, 32 * MIB_SLICES).expect("memory");
    assert!(ranges.is_apart() && ranges.large_arena.is_none());
    // More than is committed.
    let more = pages.arena().committed_front_slices() + 1;
    let run = without_addresses(|| large(&mut ranges, more)).expect("it is reserved");
    assert!(ptr::eq(run.first.arena(), pages.arena()));
}

#[test]
fn a_request_waits_for_a_stripe_that_may_have_its_memory() {
    run_alone!();
    begin_with(2);
    let own = take(stripe(0), 1).expect("memory");
    leave_dirty(stripe(1), 8);
    let (is_from_there, has_waited) = while_held(stripe(1), || {
        let run = without_kernel(|| take(stripe(0), 8 * MIB_SLICES));
        run.is_some_and(|run| of(run) == stripe(1))
    });
    assert!(is_from_there && has_waited, "the other stripe has as much, and is waited for");
    free(own);
}

#[test]
fn before_a_request_fails_every_stripe_returns_its_free_memory() {
    run_alone!();
    begin_with(4);
    let own = c::malloc(100_000);
    (1..4).for_each(|place| leave_dirty(stripe(place), 8));
    let before = read().reserved_bytes;
    let none = without_kernel(|| c::malloc(900 * MIB));
    assert!(none.is_null());
    assert_eq!(dirty_bytes(), 0);
    assert!(read().reserved_bytes < before, "arenas of which nothing is handed out");
    // SAFETY: Handed out above.
    unsafe { c::free(own) };
}

#[test]
fn before_a_request_fails_arenas_that_an_option_kept_are_returned() {
    run_alone!();
    // Each has an arena of its own.
    let blocks = [(); 4].map(|()| take(first(), 600 * MIB_SLICES).expect("addresses"));
    let reserved = read().reserved_bytes;
    options::set("retain", Some(1 << 40)).expect("an option");
    blocks.into_iter().for_each(free);
    assert_eq!(read().reserved_bytes, reserved, "free arenas are retained");
    assert!(give_up() && arena::all().next().is_none(), "none is left");
}

#[test]
fn an_arena_whose_end_was_returned_grows_in_steps_again() {
    run_alone!();
    let arena = take(first(), 1).expect("memory").arena();
    free(take(first(), MIB_SLICES).expect("memory"));
    assert!(give_up() && arena.committed_front_slices() == 0);
    assert!(ptr::eq(take(first(), 1).expect("memory").arena(), arena));
    assert!(arena.committed_front_slices() > 1, "a call of the kernel for each slice");
}

#[test]
fn an_idle_stripe_purges_all_that_it_need_not_keep() {
    run_alone!();
    begin_with(8);
    let kept = take(stripe(0), 1).expect("memory");
    (1..8).for_each(|place| leave_dirty(stripe(place), 16));
    assert_eq!(dirty_bytes(), 7 * 16 * MIB);
    // The first time each of them gives runs to the others, and is used by that.
    for _ in 0..2 {
        (1..8).for_each(|place| make_idle(stripe(place)));
        for _ in 0..8 * VISITS_EVERY {
            free(take(stripe(0), 1).expect("memory"));
        }
        settle_all();
    }
    let each: Vec<_> = all().iter().map(|stripe| stripe.dirty_bytes.get() / SLICE_BYTES).collect();
    // None has looked at the others yet.
    assert!(dirty_bytes() <= 8 * 4 * MIB, "{each:?} slices are kept");
    free(kept);
}

#[test]
fn an_idle_stripe_purges_although_no_run_is_taken() {
    run_alone!();
    begin_with(4);
    (1..4).for_each(|place| leave_dirty(stripe(place), 16));
    (1..4).for_each(|place| make_idle(stripe(place)));
    for _ in 0..4 {
        let mut own = stripe(0).lock_in_others();
        let now = own.faded_at + FADES_WITHIN_MS;
        own.fade(now, FADES_WITHIN_MS);
        drop(own);
        settle_all();
    }
    // None has looked at the others yet.
    assert!(dirty_bytes() <= 3 * 4 * MIB, "{} bytes are kept", dirty_bytes());
}

#[test]
fn a_thread_that_passes_time_waits_for_nobody() {
    run_alone!();
    let ((), has_waited) = while_held(stripe(0), || stripe(0).pass_time(now_ms()));
    assert!(!has_waited, "the next look is as good");
}

#[test]
fn an_idle_stripe_gives_one_run_after_another() {
    run_alone!();
    begin_with(2);
    leave_dirty(stripe(1), 8);
    make_idle(stripe(1));
    let runs: Vec<_> = (0..8).map(|_| take(stripe(0), MIB_SLICES).expect("memory")).collect();
    assert!(runs.iter().all(|run| of(run) == stripe(1)));
    runs.into_iter().for_each(free);
}

#[test]
fn readers_hold_one_stripe_at_a_time() {
    run_alone!();
    begin_with(4);
    for place in 0..4 {
        let ranges = stripe(place).lock_waiting();
        thread::scope(|scope| {
            let reader = scope.spawn(read);
            while !ranges.has_sleepers() {
                thread::yield_now();
            }
            // `fork` takes all these in a handler that interrupted this thread.
            let is_free = |other: &usize| stripe(*other).try_lock_in_others().is_some();
            let free: Vec<_> = (0..4).filter(|other| other == &place || is_free(other)).collect();
            let grows = GROWTH.0.try_lock().is_some();
            drop(ranges);
            reader.join().expect("it ends");
            assert_eq!((free.len(), grows), (4, true), "with {place}");
        });
    }
}

#[test]
fn no_arena_is_unmapped_while_all_are_read() {
    run_alone!();
    // Longer than an arena, so it has one of its own.
    let run = take(first(), 20_000).expect("addresses");
    let (arena, address) = (run.arena(), run.address());
    let mut before = read().reserved_bytes;
    let growth = GROWTH.0.lock();
    thread::scope(|scope| {
        // SAFETY: It is the run's slice.
        let freeing = scope.spawn(move || free(unsafe { Slice::at(address) }));
        while !growth.has_sleepers() && !freeing.is_finished() {
            thread::yield_now();
        }
        let is_found = arena::all().any(|other| ptr::eq(other, arena));
        assert!(growth.has_sleepers() && !is_found, "nobody finds it any more");
        before -= arena.reserved_bytes();
        drop(growth);
        freeing.join().expect("it ends");
    });
    assert_eq!(read().reserved_bytes, before);
}

#[test]
fn a_heap_locks_no_stripes_but_its_own() {
    run_alone!();
    let heap = Heap::new();
    let layout = Layout::from_size_align(MIB, 16).expect("a layout");
    assert!(heap.alloc(layout).is_some());
    begin_with(4);
    let ((), has_waited) = while_held(stripe(3), || drop(heap));
    assert!(!has_waited, "nothing of it is the heap's");
}

#[test]
fn a_limit_set_late_counts_what_other_stripes_keep() {
    run_alone!();
    begin_with(2);
    leave_dirty(stripe(1), 32);
    let live = read().live_bytes;
    options::set("memory_limit", Some(live + 16 * MIB)).expect("an option");
    let run = take(stripe(0), 8 * MIB_SLICES).expect("it is within the limit");
    let now = read();
    assert!(now.live_bytes + now.dirty_bytes <= live + 16 * MIB);
    assert!(take(stripe(0), 9 * MIB_SLICES).is_none(), "it is not");
    free(run);
}

#[test]
fn a_debt_does_not_wait_behind_a_busy_stripe() {
    run_alone!();
    begin_with(64.min(STRIPES_MAX));
    for place in [0, 5] {
        let mut ranges = stripe(place).lock_in_others();
        let run = ranges.allocate(8 * MIB_SLICES, 1, Kind::Page).expect("memory").first;
        // SAFETY: Handed out just now.
        unsafe { ranges.free(run, 8 * MIB_SLICES, 8 * MIB) };
        ranges.owe_down_to(0);
    }
    let mut steps = 0;
    while stripe(5).dirty_bytes.get() > 0 {
        // The first one owes again.
        let mut busy = stripe(0).lock_in_others();
        if busy.dirty_bytes == 0 {
            let run = busy.allocate(8 * MIB_SLICES, 1, Kind::Page).expect("memory").first;
            // SAFETY: Handed out just now.
            unsafe { busy.free(run, 8 * MIB_SLICES, 8 * MIB) };
        }
        busy.owe_down_to(0);
        drop(busy);
        purge_step(first(), 8, next_step());
        steps += 1;
        assert!(steps < 10_000, "it waits behind the first one");
    }
}

#[test]
fn a_limit_does_not_count_what_lies_beside_an_aligned_block() {
    run_alone!();
    take(first(), MIB_SLICES).expect("memory");
    options::set("memory_limit", Some(read().live_bytes + MIB)).expect("an option");
    let aligned = |slices| first().lock().allocate(slices, 4 * MIB, Kind::Page).is_some();
    assert_eq!([MIB_SLICES, 1].map(aligned), [true, false]);
}

#[test]
fn a_limit_leaves_a_debt_as_it_was() {
    run_alone!();
    leave_dirty(first(), 8);
    options::set("memory_limit", Some(read().live_bytes + 64 * MIB)).expect("an option");
    // It holds other locks, and so purges nothing itself.
    let mut ranges = first().lock_in_others();
    ranges.owe_down_to(0);
    assert!(ranges.allocate(1, 1, Kind::Metadata).is_some());
    assert_eq!(ranges.owed_down_to, Some(0));
}

#[test]
fn a_limit_holds_for_threads_that_ask_at_once() {
    run_alone!();
    let ready = take(first(), 32 * MIB_SLICES).expect("memory");
    let behind = take(first(), 1).expect("memory");
    free(ready);
    options::set("memory_limit", Some(read().live_bytes + 64 * MIB)).expect("an option");
    let growth = GROWTH.0.lock();
    let given = thread::scope(|scope| {
        let asking = scope.spawn(|| take(first(), 40 * MIB_SLICES).is_some());
        while !growth.has_sleepers() && !asking.is_finished() {
            thread::yield_now();
        }
        // That was found to be within the limit, and waits for memory.
        let own = take(first(), 32 * MIB_SLICES).is_some();
        drop(growth);
        [asking.join().expect("it ends"), own]
    });
    assert_eq!(given, [true, false]);
    assert!(take(first(), 16 * MIB_SLICES).is_some(), "the claim is dropped");
    free(behind);
}

#[test]
fn a_limit_holds_for_blocks_that_grow_in_several_stripes() {
    run_alone!();
    begin_with(2);
    let runs: [_; 2] = core::array::from_fn(|place| {
        let run = take(stripe(place), 2).expect("memory");
        let _behind = take(stripe(place), 1).expect("memory");
        // SAFETY: The second slice was handed out to this test, and nobody uses it.
        unsafe { stripe(place).lock().free(run.ahead(1), 1, SLICE_BYTES) };
        run.address()
    });
    // No limit is less.
    let _least = take(first(), MIB_SLICES).expect("memory");
    options::set("memory_limit", Some(read().live_bytes + SLICE_BYTES)).expect("an option");
    let (meetings, given) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // Both go on when both are here.
    let meet = |number: usize| {
        meetings.fetch_add(1, Ordering::SeqCst);
        for spins in 1_usize.. {
            if meetings.load(Ordering::SeqCst) >= 2 * number {
                break;
            }
            if spins.is_multiple_of(1000) { thread::yield_now() } else { core::hint::spin_loop() }
        }
    };
    let grow = |place: usize| {
        // SAFETY: It was handed out.
        let run = unsafe { Slice::at(runs[place]) };
        let mut is_over = false;
        for round in 0..20_000 {
            meet(2 * round + 1);
            let grown = of(run).lock().grow(run, 1, 2);
            given.fetch_add(usize::from(grown), Ordering::SeqCst);
            meet(2 * round + 2);
            is_over |= given.load(Ordering::SeqCst) == 2;
            if grown {
                // SAFETY: As above.
                unsafe { of(run).lock().free(run.ahead(1), 1, 0) };
                given.fetch_sub(1, Ordering::SeqCst);
            }
        }
        is_over
    };
    let is_over = thread::scope(|scope| {
        let other = scope.spawn(|| grow(1));
        [grow(0), other.join().expect("it ends")]
    });
    assert_eq!(is_over, [false; 2], "there is room for one");
}

fn large_of(ranges: &mut Held<'_>, slices: usize) -> &'static Slice {
    ranges.allocate(slices, 1, Kind::Large).expect("memory").first
}

fn give_back(ranges: &mut Held<'_>, run: &'static Slice) {
    let slices = run.count.get() as usize;
    // SAFETY: Handed out by `large_of`, and nobody uses it.
    unsafe { ranges.free(run, slices, slices * SLICE_BYTES) };
}

#[test]
fn memory_unused_for_a_whole_period_is_purged_at_its_end() {
    const DELAY: usize = 100;
    run_alone!();
    let mut ranges = first().lock();
    let runs = [64, 32].map(|slices| large_of(&mut ranges, slices));
    let _between = large_of(&mut ranges, 1);
    options::set("purge_delay_ms", Some(DELAY)).expect("accepted");
    ranges.pass_time(1_000);
    give_back(&mut ranges, runs[0]);
    ranges.pass_time(1_000 + DELAY);
    assert_eq!(ranges.dirty_bytes, 64 * SLICE_BYTES, "it was freed in this period");
    let again = large_of(&mut ranges, 60);
    give_back(&mut ranges, again);
    ranges.pass_time(1_000 + 2 * DELAY - 1);
    assert_eq!(ranges.dirty_bytes, 64 * SLICE_BYTES, "the period is not over");
    ranges.pass_time(1_000 + 2 * DELAY);
    ranges.end_call();
    assert_eq!(ranges.dirty_bytes, 60 * SLICE_BYTES, "the other 60 were wanted");
    ranges.pass_time(1_000 + 3 * DELAY);
    while ranges.owes() {
        ranges.end_call();
    }
    assert_eq!(ranges.dirty_bytes, 0);
}

#[test]
fn runs_that_merge_late_leave_an_arena_that_a_delay_keeps() {
    run_alone!();
    let mut ranges = first().lock();
    let blocks = [16_000, 40].map(|slices| large_of(&mut ranges, slices));
    // Not in the same arena, which then grows no more.
    large_of(&mut ranges, 1_000);
    assert!(!ranges.is_growing(blocks[0].arena()));
    options::set("purge_delay_ms", Some(1_000_000)).expect("accepted");
    blocks.into_iter().for_each(|block| give_back(&mut ranges, block));
    ranges.merge_all();
    assert!(ranges.leaving.is_none(), "its time is not over");
}

#[test]
fn the_next_bit_is_found_around_the_end() {
    let found = [(0, 1), (1, 0b1011), (2, 0b1011), (4, 0b1011), (63, 0b10), (200, 1 << 7)];
    let expected = [0, 1, 3, 0, 1, 7];
    assert_eq!(found.map(|(from, bits)| next_from(from, bits)), expected);
}

#[test]
fn the_minimum_is_kept_by_all_stripes_together() {
    run_alone!();
    begin_with(8);
    options::set("retain_min", Some(32 * MIB)).expect("an option");
    let runs: Vec<_> = (0..64).map(|_| take(stripe(3), MIB_SLICES).expect("memory")).collect();
    stripe(3).lock().expect_nothing_back();
    runs.into_iter().for_each(free);
    settle_all();
    // It is given back a little further than must be.
    assert!(dirty_bytes() >= 31 * MIB, "{} MiB", dirty_bytes() / MIB);
    // With as much in another one, each has its share to keep.
    leave_dirty(stripe(4), 32);
    (3..5).for_each(|place| make_idle(stripe(place)));
    let kept = take(stripe(0), 1).expect("memory");
    for _ in 0..32 * VISITS_EVERY {
        free(take(stripe(0), 1).expect("memory"));
    }
    settle_all();
    assert!((31 * MIB..=64 * MIB).contains(&dirty_bytes()), "{} MiB", dirty_bytes() / MIB);
    assert!(dirty_bytes() <= 40 * MIB, "{} MiB", dirty_bytes() / MIB);
    free(kept);
}

#[test]
fn each_stripe_keeps_the_minimum_at_most() {
    run_alone!();
    begin_with(8);
    for place in 0..8 {
        let runs: Vec<_> =
            (0..30).map(|_| take(stripe(place), MIB_SLICES).expect("memory")).collect();
        runs.into_iter().for_each(free);
    }
    all().iter().for_each(|stripe| stripe.lock().pass_much_time());
    settle_all();
    // None has looked at the others yet.
    assert!(dirty_bytes() <= 8 * 4 * MIB, "{} MiB", dirty_bytes() / MIB);
}

#[test]
fn a_block_is_counted_by_the_stripe_of_its_run() {
    run_alone!();
    begin_with(2);
    leave_dirty(stripe(1), 1);
    make_idle(stripe(1));
    let run = stripe(0).lock().allocate(MIB_SLICES, 1, Kind::Large).expect("memory").first;
    let large = || [0, 1].map(|place| stripe(place).lock_waiting().large());
    assert_eq!(large(), [(0, 0), (1, MIB)]);
    // SAFETY: Handed out just now, as a large block's.
    unsafe { of(run).lock().free_large(run) };
    assert_eq!(large(), [(0, 0); 2]);
}

#[test]
fn an_arena_that_gets_no_memory_goes_although_a_lock_is_held() {
    run_alone!();
    static LOCK: Lock<()> = Lock::new(());
    let status = std::fs::read_to_string("/proc/self/status").expect("the kernel writes it");
    let data = status.lines().find_map(|line| line.strip_prefix("VmData:")).expect("a line");
    let data: u64 = data.trim().trim_end_matches(" kB").parse().expect("a number");
    // Room for an arena's head, and not for the run.
    let limit = (data << 10) + 64 * MIB as u64;
    let _held = LOCK.lock();
    let run = under_data_limit(limit, || {
        first().lock_in_others().allocate(512 * MIB_SLICES, 1, Kind::Page).is_some()
    });
    assert!(!run, "the test would show nothing");
}
