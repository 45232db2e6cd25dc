//! Idle caches: a thread begins with the cache of a thread that ended, while other threads empty idle caches.

use super::program::{begin, free, malloc, models};
use crate::options;
use crate::threads::cache::idle;

const SIZE: usize = 96;

/// A thread's whole life, with blocks left in its cache.
fn life() {
    let (one, other) = (malloc(SIZE), malloc(SIZE));
    free(one);
    free(other);
}

/// Lives that overlap or follow one another, while the main thread empties the warm idle caches.
fn lives() {
    let kept = malloc(SIZE);
    let first = begin(life);
    let second = begin(life);
    idle::empty_warm();
    free(kept);
    first.join().expect("it ends");
    second.join().expect("it ends");
}

/// A cache that its thread left holds a block that another thread wrote to. It is emptied because the budget became
/// smaller.
fn a_life_and_then_another() {
    begin(life).join().expect("it ends");
    let second = begin(life);
    options::set("cache_size", Some(0)).expect("an option");
    life();
    second.join().expect("it ends");
}

models! {
    a_cache_has_one_thread_at_a_time(lives, 2);
    a_cache_that_was_left_is_taken_over_in_order(a_life_and_then_another, 2);
    a_cache_left_without_release_is_found(lives, 2) without Release;
    a_cache_taken_without_acquire_is_found(lives, 2) without Acquire;
}
