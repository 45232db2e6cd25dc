//! masu as this program's own allocator, also of the test harness, its threads and all collections.

use std::alloc::{GlobalAlloc, Layout};

#[global_allocator]
static GLOBAL: masu::Masu = masu::Masu::new();

#[test]
fn blocks_of_this_program_are_masus() {
    let bytes = vec![1_u8; 300 << 20];
    let live = masu::c::statistics().live_bytes;
    assert!(live >= bytes.len(), "{live} bytes live, 300 MiB in one block");
}

#[test]
fn usable_size_covers_the_layout_and_stays_writable() {
    for (size, align) in [(1, 1), (8, 8), (100, 16), (5_000, 64), (70_000, 8), (3 << 20, 4_096)] {
        let layout = Layout::from_size_align(size, align).expect("a layout");
        // SAFETY: The layout is not empty; the block is written within its usable size and freed with its layout.
        unsafe {
            let block = GLOBAL.alloc(layout);
            let usable = GLOBAL.usable_size(block, layout);
            assert!((size..=size + (64 << 10)).contains(&usable), "{usable} for {layout:?}");
            block.write_bytes(0xa5, usable);
            assert_eq!(GLOBAL.usable_size(block, layout), usable);
            GLOBAL.dealloc(block, layout);
        }
    }
}
