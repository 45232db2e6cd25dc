//! A profile that a thread has not noticed yet.
//!
//! It relies on its parent for the allocator.

use std::hint::black_box;
use std::sync::mpsc;
use std::thread;

use masu::profile;

use super::{Taken, now};

/// An older thread frees by layout without checks, until one of its stacks is empty or full.
#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn sampled_blocks_freed_before_a_thread_notices_the_profile_return_when_it_does() {
    const COUNT: usize = 30;
    let turn = Taken::turn();
    let (gives, given) = mpsc::channel::<Vec<Block>>();
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        // Makes room for that many blocks on the thread's stack of this size.
        drop(new_blocks(COUNT * 2, 1).collect::<Vec<_>>());
        done.send(()).expect("the test waits");
        let blocks = given.recv().expect("some");
        let start = blocks[0].as_ptr().addr();
        drop(blocks);
        let kept: Vec<_> = new_blocks(5_000, 2).collect();
        check(&kept, 2);
        // Each of these is sampled, and so comes from the pages of sampled blocks.
        assert!(kept.iter().any(|block| block.as_ptr().addr() == start), "it never returned");
        done.send(()).expect("the test waits");
        drop(given.recv());
        check(&kept, 2);
    });
    is_done.recv().expect("it began");
    profile::start(Some(1)).expect("none is taken");
    let before = now();
    let blocks: Vec<Block> = new_blocks(COUNT, 3).collect();
    // The test does not count live blocks, because the harness may free some.
    let allocated = now().allocated_blocks - before.allocated_blocks;
    assert!(allocated >= COUNT as i64, "{allocated}");
    gives.send(blocks).expect("it waits");
    is_done.recv().expect("it allocates");
    let live = now().live_blocks - before.live_blocks;
    assert!((4_000..5_200).contains(&live), "{live}");
    drop(gives);
    thread.join().expect("it ends");
    profile::stop();
    drop(turn);
}

/// A box that holds its owner and number.
type Block = Box<[usize; 12]>;

fn new_blocks(count: usize, owner: usize) -> impl Iterator<Item = Block> {
    (0..count).map(move |number| black_box(Box::new([owner << 32 | number; 12])))
}

fn check(blocks: &[Block], owner: usize) {
    for (number, block) in blocks.iter().enumerate() {
        assert!(block.iter().all(|word| *word == owner << 32 | number), "handed out twice");
    }
}
