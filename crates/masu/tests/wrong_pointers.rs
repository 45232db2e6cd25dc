//! Wrong pointers passed with a layout end the program with a message, each in a child process: the pointer is no block
//! of masu's, or not a block of that layout. Above 32 KiB, where the layout does not determine the kind of block, a
//! free checks the pointer at once; smaller blocks are checked when they return to their page. The hardened build stops
//! at each too, with other messages: `crates/masu-abi/tests/hardened.rs`.
#![cfg(not(feature = "secure"))]

use std::alloc::{GlobalAlloc, Layout};

use masu::{Heap, Masu};

#[path = "../src/platform/alone.rs"]
mod alone;
#[macro_use]
#[path = "heaps/wrong.rs"]
mod wrong;

static MASU: Masu = Masu::new();
/// Memory that is not masu's.
static FOREIGN: [u128; 1 << 16] = [0; 1 << 16];

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).expect("a fine layout")
}

fn foreign() -> *mut u8 {
    FOREIGN.as_ptr().cast_mut().cast()
}

fn block(size: usize) -> *mut u8 {
    // SAFETY: The layout has a size.
    let block = unsafe { MASU.alloc(layout(size)) };
    assert!(!block.is_null());
    block
}

/// Frees a block, which is cached unchecked at first, and flushes the cache.
///
/// # Safety
///
/// - None: the pointer is wrong.
unsafe fn free_and_flush(block: *mut u8, size: usize) {
    // SAFETY: None, as above.
    unsafe { MASU.dealloc(block, layout(size)) };
    masu::c::trim(0);
}

const NOT_OURS: &str = "did not allocate";
const ANOTHER_SIZE: &str = "layout that is not its own";
const TWICE: &str = "freed twice";
const INSIDE: &str = "middle of a block";
const FREE: &str = "after it was freed";
const ANOTHER: &str = "another heap or to none";

wrong! {
    wrong_pointers_end_the_program_with_a_message
    // Starts the thread's cache.
    before(drop(Box::new(block(1))))
    // Before anything else could notice the misuse.
    after(std::process::exit(0))
    foreign_of_a_class(NOT_OURS) { MASU.dealloc(foreign(), layout(48 << 10)) }
    foreign_large(NOT_OURS) { MASU.dealloc(foreign(), layout(1 << 20)) }
    foreign_aligned(NOT_OURS) {
        MASU.dealloc(foreign(), Layout::from_size_align(100, 128 << 10).expect("a fine layout"))
    }
    foreign_resized(NOT_OURS) { MASU.realloc(foreign(), layout(1 << 20), 2 << 20); }
    foreign_small(NOT_OURS) { free_and_flush(foreign(), 64) }
    a_large_block_as_a_small_one(ANOTHER_SIZE) { free_and_flush(block(1 << 20), 64) }
    a_small_block_as_a_smaller_one(ANOTHER_SIZE) { free_and_flush(block(1000), 48) }
    a_small_block_as_a_larger_one(ANOTHER_SIZE) { free_and_flush(block(20), 5000) }
    inside_a_small_block(INSIDE) { free_and_flush(block(200).add(16), 200) }
    inside_large(INSIDE) { MASU.dealloc(block(1 << 20).add(4096), layout(1 << 20)) }
    far_inside_large(INSIDE) { MASU.dealloc(block(1 << 20).add(200_000), layout(1 << 20)) }
    far_inside_resized(INSIDE) { MASU.realloc(block(1 << 20).add(200_000), layout(1 << 20), 2 << 20); }
    twice_large(TWICE) {
        let (block, other) = (block(1 << 20), block(2 << 20));
        MASU.dealloc(block, layout(1 << 20));
        MASU.dealloc(block, layout(1 << 20));
        MASU.dealloc(other, layout(2 << 20));
    }
    resized_after_free(FREE) {
        let (block, other) = (block(1 << 20), block(2 << 20));
        MASU.dealloc(block, layout(1 << 20));
        MASU.realloc(block, layout(1 << 20), 500_000);
        MASU.dealloc(other, layout(2 << 20));
    }
    resized_while_parked(FREE) {
        for _ in 0..10 {
            MASU.dealloc(block(1 << 20), layout(1 << 20));
        }
        let block = block(1 << 20);
        MASU.dealloc(block, layout(1 << 20));
        MASU.realloc(block, layout(1 << 20), 1000 << 10);
    }
    a_heaps_large_resized(ANOTHER) {
        let heap = Heap::new();
        let block = heap.alloc(layout(1 << 20)).expect("memory");
        MASU.realloc(block.as_ptr(), layout(1 << 20), 2 << 20);
    }
    foreign_to_a_heap(NOT_OURS) {
        let heap = Heap::new();
        let block = std::ptr::NonNull::new(foreign()).expect("a static has an address");
        heap.dealloc(block, layout(1 << 20));
    }
    a_large_block_to_a_heap(ANOTHER) {
        let heap = Heap::new();
        let block = std::ptr::NonNull::new(block(1 << 20)).expect("memory");
        heap.dealloc(block, layout(1 << 20));
    }
    a_large_block_to_another_heap(ANOTHER) {
        let (heap, other) = (Heap::new(), Heap::new());
        let block = heap.alloc(layout(1 << 20)).expect("memory");
        other.alloc(layout(1 << 20)).expect("memory");
        other.dealloc(block, layout(1 << 20));
    }
    foreign_resized_by_a_heap(NOT_OURS) {
        let heap = Heap::new();
        let block = std::ptr::NonNull::new(foreign()).expect("a static has an address");
        let _ = heap.realloc(block, layout(1 << 20), 2 << 20);
    }
}
