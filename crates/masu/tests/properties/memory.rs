//! Memory is returned to the system when free, retained if it is soon reused, and stays in place where it fits.

use std::fs;

use crate::resident::resident_bytes;
use crate::{Block, alone, next_below};

/// Page faults of this thread that needed no disk.
fn minor_faults() -> usize {
    let stat = fs::read_to_string("/proc/thread-self/stat").expect("proc is mounted");
    let (_, fields) = stat.rsplit_once(')').expect("a name in parentheses");
    // `proc(5)`: the tenth field; two lie before the parenthesis.
    fields.split_whitespace().nth(7).and_then(|n| n.parse().ok()).expect("a number")
}

/// A size as programs have them: mostly small, with some large ones in between.
fn mixed_size(random: &mut u64) -> usize {
    match next_below(random, 100) {
        0..=69 => 16 + next_below(random, 500),
        70..=89 => 512 + next_below(random, 8_000),
        90..=98 => 8_192 + next_below(random, 100_000),
        _ => 100_000 + next_below(random, 2_000_000),
    }
}

/// Blocks of mixed sizes, written whole, until they are `bytes` together.
fn mixed_blocks(bytes: usize, random: &mut u64) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut sum = 0;
    while sum < bytes {
        let size = mixed_size(random);
        sum += size;
        blocks.push(Block::filled(size, 1));
    }
    blocks
}

fn shuffle(blocks: &mut [Block], random: &mut u64) {
    for end in (1..blocks.len()).rev() {
        blocks.swap(end, next_below(random, end + 1));
    }
}

#[test]
fn free_memory_is_purged_and_trim_purges_more() {
    let _turn = alone();
    masu::c::trim(0);
    let start = resident_bytes();
    let mut random = 4;
    let mut blocks = mixed_blocks(512 << 20, &mut random);
    shuffle(&mut blocks, &mut random);
    let full = resident_bytes();
    assert!(full >= start + (500 << 20), "the blocks were written: {start} to {full}");
    drop(blocks);
    let freed = resident_bytes();
    let counts = masu::c::statistics();
    // Quarantined blocks, up to 64 KiB of each class in each shard, keep their pages: 30 MB on two CPUs.
    let quarantined = if cfg!(feature = "secure") { 24 << 20 } else { 0 };
    let most = start + (96 << 20) + quarantined;
    assert!(freed <= most, "{start}, full {full}, freed {freed}, {counts:?}");
    masu::c::trim(0);
    let trimmed = resident_bytes();
    assert!(trimmed <= start + (24 << 20) + quarantined, "{start}, full {full}, trimmed {trimmed}");
}

/// Blocks of 1,000 bytes from `make`, written: the first half, and one in 64 of the others, which `free` frees. Returns the
/// bytes that are resident less after a trim.
fn trimmed_inside_pages<B>(
    make: impl Fn() -> B,
    write: impl Fn(&mut B),
    free: impl Fn(B),
) -> usize {
    const COUNT: usize = 64 << 10;
    let mut blocks: Vec<B> = (0..COUNT).map(|_| make()).collect();
    blocks.iter_mut().for_each(write);
    let (live, freed): (Vec<_>, Vec<_>) =
        blocks.into_iter().enumerate().partition(|(n, _)| *n < COUNT / 2 || n % 64 == 0);
    freed.into_iter().for_each(|(_, block)| free(block));
    let before = resident_bytes();
    masu::c::trim(0);
    let after = resident_bytes();
    live.into_iter().for_each(|(_, block)| free(block));
    before.saturating_sub(after)
}

#[test]
fn a_trim_purges_inside_pages_although_most_blocks_are_live() {
    let _turn = alone();
    // SAFETY: The call reads a constant.
    if unsafe { libc::sysconf(libc::_SC_PAGESIZE) } > 16 << 10 {
        return;
    }
    masu::c::trim(0);
    let by_shards =
        trimmed_inside_pages(|| Block::new(1000), |block| block.bytes().fill(1), std::mem::drop);
    let heap = masu::Heap::new();
    let layout = std::alloc::Layout::from_size_align(1000, 8).expect("a layout");
    let in_heap = trimmed_inside_pages(
        || heap.alloc(layout).expect("memory"),
        // SAFETY: The block is that long, live, and nothing else uses it.
        |block| unsafe { block.write_bytes(1, 1000) },
        // SAFETY: The block is the heap's, with this layout, and is not used again.
        |block| unsafe { heap.dealloc(block, layout) },
    );
    // 32 MB were freed.
    assert!(by_shards > 16 << 20, "{by_shards} bytes went back");
    assert!(in_heap > 16 << 20, "{in_heap} bytes of a heap went back");
}

#[test]
#[cfg_attr(feature = "secure", ignore = "freed large blocks are not retained there")]
fn a_large_block_made_and_freed_in_turns_does_not_fault_each_time() {
    let _turn = alone();
    let round = || {
        let mut block = Block::new(64 << 20);
        block.bytes().iter_mut().step_by(1 << 20).for_each(|byte| *byte = 1);
    };
    let before = minor_faults();
    (0..10_000).for_each(|_| round());
    let faults = minor_faults() - before;
    // If memory were purged every time, the 64 OS pages that a round touches would fault 640,000 times.
    assert!(faults < 20 * 64, "{faults} faults");
}

#[test]
#[cfg_attr(feature = "secure", ignore = "a block that grows out of its guards is copied")]
fn a_block_grown_in_steps_is_not_copied_each_time() {
    let _turn = alone();
    let mut block = Block::filled(1 << 20, 1);
    let before = minor_faults();
    for megabytes in 2..=256 {
        block = block.resized(megabytes << 20).ok().expect("256 MiB");
    }
    let faults = minor_faults() - before;
    assert!(block.bytes()[..1 << 20].iter().all(|&byte| byte == 1));
    // Only the first 256 OS pages were ever written. Copies would read the rest too, 8 million OS pages.
    assert!(faults < 20_000, "{faults} faults");
}

#[test]
#[cfg_attr(feature = "secure", ignore = "its blocks are as long as what was asked for")]
fn a_small_block_grown_in_steps_moves_seldom() {
    let _turn = alone();
    let (mut block, mut moves) = (Block::filled(1_000, 1), 0);
    for length in (1_000..32_000).step_by(100) {
        let start = block.start;
        block = block.resized(length).ok().expect("memory");
        moves += usize::from(block.start != start);
    }
    // 1,000 bytes grow to 32,000 in 16 steps of a quarter; there are 40 classes.
    assert!(moves <= 18, "{moves} moves");
    // A block that grows to its final length in one step has no more than its class.
    let grown = Block::filled(1_000, 1).resized(2_000).ok().expect("memory");
    assert_eq!(grown.usable_size(), Block::new(2_000).usable_size());
}

#[test]
fn a_long_block_is_resident_only_where_it_was_written() {
    let _turn = alone();
    masu::c::trim(0);
    let start = resident_bytes();
    for length in [128 << 20, 2 << 30] {
        let mut block = Block::new(length);
        block.bytes().iter_mut().step_by(length / 8).for_each(|byte| *byte = 1);
        let resident = resident_bytes();
        // Eight places are written. Each may make a huge page resident, but no huge page is as large as an eighth of
        // the block.
        assert!(resident <= start + length / 4, "{length}: {start}, then {resident}");
    }
}

/// Makes and frees a block of `size` in turns, so that it ends up parked.
fn make_in_turns(size: usize) {
    (0..10).for_each(|_| drop(Block::filled(size, 1)));
}

#[test]
#[cfg_attr(feature = "secure", ignore = "freed large blocks are not retained there")]
fn a_large_block_made_and_freed_in_turns_is_counted_and_trimmed_like_others() {
    let _turn = alone();
    masu::c::trim(0);
    let start = masu::c::statistics();
    for size in [64 << 10, 1 << 20] {
        make_in_turns(size);
        let now = masu::c::statistics();
        assert_eq!((now.live_bytes, now.large_blocks), (start.live_bytes, start.large_blocks));
    }
    let kept = masu::c::statistics().free_bytes;
    masu::c::trim(0);
    let trimmed = masu::c::statistics().free_bytes;
    assert!(trimmed + (1 << 20) <= kept, "{kept} free before the trim, {trimmed} after");
}

#[test]
#[cfg_attr(feature = "secure", ignore = "freed large blocks are not retained there")]
fn a_parked_block_makes_room_for_a_longer_one() {
    let _turn = alone();
    let free_bytes = || masu::c::statistics().free_bytes;
    masu::c::trim(0);
    make_in_turns(1 << 20);
    // The longer block uses the parked megabyte, which does not stay free beside the block. It uses all of the
    // megabyte, or begins in free memory without pages before the megabyte and uses the part that it still needs. From
    // 2 MiB on, a block may begin at a huge page inside it.
    let before = free_bytes();
    let mut longer = Block::new(3 << 19);
    longer.bytes()[0] = 1;
    assert!(free_bytes() < before, "{before} free, then {}", free_bytes());
}

#[test]
fn a_block_stays_where_it_is_within_its_usable_size() {
    let _turn = alone();
    for size in [1, 100, 4_000, 32 << 10, 33_000, 300_000, 3 << 20, 40 << 20] {
        let block = Block::new(size);
        let (start, usable) = (block.start, block.usable_size());
        let block = block.resized(usable).ok().expect("the size it has");
        assert_eq!((block.start, block.usable_size()), (start, usable), "{size} bytes");
    }
}
