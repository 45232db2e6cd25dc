//! Properties of taking blocks and purging inside a page.

extern crate std;

use super::purge::Purge;
use super::*;
use crate::blocks::ownership;
use crate::platform::kernel;

/// A shard that no thread of the tests belongs to.
const UNUSED_SHARD: u8 = 14;

/// A page of a shard that no thread has.
fn create(class: Class) -> Option<Page> {
    ownership::admit(UNUSED_SHARD);
    Page::create(class, UNUSED_SHARD)
}

const BLOCK_BYTES: usize = 1024;
const KIB: usize = 1024;

fn byte_at(page: Page, offset: usize) -> *mut u8 {
    // SAFETY: The offset lies inside the page.
    unsafe { page.0.start().add(offset) }.as_ptr()
}

fn write(page: Page, offset: usize) {
    // SAFETY: The page is this test's.
    unsafe { byte_at(page, offset).write_volatile(1) };
}

fn read(page: Page, offset: usize) -> u8 {
    // SAFETY: The page is this test's.
    unsafe { byte_at(page, offset).read_volatile() }
}

/// Returns the first of `blocks` to its page, and as many behind it as lie there too; returns their number.
fn put(page: Page, class: Class, blocks: &[usize]) -> usize {
    let home = PageView::new(page, class, blocks[0]);
    let own = blocks.iter().take_while(|block| home.has(class, **block)).count();
    let words = blocks[..own].iter().map(|block| home.mark(class, *block));
    home.note(own, words.min().unwrap_or(usize::MAX));
    own
}

/// Purges the free memory of a page, if that is worth it.
fn purge_free(page: Page, class: Class) {
    let mut purge = Purge::new();
    if page.is_worth_purging(class) {
        page.plan_purge(class, &mut purge);
    }
    // SAFETY: The page is the test's, and nothing of it was handed out since.
    unsafe { purge.run() };
}

/// The indices of blocks in their page.
fn indices(page: Page, class: Class, blocks: &[usize]) -> std::vec::Vec<usize> {
    blocks.iter().map(|block| (block - page.0.address()) / class.size()).collect()
}

#[test]
fn a_line_filled_in_part_is_left_to_the_next_batch() {
    // So many blocks of each size lie between two that start a line.
    for (size, apart) in [(80, 4), (96, 2), (64, 1), (1024, 1), (240, 4)] {
        let class = Class::of_size(size);
        let page = create(class).expect("memory");
        let free = page.0.free_blocks.get();
        let mut blocks = [0; 7];
        assert_eq!(page.take(class, &mut blocks), 7);
        let left = page.leave_line(class, &blocks);
        assert_eq!(left, 7 % apart, "{size} bytes");
        assert_eq!(page.0.free_blocks.get() as usize, free as usize - (7 - left));
        let mut next = [0; 2];
        assert_eq!(page.take(class, &mut next), 2);
        assert_eq!(indices(page, class, &next), [8 - left, 7 - left], "the blocks left come next");
    }
}

#[test]
fn a_line_is_not_left_where_that_would_leave_nothing_or_touch_another_page() {
    let class = Class::of_size(80);
    let (page, other) = (create(class).expect("memory"), create(class).expect("memory"));
    let mut blocks = [0; 3];
    assert_eq!(page.take(class, &mut blocks), 3);
    assert_eq!(page.leave_line(class, &blocks), 2, "one block stays");
    assert_eq!(page.take(class, &mut blocks), 3);
    assert_eq!(indices(page, class, &blocks), [3, 2, 1]);
    assert_eq!(page.leave_line(class, &blocks), 0, "the line ends there");
    // A batch of two pages, the last block from this one: the other page's blocks lie higher or lower.
    for (page, before) in [(page, other), (other, page)] {
        assert_eq!(before.take(class, &mut blocks), 3);
        let mut one = [page.0.address()];
        while indices(page, class, &one)[0] % 4 != 2 {
            assert_eq!(page.take(class, &mut one), 1);
        }
        let free = page.0.free_blocks.get();
        assert_eq!(page.leave_line(class, &[one[0], blocks[0], blocks[1], blocks[2]]), 1);
        assert_eq!(page.0.free_blocks.get(), free + 1, "this page gave one block of the line");
    }
}

#[test]
fn shuffled_placement_differs_by_seed_and_hands_out_every_block_once() {
    for size in [16, 80, 1024, 20_000] {
        let class = Class::of_size(size);
        let page = create(class).expect("memory");
        let first = |seed| page.drawn_index(class, seed);
        assert!((1..20).any(|seed| first(seed) != first(seed + 20)), "{size} bytes");
        let (mut seen, mut blocks) = (std::vec::Vec::new(), [0; 7]);
        while !page.is_full() {
            let taken = page.take_behind(class, first(1), &mut blocks);
            assert!(taken == 7 || page.is_full());
            seen.extend(indices(page, class, &blocks[7 - taken..]));
        }
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..class.page_blocks()), "{size} bytes: {seen:?}");
    }
}

#[test]
fn what_was_purged_is_purged_again_only_once_it_was_handed_out() {
    let class = Class::of_size(BLOCK_BYTES);
    let page = create(class).expect("memory");
    assert_eq!(class.page_blocks(), 64);
    let bring = |page: Page, blocks: core::ops::Range<usize>| {
        let address = |index| page.0.address() + index * BLOCK_BYTES;
        let blocks: std::vec::Vec<_> = blocks.map(address).collect();
        assert_eq!(put(page, class, &blocks), blocks.len());
    };
    assert_eq!(page.take(class, &mut [0; 64]), 64);
    write(page, 40 * KIB);
    bring(page, 16..64);
    purge_free(page, class);
    if kernel::page_size() > 16 * KIB {
        return;
    }
    assert_eq!(read(page, 40 * KIB), 0, "three quarters of the page are free, in a row");
    // Written without a block there, to show whether the kernel is called again.
    write(page, 40 * KIB);
    bring(page, 0..8);
    purge_free(page, class);
    assert_eq!(read(page, 40 * KIB), 1, "it was given back before");
    assert_eq!(page.take(class, &mut [0; 40]), 40);
    page.note_taken();
    bring(page, 0..8);
    bring(page, 16..48);
    purge_free(page, class);
    assert_eq!(read(page, 40 * KIB), 0, "it was handed out since");
    assert_eq!(page.take(class, &mut [0; 9]), 9);
    assert!(page.close(class).is_multiple_of(kernel::page_size()), "a part of an OS page");
}

#[test]
fn the_first_blocks_of_pages_do_not_start_where_os_pages_do() {
    let class = Class::of_size(32);
    let pages = [(); 20].map(|()| create(class).expect("memory"));
    let first = pages.map(|page| {
        let mut blocks = [0; 8];
        assert_eq!(page.take(class, &mut blocks), 8);
        blocks[7] - page.0.address()
    });
    assert!(first.iter().all(|offset| (1..1024).contains(offset)), "{first:?}");
    assert!(first.iter().any(|offset| *offset != first[0]), "one color for all: {first:?}");
}
