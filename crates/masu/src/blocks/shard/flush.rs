//! Flushes: where blocks of a thread's cache go home.
//!
//! Relies on its parent for the pages of each class and their locks. Blocks of one shard go home together, under one lock of its
//! class; pages that become empty are released outside it. The hard idea: an array of blocks has those of one shard, or few, where
//! a thread freed what it or a neighbor allocated, and of all shards where it frees for everybody. The first are found by looking
//! on, the others are sorted.

use core::mem;

use super::Pages;
use crate::blocks::ownership::{NO_SHARD, Shard};
use crate::blocks::page::{Page, Run, page_of};
use crate::blocks::slot;
use crate::diagnostics::{guards, sampling};
use crate::memory::class::Class;
use crate::platform::bounds::Bounded;
use crate::settings::SHARDS_MAX;

/// Returns blocks to their pages.
pub(crate) fn flush(class: Class, blocks: &[usize]) -> Pages {
    if let [block] = *blocks {
        return flush_one(class, block);
    }
    let mut found = Pages::Ordinary;
    let mut from = 0;
    while from < blocks.len() {
        let to = blocks.len().min(from + CHUNK);
        let (pages, left) = flush_chunk(class, blocks.at(from..to));
        found = found.max(pages);
        if left != 0 {
            found = found.max(flush_sorted(class, blocks.at(from..), left));
            from += SORTED_MAX;
            continue;
        }
        from = to;
    }
    found
}

/// [`flush`] for one block, as big ones come.
#[inline(never)]
pub(crate) fn flush_one(class: Class, block: usize) -> Pages {
    let page = page_of(block);
    let shard = page.owner();
    if shard.is_special() {
        if guards::IS_BUILT_IN && shard == Shard::GUARDED {
            guards::free(block);
            return Pages::Ordinary;
        }
        // Before it can be handed out again.
        sampling::remove(block);
    }
    let mut pages = shard.pages(class).lock();
    let releases = pages.put_one(class, page, block);
    let found = pages.check_sparse(shard, class);
    pages.note_freed(shard, class, 1);
    if releases {
        pages.note_removed(class);
    }
    drop(pages);
    count_returned(shard, 1);
    if releases {
        // SAFETY: `put_one` removed the page from its list because every block of it is free.
        unsafe { page.release(class) };
    }
    found
}

/// Blocks flushed together: a bit each says which are left.
pub(super) const CHUNK: usize = u64::BITS as usize;

/// Shards to whose pages a chunk goes one after the other before the blocks that are left are sorted by shard.
const UNSORTED_MAX: u32 = 2;

/// Returns up to [`CHUNK`] blocks, one shard after another; of many shards only the blocks of the first ones. Returns a bit for
/// each block that is left.
fn flush_chunk(class: Class, blocks: &[usize]) -> (Pages, u64) {
    let mut left = u64::MAX >> (CHUNK - blocks.len());
    let mut found = Pages::Ordinary;
    let (mut shards, mut last) = (0, Shard(NO_SHARD));
    while left != 0 {
        let block = *blocks.at(left.trailing_zeros() as usize);
        let page = page_of(block);
        let shard = page.owner();
        // A shard comes again where many pages become empty.
        shards += u32::from(last != shard);
        last = shard;
        if shards > UNSORTED_MAX {
            break;
        }
        let pages = if shard.is_special() {
            left &= left - 1;
            flush_one(class, block)
        } else {
            let mut runs = [Run::none(page); EMPTY_MAX];
            let count = gather(shard, class, blocks, &mut left, &mut runs);
            flush_to(shard, class, blocks, &mut left, runs.at(..count))
        };
        found = found.max(pages);
    }
    (found, left)
}

/// The most blocks that are sorted together: some for each of sixty shards. Their places take 1 KiB of the thread's stack, which
/// may be short.
const SORTED_MAX: usize = 512;

/// Returns the first [`SORTED_MAX`] blocks, those of each shard together, so that its lock and its pages are needed once and not in
/// each chunk; of the first [`CHUNK`] only those that are `left`.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.shard_flush_sorted")]
fn flush_sorted(class: Class, blocks: &[usize], left: u64) -> Pages {
    const NONE: u16 = u16::MAX;
    let mut found = Pages::Scattered;
    // The first block of each shard, and behind each block the next one of its shard.
    let (mut first, mut next) = ([NONE; SHARDS_MAX], [NONE; SORTED_MAX]);
    for place in (0..blocks.len().min(SORTED_MAX)).rev() {
        if place < CHUNK && left >> place & 1 == 0 {
            continue;
        }
        let block = *blocks.at(place);
        let shard = page_of(block).owner();
        if shard.is_special() {
            found = found.max(flush_one(class, block));
        } else {
            let first = first.at_mut(usize::from(shard.0));
            *next.at_mut(place) = mem::replace(first, place as u16);
        }
    }
    let mut own = [0; CHUNK];
    for shard in 0..SHARDS_MAX {
        let mut place = *first.at(shard);
        while place != NONE {
            let mut count = 0;
            while place != NONE && count < CHUNK {
                own[count] = *blocks.at(usize::from(place));
                place = *next.at(usize::from(place));
                count += 1;
            }
            let mut left = u64::MAX >> (CHUNK - count);
            while left != 0 {
                found = found.max(flush_to(Shard(shard as u8), class, &own, &mut left, &[]));
            }
        }
    }
    found
}

/// Runs are worth it from so many blocks each on.
const RUN_MIN: usize = 4;

/// Gathers the first blocks that are `left` into `runs` and clears their bits; the first one belongs to `shard`. Returns the
/// number of runs, of which no more pages than that can become empty. 0 where few blocks lie side by side, or shards alternate.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.shard_gather")]
pub(super) fn gather(
    shard: Shard,
    class: Class,
    blocks: &[usize],
    left: &mut u64,
    runs: &mut [Run; EMPTY_MAX],
) -> usize {
    let (first, further) = (*left, *left & (*left - 1));
    // SAFETY: There is a block for each bit.
    let block_at = |bits: u64| unsafe { *blocks.get_unchecked(bits.trailing_zeros() as usize) };
    let step = if further == 0 { 0 } else { block_at(further).wrapping_sub(block_at(first)) };
    if step != class.size() && step != class.size().wrapping_neg() {
        return 0;
    }
    let code = class.laned().code_in(shard.0);
    let (mut count, mut gathered, mut is_mixed) = (0, 0, false);
    for run in runs {
        if *left == 0 {
            break;
        }
        let page = page_of(block_at(*left));
        if page.owner() != shard {
            is_mixed = true;
            break;
        }
        page.check_code(class, code);
        *run = Run::of(page, class, blocks, left);
        count += 1;
        gathered += run.count;
    }
    // Where shards alternate, all blocks of one come home together, one by one.
    if gathered < RUN_MIN * count || is_mixed && gathered < CHUNK / 2 {
        *left = first;
        return 0;
    }
    count
}

/// Pages that become empty in one flush and are released outside the lock.
pub(super) const EMPTY_MAX: usize = 8;

/// Empty pages, removed from their list.
pub(super) struct Empty {
    pub(super) pages: [Option<Page>; EMPTY_MAX],
    pub(super) count: usize,
}

/// Returns `runs`, or where there are none those of `blocks` that are `left` and belong to `shard`, until pages have to be
/// released.
fn flush_to(shard: Shard, class: Class, blocks: &[usize], left: &mut u64, runs: &[Run]) -> Pages {
    let mut empty = Empty { pages: [None; EMPTY_MAX], count: 0 };
    let mut pages = shard.pages(class).lock();
    let before = pages.handed_out;
    if runs.is_empty() {
        *left = pages.put(shard, class, blocks, *left, &mut empty);
    }
    let code = class.laned().code_in(shard.0);
    for run in runs {
        run.check_again(class, shard, code);
        let free = run.put(class);
        pages.note_put(class, run.page, run.count, free, &mut empty);
    }
    let found = pages.check_sparse(shard, class);
    let brought = before - pages.handed_out;
    pages.note_freed(shard, class, brought);
    if empty.count > 0 {
        pages.note_removed(class);
    }
    drop(pages);
    count_returned(shard, brought);
    if empty.count > 0 {
        // SAFETY: The pages were removed from their list because every block of them is free.
        unsafe { Page::release_all(class, empty.pages.at(..empty.count)) };
    }
    found
}

/// Counts blocks that this thread returned to another shard than its own.
#[inline]
pub(super) fn count_returned(shard: Shard, blocks: usize) {
    if let Some(own) = slot::get().head()
        && own.shard != shard
    {
        own.returned_blocks.add(blocks);
    }
}
