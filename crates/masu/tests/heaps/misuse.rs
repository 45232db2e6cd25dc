//! Each misuse of a heap ends the program with a message, in a child process.

use std::alloc::GlobalAlloc;

use masu::{Heap, Masu, c};

use crate::{bytes, filled};

wrong! {
    misuse_ends_the_program_with_a_message
    before(let heap = Heap::new())
    // Flushes this thread's cache, which checks its blocks.
    after(c::trim(0))
    freed_twice("freed twice") {
        let block = filled(&heap, 100, 1);
        heap.dealloc(block, bytes(100));
        heap.dealloc(block, bytes(100));
    }
    freed_twice_large("freed twice") {
        let block = filled(&heap, 1 << 20, 1);
        heap.dealloc(block, bytes(1 << 20));
        heap.dealloc(block, bytes(1 << 20));
    }
    freed_twice_from_a_page("freed twice") {
        let block = filled(&heap, 5_000, 1).as_ptr();
        c::free(block);
        c::free(block);
    }
    freed_in_the_middle("middle of a block") { c::free(filled(&heap, 100, 1).as_ptr().add(16)); }
    freed_in_the_middle_of_a_page("middle of a block") { c::free(filled(&heap, 5_000, 1).as_ptr().add(64)); }
    freed_behind_the_last_block("middle of a block") {
        // Three blocks of 320 bytes leave less than a fourth of 1 KiB.
        let block = (0..3).map(|_| filled(&heap, 300, 1)).max().expect("three blocks");
        c::free(block.as_ptr().add(320));
    }
    resized_in_the_middle("middle of a block") { c::realloc(filled(&heap, 100, 1).as_ptr().add(16), 1_000); }
    freed_to_another_heap("another heap or to none") {
        let block = filled(&heap, 100, 1);
        let other = Heap::new();
        filled(&other, 100, 1);
        other.dealloc(block, bytes(100));
        // Before `other` is dropped.
        c::trim(0);
    }
    freed_to_the_global_allocator("another heap or to none") {
        Masu::new().dealloc(filled(&heap, 100, 1).as_ptr(), bytes(100));
    }
}
