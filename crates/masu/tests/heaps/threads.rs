//! Any thread makes a heap, uses it, and drops it.

use std::sync::{Barrier, mpsc};
use std::thread;

use masu::{Heap, c};

use crate::{bytes, filled, is_filled, run_all};

/// A block on its way to another thread.
struct Sent(std::ptr::NonNull<u8>);

// SAFETY: A block is memory that only its holder uses.
unsafe impl Send for Sent {}

/// A thread still caches blocks of dropped heaps; the next heap, which has the same owner, must not get them.
#[test]
fn a_thread_that_outlives_heaps_is_served_by_the_next_one() {
    const WORKERS: usize = 4;
    let (start, end) = (Barrier::new(WORKERS + 1), Barrier::new(WORKERS + 1));
    let current = std::sync::RwLock::new(Heap::new());
    let rounds = if cfg!(debug_assertions) { 200 } else { 2_000 };
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (start, end, current) = (&start, &end, &current);
            scope.spawn(move || {
                for round in 0..rounds {
                    start.wait();
                    let heap = current.read().expect("no thread panics");
                    let fill = (worker * 50 + round % 50) as u8;
                    let blocks: Vec<_> =
                        (0..100).map(|size| (filled(&heap, size, fill), size)).collect();
                    for (block, size) in blocks {
                        assert!(is_filled(block, size, fill));
                        if size % 3 == 0 {
                            // SAFETY: The block is the heap's, of this layout, and not used any more.
                            unsafe { heap.dealloc(block, bytes(size)) };
                        }
                    }
                    drop(heap);
                    end.wait();
                }
                // A thread's end flushes its cache, which must not happen during the count.
                start.wait();
            });
        }
        for _ in 0..rounds {
            *current.write().expect("no thread panics") = Heap::new();
            start.wait();
            end.wait();
            let heap = current.read().expect("no thread panics");
            assert_eq!(heap.statistics().live_blocks, WORKERS * 66);
        }
        start.wait();
    });
}

#[test]
fn blocks_freed_by_other_threads_return_to_their_heap() {
    let heaps = [Heap::new(), Heap::new()];
    let (sender, receiver) = mpsc::channel::<(Sent, usize, u8)>();
    thread::scope(|scope| {
        let heaps = &heaps;
        let freeing = scope.spawn(move || {
            for (count, (block, size, fill)) in receiver.into_iter().enumerate() {
                assert!(is_filled(block.0, size, fill));
                let heap = &heaps[usize::from(fill % 2)];
                match count % 2 {
                    // SAFETY: The block is this heap's, of this layout, and not used any more.
                    0 => unsafe { heap.dealloc(block.0, bytes(size)) },
                    // SAFETY: As above.
                    _ => unsafe { c::free(block.0.as_ptr()) },
                }
            }
        });
        for turn in 0..50_000_usize {
            let (size, fill) = (turn * 7 % 2_000, turn as u8);
            let block = filled(&heaps[usize::from(fill % 2)], size, fill);
            sender.send((Sent(block), size, fill)).expect("the other thread goes on");
        }
        drop(sender);
        freeing.join().expect("no thread panics");
    });
    assert!(heaps.iter().all(|heap| heap.statistics().live_blocks == 0));
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn an_ended_thread_caches_nothing_of_a_heap() {
    let heap = Heap::new();
    thread::scope(|scope| {
        let use_it = || {
            let block = filled(&heap, 64, 1);
            // SAFETY: The block is the heap's, of this layout, and not used any more.
            unsafe { heap.dealloc(block, bytes(64)) };
            assert!(heap.statistics().cached_bytes > 0);
        };
        run_all(scope, [use_it]);
    });
    assert_eq!(heap.statistics().cached_bytes, 0);
}
