//! Caches of heaps: a thread has blocks of a heap cached while others use that heap, drop it, or make the next one.

extern crate std;

use std::boxed::Box;

use super::program::{Flag, alloc_in, begin, dealloc_in, leak, models};
use crate::Heap;
use crate::blocks::owner;
use crate::platform::sync::Visitor;

/// A size class: a thread caches five of its blocks, and fetches three at once.
const SIZE: usize = 2048;
const FETCHED: usize = 3;

/// A heap that threads share until one of them drops it.
fn share() -> (&'static Heap, *mut Heap) {
    let heap = Box::into_raw(Box::new(Heap::new()));
    // SAFETY: The heap was made just now; `end` is the last use.
    (unsafe { &*heap }, heap)
}

fn end(heap: *mut Heap) {
    // SAFETY: `share` made the heap, and nothing uses it any more.
    drop(unsafe { Box::from_raw(heap) });
}

/// A thread ends with a cached block of the main thread's, which returns to the page that the main thread fetches from.
fn used_by_two() {
    let (heap, raw) = share();
    let passed_on = alloc_in(heap, SIZE);
    let other = begin(move || dealloc_in(heap, passed_on));
    let own = [(); FETCHED].map(|()| alloc_in(heap, SIZE));
    own.into_iter().for_each(|block| dealloc_in(heap, block));
    other.join().expect("it ends");
    end(raw);
}

/// A thread ends with a cached block of a dropped heap, whose memory the next heap takes.
fn dropped() {
    let cached: &'static Flag = leak(Flag::new());
    let (heap, raw) = share();
    let other = begin(move || {
        dealloc_in(heap, alloc_in(heap, SIZE));
        cached.raise();
    });
    cached.wait();
    end(raw);
    let next = Heap::new();
    let one = alloc_in(&next, SIZE);
    other.join().expect("it ends");
    let two = alloc_in(&next, SIZE);
    dealloc_in(&next, one);
    dealloc_in(&next, two);
}

/// A thread makes a heap while `fork` visits the locks of all heaps, and must continue without the lock of the list of
/// heaps. It may miss the new heap then.
fn visited() {
    let visit = || {
        let mut visitor = Visitor::new(|lock, locks| *locks += usize::from(lock.is_free()) + 1);
        owner::each_lock_of_heaps(&mut visitor);
        visitor.number()
    };
    let other = begin(move || assert!(visit() <= 2 && visit() <= 2, "there is one heap"));
    let (heap, raw) = share();
    dealloc_in(heap, alloc_in(heap, SIZE));
    assert_eq!(visit(), 2, "its lock is free");
    end(raw);
    assert_eq!(visit(), 0, "its owner has no heap");
    other.join().expect("it ends");
}

models! {
    heaps_are_visited_while_another_thread_makes_one(visited, 3);
    a_block_cached_by_one_thread_is_not_handed_to_another(used_by_two, 3);
    a_block_cached_when_its_heap_was_dropped_is_forgotten(dropped, 3);
    blocks_returned_to_a_heap_without_release_are_found(used_by_two, 3) without Release;
    heaps_added_to_their_list_without_release_are_found(visited, 3) without Release;
}
