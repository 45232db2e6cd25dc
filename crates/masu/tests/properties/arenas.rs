//! Regressions of arenas: blocks about as long as an arena, many growing blocks, reused addresses.

use std::collections::HashSet;
use std::fs;

use crate::resident::resident_bytes;
use crate::{Block, alone};

const MIB: usize = 1 << 20;

/// Mappings of this process.
fn mappings() -> usize {
    fs::read_to_string("/proc/self/maps").expect("proc is mounted").lines().count()
}

#[test]
fn memory_of_a_block_near_one_gigabyte_is_used_again_without_overlap() {
    let _turn = alone();
    // Around the size from which a block gets an arena of its own.
    for megabytes in [1000, 1015, 1016, 1020, 1023, 1024] {
        drop(Block::new(megabytes * MIB));
        let mut blocks: Vec<Block> = (0..4000).map(|n| Block::filled(1000, n as u8)).collect();
        let kept = blocks.iter_mut().enumerate().all(|(n, block)| block.is_all(n as u8));
        assert!(kept, "blocks overlap after one of {megabytes} MiB");
    }
}

/// The most bytes of this process that were resident since the last call.
fn peak_resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    fs::write("/proc/self/clear_refs", "5").expect("proc is mounted");
    peak.trim().strip_suffix(" kB").and_then(|n| n.parse::<usize>().ok()).expect("a number") << 10
}

#[test]
#[cfg_attr(feature = "secure", ignore = "the guards of the hardened build are mappings")]
fn blocks_that_grow_side_by_side_need_few_mappings() {
    let _turn = alone();
    let before = mappings();
    let mut blocks: Vec<Block> = (0..200).map(|_| Block::new(MIB)).collect();
    for megabytes in 2..=4 {
        blocks = blocks
            .into_iter()
            .map(|block| block.resized(megabytes * MIB).ok().expect("800 MiB of addresses"))
            .collect();
    }
    let after = mappings();
    assert!(after < before + 100, "{before} mappings became {after}");
}

#[test]
fn shrinking_a_block_longer_than_an_arena_returns_memory() {
    let _turn = alone();
    let mut block = Block::new(1100 * MIB);
    block.bytes()[..200 * MIB].fill(1);
    let full = resident_bytes();
    let mut block = block.resized(MIB).ok().expect("shrinking needs no memory");
    let shrunk = resident_bytes();
    assert!(shrunk + 190 * MIB < full, "{full} bytes resident, then {shrunk}");
    assert!(block.is_all(1));
}

#[test]
#[cfg_attr(feature = "secure", ignore = "the hardened build keeps guards behind blocks")]
fn a_block_longer_than_an_arena_that_shrank_counts_as_short() {
    let _turn = alone();
    let before = masu::c::statistics();
    let block = Block::new(3000 * MIB).resized(1200 * MIB).ok().expect("shrinking needs no memory");
    assert_eq!(block.usable_size(), 1200 * MIB);
    let block = block.resized(MIB).ok().expect("shrinking needs no memory");
    assert_eq!(block.usable_size(), MIB);
    let after = masu::c::statistics();
    for (name, before, after) in [
        ("live", before.live_bytes, after.live_bytes),
        ("committed", before.committed_bytes, after.committed_bytes),
        ("reserved", before.reserved_bytes, after.reserved_bytes),
    ] {
        assert!(after < before + 16 * MIB, "{before} bytes {name}, then {after}");
    }
    // It grows, ends, and is freed as any other.
    let mut block = block.resized(1100 * MIB).ok().expect("there are addresses");
    block.bytes()[1099 * MIB..].fill(1);
    let long: Vec<Block> = (0..4).map(|_| Block::new(1100 * MIB)).collect();
    assert!(block.bytes()[1099 * MIB..].iter().all(|byte| *byte == 1));
    drop((block, long));
    let freed = masu::c::statistics();
    assert!(freed.reserved_bytes <= after.reserved_bytes, "{after:?}, then {freed:?}");
}

#[test]
fn blocks_longer_than_an_arena_use_the_same_addresses_again() {
    let _turn = alone();
    let addresses: HashSet<usize> =
        (0..100).map(|_| Block::new(1100 * MIB).bytes().as_ptr().addr()).collect();
    assert!(addresses.len() < 10, "{} places for one block after another", addresses.len());
}

#[test]
#[cfg_attr(feature = "secure", ignore = "the hardened build keeps guards behind blocks")]
fn a_block_longer_than_an_arena_grows_into_addresses_of_its_own() {
    const STEP: usize = 16 * MIB;
    const OS_PAGE: usize = 64 << 10;
    let _turn = alone();
    let before = resident_bytes();
    // From an ordinary arena on: the first moves are to other arenas.
    let mut block = Block::new(1008 * MIB);
    block.bytes()[..OS_PAGE].fill(1);
    let mut moves = 0;
    for end in (1024 * MIB..=2500 * MIB).step_by(STEP) {
        let place = block.start;
        block = block.resized(end).ok().expect("there are addresses");
        moves += usize::from(block.start != place);
        block.bytes()[end - OS_PAGE..].fill((end / STEP) as u8);
    }
    assert!(moves <= 4, "{moves} moves of a block that grew");
    let grown = resident_bytes();
    // The end of each step may be a huge page.
    assert!(grown < before + 400 * MIB, "{before} bytes resident, then {grown}");
    assert!(block.bytes()[..OS_PAGE].iter().all(|byte| *byte == 1));
    for end in (1024 * MIB..=2500 * MIB).step_by(STEP) {
        let written = &block.bytes()[end - OS_PAGE..end];
        assert!(written.iter().all(|byte| *byte == (end / STEP) as u8), "the end at {end}");
    }
}

#[test]
#[cfg_attr(feature = "secure", ignore = "the hardened build copies as a whole")]
fn a_block_longer_than_an_arena_that_moves_is_not_resident_twice() {
    const WRITTEN: usize = 300 * MIB;
    let _turn = alone();
    let mut block = Block::new(1100 * MIB);
    block.bytes()[..WRITTEN].fill(3);
    peak_resident_bytes();
    let before = resident_bytes();
    let mut block = block.resized(1500 * MIB).ok().expect("there are addresses");
    let after = peak_resident_bytes();
    assert!(after < before + WRITTEN / 2, "{before} bytes resident at most, then {after}");
    assert!(block.bytes()[..WRITTEN].iter().all(|byte| *byte == 3));
    assert!(block.bytes()[WRITTEN..WRITTEN + MIB].iter().all(|byte| *byte == 0));
}
