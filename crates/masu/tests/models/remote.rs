//! Remote stacks: blocks of another lane return to their lane, while lanes are added.

extern crate std;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

use super::program::{Block, begin, free, malloc, models};
use crate::memory::metadata;
use crate::{options, statistics};

/// The size of a class whose blocks have lanes.
const SIZE: usize = 16;
/// The number of blocks at which a remote stack is full, at first.
const FULL: usize = 32;
/// The number of entries that a remote stack has room for.
const ENTRIES: usize = 128;

fn set_shards(count: usize) {
    options::set("shards", Some(count)).expect("an option");
}

/// Blocks that a thread has to ask for until its first two batches are used up.
const BATCHES: usize = 75;

/// One thread frees the main thread's blocks: its remote stack fills up and is sent while the main thread refills.
fn remote_frees() {
    set_shards(2);
    let mut blocks: Vec<Block> = (0..BATCHES).map(|_| malloc(SIZE)).collect();
    let others = blocks.split_off(BATCHES - FULL - 1);
    let addresses: Vec<usize> = others.iter().map(Block::address).collect();
    let other = begin(move || others.into_iter().for_each(free));
    let again = malloc(SIZE);
    if addresses.contains(&again.address()) {
        FETCHED.store(true, Relaxed);
    }
    free(again);
    blocks.into_iter().for_each(free);
    other.join().expect("it ends");
    assert_eq!(statistics::now().lane_blocks, FULL + 1);
}

/// Whether a block that the other thread sent home was ever handed out again: else the model would show nothing.
static FETCHED: AtomicBool = AtomicBool::new(false);

/// A lane that did not exist when the remote stacks got their array.
fn more_lanes() {
    set_shards(2);
    let first = begin(|| malloc(SIZE));
    set_shards(4);
    let other = begin(|| malloc(SIZE));
    let own = malloc(SIZE);
    let (first, other) = (first.join().expect("it ends"), other.join().expect("it ends"));
    // The second block's lane comes after the first block's, so the array is lengthened.
    free(first);
    free(other);
    // The memory behind the array belongs to another owner.
    let behind = metadata::words(4 * ENTRIES).expect("there is memory");
    behind.fill(usize::MAX);
    free(own);
    assert!(behind.iter().all(|word| *word == usize::MAX));
}

models! {
    remote_frees_come_home_once(remote_frees, 1) and FETCHED.load(Relaxed);
    remote_stacks_follow_lanes_that_become_more(more_lanes, 1);
    blocks_sent_without_release_are_found(remote_frees, 1) without Release;
    blocks_fetched_without_acquire_are_found(remote_frees, 1) without Acquire;
}
