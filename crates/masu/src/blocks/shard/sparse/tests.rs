//! Properties of passes through sparse pages, on shards that no thread of the tests has.

extern crate std;

use super::*;
use crate::blocks::ownership;
use crate::blocks::shard::refill::Lent;
use crate::blocks::shard::{self, LEFT_BYTES_MAX};
use crate::memory::ranges::CALLS_MAX;
use crate::platform::kernel;
use std::vec::Vec;

const BLOCK_BYTES: usize = 2048;
const PAGES: usize = 256;

fn flush(class: Class, blocks: &[usize]) {
    let _ = shard::flush(class, blocks);
}

/// Fills pages of a shard of the test's own, and frees all blocks but the first of each page.
fn make_sparse(shard: Shard, class: Class) -> Vec<Page> {
    ownership::admit(shard.0);
    let blocks = class.page_blocks();
    let pages: Vec<_> = (0..PAGES)
        .map(|_| {
            let mut taken = std::vec![0; blocks];
            assert_eq!(shard.refill_from_new(class, &mut taken), blocks);
            // SAFETY: The block was taken from a page just now.
            Page(unsafe { Slice::at(taken[0]) }.page())
        })
        .collect();
    for page in &pages {
        // SAFETY: The page is this test's. Writing makes its memory resident.
        unsafe { page.0.start().write_bytes(1, SLICE_BYTES) };
        let freed: Vec<_> = (1..blocks).map(|i| page.0.address() + i * BLOCK_BYTES).collect();
        let before = kernel::advised_here();
        flush(class, &freed);
        assert_eq!(kernel::advised_here(), before, "a flush begins a pass and does nothing of it");
    }
    pages
}

fn is_purged(page: &Page) -> bool {
    // SAFETY: The page is this test's, and its last block is free.
    unsafe { page.0.start().add(SLICE_BYTES - 8).read_volatile() == 0 }
}

#[test]
fn steps_of_a_pass_stay_within_their_bound_and_purge_all() {
    if kernel::page_size() > 16 << 10 {
        return;
    }
    let class = Class::of_size(BLOCK_BYTES);
    let pages = make_sparse(Shard(12), class);
    let mut steps = 0;
    while !pages.iter().all(is_purged) {
        let before = kernel::advised_here();
        // Not a step of the ranges, which other tests leave work for.
        take_pass_step();
        let (calls, bytes) = kernel::advised_here();
        let longest = class.page_slices() * SLICE_BYTES;
        assert!(calls - before.0 <= step_ranges() + longest / kernel::page_size());
        assert!(bytes - before.1 <= STEP_BYTES + longest);
        if bytes > before.1 {
            steps += 1;
        } else {
            // The pages left are away because of another test's thread.
            std::thread::yield_now();
        }
        assert!(steps <= PAGES, "each step gives something back");
    }
    assert!(steps > 1, "{PAGES} pages in one call");
    // Other tests' threads may have some of the pages away.
    let pages = Shard(12).pages(class).lock();
    assert!(pages.partial_count as usize >= PAGES - AWAY_MAX && pages.handed_out == PAGES);
}

#[test]
fn pages_released_by_a_flush_are_purged_in_bounded_slow_calls() {
    let (shard, class) = (Shard(9), Class::of_size(BLOCK_BYTES));
    ownership::admit(shard.0);
    let blocks = class.page_blocks();
    stripes::trim(0);
    let mut taken = std::vec![0; blocks * 4 * PAGES];
    for page in taken.chunks_mut(blocks) {
        assert_eq!(shard.refill_from_new(class, page), blocks);
    }
    // Neither half stays: runs of one page each.
    let (first, second): (Vec<_>, Vec<_>) =
        taken.chunks(blocks).enumerate().partition(|(i, _)| i % 2 == 0);
    let before = kernel::advised_here();
    first.iter().for_each(|(_, page)| flush(class, page));
    assert_eq!(kernel::advised_here(), before, "a flush leaves it to its slow call");
    slot::ranges().lock_in_others().pass_much_time();
    let longest = class.page_slices() * SLICE_BYTES / kernel::page_size();
    let mut steps = 0;
    while is_due() {
        let (before, _) = kernel::advised_here();
        purge_step();
        let calls = kernel::advised_here().0 - before;
        assert!(calls <= CALLS_MAX + longest, "{calls} in one call");
        steps += 1;
        assert!(steps <= 64 * PAGES, "each step gives something back");
    }
    assert!(steps > 1, "it is too much to stay");
    second.iter().for_each(|(_, page)| flush(class, page));
}

#[test]
fn a_page_that_is_away_takes_blocks_and_hands_none_out() {
    let (shard, class) = (Shard(11), Class::of_size(BLOCK_BYTES));
    ownership::admit(shard.0);
    let blocks = class.page_blocks();
    let mut taken = std::vec![0; blocks];
    assert_eq!(shard.refill_from_new(class, &mut taken), blocks);
    // SAFETY: The block was taken from a page just now.
    let page = Page(unsafe { Slice::at(taken[0]) }.page());
    flush(class, &taken[1..]);
    let mut step = Step { ranges: 1, bytes: 1, pages: 1 };
    let mut away = Away::new();
    let mut pages = shard.pages(class).lock();
    pages.place = Place::of(Some(page.0));
    pages.send_away(shard, class, &mut step, &mut away);
    drop(pages);
    if kernel::page_size() > 16 << 10 {
        return;
    }
    let sent = away.pages[0].map(|sent| sent.0.address());
    assert!(sent == Some(page.0.address()) && away.count == 1 && step.is_over());
    assert_eq!(shard.pages(class).lock().take(class, &mut [0; 4]), 0, "its blocks are not free");
    flush(class, &taken[..1]);
    assert!(page.is_empty(class), "a block came home");
    let mut pages = shard.pages(class).lock();
    assert_eq!((pages.pages, pages.partial_count), (1, 0), "it is in the books and in no list");
    let kept = pages.put_back(class, page);
    assert_eq!((kept.is_some(), pages.pages), (kept_pages(class) == 0, kept_pages(class)));
}

#[test]
fn a_pass_moves_on_when_its_page_leaves_the_list() {
    let (shard, class) = (Shard(10), Class::of_size(BLOCK_BYTES));
    ownership::admit(shard.0);
    let [first, second] = [(); 2].map(|()| Page::create(class, shard.0).expect("memory"));
    let mut pages = shard.pages(class).lock();
    for page in [first, second] {
        pages.partial.push_last(page.0);
        pages.partial_count += 1;
    }
    pages.place = Place::of(Some(first.0));
    pages.unlink(first);
    assert!(pages.place == Place::of(Some(second.0)));
    let next = pages.place.page();
    pages.partial.push_before(next, first.0);
    pages.partial_count += 1;
    assert_eq!(pages.partial.first().map(Slice::address), Some(first.0.address()));
    pages.unlink(second);
    assert!(pages.place == Place::NONE);
}

#[test]
fn other_shards_find_freed_blocks_of_a_page_that_was_away() {
    let (class, own, other) = (Class::of_size(LEFT_BYTES_MAX), Shard(16), Shard(17));
    [own, other].iter().for_each(|shard| ownership::admit(shard.0));
    let mut blocks = [0; 3];
    assert_eq!(own.refill_from_new(class, &mut blocks), 3);
    // SAFETY: The block was taken from a page just now.
    let page = Page(unsafe { Slice::at(blocks[0]) }.page());
    let found = || other.refill_from_others(class, &mut [0], Lent::Freed);
    assert_eq!(found(), 0, "its free blocks were never touched");
    flush(class, &blocks[..2]);
    assert_eq!(found(), 1);
    own.pages(class).lock().unlink(page);
    page.set_away(true);
    assert_eq!(found(), 0, "it is away");
    assert!(own.pages(class).lock().put_back(class, page).is_none(), "blocks of it are handed out");
    assert_eq!(found(), 1);
    assert_eq!(found(), 0, "none is left of those that were freed");
    assert_eq!(other.refill_from_others(class, &mut [0; 5], Lent::All), 5);
}

#[test]
fn a_step_is_one_call_where_a_call_takes_many_ranges() {
    let (shard, class) = (Shard(18), Class::of_size(BLOCK_BYTES));
    kernel::allow_purge_batches();
    let calls = || {
        let _pages = make_sparse(shard, class);
        // Shows whether this kernel takes many ranges.
        shard.pass_on(class, &mut Step::new());
        let mut step = Step { ranges: 2 * AWAY_MAX, bytes: usize::MAX, pages: STEP_PAGES };
        let before = kernel::advised_here().0;
        shard.pass_on(class, &mut step);
        kernel::advised_here().0 - before
    };
    // Another test's thread may have ended the pass, or have its pages away.
    let calls = (0..10).map(|_| calls()).find(|calls| *calls > 0);
    assert!(calls == Some(1) || !kernel::batches_purges(), "{calls:?}");
}
