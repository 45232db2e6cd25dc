//! The memory of one owner: pages by class, and large blocks.
//!
//! Relies on pages and on a mixed slice for their bitmaps, and on the ranges for runs of slices. Each page is in one
//! list: that of its class if it has free blocks, else that of all full pages. Large blocks are in another. The lists
//! are linked through slices, so releasing everything takes one step for each page and large block, whatever number of
//! blocks they hold.

#[cfg(debug_assertions)]
mod audit;

use core::ptr;

use super::Owner;
use super::mixed::Mixed;
use crate::blocks::page::Page;
use crate::blocks::page::purge::Purge;
use crate::blocks::slot;
use crate::memory::class::{Class, FOREIGN, HEAP, LANED_FIRST};
use crate::memory::list::List;
use crate::memory::map;
use crate::memory::ranges::{Filling, Run, stripes, usage};
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::platform::bounds::Bounded;
use crate::platform::fault::{self, Fault};

/// Pages of less than this together are never sparse.
const SPARSE_BYTES_MIN: usize = 4 << 20;
/// Pages are sparse when less than one part in this many is handed out.
const SPARSE_SHARE: usize = 4;
/// The work of one step of a pass through sparse pages: ranges purged, and pages visited. The last page may exceed the
/// first.
const STEP_RANGES: usize = 8;
const STEP_PAGES: usize = 256;

/// The counts of an owner's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Blocks of pages handed out to the program or to caches, and their bytes.
    pub(crate) blocks: usize,
    pub(crate) block_bytes: usize,
    /// Bytes of the pages, including the mixed slice.
    pub(crate) page_bytes: usize,
    /// Large blocks and their bytes.
    pub(crate) large_blocks: usize,
    pub(crate) large_bytes: usize,
}

impl Counts {
    pub(crate) const NONE: Counts =
        Counts { blocks: 0, block_bytes: 0, page_bytes: 0, large_blocks: 0, large_bytes: 0 };

    /// Counts one block of a page less.
    fn take_off(&mut self, class: Class) {
        self.blocks -= 1;
        self.block_bytes -= class.size();
    }

    pub(crate) fn add(&mut self, other: &Counts) {
        self.blocks += other.blocks;
        self.block_bytes += other.block_bytes;
        self.page_bytes += other.page_bytes;
        self.large_blocks += other.large_blocks;
        self.large_bytes += other.large_bytes;
    }
}

/// Frees a run of `slices` slices, of which `dirty` bytes may be resident, and which was so many large blocks.
///
/// # Safety
///
/// - It was handed out as one run, and nothing uses it any more.
#[inline(never)]
unsafe fn free_run(first: &'static Slice, slices: usize, dirty: usize, large_blocks: isize) {
    let mut ranges = stripes::of(first).lock();
    ranges.bring_home(slot::parked());
    ranges.count_large(-large_blocks, -large_blocks * slices.cast_signed());
    // SAFETY: The caller's condition.
    unsafe { ranges.free(first, slices, dirty) };
}

/// An owner's memory.
pub(super) struct Holdings {
    pub(super) counts: Counts,
    /// `block_bytes` when the last pass began, or the most it was since; 0 at first.
    bytes_at_purge: usize,
    /// Bit *i* is set while `partial[i]` holds a page.
    occupied: u128,
    /// The pass through sparse pages: the classes left, and the next page of the class before them.
    to_pass: u128,
    place: Option<&'static Slice>,
    /// The slice that small classes share before they have pages.
    mixed: Mixed,
    /// Pages without a free block.
    full: List,
    large: List,
    /// Pages with a free block, by class.
    partial: [List; LANED_FIRST],
}

const _: () = assert!(LANED_FIRST <= 128, "a bit a class");

impl Holdings {
    pub(super) const fn new() -> Holdings {
        Holdings {
            counts: Counts::NONE,
            bytes_at_purge: 0,
            occupied: 0,
            to_pass: 0,
            place: None,
            mixed: Mixed::new(),
            full: List::new(),
            large: List::new(),
            partial: [const { List::new() }; LANED_FIRST],
        }
    }

    /// As [`Owner::take`].
    pub(super) fn take(
        &mut self,
        owner: &'static Owner,
        class: Class,
        blocks: &mut [usize],
    ) -> usize {
        let wanted = blocks.len();
        let mut left = wanted - self.mixed.take(class, blocks);
        while left > 0 {
            let page = match self.partial[class.page_index()].first() {
                Some(first) => Page(first),
                // A new page is made for a block that is needed, not to fill the batch.
                None if left < wanted => break,
                None if self.begin_part(owner, class) => {
                    left -= self.mixed.take(class, blocks.at_mut(..left));
                    continue;
                }
                None => match Page::create_in_heap(class, |slice| owner.take_in(slice)) {
                    Some(page) => {
                        self.counts.page_bytes += class.page_slices() * SLICE_BYTES;
                        self.link(class, page);
                        page
                    }
                    None => break,
                },
            };
            left -= page.take(class, blocks.at_mut(..left));
            page.note_taken();
            if page.is_full() {
                self.unlink(class, page);
                self.full.push_first(page.0);
            }
        }
        self.counts.blocks += wanted - left;
        self.counts.block_bytes += (wanted - left) * class.size();
        wanted - left
    }

    /// Gives `class` a part of the mixed slice, if it may have one; whether it did.
    fn begin_part(&mut self, owner: &'static Owner, class: Class) -> bool {
        if !self.mixed.may_begin_part(class) {
            return false;
        }
        if self.mixed.is_without_slice() {
            if !self.mixed.begin(owner) {
                return false;
            }
            self.counts.page_bytes += SLICE_BYTES;
        }
        self.mixed.begin_part(owner, class);
        true
    }

    /// As [`Owner::put`].
    #[inline(never)]
    pub(super) fn put(&mut self, owner: &'static Owner, class: Class, blocks: &[usize]) {
        for block in blocks {
            self.put_one(owner, class, *block);
        }
        self.check_sparse();
        if self.is_passing() {
            self.take_step();
        }
    }

    fn put_one(&mut self, owner: &'static Owner, class: Class, block: usize) {
        // SAFETY: The block lies in an arena: the class map said so, or it was handed out here.
        let slice = unsafe { Slice::at(block) };
        match slice.kind.get() {
            // Only these kinds of slices have an owner.
            Kind::HeapPage | Kind::HeapMixed if owner.owns(slice) => {}
            _ => fault::stop(Fault::NotTheHeaps),
        }
        if slice.kind.is(Kind::HeapMixed) {
            self.mixed.put(owner, class, block);
            return self.counts.take_off(class);
        }
        let page = Page(slice.page());
        if usize::from(page.0.code.get()) != class.index() {
            fault::stop(Fault::NotTheHeaps);
        }
        let was_full = page.is_full();
        page.put_one(class, block);
        self.counts.take_off(class);
        if was_full {
            self.full.remove(page.0);
            self.link(class, page);
        }
        // One empty page is kept, so that blocks freed and allocated in turn cost no page.
        let is_last = self.partial[class.page_index()].is_alone();
        if page.is_empty(class) && !is_last {
            self.unlink(class, page);
            self.release(class, page);
        }
    }

    /// Adds a page with free blocks to its list: lower addresses to the front, so that high ones become empty.
    fn link(&mut self, class: Class, page: Page) {
        let list = &mut self.partial[class.page_index()];
        if list.first().is_none_or(|first| page.0.address() < first.address()) {
            list.push_first(page.0);
        } else {
            list.push_last(page.0);
        }
        self.occupied |= 1 << class.page_index();
    }

    fn unlink(&mut self, class: Class, page: Page) {
        if self.place.is_some_and(|place| ptr::eq(place, page.0)) {
            self.place = <List>::behind(page.0);
        }
        let list = &mut self.partial[class.page_index()];
        list.remove(page.0);
        if list.is_empty() {
            self.occupied &= !(1 << class.page_index());
        }
    }

    /// Releases a page that is in no list and has only free blocks.
    fn release(&mut self, class: Class, page: Page) {
        let slices = class.page_slices();
        self.counts.page_bytes -= slices * SLICE_BYTES;
        let dirty = page.close(class);
        // SAFETY: The run was handed out to this page, whose blocks are all free.
        unsafe { free_run(page.0, slices, dirty, 0) };
    }

    /// Begins a pass that purges free memory inside pages, if few blocks keep many pages and a good part was freed
    /// since the last pass began.
    fn check_sparse(&mut self) {
        let (pages, blocks) = (self.counts.page_bytes, self.counts.block_bytes);
        let before = self.bytes_at_purge;
        if pages < SPARSE_BYTES_MIN
            || blocks >= pages / SPARSE_SHARE
            || (before != 0 && blocks >= before / 4 * 3)
        {
            self.bytes_at_purge = before.max(blocks);
            return;
        }
        self.bytes_at_purge = blocks;
        self.to_pass = self.occupied;
        self.place = None;
    }

    fn is_passing(&self) -> bool {
        self.to_pass != 0 || self.place.is_some()
    }

    /// Continues a pass by a step of bounded work, so that no call of the program waits for all of a heap's pages.
    #[cold]
    #[inline(never)]
    fn take_step(&mut self) {
        let (mut purge, mut pages) = (Purge::new(), STEP_PAGES);
        while purge.count() < STEP_RANGES
            && pages > 0
            && let Some((class, page)) = self.next_in_pass()
        {
            pages -= 1;
            if page.is_worth_purging(class) {
                page.plan_purge(class, &mut purge);
            }
        }
        // SAFETY: The lock around this keeps the blocks from being handed out.
        unsafe { purge.run() };
    }

    /// The next page of the pass, which moves on to the one behind it.
    fn next_in_pass(&mut self) -> Option<(Class, Page)> {
        while self.place.is_none() {
            let index = self.to_pass.trailing_zeros() as usize;
            self.place = self.partial.get(index)?.first();
            self.to_pass &= self.to_pass - 1;
        }
        let page = self.place?;
        self.place = <List>::behind(page);
        Some((Class::from_code(page.code.get())?, Page(page)))
    }

    /// The classes that have a page with free blocks.
    fn classes(&self) -> impl Iterator<Item = Class> + use<> {
        let occupied = self.occupied;
        Class::all().filter(move |class| occupied & (1 << class.page_index()) != 0)
    }

    /// Finishes the pass through sparse pages, or one through all pages if `purges`; releases the empty pages that were kept,
    /// and the mixed slice if it is empty.
    pub(super) fn trim(&mut self, purges: bool) {
        if purges {
            (self.to_pass, self.place) = (self.occupied, None);
        }
        while self.is_passing() {
            self.take_step();
        }
        if let Some(slice) = self.mixed.close_if_empty() {
            self.counts.page_bytes -= SLICE_BYTES;
            // SAFETY: The slice was handed out as the mixed slice, and every block of it is free.
            unsafe { free_run(slice, 1, SLICE_BYTES, 0) };
        }
        for class in self.classes() {
            let list = &self.partial[class.page_index()];
            let empty = list.iter().map(Page).find(|page| page.is_empty(class));
            if let Some(page) = empty {
                self.unlink(class, page);
                self.release(class, page);
            }
        }
    }

    /// Allocates a large block of whole slices; `None` without memory.
    pub(super) fn allocate_large(
        &mut self,
        owner: &'static Owner,
        slices: usize,
        align: usize,
        filling: Filling,
    ) -> Option<Run> {
        let mut ranges = slot::ranges().lock();
        ranges.bring_home(slot::parked());
        let run = ranges.allocate_for(filling, slices, align, Kind::HeapLarge)?;
        drop(ranges);
        owner.take_in(run.first);
        self.large.push_first(run.first);
        self.count_large(1, slices.cast_signed());
        map::set(run.first.address(), 1, HEAP);
        Some(run)
    }

    /// Counts a change in the number of large blocks and in their slices.
    pub(super) fn count_large(&mut self, blocks: isize, slices: isize) {
        let bytes = slices * SLICE_BYTES.cast_signed();
        self.counts.large_blocks = self.counts.large_blocks.wrapping_add_signed(blocks);
        self.counts.large_bytes = self.counts.large_bytes.wrapping_add_signed(bytes);
    }

    /// Frees the large block that starts with this slice.
    ///
    /// # Safety
    ///
    /// - It is one of this owner's, and nothing uses it any more.
    pub(super) unsafe fn free_large(&mut self, first: &'static Slice) {
        let slices = self.close_large(first);
        usage::note_freed(first, slices);
        // SAFETY: The run was the block's, which nothing uses.
        unsafe { free_run(first, slices, slices * SLICE_BYTES, 1) };
    }

    /// Removes a large block from the lists and counts; returns its slices.
    fn close_large(&mut self, first: &'static Slice) -> usize {
        let slices = first.count.get() as usize;
        self.large.remove(first);
        self.count_large(-1, -slices.cast_signed());
        map::set(first.address(), 1, FOREIGN);
        first.kind.set(Kind::Opaque);
        slices
    }

    /// Releases everything.
    ///
    /// # Safety
    ///
    /// - Nothing uses any of the blocks any more.
    #[inline(never)]
    pub(super) unsafe fn release_all(&mut self) {
        slot::ranges().lock().bring_home(slot::parked());
        let (mut freed_to, mut all_slices) = (stripes::Set::new(), 0);
        while let Some(((first, slices, dirty), is_large)) = self.close_any() {
            all_slices += slices;
            let stripe = stripes::of(first);
            freed_to.insert(stripe);
            // The excess goes back when all is merged: piece by piece a heap of 1 GiB would be thousands of system
            // calls.
            let mut ranges = stripe.lock_in_others();
            if is_large {
                ranges.count_large(-1, -slices.cast_signed());
            }
            // SAFETY: The run was a page's or a large block's, which nothing uses.
            unsafe { ranges.free(first, slices, dirty) };
        }
        for stripe in freed_to.iter() {
            let mut ranges = stripe.lock();
            ranges.end_grace();
            ranges.note_moved(all_slices);
        }
        *self = Holdings::new();
    }

    /// Removes some page, the mixed slice or a large block: returns its first slice, how many it has, the bytes that
    /// may be resident, and whether it was a large block.
    fn close_any(&mut self) -> Option<((&'static Slice, usize, usize), bool)> {
        if let Some(first) = self.large.first() {
            let slices = self.close_large(first);
            return Some(((first, slices, slices * SLICE_BYTES), true));
        }
        if let Some(slice) = self.mixed.close() {
            return Some(((slice, 1, SLICE_BYTES), false));
        }
        let page = match self.full.first() {
            Some(full) => {
                self.full.remove(full);
                Page(full)
            }
            None => {
                let partial = self.partial.at_mut(self.occupied.checked_ilog2()? as usize);
                let page = Page(partial.first()?);
                self.unlink(Class::from_code(page.0.code.get())?, page);
                page
            }
        };
        let class = Class::from_code(page.0.code.get())?;
        let dirty = page.close(class);
        Some(((page.0, class.page_slices(), dirty), false))
    }
}

#[cfg(test)]
#[path = "holdings/tests.rs"]
mod tests;
