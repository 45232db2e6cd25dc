//! A heap from its first block to its end.

use std::ptr::NonNull;
use std::thread;

use masu::{Heap, c};

use crate::alone::{self, run_alone};
use crate::resident::resident_bytes as resident;
use crate::{bytes, filled, is_filled};

/// Frees a block of [`filled`], which is not used any more.
fn free(heap: &Heap, block: NonNull<u8>, size: usize) {
    // SAFETY: The block is the heap's, of this layout.
    unsafe { heap.dealloc(block, bytes(size)) };
}

#[test]
fn dropping_a_heap_returns_its_memory() {
    run_alone!();
    const BYTES: usize = 256 << 20;
    let before = resident();
    let heap = Heap::new();
    let (mut sum, mut size) = (0, 16);
    while sum < BYTES {
        filled(&heap, size, 1);
        sum += size;
        size = size * 5 % 100_003 + 16;
    }
    let full = resident();
    assert!(full > before + BYTES / 2, "{before} {full}");
    assert!(heap.statistics().live_bytes >= BYTES);
    assert!(heap.statistics().committed_bytes >= heap.statistics().live_bytes);
    drop(heap);
    let after = resident();
    // Some memory is retained.
    assert!(after < before + BYTES / 4, "before {before}, full {full}, after {after}");
}

#[test]
fn statistics_count_the_live_blocks() {
    let heap = Heap::new();
    let sizes = [1, 16, 100, 1_000, 5_000, 40_000, 65_536, 200_000];
    let blocks: Vec<_> = sizes.iter().map(|size| (filled(&heap, *size, 7), *size)).collect();
    let usable: usize =
        // SAFETY: The blocks are live.
        blocks.iter().map(|(block, _)| unsafe { c::usable_size(block.as_ptr()) }).sum();
    let counts = heap.statistics();
    assert_eq!(counts.live_blocks, sizes.len());
    assert_eq!(counts.live_bytes, usable);
    assert_eq!((counts.large_blocks, counts.large_bytes), (1, 4 << 16));
    for (block, size) in blocks {
        assert!(is_filled(block, size, 7) && heap.contains(block.as_ptr()));
        free(&heap, block, size);
    }
    let counts = heap.statistics();
    assert_eq!((counts.live_blocks, counts.live_bytes, counts.large_blocks), (0, 0, 0));
}

#[test]
fn a_new_or_cleared_heap_owns_nothing() {
    let mut heap = Heap::new();
    assert_eq!(heap.statistics(), Default::default());
    assert!(!heap.contains(std::ptr::null()));
    for round in 0..100_u8 {
        let blocks: Vec<_> = (0..200).map(|size| (filled(&heap, size * 9, round), size)).collect();
        assert!(blocks.iter().all(|(block, size)| is_filled(*block, size * 9, round)));
        assert_eq!(heap.statistics().live_blocks, 200);
        heap.clear();
        assert_eq!(heap.statistics(), Default::default());
    }
}

/// A program may ask about any address, also about an address that no program has.
#[test]
fn no_address_beyond_all_memory_is_in_a_heap() {
    let heap = Heap::new();
    for size in [100, 5_000, 200_000] {
        let block = filled(&heap, size, 1).as_ptr();
        // aarch64 ignores the uppermost byte.
        let beyond = if cfg!(target_arch = "aarch64") { 48..56 } else { 47..64 };
        for bit in beyond {
            let other = block.map_addr(|address| address | 1 << bit);
            assert!(!heap.contains(other) && c::heap::of(other).is_null(), "{other:?}");
        }
        assert!(heap.contains(block) && !c::heap::of(block).is_null());
    }
}

#[test]
fn trim_releases_the_pages_of_an_emptied_heap() {
    let heap = Heap::new();
    let blocks: Vec<_> = (0..40).map(|index| (filled(&heap, index * 40 + 1, 1), index)).collect();
    for (block, index) in blocks {
        free(&heap, block, index * 40 + 1);
    }
    assert!(heap.statistics().committed_bytes > 0);
    c::trim(0);
    assert_eq!(heap.statistics().committed_bytes, 0);
}

/// Blocks of sizes that share a heap's first slice.
fn one_of_each(heap: &Heap, fill: u8) -> Vec<(NonNull<u8>, usize)> {
    (1..=1_024).step_by(33).map(|size| (filled(heap, size, fill), size)).collect()
}

#[test]
fn a_heap_of_few_blocks_has_one_slice_whatever_their_sizes() {
    let mut heap = Heap::new();
    for round in 0..10_u8 {
        let blocks = one_of_each(&heap, round);
        assert_eq!(heap.statistics().committed_bytes, 64 << 10);
        assert!(blocks.iter().all(|(block, size)| is_filled(*block, *size, round)));
        heap.clear();
    }
}

#[test]
fn classes_reuse_the_first_slice_of_a_heap() {
    let heap = Heap::new();
    // More classes than fit at once, one after another.
    for round in 0..100 {
        for size in [16, 48, 112, 304, 640, 1_024] {
            let size = size + round % 3;
            let blocks: Vec<_> = (0..50).map(|_| filled(&heap, size, 3)).collect();
            assert!(blocks.iter().all(|block| is_filled(*block, size, 3)));
            blocks.into_iter().for_each(|block| free(&heap, block, size));
            // The cache is flushed, and an empty class gives up its part of the slice.
            c::trim(0);
            assert_eq!(heap.statistics().committed_bytes, 0, "{size}");
        }
    }
}

#[test]
fn more_heaps_than_a_thread_caches_get_their_blocks_back() {
    let heaps: Vec<_> = (0..40).map(|_| Heap::new()).collect();
    for round in 0..50_u8 {
        for heap in &heaps {
            let blocks: Vec<_> = (0..20).map(|_| filled(heap, 48, round)).collect();
            assert!(blocks.iter().all(|block| is_filled(*block, 48, round)));
            blocks.into_iter().for_each(|block| free(heap, block, 48));
        }
    }
    assert!(heaps.iter().all(|heap| heap.statistics().live_blocks == 0));
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is cached in the hardened build")]
fn an_ended_thread_caches_nothing_of_a_heap() {
    let heap = Heap::new();
    let use_it = || {
        free(&heap, filled(&heap, 64, 1), 64);
        assert!(heap.statistics().cached_bytes > 0);
    };
    // A join waits for the thread's destructors; the end of a scope does not.
    thread::scope(|scope| scope.spawn(use_it).join().expect("no thread panics"));
    assert_eq!(heap.statistics().cached_bytes, 0);
}
