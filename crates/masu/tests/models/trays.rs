//! The transfer cache: blocks that one thread gives and another fetches.

extern crate std;

use std::vec::Vec;

use super::program::{begin, models};
use crate::blocks::ownership::Shard;
use crate::blocks::{slot, transfer};
use crate::memory::class::Class;
use crate::platform::atomics;

const SIZE: usize = 8 << 10;

fn take(count: usize) -> Vec<usize> {
    let class = Class::of_size(SIZE);
    let one = |_| match transfer::take_one(class) {
        0 => Shard(0).refill_one(class),
        block => block,
    };
    let blocks: Vec<usize> = (0..count).map(one).collect();
    assert!(blocks.iter().all(|block| *block != 0));
    blocks.iter().for_each(|block| atomics::writes(*block));
    blocks
}

fn give(blocks: &[usize]) {
    blocks.iter().for_each(|block| atomics::writes(*block));
    let _ = transfer::give(Class::of_size(SIZE), blocks);
}

/// Two threads give and take at once, and one of them also returns the transfer cache's blocks to their pages.
fn give_and_take() {
    slot::note_several();
    let first = take(4);
    give(&first[..2]);
    let rest = first[2..].to_vec();
    let other = begin(move || {
        give(&rest);
        give(&take(3));
    });
    let taken = take(2);
    transfer::trim();
    give(&taken);
    other.join().expect("it ends");
    transfer::trim();
    let counts = transfer::counts(Class::of_size(SIZE));
    assert_eq!((counts.kept, counts.given >= counts.fetched), (0, true));
}

models! {
    blocks_pass_through_the_transfer_cache_once(give_and_take, 2);
    a_lock_that_releases_relaxed_is_found(give_and_take, 2) without Release;
    a_lock_that_acquires_relaxed_is_found(give_and_take, 2) without Acquire;
}
