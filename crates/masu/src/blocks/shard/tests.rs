//! Properties of blocks that come home in batches, in any order.

extern crate std;

use super::flush::{CHUNK, gather};
use super::*;
use crate::blocks::page::Run;
use std::vec::Vec;

/// A shard that no thread of the tests belongs to.
const UNUSED: Shard = Shard(13);

/// The addresses of all blocks of two pages of a class, which were taken.
fn blocks_of_two_pages(pages: &mut ClassPages, class: Class) -> (Vec<Page>, Vec<usize>) {
    ownership::admit(UNUSED.0);
    let two: Vec<_> = (0..2).map(|_| Page::create(class, UNUSED.0).expect("memory")).collect();
    let mut blocks = Vec::new();
    for page in &two {
        let mut taken = std::vec![0; class.page_blocks()];
        while !page.is_full() {
            page.take(class, &mut taken);
        }
        pages.enter(class, *page, class.page_blocks());
        let address = |index| page.0.address() + index * class.size();
        blocks.extend((0..class.page_blocks()).map(address));
    }
    (two, blocks)
}

/// Puts the blocks home in batches, each of which must leave nothing; checks the free blocks after each.
fn put_all(pages: &mut ClassPages, class: Class, two: &[Page], blocks: &[usize]) {
    let mut expected = [0; 2];
    for chunk in blocks.chunks(CHUNK) {
        let mut empty = Empty { pages: [None; EMPTY_MAX], count: 0 };
        let mut left = u64::MAX >> (CHUNK - chunk.len());
        while left != 0 {
            let mut runs = [Run::none(two[0]); EMPTY_MAX];
            let count = gather(UNUSED, class, chunk, &mut left, &mut runs);
            for run in &runs[..count] {
                pages.note_put(class, run.page, run.count, run.put(class), &mut empty);
            }
            if count == 0 {
                left = pages.put(UNUSED, class, chunk, left, &mut empty);
                assert_eq!(left, 0, "all are this shard's");
            }
        }
        for block in chunk {
            expected[usize::from(page_of(*block).0.address() != two[0].0.address())] += 1;
        }
        let found = [two[0], two[1]].map(|page| page.0.free_blocks.get() as usize);
        assert_eq!(found, expected, "{} bytes", class.size());
    }
    assert!(two.iter().all(|page| page.is_empty(class)));
    assert_eq!(pages.handed_out, 0);
}

/// The numbers below `count`, each once, in the order of this name.
fn ordered(count: usize, order: &str) -> Vec<usize> {
    let mut numbers: Vec<_> = (0..count).collect();
    match order {
        "upward" => {}
        "downward" => numbers.reverse(),
        "threes upward and downward" => {
            numbers.chunks_mut(3).step_by(2).for_each(<[usize]>::reverse);
        }
        "both pages in turn" => numbers.sort_by_key(|number| number % (count / 2)),
        "every second, then the others" => numbers.sort_by_key(|number| number % 2),
        "far apart" => numbers.sort_by_key(|number| number * 7919 % 1009),
        _ => panic!("no such order"),
    }
    numbers
}

#[test]
fn blocks_come_home_in_any_order() {
    let orders = [
        "upward",
        "downward",
        "threes upward and downward",
        "both pages in turn",
        "every second, then the others",
        "far apart",
    ];
    for size in [16, 48, 64, 320, 1024, 24 << 10, 64 << 10] {
        let class = Class::of_size(size);
        for order in orders {
            let mut pages = ClassPages::new();
            let (two, mut blocks) = blocks_of_two_pages(&mut pages, class);
            let numbers = ordered(blocks.len(), order);
            let batch: Vec<_> = numbers.into_iter().map(|number| blocks[number]).collect();
            put_all(&mut pages, class, &two, &batch);
            let mut again = Vec::new();
            for page in &two {
                let mut taken = std::vec![0; class.page_blocks() + 1];
                let count = page.take(class, &mut taken);
                again.extend_from_slice(&taken[taken.len() - count..]);
            }
            again.sort_unstable();
            blocks.sort_unstable();
            assert_eq!(again, blocks, "{size} bytes, {order}");
        }
    }
}

#[test]
#[cfg_attr(feature = "secure", ignore = "pages are made in another way there")]
fn blocks_of_many_shards_come_home_in_one_flush() {
    let class = Class::of_size(320);
    let shards: Vec<_> = (14..54).map(Shard).collect();
    let handed_out =
        || -> Vec<_> { shards.iter().map(|shard| shard.pages(class).lock().handed_out).collect() };
    let before = handed_out();
    let mut blocks = Vec::new();
    for shard in &shards {
        ownership::admit(shard.0);
        // Alone, and several of a shard, in one page or two.
        let mut taken = std::vec![0; usize::from(shard.0 % 4) + 1];
        assert_eq!(shard.refill_from_new(class, &mut taken), taken.len());
        blocks.push(taken);
        let mut one = [0];
        if shard.0 % 3 == 0 && shard.refill_from_new(class, &mut one) == 1 {
            blocks.push(one.to_vec());
        }
    }
    // Neighbors of one shard lie apart in the array.
    let mut blocks = blocks.concat();
    blocks.sort_by_key(|block| block / class.size() % 61);
    let _ = flush(class, &blocks);
    assert_eq!(handed_out(), before);
    for shard in &shards {
        shard
            .pages(class)
            .lock()
            .partial
            .iter()
            .for_each(|page| assert!(Page(page).is_empty(class)));
    }
}
