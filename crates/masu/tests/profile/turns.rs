//! Profiles one after another with few shards: blocks allocated during a profile are freed after it, and the reverse.
//!
//! It relies on its parent for the allocator. The number of shards is read once from a variable, so each test runs this
//! program again; the child checks every block that it gets.

use std::collections::VecDeque;
use std::hint::black_box;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use masu::profile;

use super::{Taken, now};

/// Runs the child `name` with so many shards, and kills it if it hangs.
fn run(name: &str, shards: usize) {
    let mut program = Command::new(std::env::current_exe().expect("this program has a path"));
    program.args(["--exact", &format!("turns::{name}"), "--ignored", "--nocapture"]);
    program.args(["--test-threads", "1"]).env("MASU_SHARDS", shards.to_string());
    let mut child = program.env_remove("MASU_PROFILE").spawn().expect("it starts");
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().expect("a child");
            panic!("{name} with {shards} shards hangs");
        }
        thread::sleep(Duration::from_millis(5));
    };
    assert!(status.success(), "{name} with {shards} shards: {status}");
}

#[test]
fn successive_profiles_hand_no_block_out_twice() {
    for shards in [1, 1, 1, 2] {
        run("one_thread", shards);
        run("threads", shards);
    }
}

/// An older thread frees by layout without checks, until one of its stacks is empty or full.
#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn sampled_blocks_freed_before_a_thread_notices_the_profile_return_when_it_does() {
    const COUNT: usize = 30;
    let turn = Taken::turn();
    let (gives, given) = mpsc::channel::<Vec<Block>>();
    let (done, is_done) = mpsc::channel();
    let thread = thread::spawn(move || {
        // Makes room for so many on its stack of this size.
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
    // Not the live ones, of which the harness may free some.
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

#[test]
#[ignore = "run by a test that sets variables"]
fn one_thread() {
    for _ in 0..6 {
        profile::start(Some(2 << 10)).expect("none is taken");
        let mut blocks: Vec<Block> = new_blocks(20_000, 1).collect();
        profile::stop();
        blocks.extend(new_blocks(20_000, 1).zip(20_000..).map(|(mut block, number)| {
            block.fill(1 << 32 | number);
            block
        }));
        check(&blocks, 1);
    }
}

/// Allocates and frees, the oldest first.
fn churn(owner: usize, turns: usize) {
    for _ in 0..turns {
        let mut blocks: VecDeque<Block> = new_blocks(5_000, owner).collect();
        for round in 0..3 {
            let some: Vec<Block> = blocks.drain(..blocks.len() / 2).collect();
            check(&some, owner);
            drop(some);
            let more = blocks.len();
            blocks = new_blocks(more * 2 + round, owner).collect();
        }
    }
}

#[test]
#[ignore = "run by a test that sets variables"]
fn threads() {
    thread::scope(|scope| {
        let threads: Vec<_> = (1..4).map(|owner| scope.spawn(move || churn(owner, 10))).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            profile::start(Some(1 << 10)).expect("none is taken");
            churn(7, 1);
            profile::stop();
            let handed_over: Vec<Block> = new_blocks(10_000, 8).collect();
            check(&handed_over, 8);
            scope.spawn(move || check(&handed_over, 8));
        }
    });
}
