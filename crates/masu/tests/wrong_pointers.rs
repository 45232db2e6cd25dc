//! Wrong pointers passed with a layout end the program with a message, each in a child process: the pointer is no block of
//! masu's, or not one of that layout. Above 32 KiB, where the layout does not determine the kind of block, a free checks the
//! pointer at once; smaller blocks are checked when they return to their page.

use std::alloc::{GlobalAlloc, Layout};
use std::process::Command;

use masu::{Heap, Masu};

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

/// A test with one misuse.
macro_rules! wrong {
    ($($name:ident { $($wrong:tt)* })*) => {$(
        #[test]
        #[ignore = "a misuse; run by the test below"]
        fn $name() {
            // Starts the thread's cache.
            drop(Box::new(block(1)));
            // SAFETY: None: the pointer is wrong.
            unsafe { $($wrong)* }
        }
    )*};
}

wrong! {
    foreign_of_a_class { MASU.dealloc(foreign(), layout(48 << 10)) }
    foreign_large { MASU.dealloc(foreign(), layout(1 << 20)) }
    foreign_aligned {
        MASU.dealloc(foreign(), Layout::from_size_align(100, 128 << 10).expect("a fine layout"))
    }
    foreign_resized { MASU.realloc(foreign(), layout(1 << 20), 2 << 20); }
    foreign_small { free_and_flush(foreign(), 64) }
    a_large_block_as_a_small_one { free_and_flush(block(1 << 20), 64) }
    a_small_block_as_a_smaller_one { free_and_flush(block(1000), 48) }
    a_small_block_as_a_larger_one { free_and_flush(block(20), 5000) }
    inside_a_small_block { free_and_flush(block(200).add(16), 200) }
    inside_large { MASU.dealloc(block(1 << 20).add(4096), layout(1 << 20)) }
    far_inside_large { MASU.dealloc(block(1 << 20).add(200_000), layout(1 << 20)) }
    far_inside_resized { MASU.realloc(block(1 << 20).add(200_000), layout(1 << 20), 2 << 20); }
    twice_large {
        let (block, other) = (block(1 << 20), block(2 << 20));
        MASU.dealloc(block, layout(1 << 20));
        MASU.dealloc(block, layout(1 << 20));
        MASU.dealloc(other, layout(2 << 20));
    }
    resized_after_free {
        let (block, other) = (block(1 << 20), block(2 << 20));
        MASU.dealloc(block, layout(1 << 20));
        MASU.realloc(block, layout(1 << 20), 500_000);
        MASU.dealloc(other, layout(2 << 20));
    }
    resized_while_parked {
        for _ in 0..10 {
            MASU.dealloc(block(1 << 20), layout(1 << 20));
        }
        let block = block(1 << 20);
        MASU.dealloc(block, layout(1 << 20));
        MASU.realloc(block, layout(1 << 20), 1000 << 10);
    }
    a_heaps_large_resized {
        let heap = Heap::new();
        let block = heap.alloc(layout(1 << 20)).expect("memory");
        MASU.realloc(block.as_ptr(), layout(1 << 20), 2 << 20);
    }
    foreign_to_a_heap {
        let heap = Heap::new();
        let block = std::ptr::NonNull::new(foreign()).expect("a static has an address");
        heap.dealloc(block, layout(1 << 20));
    }
    a_large_block_to_a_heap {
        let heap = Heap::new();
        let block = std::ptr::NonNull::new(block(1 << 20)).expect("memory");
        heap.dealloc(block, layout(1 << 20));
    }
    a_large_block_to_another_heap {
        let (heap, other) = (Heap::new(), Heap::new());
        let block = heap.alloc(layout(1 << 20)).expect("memory");
        other.alloc(layout(1 << 20)).expect("memory");
        other.dealloc(block, layout(1 << 20));
    }
    foreign_resized_by_a_heap {
        let heap = Heap::new();
        let block = std::ptr::NonNull::new(foreign()).expect("a static has an address");
        let _ = heap.realloc(block, layout(1 << 20), 2 << 20);
    }
}

#[test]
fn wrong_pointers_end_the_program_with_a_message() {
    const NOT_OURS: &str = "did not allocate";
    const ANOTHER_SIZE: &str = "layout that is not its own";
    const TWICE: &str = "freed twice";
    const INSIDE: &str = "middle of a block";
    const FREE: &str = "after it was freed";
    const ANOTHER: &str = "another heap or to none";
    for (name, said) in [
        ("foreign_of_a_class", NOT_OURS),
        ("foreign_large", NOT_OURS),
        ("foreign_aligned", NOT_OURS),
        ("foreign_resized", NOT_OURS),
        ("foreign_small", NOT_OURS),
        ("a_large_block_as_a_small_one", ANOTHER_SIZE),
        ("a_small_block_as_a_smaller_one", ANOTHER_SIZE),
        ("a_small_block_as_a_larger_one", ANOTHER_SIZE),
        ("inside_a_small_block", INSIDE),
        ("inside_large", INSIDE),
        ("far_inside_large", INSIDE),
        ("far_inside_resized", INSIDE),
        ("twice_large", TWICE),
        ("resized_after_free", FREE),
        ("resized_while_parked", FREE),
        ("a_heaps_large_resized", ANOTHER),
        ("foreign_to_a_heap", NOT_OURS),
        ("a_large_block_to_a_heap", ANOTHER),
        ("a_large_block_to_another_heap", ANOTHER),
        ("foreign_resized_by_a_heap", NOT_OURS),
    ] {
        let program = std::env::current_exe().expect("a test is a program");
        let arguments = ["--exact", name, "--ignored", "--nocapture"];
        let output = Command::new(program).args(arguments).output().expect("it starts again");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && printed.contains(said), "{name}: {printed}");
    }
}
