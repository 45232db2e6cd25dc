//! The heap profile: it starts and stops while threads allocate and free, by C's functions and by layouts.

extern crate std;

use std::vec::Vec;

use super::program::{Block, Flag, alloc, begin, dealloc, free, leak, malloc, models};
use crate::{options, profile};
use loom::sync::Mutex;

const SIZE: usize = 48;

/// Starts a profile in which every byte is sampled.
fn start() {
    profile::start(Some(1)).expect("none is taken");
}

/// A thread that may notice the start and the stop at any of its requests.
fn start_and_stop() {
    let kept = alloc(SIZE);
    let other = begin(move || {
        let sampled_or_not = alloc(SIZE);
        dealloc(kept);
        let next = malloc(SIZE);
        dealloc(sampled_or_not);
        free(next);
    });
    start();
    let sampled = alloc(SIZE);
    profile::stop();
    dealloc(sampled);
    other.join().expect("it ends");
}

/// The second of two profiles: blocks that the first profile sampled are freed while another thread begins to sample.
fn again() {
    start();
    let sampled = (alloc(SIZE), malloc(SIZE));
    profile::stop();
    let other = begin(move || {
        dealloc(sampled.0);
        free(sampled.1);
        let next = alloc(SIZE);
        dealloc(next);
    });
    start();
    let sampled = alloc(SIZE);
    other.join().expect("it ends");
    dealloc(sampled);
    profile::stop();
}

/// Two sampled blocks. A thread frees them by layout, before or after it notices the profile, and passes them on when
/// it ends.
fn freed_together() {
    let (begun, begins): (&'static Flag, &'static Flag) = (leak(Flag::new()), leak(Flag::new()));
    options::set("shards", Some(1)).expect("an option");
    let kept = alloc(SIZE);
    let blocks: &'static Mutex<Vec<Block>> = leak(Mutex::new(Vec::new()));
    let other = begin(move || {
        dealloc(kept);
        begun.raise();
        begins.wait();
        std::mem::take(&mut *blocks.lock().expect("no thread panics"))
            .into_iter()
            .for_each(dealloc);
    });
    begun.wait();
    start();
    blocks.lock().expect("no thread panics").extend([alloc(SIZE), alloc(SIZE)]);
    begins.raise();
    profile::stop();
    other.join().expect("it ends");
}

/// A thread notices the end of the first profile while the second profile starts: it counts for the second.
fn restarted() {
    let (begun, begins): (&'static Flag, &'static Flag) = (leak(Flag::new()), leak(Flag::new()));
    start();
    let other = begin(move || {
        free(malloc(SIZE));
        begun.raise();
        free(malloc(SIZE));
        begins.wait();
        let block = malloc(SIZE);
        assert!(block.is_sampled(), "the thread counts no longer");
        free(block);
    });
    begun.wait();
    profile::stop();
    start();
    begins.raise();
    other.join().expect("it ends");
    profile::stop();
}

/// Only C's functions: these have no stack before a cache, and the class map says which blocks are sampled.
fn by_c_alone() {
    let kept = malloc(SIZE);
    let other = begin(move || {
        free(kept);
        free(malloc(SIZE));
    });
    start();
    free(malloc(SIZE));
    profile::stop();
    other.join().expect("it ends");
    free(malloc(SIZE));
}

models! {
    a_profile_starts_and_stops_under_threads_that_allocate(start_and_stop, 1);
    a_second_profile_starts_while_blocks_of_the_first_are_freed(again, 1);
    a_thread_counts_for_the_profile_that_is_taken(restarted, 1);
    sampled_blocks_that_are_freed_together_go_back_to_their_pages(freed_together, 1);
    a_profile_starts_and_stops_where_all_is_c(by_c_alone, 1);
    sampled_blocks_without_release_are_found(start_and_stop, 1) without Release;
}
