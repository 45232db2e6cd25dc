//! Requests and their results: size zero, too much, any alignment, another size.

use std::collections::BTreeSet;

use crate::{Block, alone};

const ENOMEM: i32 = 12;

/// Small, the largest small, large, and mapped on its own.
const SIZES: [usize; 8] = [1, 100, 4_000, 32 << 10, 33_000, 300_000, 3 << 20, 40 << 20];

fn errno() -> *mut i32 {
    unsafe extern "C" {
        safe fn __errno_location() -> *mut i32;
    }
    __errno_location()
}

/// The `errno` after `call`, 0 before.
fn errno_after(call: impl FnOnce()) -> i32 {
    // SAFETY: The C library's pointer is this thread's own.
    unsafe { errno().write(0) };
    call();
    // SAFETY: As above.
    unsafe { errno().read() }
}

#[test]
fn an_impossible_size_gives_enomem_and_keeps_the_old_block() {
    let _turn = alone();
    let over = isize::MAX as usize + 1;
    for too_much in [(1 << 47) + 1, over - 4096, over - 1, over, usize::MAX - 4096, usize::MAX] {
        assert_eq!(errno_after(|| assert!(masu::c::malloc(too_much).is_null())), ENOMEM);
        assert_eq!(errno_after(|| assert!(masu::c::calloc(1, too_much).is_null())), ENOMEM);
        let aligned = || assert!(masu::c::aligned_alloc(1 << 16, too_much).is_null());
        assert_eq!(errno_after(aligned), ENOMEM);
        for size in SIZES {
            let mut block = Some(Block::filled(size, 0x5a));
            let resize = || block = block.take().and_then(|block| block.resized(too_much).err());
            assert_eq!(errno_after(resize), ENOMEM, "{size} bytes to {too_much}");
            assert!(block.expect("was refused").is_all(0x5a), "{size} bytes to {too_much}");
        }
    }
}

#[test]
fn an_overflowing_product_gives_enomem() {
    let _turn = alone();
    for (count, size) in [(usize::MAX, 2), (1 << 32, 1 << 32), (3, usize::MAX / 2)] {
        assert_eq!(errno_after(|| assert!(masu::c::calloc(count, size).is_null())), ENOMEM);
    }
}

#[test]
fn free_and_success_keep_errno() {
    let _turn = alone();
    for size in SIZES {
        let call = || drop(Block::filled(size, 1).resized(2 * size).ok());
        assert_eq!(errno_after(call), 0, "{size} bytes");
    }
}

#[test]
fn blocks_of_no_bytes_are_distinct() {
    let _turn = alone();
    let align = |start: *mut u8| Block::of(start, 0);
    let blocks: Vec<_> = (0..1_000)
        .flat_map(|_| {
            [Block::new(0), align(masu::c::calloc(0, 8)), align(masu::c::aligned_alloc(64, 0))]
        })
        .collect();
    let addresses: BTreeSet<_> = blocks.iter().map(|block| block.start).collect();
    assert_eq!(addresses.len(), blocks.len());
}

#[test]
fn null_can_be_freed_and_resized_and_has_size_0() {
    let _turn = alone();
    // SAFETY: All three take null.
    let new = unsafe {
        masu::c::free(std::ptr::null_mut());
        assert_eq!(masu::c::usable_size(std::ptr::null_mut()), 0);
        masu::c::realloc(std::ptr::null_mut(), 100)
    };
    assert!(Block::of(new, 100).usable_size() >= 100);
}

#[test]
fn every_alignment_works_at_every_size() {
    let _turn = alone();
    for exponent in 0..=26 {
        let align = 1 << exponent;
        for size in SIZES.into_iter().chain([0, align - 1, align, align + 1]) {
            let mut blocks: Vec<_> =
                (0..3).map(|_| Block::of(masu::c::aligned_alloc(align, size), size)).collect();
            for block in &mut blocks {
                assert_eq!(block.start.addr().get() % align.max(16), 0, "{size} at {align}");
                assert!(block.usable_size() >= size, "{size} at {align}");
                block.bytes().iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            }
        }
    }
}

#[test]
fn calloc_gives_zeros_where_memory_was_used_before() {
    let _turn = alone();
    for size in SIZES.into_iter().chain([16, 64 << 10, 65 << 10, 1 << 20]) {
        let count = ((8 << 20) / size).clamp(2, 2_000);
        for trims in [false, true] {
            let used: Vec<_> = (0..count).map(|_| Block::filled(size, 0xff)).collect();
            drop(used);
            if trims {
                masu::c::trim(0);
            }
            let mut zeroed: Vec<_> =
                (0..count).map(|_| Block::of(masu::c::calloc(1, size), size)).collect();
            assert!(zeroed.iter_mut().all(|block| block.is_all(0)), "{size} bytes, {trims}");
        }
    }
}

#[test]
fn calloc_gives_zeros_where_a_used_block_was_shrunk_or_moved_away() {
    let _turn = alone();
    for size in [300_000, 3 << 20, 20 << 20] {
        let shrunk = Block::filled(size, 0xff).resized(size / 3).ok();
        let grown = Block::filled(size, 0xff).resized(3 * size).ok();
        let mut zeroed: Vec<_> =
            (0..8).map(|_| Block::of(masu::c::calloc(size / 4, 1), size / 4)).collect();
        assert!(zeroed.iter_mut().all(|block| block.is_all(0)), "{size} bytes");
        drop((shrunk, grown));
    }
}

#[test]
fn a_block_stays_where_it_is_within_its_usable_size() {
    let _turn = alone();
    for size in SIZES {
        let block = Block::new(size);
        let (start, usable) = (block.start, block.usable_size());
        let block = block.resized(usable).ok().expect("the size it has");
        assert_eq!((block.start, block.usable_size()), (start, usable), "{size} bytes");
    }
}
