//! Properties of passes through a heap's sparse pages.

extern crate std;

use super::*;
use crate::platform::kernel;
use std::vec::Vec;

const BLOCK_BYTES: usize = 2048;
const BLOCKS: usize = (16 << 20) / BLOCK_BYTES;
/// Blocks that a cache flushes together.
const FLUSH: usize = 32;

#[test]
fn flushes_of_a_heap_stay_within_their_bound_and_release_all() {
    if kernel::page_size() > 16 << 10 {
        return;
    }
    let (class, owner) = (Class::of_size(BLOCK_BYTES), Owner::create().expect("memory"));
    let mut blocks = std::vec![0; BLOCKS];
    for some in blocks.chunks_mut(FLUSH) {
        assert_eq!(owner.take(class, some), some.len());
    }
    blocks.sort_unstable();
    for block in &blocks {
        // SAFETY: The block was taken just now. Writing makes its memory resident.
        unsafe { (*block as *mut u8).write_bytes(1, BLOCK_BYTES) };
    }
    // Every 64th block stays, one in 128 KiB.
    let (kept, freed): (Vec<_>, Vec<_>) = blocks.iter().enumerate().partition(|(i, _)| i % 64 == 0);
    let freed: Vec<_> = freed.into_iter().map(|(_, block)| *block).collect();
    let bound = STEP_RANGES + class.page_slices() * SLICE_BYTES / kernel::page_size();
    let start = kernel::advised_here();
    let mut flushes_with_calls = 0;
    for some in freed.chunks(FLUSH) {
        let before = kernel::advised_here();
        owner.put(class, some);
        let calls = kernel::advised_here().0 - before.0;
        assert!(calls <= bound, "{calls} in one flush");
        flushes_with_calls += usize::from(calls > 0);
    }
    assert!(flushes_with_calls > 1, "all pages in one call, or none");
    owner.holdings().trim(true);
    let purged = kernel::advised_here().1 - start.1;
    // Every second page keeps one block; the others are free runs, which may stay.
    let least = kept.len() * SLICE_BYTES / 4 * 3;
    assert!(purged >= least, "{purged} bytes of {least} went back");
    // SAFETY: The blocks were taken above and not put back.
    let is_whole = |block: &usize| unsafe { *(*block as *const u8) == 1 };
    assert!(kept.iter().all(|(_, block)| is_whole(block)), "live blocks are as they were");
    // SAFETY: Nothing uses the heap any more.
    unsafe { owner.destroy() };
}
