//! Pages: runs of slices divided into blocks of one size class, with a bitmap of the free ones.
//!
//! Relies on ranges for slices, and on the class map, by which `free` finds a page's class. The hard idea is that the bitmap
//! of free blocks lies apart from the page: no link is ever written into a free block, so taking and returning blocks touches
//! one cache line of bits, not the blocks' own lines. Measured for 64-byte blocks that another core frees in random order:
//! 16–167 ns a block with links, 1–2.5 with bits.

#[cfg(debug_assertions)]
mod audit;
#[cfg(feature = "secure")]
pub(crate) mod hardened;
pub(crate) mod purge;

use crate::blocks::ownership::{self, NO_SHARD, Shard};
use crate::blocks::slot;
use crate::diagnostics::sampling::probability::next_random;
use crate::diagnostics::stale;
use crate::memory::arena::{self, Place};
use crate::memory::class::{Class, FOREIGN, HEAP, LARGE, MIN_ALIGN, SAMPLED};
use crate::memory::map;
#[cfg(not(feature = "secure"))]
use crate::memory::ranges::{SharedRanges, stripes};
use crate::memory::slice::{Belongs, Kind, PIECE_BYTES, SLICE_BYTES, Slice};
use crate::platform::bounds::Bounded;
use crate::platform::fault::{self, Fault};
use crate::platform::sync::{self, Cell};
use crate::settings;

/// A cache line, and the number of lines at which a page's first block may start: together less than a quarter of an OS page,
/// and less than 64 of the smallest blocks.
const LINE_BYTES: usize = 64;
const COLORS: usize = 15;

/// Words of a bitmap that fit in a slice's own record.
const OWN_WORDS: usize = size_of::<Belongs>() / size_of::<u64>();

/// A page, named by its first slice. Except for creation and release, a caller of its functions holds the lock of the page's
/// shard and class.
#[derive(Clone, Copy)]
pub(crate) struct Page(pub(crate) &'static Slice);

impl Page {
    /// A new page of `class` that belongs to `shard`, all blocks free; `None` without memory.
    #[inline(never)]
    pub(crate) fn create(class: Class, shard: u8) -> Option<Page> {
        let page = Page::allocate(class, Kind::Page)?;
        let is_sampled = Shard(shard) == Shard::SAMPLED;
        let code = if is_sampled { SAMPLED } else { class.laned().code_in(shard) };
        page.0.code.set(code);
        page.0.sampled.set(if is_sampled { class.code_in(0) } else { 0 });
        ownership::note_page(page.0, shard);
        map::set(page.0.address(), class.page_slices(), code);
        stale::mark();
        Some(page)
    }

    /// A new page of `class` that belongs to a first-class heap; calls `take_in` with each of its slices.
    pub(crate) fn create_in_heap(class: Class, take_in: impl Fn(&Slice)) -> Option<Page> {
        let page = Page::allocate(class, Kind::HeapPage)?;
        ownership::note_page(page.0, NO_SHARD);
        for distance in 0..class.page_slices() {
            // SAFETY: The slice lies in the run just handed out.
            let slice = unsafe { page.0.ahead(distance) };
            slice.code.set(class.index() as u8);
            take_in(slice);
        }
        map::set(page.0.address(), class.page_slices(), HEAP);
        Some(page)
    }

    fn allocate(class: Class, kind: Kind) -> Option<Page> {
        let mut ranges = slot::ranges().lock();
        ranges.bring_home(slot::parked());
        let run = ranges.allocate(class.page_slices(), 1, kind)?;
        drop(ranges);
        Some(Page::begin(run.first, class, kind))
    }

    /// A page in a run that was just handed out, all blocks free.
    #[inline(always)]
    fn begin(first: &'static Slice, class: Class, kind: Kind) -> Page {
        for distance in 0..class.page_slices() {
            // SAFETY: The slice lies in the run.
            let slice = unsafe { first.ahead(distance) };
            slice.back.set(distance as u32);
            slice.kind.set(kind);
            slice.purged.set(0);
        }
        let page = Page(first);
        page.0.sampled.set(0);
        page.0.free_blocks.set(class.page_blocks() as u32);
        page.0.first_free.set(0);
        page.0.dirty.set(0);
        page.set_away(false);
        page.set_all_free(class);
        page
    }

    /// The bitmap of the page's blocks: a set bit is a free one. It lies in the slice's own record if it fits, so that taking
    /// or returning a block touches one line of the arena's head and not two.
    #[inline(always)]
    fn words(self, class: Class) -> &'static [Cell<u64>] {
        let words = class.page_blocks().div_ceil(64);
        // Slices of heaps and of the hardened build use these words otherwise.
        if words <= OWN_WORDS && !cfg!(feature = "secure") && self.0.kind.is(Kind::Page) {
            let own = (&raw const self.0.belongs).cast::<Cell<u64>>();
            // SAFETY: Two words that may hold any number, and that no heap uses. The lock of the page guards them.
            unsafe { core::slice::from_raw_parts(own, words) }
        } else {
            self.0.bitmap(words)
        }
    }

    fn set_all_free(self, class: Class) {
        let blocks = class.page_blocks();
        let words = self.words(class);
        for (index, word) in words.iter().enumerate() {
            let left = blocks - index * 64;
            word.set(if left >= 64 { u64::MAX } else { (1 << left) - 1 });
        }
    }

    /// Frees the page's slices.
    ///
    /// # Safety
    ///
    /// - Every block of the page is free and the page is in no list.
    pub(crate) unsafe fn release(self, class: Class) {
        // SAFETY: The caller's condition.
        unsafe { Page::release_all(class, &[Some(self)]) };
    }

    /// Frees the slices of some pages.
    ///
    /// # Safety
    ///
    /// - The condition of [`Page::release`], for each.
    #[inline(never)]
    #[cfg(not(feature = "secure"))]
    pub(crate) unsafe fn release_all(class: Class, pages: &[Option<Page>]) {
        for page in pages.iter().flatten() {
            page.0.dirty.set(page.close(class) as u32);
        }
        let mut pages = pages.iter().flatten();
        let mut next = pages.next();
        while let Some(first) = next {
            // Read once: the page's arena may be unmapped with it.
            let stripe = first.stripe();
            // One call may release many pages, and purges in its one step.
            let mut ranges = stripe.lock_in_others();
            ranges.bring_home(slot::parked());
            while let Some(page) = next.filter(|page| page.stripe() == stripe) {
                let dirty = page.0.dirty.get() as usize;
                // SAFETY: The run was handed out to this page, whose blocks are all free.
                unsafe { ranges.free(page.0, class.page_slices(), dirty) };
                next = pages.next();
            }
        }
        stale::mark();
    }

    #[cfg(not(feature = "secure"))]
    fn stripe(self) -> &'static SharedRanges {
        stripes::of(self.0)
    }

    /// Makes the page a run of slices again, without freeing it; returns the bytes of it that may be resident. No block of it
    /// may be used from here on.
    pub(crate) fn close(self, class: Class) -> usize {
        let slices = class.page_slices();
        map::set(self.0.address(), slices, FOREIGN);
        self.0.sampled.set(0);
        let mut dirty = slices * SLICE_BYTES;
        for distance in 0..slices {
            // SAFETY: The slice lies in this page.
            let slice = unsafe { self.0.ahead(distance) };
            // Few pages were purged, and few are long.
            if slice.purged.get() != 0 {
                dirty -= slice.purged.replace(0).count_ones() as usize * PIECE_BYTES;
            }
            slice.back.set(0);
            slice.kind.set(Kind::Opaque);
        }
        dirty
    }

    /// Whether no block is free.
    pub(crate) fn is_full(self) -> bool {
        self.0.free_blocks.get() == 0
    }

    /// Whether every block is free.
    pub(crate) fn is_empty(self, class: Class) -> bool {
        self.0.free_blocks.get() as usize == class.page_blocks()
    }

    /// Takes free blocks, lowest address first, into the *end* of `blocks`, in descending order, so that a stack filled with
    /// them gives the lowest first. Returns their number.
    pub(crate) fn take(self, class: Class, blocks: &mut [usize]) -> usize {
        if let Some(seed) = settings::shuffle() {
            self.take_behind(class, self.drawn_index(class, seed), blocks)
        } else if class.size() < LINE_BYTES && self.is_empty(class) {
            self.take_behind(class, self.colored_index(class), blocks)
        } else {
            self.take_lowest(class, blocks)
        }
    }

    /// Frees those blocks of a batch that share a cache line with a free block behind them, but never all. Returns their
    /// number: they are the first ones, the last that were taken. The next batch may be another thread's, and neighbors in a
    /// line would pass it to and fro whenever they write. The first one is of this page.
    #[inline(never)]
    pub(crate) fn leave_line(self, class: Class, blocks: &[usize]) -> usize {
        let (size, start) = (class.size(), self.0.address());
        // Every so many blocks, one starts a line; a word of the bitmap has a multiple of them.
        let apart = LINE_BYTES >> size.trailing_zeros().min(LINE_BYTES.ilog2());
        let behind = class.block_index(*blocks.at(0) - start) + 1;
        let in_line = behind % apart;
        if in_line == 0 {
            return 0;
        }
        let word = self.words(class).at(behind / 64);
        let free_behind = word.get() >> (behind % 64) & ((1 << (apart - in_line)) - 1);
        if free_behind == 0 {
            return 0;
        }
        let first = start + (behind - in_line) * size;
        let latest = blocks.at(..in_line.min(blocks.len() - 1)).iter();
        let mut count = 0;
        // Further blocks may be of another page.
        for block in latest.take_while(|block| block.wrapping_sub(first) < in_line * size) {
            let bit = 1 << (class.block_index(*block - start) % 64);
            debug_assert!(word.get() & bit == 0, "it was taken");
            word.set(word.get() | bit);
            count += 1;
        }
        self.0.free_blocks.set(self.0.free_blocks.get() + count as u32);
        count
    }

    /// Takes the cache lines that a batch taken from this page will change, for a thread of another shard: their last change
    /// was most likely another core's.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.several.page_own_lines")]
    pub(crate) fn own_lines(self, class: Class) {
        // SAFETY: The lock of the page guards both.
        unsafe { sync::own_line(&self.0.free_blocks) };
        if let Some(word) = self.words(class).get(self.0.first_free.get() as usize) {
            // SAFETY: As above.
            unsafe { sync::own_line(word) };
        }
    }

    /// Where to begin in a page of which every block is free: at its *color*, a cache line that differs from page to page
    /// and is never the first. Programs have tables of their own at the start of OS pages; a loop that wrote to blocks there
    /// and read such a table took up to six times as long, probably because some CPUs confuse equal page offsets. The blocks
    /// before the color come next.
    fn colored_index(self, class: Class) -> usize {
        class.block_index((1 + self.0.index() % COLORS) * LINE_BYTES)
    }

    /// Where to begin with the option `shuffle`. It follows from the seed, the page and how much of it is free alone, so
    /// that a program of one thread has the same placement again with the same seed.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.shuffle.page_drawn_index")]
    fn drawn_index(self, class: Class, seed: usize) -> usize {
        let place = self.0.index() << 16 ^ self.0.free_blocks.get() as usize;
        let (_, random) = next_random((seed << 32 ^ place) as u64);
        ((random >> 32) as usize * class.page_blocks()) >> 32
    }

    /// Takes blocks from the one with index `first` on, then those before it.
    fn take_behind(self, class: Class, first: usize, blocks: &mut [usize]) -> usize {
        let lowest = self.0.first_free.get();
        let word = self.words(class).at(first / 64);
        let hidden = word.get() & ((1 << (first % 64)) - 1);
        word.set(word.get() ^ hidden);
        self.0.first_free.set(lowest.max((first / 64) as u32));
        let taken = self.take_lowest(class, blocks);
        word.set(word.get() | hidden);
        self.0.first_free.set(lowest);
        let left = blocks.len() - taken;
        if left == 0 { taken } else { taken + self.take_lowest(class, blocks.at_mut(..left)) }
    }

    fn take_lowest(self, class: Class, blocks: &mut [usize]) -> usize {
        let (size, start) = (class.size(), self.0.address());
        let words = self.words(class);
        let mut index = self.0.first_free.get() as usize;
        let mut left = blocks.len();
        while left > 0
            && let Some(free) = words.get(index)
        {
            let mut word = free.get();
            let first = start + index * 64 * size;
            // New pages and those that were freed as a whole have many in a row.
            let skipped = word.trailing_zeros();
            let run = word.wrapping_shr(skipped);
            if run as u8 == u8::MAX {
                let count = left.min(run.trailing_ones() as usize);
                left -= count;
                let end = first + (skipped as usize + count) * size;
                fill_down(blocks.at_mut(left..left + count), end, size);
                word &= !(u64::MAX >> (64 - count) << skipped);
            }
            // Whole words first, so that one thread gets neighbors in memory.
            while word != 0 && left > 0 {
                let skipped = word.trailing_zeros() as usize;
                left -= 1;
                *blocks.at_mut(left) = first + skipped * size;
                word &= word - 1;
            }
            free.set(word);
            if word == 0 {
                index += 1;
            }
        }
        self.0.first_free.set(index as u32);
        let taken = blocks.len() - left;
        if self.0.dirty.get() > 0 && taken > 0 {
            self.mark_used(blocks.at(blocks.len() - 1) - start, blocks.at(left) + size - start);
        }
        self.0.free_blocks.set(self.0.free_blocks.get() - taken as u32);
        taken
    }

    /// The index of the block that starts at this address. Ends the program if none does.
    #[inline]
    pub(crate) fn index_of(self, class: Class, block: usize) -> usize {
        index_in(class, block - self.0.address())
    }

    /// Marks a block of this page free; returns the number of free blocks.
    #[inline(always)]
    pub(crate) fn put_one(self, class: Class, block: usize) -> usize {
        let home = PageView::new(self, class, block);
        let word = home.mark(class, block);
        home.note(1, word)
    }
}

/// Blocks of a page whose bits are in one word of the bitmap. Worked out before the lock of the page is taken, so that it is
/// held for one step a word: blocks made together are mostly freed in the order of their addresses, or its reverse.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) page: Page,
    pub(crate) count: usize,
    /// The index of the one with the lowest address.
    lowest: usize,
}

impl Run {
    /// A run of no block.
    pub(crate) fn none(page: Page) -> Run {
        Run { page, count: 0, lowest: 0 }
    }

    /// The blocks whose bits in `left` come first and follow one another, as long as they lie side by side, upward or downward;
    /// clears their bits. The first one lies in `page`.
    #[inline(always)]
    pub(crate) fn of(page: Page, class: Class, blocks: &[usize], left: &mut u64) -> Run {
        // SAFETY: There is a block for each bit.
        let block_at = |place: usize| unsafe { *blocks.get_unchecked(place) };
        let (first, size) = (left.trailing_zeros() as usize, class.size());
        // Those behind the first one whose bits follow in `left`.
        let behind = (*left >> first).trailing_ones() as usize - 1;
        let block = block_at(first);
        let index = page.index_of(class, block);
        let step = if behind == 0 { 0 } else { block_at(first + 1).wrapping_sub(block) };
        // So many more have their bits in the same word of the bitmap.
        let room = if step == size {
            (index | 63).min(class.page_blocks() - 1) - index
        } else if step == size.wrapping_neg() {
            index % 64
        } else {
            0
        };
        let (mut further, mut next) = (0, block.wrapping_add(step));
        while further < room.min(behind) && block_at(first + 1 + further) == next {
            further += 1;
            next = next.wrapping_add(step);
        }
        *left &= !(u64::MAX >> (63 - further) << first);
        let lowest = if step == size { index } else { index - further };
        Run { page, count: further + 1, lowest }
    }

    /// Ends the program if the page is not the owner's any more, or of another class: another thread freed one of the blocks
    /// as well, after the run was made, and the page was released. The lock of the owner's pages is held.
    #[inline(always)]
    pub(crate) fn check_again(self, class: Class, owner: Shard, code: u8) {
        let page = page_of(self.page.0.address() + self.lowest * class.size());
        if !core::ptr::eq(page.0, self.page.0) || page.owner() != owner {
            fault::stop(Fault::FreedTwice);
        }
        page.check_code(class, code);
    }

    /// Marks the blocks free; returns the number of free blocks of their page, whose lock is held.
    #[inline(always)]
    pub(crate) fn put(self, class: Class) -> usize {
        let (page, start) = (self.page, self.page.0.address());
        let home = PageView { page, start, words: page.words(class) };
        let word = self.lowest / 64;
        home.mark_bits(word, u64::MAX >> (64 - self.count) << (self.lowest % 64));
        home.note(self.count, word)
    }
}

/// A page with its bitmap looked up, to return several blocks to it: blocks freed together (a list, a tree) were mostly made
/// together.
#[derive(Clone, Copy)]
pub(crate) struct PageView {
    page: Page,
    start: usize,
    words: &'static [Cell<u64>],
}

impl PageView {
    /// `page`, in which `block` lies.
    #[inline(always)]
    pub(crate) fn new(page: Page, class: Class, block: usize) -> PageView {
        // SAFETY: The block lies in one of the page's slices.
        let back = unsafe { Slice::at(block) }.back.get() as usize;
        // The address of the page's first slice, computed faster.
        let start = (block & !(SLICE_BYTES - 1)) - back * SLICE_BYTES;
        debug_assert!(start == page.0.address());
        PageView { page, start, words: page.words(class) }
    }

    /// Whether a block lies in the page.
    #[inline(always)]
    pub(crate) fn has(&self, class: Class, block: usize) -> bool {
        block.wrapping_sub(self.start) < class.page_slices() * SLICE_BYTES
    }

    /// Marks a block of the page free; returns the number of its word in the bitmap. A call of `note` must follow.
    #[inline(always)]
    pub(crate) fn mark(&self, class: Class, block: usize) -> usize {
        let index = index_in(class, block - self.start);
        self.mark_bits(index / 64, 1 << (index % 64));
        index / 64
    }

    /// Marks blocks of a word of the bitmap free.
    #[inline(always)]
    fn mark_bits(&self, number: usize, bits: u64) {
        // SAFETY: There is a bit for each of the page's blocks.
        let word = unsafe { self.words.get_unchecked(number) };
        let free = word.get();
        if free & bits != 0 {
            fault::stop(Fault::FreedTwice);
        }
        word.set(free | bits);
    }

    /// Counts `blocks` marked free, in no word before `word`; returns the number of free blocks.
    #[inline(always)]
    pub(crate) fn note(&self, blocks: usize, word: usize) -> usize {
        let slice = self.page.0;
        slice.first_free.set(slice.first_free.get().min(word as u32));
        let free_blocks = slice.free_blocks.get() + blocks as u32;
        slice.free_blocks.set(free_blocks);
        free_blocks as usize
    }
}

/// Writes the addresses of blocks of `size` bytes that lie side by side, of which the last ends at `end`, in descending order.
#[inline(never)]
fn fill_down(places: &mut [usize], mut end: usize, size: usize) {
    for place in places {
        end -= size;
        *place = end;
    }
}

/// The index of the block at this offset in a page of `class`. Ends the program if none starts there.
#[inline(always)]
fn index_in(class: Class, offset: usize) -> usize {
    let index = class.block_index(offset);
    // Behind the last block there may be room for a part of one.
    if index >= class.page_blocks() || index * class.size() != offset {
        fault::stop(Fault::NotABlock);
    }
    index
}

impl Page {
    /// Ends the program if this is no page of `class`, after a free with a wrong layout.
    #[inline(always)]
    pub(crate) fn check_class(self, class: Class) {
        self.check_code(class, class.laned().code_in(self.0.shard.get()));
    }

    /// [`Page::check_class`] for `code`, the class's in the page's shard.
    #[inline(always)]
    pub(crate) fn check_code(self, class: Class, code: u8) {
        if self.0.code.get() != code {
            self.check_sampled(class);
        }
    }

    /// The slow part: the code may be that of sampled blocks.
    #[cold]
    #[inline(never)]
    fn check_sampled(self, class: Class) {
        let sampled = Class::from_code(self.0.sampled.get());
        if self.owner() != Shard::SAMPLED
            || sampled.is_none_or(|sampled| sampled.page_index() != class.page_index())
        {
            fault::stop(Fault::NotTheLayouts);
        }
    }

    /// The shard that owns this page.
    #[inline(always)]
    pub(crate) fn owner(self) -> Shard {
        let shard = self.0.shard.get();
        debug_assert!(ownership::is_admitted(shard), "no page was made for it");
        if cfg!(masu_plant = "samples_as_first") && Shard(shard) == Shard::SAMPLED {
            // A fault planted for the oracle: the first shard is taken for the owner of sampled blocks.
            return Shard::default();
        }
        Shard(shard)
    }
}

/// The page of a block. Ends the program if there is none, because a free by layout checks nothing before its block is
/// returned here.
#[inline(always)]
pub(crate) fn page_of(block: usize) -> Page {
    let code = (map::double_code(block) >> 1) as u8;
    if code < SAMPLED {
        check_unmapped(block, code);
    }
    // SAFETY: By the class map, or its arena, it lies in a page or in a mixed slice.
    Page(unsafe { Slice::at(block) }.page())
}

/// Ends the program because of this code in the class map, unless there is no map.
#[cold]
#[inline(never)]
extern "C" fn check_unmapped(block: usize, code: u8) {
    fault::stop(match (arena::place_of(block), code) {
        (Place::In(slice), FOREIGN) => match arena::code_in(slice) {
            FOREIGN => Fault::FreedTwice,
            LARGE => Fault::NotTheLayouts,
            HEAP => Fault::NotTheHeaps,
            _ if map::is_established() => Fault::FreedTwice,
            _ => return,
        },
        (_, HEAP) => Fault::NotTheHeaps,
        (_, LARGE) => Fault::NotTheLayouts,
        (Place::Beyond, _) => Fault::NotABlock,
        _ => Fault::ForeignPointer,
    });
}

const _: () = assert!(COLORS * LINE_BYTES / MIN_ALIGN < 64, "a word of the bitmap hides them");

#[cfg(test)]
#[path = "page/tests.rs"]
mod tests;
