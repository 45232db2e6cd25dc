//! Guarded blocks of a Rust program, freed by layout: each misuse ends a child process with a report.
//! `tests/oracle/combinations.rs` changes the options of guards while threads allocate.
//!
//! A block with a layout is as long as its class, so sizes here are those of classes. The hardened build has no such guards.
#![cfg(not(feature = "secure"))]

#[path = "../src/platform/alone.rs"]
mod alone;

use std::alloc::{GlobalAlloc, Layout};
use std::env;
use std::os::unix::process::ExitStatusExt;

use alone::run_alone;
use masu::{Masu, options, statistics};

static MASU: Masu = Masu::new();

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).expect("a fine layout")
}

#[inline(never)]
fn allocate(size: usize) -> *mut u8 {
    // SAFETY: The layout has a size.
    let block = unsafe { MASU.alloc(layout(size)) };
    assert!(!block.is_null());
    // SAFETY: The block is that long.
    unsafe { block.write_bytes(1, size) };
    block
}

/// # Safety
///
/// - As `GlobalAlloc::dealloc`.
#[inline(never)]
unsafe fn free(block: *mut u8, size: usize) {
    // SAFETY: The caller's condition.
    unsafe { MASU.dealloc(block, layout(size)) };
}

/// A guarded block at the end, or the start, of its OS page.
fn at_the_edge(size: usize, is_last: bool) -> *mut u8 {
    options::set("guard_rate", Some(1)).expect("a rate");
    // The first request is not counted, and cached blocks are used up first.
    let mut blocks = (0..200).map(|_| allocate(size));
    let end = if is_last { size } else { 0 };
    let found = blocks.find(|block| {
        statistics::now().guarded_made > 0 && (block.addr() + end).is_multiple_of(4096)
    });
    found.expect("one of so many lies there")
}

/// A test that does one thing wrong with a block of 64 bytes and with a block of 2,048 bytes.
macro_rules! wrong {
    ($($name:ident($block:ident, $size:ident, $is_last:literal) { $($wrong:tt)* })*) => {$(
        #[test]
        #[ignore = "a misuse; run by the test below"]
        fn $name() {
            let $size = env::var("MASU_TEST_SIZE").map_or(64, |size| size.parse().expect("a size"));
            let $block = at_the_edge($size, $is_last);
            // SAFETY: None: this is the misuse.
            unsafe { $($wrong)* }
        }
    )*};
}

wrong! {
    written_over(block, size, true) { block.add(size).write_volatile(1) }
    read_over(block, size, true) { std::hint::black_box(block.add(size).read_volatile()); }
    written_under(block, size, false) { block.sub(1).write_volatile(1); let _ = size; }
    written_freed(block, size, true) { free(block, size); block.write_volatile(1) }
    read_freed(block, size, true) { free(block, size); std::hint::black_box(block.read_volatile()); }
    freed_twice(block, size, true) { free(block, size); free(block, size) }
    freed_inside(block, size, true) { free(block.add(16), size) }
    written_behind(block, size, false) { block.add(size).write_volatile(1); free(block, size) }
}

#[test]
fn misuse_ends_the_program_with_a_report() {
    const SIGABRT: i32 = 6;
    const SIGSEGV: i32 = 11;
    for (name, said, signal, is_freed) in [
        ("written_over", "masu: buffer overflow: a write at ", SIGSEGV, false),
        ("read_over", "masu: buffer overflow: a read at ", SIGSEGV, false),
        ("written_under", "masu: buffer underflow: a write at ", SIGSEGV, false),
        ("written_freed", "masu: use after free: a write at ", SIGSEGV, true),
        ("read_freed", "masu: use after free: a read at ", SIGSEGV, true),
        ("freed_twice", "masu: double free: ", SIGABRT, true),
        ("freed_inside", "masu: invalid free: ", SIGABRT, false),
        ("written_behind", "masu: buffer overflow: a write seen when ", SIGABRT, false),
    ] {
        for size in [64, 2048] {
            let mut child = alone::again(name);
            let output = child.env("MASU_TEST_SIZE", size.to_string()).output().expect("it starts");
            let printed = String::from_utf8_lossy(&output.stderr);
            // Rust's own handler runs too, and ends the program with the same signal.
            assert_eq!(output.status.signal(), Some(signal), "{name} {size}: {printed}");
            assert!(printed.contains(said), "{name} {size}: {printed}");
            assert!(printed.contains("allocated by thread "), "{name}: {printed}");
            assert_eq!(printed.contains("  freed by thread "), is_freed, "{name}: {printed}");
        }
    }
}

/// Guarded blocks lie in slots outside all pages and runs: they take none of the free blocks of pages.
#[test]
fn guarded_blocks_lie_beside_pages() {
    run_alone!();
    const SIZE: usize = 512;
    allocate(SIZE);
    options::set("guard_rate", Some(1)).expect("a rate");
    (0..200).for_each(|_| _ = allocate(SIZE));
    let guarded = statistics::now().guarded_blocks;
    let class = statistics::classes().find(|class| class.size == SIZE).expect("a class");
    let in_caches = class.thread_cached_blocks + class.transfer_blocks;
    let in_pages = class.live_blocks - guarded + in_caches + class.free_blocks;
    assert!(guarded > 10, "{guarded}");
    assert_eq!(in_pages * SIZE + class.tail_bytes, class.pages * class.page_bytes, "{class:?}");
}

#[test]
fn guarded_blocks_do_not_count_under_a_memory_limit() {
    run_alone!();
    const SIZE: usize = 32 << 10;
    const BLOCKS: usize = 100;
    let in_runs = || {
        let now = statistics::now();
        now.live_bytes - now.guarded_bytes + now.free_bytes + now.metadata_bytes
    };
    allocate(SIZE);
    let limit = in_runs() + (1 << 20);
    options::set("memory_limit", Some(limit)).expect("a limit");
    options::set("guard_rate", Some(1)).expect("a rate");
    (0..BLOCKS).for_each(|_| _ = allocate(SIZE));
    let now = statistics::now();
    assert!(now.live_bytes > limit, "{now:?}");
    assert!(in_runs() <= limit, "{now:?}");
}
