//! Layouts whose pointer is wrong. Where a layout alone does not say what the block is, over 32 KiB, the pointer is looked at
//! at once, else when the block goes home to its page; and ends the program with a message if it is no block of masu's, or
//! not one of that layout. Each is wrong in a child of its own.

use std::alloc::{GlobalAlloc, Layout};
use std::process::Command;

use masu::{Heap, Masu};

static MASU: Masu = Masu::new();
/// Memory that is not masu's.
static NOBODYS: [u128; 1 << 16] = [0; 1 << 16];

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).expect("a fine layout")
}

fn nobodys() -> *mut u8 {
    NOBODYS.as_ptr().cast_mut().cast()
}

fn block(size: usize) -> *mut u8 {
    // SAFETY: The layout has a size.
    let block = unsafe { MASU.alloc(layout(size)) };
    assert!(!block.is_null());
    block
}

/// Frees a block that is kept unseen at first, and has everything go home.
///
/// # Safety
///
/// - None: that is what is wrong.
unsafe fn kept(block: *mut u8, size: usize) {
    // SAFETY: None, as above.
    unsafe { MASU.dealloc(block, layout(size)) };
    masu::c::trim(0);
}

/// A test that does one thing wrong.
macro_rules! wrong {
    ($($name:ident { $($wrong:tt)* })*) => {$(
        #[test]
        #[ignore = "is wrong; run by the test below"]
        fn $name() {
            // Has the thread begin.
            drop(Box::new(block(1)));
            // SAFETY: None: the pointer is what is wrong.
            unsafe { $($wrong)* }
        }
    )*};
}

wrong! {
    nobodys_of_a_class { MASU.dealloc(nobodys(), layout(48 << 10)) }
    nobodys_large { MASU.dealloc(nobodys(), layout(1 << 20)) }
    nobodys_aligned {
        MASU.dealloc(nobodys(), Layout::from_size_align(100, 128 << 10).expect("a fine layout"))
    }
    nobodys_resized { MASU.realloc(nobodys(), layout(1 << 20), 2 << 20); }
    nobodys_small { kept(nobodys(), 64) }
    a_large_block_as_a_small_one { kept(block(1 << 20), 64) }
    a_small_block_as_a_smaller_one { kept(block(1000), 48) }
    a_small_block_as_a_larger_one { kept(block(20), 5000) }
    inside_a_small_block { kept(block(200).add(16), 200) }
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
    nobodys_to_a_heap {
        let heap = Heap::new();
        let block = std::ptr::NonNull::new(nobodys()).expect("a static has an address");
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
    nobodys_resized_by_a_heap {
        let heap = Heap::new();
        let block = std::ptr::NonNull::new(nobodys()).expect("a static has an address");
        let _ = heap.realloc(block, layout(1 << 20), 2 << 20);
    }
}

#[test]
fn wrong_pointers_end_the_program_and_are_named() {
    const NOT_OURS: &str = "did not allocate";
    const ANOTHER_SIZE: &str = "layout that is not its own";
    const TWICE: &str = "freed twice";
    const INSIDE: &str = "middle of a block";
    const FREE: &str = "after it was freed";
    const ANOTHER: &str = "another heap or to none";
    for (name, said) in [
        ("nobodys_of_a_class", NOT_OURS),
        ("nobodys_large", NOT_OURS),
        ("nobodys_aligned", NOT_OURS),
        ("nobodys_resized", NOT_OURS),
        ("nobodys_small", NOT_OURS),
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
        ("nobodys_to_a_heap", NOT_OURS),
        ("a_large_block_to_a_heap", ANOTHER),
        ("a_large_block_to_another_heap", ANOTHER),
        ("nobodys_resized_by_a_heap", NOT_OURS),
    ] {
        let program = std::env::current_exe().expect("a test is a program");
        let arguments = ["--exact", name, "--ignored", "--nocapture"];
        let output = Command::new(program).args(arguments).output().expect("it starts again");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && printed.contains(said), "{name}: {printed}");
    }
}
