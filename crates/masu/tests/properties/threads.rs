//! Threads free each other's blocks, end while their blocks live, and end in thousands.

use std::cell::RefCell;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::{Block, alone, next_below};

fn committed_bytes() -> usize {
    masu::c::statistics().committed_bytes
}

#[test]
fn a_million_blocks_pass_through_a_channel_in_little_memory() {
    let _turn = alone();
    let before = committed_bytes();
    let (to_freer, blocks) = sync_channel::<Block>(1_000);
    let freer = thread::spawn(move || blocks.into_iter().for_each(drop));
    let mut random = 2;
    for _ in 0..1_000_000 {
        let block = Block::new(16 + next_below(&mut random, 500));
        to_freer.send(block).expect("freer runs");
    }
    drop(to_freer);
    freer.join().expect("freer runs");
    let grown = committed_bytes().saturating_sub(before);
    assert!(grown <= 32 << 20, "0.5 MB live at once, 250 MB in all, committed {grown} more");
}

#[test]
fn two_thousand_short_threads_leave_no_memory_behind() {
    let _turn = alone();
    let start = masu::c::statistics();
    let mut settled = 0;
    for number in 0..2_000 {
        // A megabyte in small blocks: half is freed by the thread, half by a thread that outlives it.
        let work = move || {
            let mut random = number;
            let size = |_| 16 + next_below(&mut random, 1_000);
            let mut blocks: Vec<_> = (0..2_000).map(size).map(|s| Block::filled(s, 1)).collect();
            blocks.split_off(1_000)
        };
        let left_over = thread::spawn(work).join().expect("allocates and ends");
        drop(left_over);
        if number == 200 {
            settled = committed_bytes();
        }
    }
    let end = masu::c::statistics();
    assert_eq!(end.live_bytes, start.live_bytes);
    let committed = end.committed_bytes;
    assert!(committed <= settled + (4 << 20), "200 threads: {settled}, 2,000: {committed}");
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn a_new_thread_uses_the_cache_of_an_ended_one() {
    let _turn = alone();
    let cached_bytes = || masu::c::statistics().thread_cached_bytes;
    let start = masu::c::statistics();
    let mut after_one = 0;
    for number in 0..500 {
        let work = || drop((1..400).map(|n| Block::filled(4 * n, 1)).collect::<Vec<_>>());
        thread::spawn(work).join().expect("allocates and ends");
        if number == 0 {
            after_one = cached_bytes();
        }
    }
    let end = masu::c::statistics();
    assert_eq!(end.live_bytes, start.live_bytes);
    assert!(after_one > start.thread_cached_bytes, "the blocks of the first thread stay");
    assert!(cached_bytes() < 2 * after_one, "one: {after_one}, 500: {}", cached_bytes());
    masu::c::trim(0);
    assert!(cached_bytes() < 64 << 10, "{} bytes left in caches without a thread", cached_bytes());
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn caches_of_many_threads_are_bounded_together() {
    const THREADS: usize = 400;
    let _turn = alone();
    masu::c::trim(0);
    let (all_freed, end) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let work = || {
        drop((0..1_500).map(|n| Block::filled(16 + n % 1_000, 1)).collect::<Vec<_>>());
        all_freed.wait();
        end.wait();
    };
    let cached = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        all_freed.wait();
        let cached = masu::c::statistics().thread_cached_bytes;
        end.wait();
        threads.into_iter().for_each(|thread| thread.join().expect("allocates and ends"));
        cached
    });
    // Each thread gets a share of 64 MiB by the number of threads before it: 64 (1 + ln(400 / 64)) MiB at most
    // together.
    assert!(cached < 182 << 20, "{THREADS} threads that wait have {cached} bytes in their caches");
    assert!(cached > 20 << 20, "a thread keeps some of its 780 KB: {cached}");
}

#[test]
fn caches_of_ended_threads_are_bounded_together() {
    let _turn = alone();
    masu::c::trim(0);
    let barrier = Barrier::new(64);
    let work = || {
        drop((0..2_000).map(|n| Block::filled(n % 900, 1)).collect::<Vec<_>>());
        barrier.wait();
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(work)).collect();
        threads.into_iter().for_each(|thread| thread.join().expect("allocates and ends"));
    });
    let cached = masu::c::statistics().thread_cached_bytes;
    assert!(cached < 3 << 20, "64 threads ended and left {cached} bytes");
}

/// Frees and allocates when its thread ends.
struct Late(Vec<Block>);

impl Drop for Late {
    fn drop(&mut self) {
        self.0.clear();
        let again: Vec<_> = (0..100).map(|n| Block::filled(16 * n + 1, 1)).collect();
        drop(again);
    }
}

#[test]
fn blocks_may_be_freed_and_allocated_while_a_thread_ends() {
    thread_local! {
        static FIRST: RefCell<Late> = const { RefCell::new(Late(Vec::new())) };
        static LAST: RefCell<Late> = const { RefCell::new(Late(Vec::new())) };
    }
    let _turn = alone();
    let start = masu::c::statistics();
    for _ in 0..300 {
        let work = || {
            // One destructor is registered before the thread's first block, one after.
            FIRST.with_borrow_mut(|late| late.0.clear());
            let blocks = (0..200).map(|n| Block::filled(10 * n + 1, 1));
            FIRST.with_borrow_mut(|late| late.0.extend(blocks));
            LAST.with_borrow_mut(|late| late.0.push(Block::filled(100_000, 1)));
        };
        thread::spawn(work).join().expect("allocates and ends");
    }
    let end = masu::c::statistics();
    assert_eq!(end.live_bytes, start.live_bytes);
    let grown = end.committed_bytes.saturating_sub(start.committed_bytes);
    assert!(grown <= 16 << 20, "committed {grown} more");
}

#[test]
fn live_bytes_stay_plausible_while_threads_begin_and_end() {
    let _turn = alone();
    let live: Vec<Block> = (0..20_000).map(|_| Block::filled(1_000, 1)).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let work = || drop((0..4_000).map(|_| Block::new(64)).collect::<Vec<_>>());
                    thread::spawn(work).join().expect("allocates and ends");
                }
            });
        }
        // In the hardened build each reading takes every lock that a request takes.
        for _ in 0..if cfg!(feature = "secure") { 1_000 } else { 20_000 } {
            let counted = masu::c::statistics().live_bytes;
            assert!((10 << 20..1 << 30).contains(&counted), "20 MB are live, {counted} counted");
        }
        done.store(true, Ordering::Relaxed);
    });
    drop(live);
}
