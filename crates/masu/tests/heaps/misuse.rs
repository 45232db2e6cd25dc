//! Each misuse of a heap ends the program with a message, in a child process.

use std::alloc::GlobalAlloc;
use std::process::Command;

use masu::{Heap, Masu, c};

use crate::{bytes, filled};

/// A test with one misuse of `$heap`, and a flush of this thread's cache, which checks its blocks.
macro_rules! wrong {
    ($($name:ident($heap:ident) { $($wrong:tt)* })*) => {$(
        #[test]
        #[ignore = "a misuse; run by the test below"]
        fn $name() {
            let $heap = Heap::new();
            // SAFETY: None: this is the misuse.
            unsafe { $($wrong)* }
            c::trim(0);
        }
    )*};
}

wrong! {
    freed_twice(heap) {
        let block = filled(&heap, 100, 1);
        heap.dealloc(block, bytes(100));
        heap.dealloc(block, bytes(100));
    }
    freed_twice_large(heap) {
        let block = filled(&heap, 1 << 20, 1);
        heap.dealloc(block, bytes(1 << 20));
        heap.dealloc(block, bytes(1 << 20));
    }
    freed_twice_from_a_page(heap) {
        let block = filled(&heap, 5_000, 1).as_ptr();
        c::free(block);
        c::free(block);
    }
    freed_in_the_middle(heap) { c::free(filled(&heap, 100, 1).as_ptr().add(16)); }
    freed_in_the_middle_of_a_page(heap) { c::free(filled(&heap, 5_000, 1).as_ptr().add(64)); }
    freed_behind_the_last_block(heap) {
        // Three blocks of 320 bytes leave less than a fourth of 1 KiB.
        let block = (0..3).map(|_| filled(&heap, 300, 1)).max().expect("three blocks");
        c::free(block.as_ptr().add(320));
    }
    resized_in_the_middle(heap) { c::realloc(filled(&heap, 100, 1).as_ptr().add(16), 1_000); }
    freed_to_another_heap(heap) {
        let block = filled(&heap, 100, 1);
        let other = Heap::new();
        filled(&other, 100, 1);
        other.dealloc(block, bytes(100));
        // Before `other` is dropped.
        c::trim(0);
    }
    freed_to_the_global_allocator(heap) {
        Masu::new().dealloc(filled(&heap, 100, 1).as_ptr(), bytes(100));
    }
}

#[test]
fn misuse_ends_the_program_with_a_message() {
    for (name, message) in [
        ("freed_twice", "freed twice"),
        ("freed_twice_large", "freed twice"),
        ("freed_twice_from_a_page", "freed twice"),
        ("freed_in_the_middle", "middle of a block"),
        ("freed_in_the_middle_of_a_page", "middle of a block"),
        ("freed_behind_the_last_block", "middle of a block"),
        ("resized_in_the_middle", "middle of a block"),
        ("freed_to_another_heap", "another heap or to none"),
        ("freed_to_the_global_allocator", "another heap or to none"),
    ] {
        let program = std::env::current_exe().expect("a test is a program");
        let arguments = ["--exact", &format!("misuse::{name}"), "--ignored", "--nocapture"];
        let output = Command::new(program).args(arguments).output().expect("it starts again");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && printed.contains(message), "{name}: {printed}");
    }
}
