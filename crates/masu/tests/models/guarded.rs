//! Sampled guards: they are switched on and off while threads allocate and free guarded blocks.

use super::program::{alloc, begin, dealloc, free, malloc, models};
use crate::{options, statistics};

const SIZE: usize = 48;

fn guard(rate: usize) {
    options::set("guard_rate", Some(rate)).expect("a rate");
}

/// A thread that may notice both changes at any of its requests. There are two slots, which are used again.
fn on_and_off() {
    options::set("guard_slots", Some(2)).expect("a number of slots");
    let kept = alloc(SIZE);
    let other = begin(move || {
        let guarded_or_not = malloc(SIZE);
        dealloc(kept);
        free(guarded_or_not);
    });
    guard(1);
    let guarded = malloc(SIZE);
    guard(0);
    free(guarded);
    other.join().expect("it ends");
    let now = statistics::now();
    assert_eq!((now.guarded_blocks, now.guarded_made > 0), (0, true));
}

/// A thread frees the main thread's guarded block, whose slot is the only one.
fn used_again() {
    options::set("guard_slots", Some(1)).expect("a number of slots");
    free(malloc(SIZE));
    guard(1);
    let guarded = malloc(SIZE);
    assert_eq!(statistics::now().guarded_blocks, 1, "the model would show nothing");
    let other = begin(move || free(guarded));
    let next = malloc(SIZE);
    other.join().expect("it ends");
    free(next);
    guard(0);
    assert_eq!(statistics::now().guarded_blocks, 0);
}

models! {
    guards_are_switched_under_threads_that_allocate(on_and_off, 2);
    a_slot_is_used_again_by_another_thread(used_again, 3);
    a_slot_given_back_without_release_is_found(used_again, 3) without Release;
}
