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
fn blocks_longer_than_an_arena_use_the_same_addresses_again() {
    let _turn = alone();
    let addresses: HashSet<usize> =
        (0..100).map(|_| Block::new(1100 * MIB).bytes().as_ptr().addr()).collect();
    assert!(addresses.len() < 10, "{} places for one block after another", addresses.len());
}
