//! Heaps as allocators of collections, by the feature `allocator-api2`.
#![cfg(feature = "allocator-api2")]
#![cfg_attr(feature = "nightly", feature(allocator_api))]

use masu::Heap;
use masu::allocator_api2::alloc::{Allocator, Layout};
use masu::allocator_api2::boxed::Box;
use masu::allocator_api2::vec::Vec;

#[test]
fn collections_share_a_heap_that_they_borrow() {
    let heap = Heap::new();
    let mut numbers = Vec::new_in(&heap);
    let mut texts = Vec::new_in(&heap);
    for number in 0..100_000_u64 {
        numbers.push(number);
        if number % 100 == 0 {
            let mut text = Vec::new_in(&heap);
            text.extend_from_slice(number.to_string().as_bytes());
            texts.push(text);
        }
    }
    assert!(numbers.iter().copied().eq(0..100_000));
    assert!(texts.iter().enumerate().all(|(i, t)| t[..] == *(i * 100).to_string().as_bytes()));
    assert!(heap.contains(numbers.as_ptr().cast()));
    assert_eq!(heap.statistics().live_blocks, 2 + 1_000);
    numbers.shrink_to(10);
    drop(texts);
    drop(numbers);
    assert_eq!(heap.statistics().live_blocks, 0);
}

#[test]
fn a_collection_may_own_its_heap() {
    let mut words = Vec::new_in(Heap::new());
    words.extend(["rice", "box"]);
    let boxed = Box::new_in([7_u64; 1_000], Heap::new());
    assert_eq!((words.len(), boxed[999]), (2, 7));
}

#[test]
fn grown_blocks_are_zeroed_and_have_the_new_alignment() {
    let heap = Heap::new();
    for (old, new) in [(10, 100), (1_000, 5_000), (40_000, 90_000), (100_000, 300_000)] {
        for (old_align, new_align) in [(8, 8), (8, 64), (64, 4_096), (4_096, 8)] {
            let layout = |size, align| Layout::from_size_align(size, align).expect("small");
            let (old, new) = (layout(old, old_align), layout(new, new_align));
            let block = heap.allocate(old).expect("there is memory").cast::<u8>();
            // SAFETY: The block is that long.
            unsafe { block.write_bytes(9, old.size()) };
            // SAFETY: The block is the heap's, of that layout, and the new layout is longer.
            let grown = unsafe { heap.grow_zeroed(block, old, new) }.expect("there is memory");
            assert!(grown.cast::<u8>().addr().get().is_multiple_of(new_align));
            // SAFETY: The block is that long and written.
            let bytes = unsafe { grown.as_ref() };
            assert!(bytes[..old.size()].iter().all(|byte| *byte == 9));
            assert!(bytes[old.size()..].iter().all(|byte| *byte == 0));
            // SAFETY: As above, and not used any more.
            unsafe { heap.deallocate(grown.cast(), new) };
        }
    }
    assert_eq!(heap.statistics().live_blocks, 0);
}
