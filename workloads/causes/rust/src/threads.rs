//! Causes in the way threads share memory and work.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::kernel;
use crate::random::{Random, mix};

/// Buffers that a thread holds.
const BUFFERS: usize = 100;

/// glibc's thread caches end at 1,032 bytes: each of these requests takes the arena's lock.
const UNCACHED: usize = 1_100;
const UNCACHED_END: usize = 3_000;

const SERVERS: usize = 4;

/// Works like a server that builds answers in buffers that grow once.
pub fn arena_lock() -> u64 {
    kernel::one_arena();
    thread::scope(|scope| {
        let serve = |index: usize| {
            let mut random = Random::new(index as u64);
            let mut buffers: Vec<Vec<u8>> = vec![Vec::new(); BUFFERS];
            let mut sum = 0_u64;
            for round in 0..4_000_000 / SERVERS {
                let place = random.below(BUFFERS);
                let stamp = round as u8;
                let mut buffer = Vec::with_capacity(UNCACHED);
                buffer.resize(UNCACHED, stamp);
                buffer.resize(UNCACHED + random.below(UNCACHED_END - UNCACHED), stamp);
                let old = std::mem::replace(&mut buffers[place], buffer);
                assert_eq!(old.first(), old.last(), "a buffer does not hold what was written");
                sum = sum.wrapping_add(u64::from(old.first().copied().unwrap_or_default()));
            }
            sum
        };
        let threads = (0..SERVERS).map(|index| scope.spawn(move || serve(index)));
        let threads: Vec<_> = threads.collect();
        let sums = threads.into_iter().map(|thread| thread.join().expect("it says why it panics"));
        sums.fold(0, u64::wrapping_add)
    })
}

/// The numbers of a task.
const CHUNK: i64 = 100;

pub fn thread_per_task() -> u64 {
    let mut sum = 0_u64;
    let mut threads = Vec::new();
    let mut end = |threads: &mut Vec<(i64, thread::JoinHandle<i64>)>| {
        for (first, thread) in threads.drain(..) {
            let result = thread.join().expect("a sum does not panic");
            let expected = (2 * first + CHUNK - 1) * CHUNK / 2 * 100 / 10 + 1;
            assert_eq!(result, expected, "a chunk does not hold what was written");
            sum = sum.wrapping_add(result as u64);
        }
    };
    for task in 0..30_000 {
        let first = task * CHUNK + 1;
        let chunk: Vec<i64> = (first..first + CHUNK).collect();
        let add = move || chunk.iter().sum::<i64>() * 100 / 10 + 1;
        threads.push((first, thread::spawn(add)));
        if threads.len() == 16 {
            end(&mut threads);
        }
    }
    end(&mut threads);
    sum
}

/// Messages that are handed over at once, so that the channel is not the slow part.
const BATCH: usize = 256;

/// The smallest message: glibc frees blocks of up to 128 bytes without a lock.
const MESSAGE: usize = 200;
const MESSAGE_END: usize = 500;

pub fn producer_consumer() -> u64 {
    let (sender, receiver) = sync_channel::<Vec<Box<[u8]>>>(16);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut random = Random::new(0);
            for batch in 0..8_000_000 / BATCH {
                let message = |place: usize| {
                    let size = MESSAGE + random.below(MESSAGE_END - MESSAGE);
                    vec![(batch + place) as u8; size].into()
                };
                let messages = (0..BATCH).map(message).collect();
                sender.send(messages).expect("the other end takes all");
            }
        });
        let taker = scope.spawn(move || {
            let mut sum = 0_u64;
            // The last of each batch stays to the end: else the heap is empty now and then and goes back to the
            // kernel, which is another cause.
            let mut kept = Vec::new();
            for (batch, messages) in receiver.into_iter().enumerate() {
                for (place, message) in messages.into_iter().enumerate() {
                    let stamp = (batch + place) as u8;
                    let right = message[0] == stamp && message.last() == Some(&stamp);
                    assert!(right, "a message does not hold what was written");
                    sum = sum.wrapping_add(message.len() as u64);
                    if place == BATCH - 1 {
                        kept.push(message);
                    }
                }
            }
            sum
        });
        taker.join().expect("it says why it panics")
    })
}

/// The steps of work on each number in the parallel phase.
const TURNS: usize = 500;

/// How often the numbers are written and read.
const READINGS: u64 = 20;

/// One thread writes numbers as text and reads them back, several times; then all threads work on the numbers.
pub fn serial_phase() -> u64 {
    let mut words = vec![0_u64; 1 << 20];
    let mut text = String::new();
    for turn in 0..READINGS {
        for (place, word) in words.iter_mut().enumerate() {
            use std::fmt::Write as _;
            text.clear();
            write!(text, "{}", mix(place as u64 + turn)).expect("a text takes all");
            *word = text.parse().expect("what was written is a number");
        }
    }
    let share = words.len() / 2;
    thread::scope(|scope| {
        let handles: Vec<_> = words
            .chunks(share)
            .enumerate()
            .map(|(index, words)| {
                scope.spawn(move || {
                    let mut sum = 0_u64;
                    for (place, word) in words.iter().enumerate() {
                        let expected = mix((index * share + place) as u64 + READINGS - 1);
                        assert_eq!(*word, expected, "the numbers are not those that were written");
                        sum = sum.wrapping_add((0..TURNS).fold(*word, |word, _| mix(word)));
                    }
                    black_box(sum)
                })
            })
            .collect();
        let sums = handles.into_iter().map(|thread| thread.join().expect("it says why it panics"));
        sums.fold(0, u64::wrapping_add)
    })
}

/// The threads that yield.
const WORKERS: usize = 2;

/// The pieces of work.
const PIECES: usize = 10_000;

/// Works like a pool whose workers poll for work: one thread hands out pieces, and the others yield until there is
/// one.
pub fn spinning() -> u64 {
    let (handed, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (handed, done) = (&handed, &done);
    thread::scope(|scope| {
        let handles: Vec<_> = (0..WORKERS)
            .map(|index| {
                scope.spawn(move || {
                    let mut sum = index as u64;
                    for round in 0..PIECES {
                        while handed.load(Ordering::SeqCst) <= round {
                            thread::yield_now();
                        }
                        sum = mix(sum);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                    sum
                })
            })
            .collect();
        let mut sum = 0_u64;
        for round in 0..PIECES {
            sum = (0..40_000).fold(sum, |sum, _| mix(sum));
            handed.store(round + 1, Ordering::SeqCst);
            while done.load(Ordering::SeqCst) < WORKERS * (round + 1) {
                thread::yield_now();
            }
        }
        let sums = handles.into_iter().map(|thread| thread.join().expect("it says why it panics"));
        sums.fold(sum, u64::wrapping_add)
    })
}
