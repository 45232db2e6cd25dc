//! Stripes of free runs: stripes are added while threads take and free runs, and are read one after the other.
//!
//! `src/memory/ranges/stripes/README.md` lists the races that must not happen.

extern crate std;

use std::mem::ManuallyDrop;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::program::{begin, models};
use crate::memory::arena::{self, Place};
use crate::memory::ranges::{Filling, SharedRanges, stripes};
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::platform::atomics;

/// The number of shards, so that there may be as many stripes.
const SHARDS: usize = 4;
/// More slices than an arena has, except an arena made for one block.
const LONG: usize = 20_000;
/// The slices of a block that gets the huge pages that it fills, if nothing else is live.
const FILLED: usize = 128;

fn take(from: &SharedRanges, slices: usize) -> &'static Slice {
    // A fault that loom finds here is reported once: releasing the lock would touch the same place again.
    let mut ranges = ManuallyDrop::new(from.lock());
    let run = ranges.allocate(slices, 1, Kind::Page).expect("memory").first;
    drop(ManuallyDrop::into_inner(ranges));
    atomics::writes(run.address());
    run
}

fn free(run: &'static Slice) {
    let slices = run.count.get() as usize;
    atomics::writes(run.address());
    let mut ranges = ManuallyDrop::new(stripes::of(run).lock());
    // SAFETY: `take` handed the run out, and nothing uses it.
    unsafe { ranges.free(run, slices, SLICE_BYTES) };
    drop(ManuallyDrop::into_inner(ranges));
}

/// Whether stripes were ever added: else the model would show nothing.
static WIDENED: AtomicBool = AtomicBool::new(false);

/// Two threads take and free runs, wait for each other and so add stripes; one thread frees a run of the other thread.
fn widen() {
    stripes::allow(SHARDS);
    let handed_on = take(stripes::for_thread(0), 1).address();
    let other = begin(move || {
        let run = take(stripes::for_thread(1), 2);
        // SAFETY: This is the slice of the run.
        free(unsafe { Slice::at(handed_on) });
        free(run);
    });
    let run = take(stripes::for_thread(2), 3);
    free(run);
    other.join().expect("it ends");
    if stripes::all().len() > 1 {
        WIDENED.store(true, Relaxed);
    }
    assert_eq!(stripes::read().live_bytes, 0);
}

/// One thread reads all stripes while another thread frees the last run of an arena, which is unmapped.
fn read_and_unmap() {
    stripes::allow(SHARDS);
    let run = take(stripes::first(), LONG);
    let address = run.address();
    let reader = begin(|| {
        let sums = stripes::read();
        assert!([0, LONG * SLICE_BYTES].contains(&sums.live_bytes));
    });
    // SAFETY: This is the slice of the run.
    free(unsafe { Slice::at(address) });
    reader.join().expect("it ends");
    assert_eq!(stripes::read().reserved_bytes, 0);
}

/// Every stripe is given up while threads take and free runs: nothing is lost and no thread waits forever.
fn give_up() {
    stripes::allow(SHARDS);
    let _ = stripes::widen_now();
    let kept = take(stripes::for_thread(0), 1);
    let other = begin(|| free(take(stripes::for_thread(1), 1)));
    stripes::give_up();
    other.join().expect("it ends");
    free(kept);
    stripes::give_up();
    let sums = stripes::read();
    assert_eq!((sums.live_bytes, sums.dirty_bytes, sums.reserved_bytes), (0, 0, 0));
}

/// A thread makes a long block, which is to begin with a huge page, while another thread gives up the growing arena, in
/// which nothing is live. No run of an unmapped arena stays.
fn fill_and_give_up() {
    let stripe = stripes::first();
    free(take(stripe, 1));
    let other = begin(|| _ = stripes::give_up());
    let mut ranges = ManuallyDrop::new(stripe.lock());
    let bytes = FILLED * SLICE_BYTES;
    let filling = Filling::of_new(bytes, false);
    let long = ranges.allocate_for(filling, FILLED, 1, Kind::Large).expect("memory").first;
    drop(ManuallyDrop::into_inner(ranges));
    other.join().expect("it ends");
    let short = take(stripe, 1);
    assert!(matches!(arena::place_of(short.address()), Place::In(_)), "it is unmapped");
    free(short);
    let mut ranges = ManuallyDrop::new(stripe.lock());
    // SAFETY: The run was handed out just now, and nothing uses it.
    unsafe { ranges.free_large(long) };
    drop(ManuallyDrop::into_inner(ranges));
    stripes::give_up();
    let sums = stripes::read();
    assert_eq!((sums.live_bytes, sums.dirty_bytes, sums.reserved_bytes), (0, 0, 0));
}

models! {
    stripes_become_more_while_threads_take_and_free(widen, 2) and WIDENED.load(Relaxed);
    no_arena_is_unmapped_while_it_is_read(read_and_unmap, 2);
    all_stripes_are_given_up(give_up, 1);
    // With two interruptions the next arena may lie where another thread has just unmapped one. Loom does not know that the
    // kernel orders both.
    an_arena_is_given_up_while_a_long_block_is_made(fill_and_give_up, 1);
    stripes_let_go_without_release_are_found(widen, 2) without Release;
    stripes_taken_without_acquire_are_found(widen, 2) without Acquire;
}
