//! Blocks of the hardened build, one at a time: a free one is chosen at random; a freed one is checked, cleared and
//! quarantined before it is free.
//!
//! Relies on its parent for the pages of a class in a shard and for their lock, and on pages for their records. No
//! cache holds blocks here, so a record says whether the program has the block.
//!
//! The quarantine has two stages. A freed block waits in a queue until as many others were freed, then replaces a
//! random block of a second stage of the same length, which leaves. The leaving block's bytes must still be zero: if
//! not, the program wrote to it after it was freed.

use core::cell::UnsafeCell;
use core::ptr;

use super::{ClassPages, SHARDS_MAX, Shard};
use crate::blocks::page::Page;
use crate::blocks::page::hardened::{Record, page_at};
use crate::memory::arena;
use crate::memory::class::{CLASSES, Class};
use crate::memory::metadata;
use crate::memory::random::Random;
use crate::platform::sync::Guard;

/// Bytes of blocks of a class in a shard's queue, and at most so many blocks, but at least one. The second stage is as
/// long.
const LINE_BYTES: usize = 32 << 10;
const LINE_BLOCKS_MAX: usize = 512;
/// One page in this many has a guard behind it, chosen at random.
const GUARDED_EVERY: usize = 8;
/// A block is taken from one of this many pages with free ones.
const CHOICE: usize = 4;

/// The quarantine of a class in a shard.
struct Quarantine {
    random: Random,
    /// The queue, then the random places; each `room` long. 0 is no block.
    blocks: Option<&'static mut [usize]>,
    /// The place of the next one in the queue.
    next: usize,
    /// The requested bytes of live blocks in these pages.
    asked_bytes: usize,
}

/// One for each lock of pages, which guards it.
struct Quarantines([[UnsafeCell<Quarantine>; CLASSES]; SHARDS_MAX]);

// SAFETY: Each is touched only under the lock of its pages.
unsafe impl Sync for Quarantines {}

static QUARANTINES: Quarantines =
    Quarantines([const { [const { UnsafeCell::new(Quarantine::new()) }; CLASSES] }; SHARDS_MAX]);

/// The length of the queue for `class`.
const fn room(class: Class) -> usize {
    let room = LINE_BYTES / class.size();
    if room > LINE_BLOCKS_MAX {
        LINE_BLOCKS_MAX
    } else if room == 0 {
        1
    } else {
        room
    }
}

impl Quarantine {
    const fn new() -> Quarantine {
        Quarantine { random: Random::new(), blocks: None, next: 0, asked_bytes: 0 }
    }

    /// Puts a block into quarantine; returns the one that leaves, 0 for none. Without memory that is the block itself.
    fn exchange(&mut self, class: Class, block: usize) -> usize {
        let room = room(class);
        if self.blocks.is_none() {
            self.blocks = metadata::words(2 * room);
            // The array's old contents are no blocks.
            self.blocks.iter_mut().for_each(|words| words.fill(0));
        }
        let Some(blocks) = &mut self.blocks else { return block };
        let first = core::mem::replace(&mut blocks[self.next], block);
        self.next = if self.next + 1 == room { 0 } else { self.next + 1 };
        if first == 0 {
            return 0;
        }
        core::mem::replace(&mut blocks[room + self.random.below(room)], first)
    }

    /// Takes some block out; `None` where there is none.
    fn any(&mut self) -> Option<usize> {
        let place = self.blocks.as_mut()?.iter_mut().find(|block| **block != 0)?;
        Some(core::mem::take(place))
    }
}

/// The quarantine of a class in a shard.
///
/// # Safety
///
/// - The caller holds the lock of those pages while it uses this, and has no other reference to it.
unsafe fn quarantine_of(shard: Shard, class: Class) -> &'static mut Quarantine {
    let quarantine = &QUARANTINES.0[usize::from(shard.0) % SHARDS_MAX][class.page_index()];
    // SAFETY: The caller's condition.
    unsafe { &mut *quarantine.get() }
}

/// A block that was taken from a page.
pub(crate) struct Taken {
    pub(crate) address: usize,
    /// Whether all its bytes were zero when it became free.
    pub(crate) zeroed: bool,
}

/// Takes a free block of `class` for `size` bytes from the pages of `shard`, or of another shard if there is no memory
/// for a new page; `None` without memory.
#[inline]
pub(crate) fn take(shard: Shard, class: Class, size: usize) -> Option<Taken> {
    let taken = take_from(shard, class, size, true);
    if taken.is_some() { taken } else { take_elsewhere(shard, class, size) }
}

#[cold]
#[inline(never)]
fn take_elsewhere(shard: Shard, class: Class, size: usize) -> Option<Taken> {
    let mut others = Shard::used().filter(|other| *other != shard);
    others.find_map(|other| take_from(other, class, size, false))
}

fn take_from(shard: Shard, class: Class, size: usize, makes: bool) -> Option<Taken> {
    let mut pages = shard.pages(class).lock();
    // SAFETY: The lock of these pages is held, here and below.
    let mut random = &mut unsafe { quarantine_of(shard, class) }.random;
    while pages.partial.first().is_none() {
        if !makes {
            return None;
        }
        let guarded = random.below(GUARDED_EVERY) == 0;
        // Other threads may take from the new page before this one does.
        drop(pages);
        let page = Page::create_hardened(class, shard.0, guarded)?;
        pages = shard.pages(class).lock();
        pages.enter(class, page, 0);
        // SAFETY: As above.
        random = &mut unsafe { quarantine_of(shard, class) }.random;
    }
    let choice = match pages.partial_count as usize {
        0 | 1 => 0,
        more => random.below(more.min(CHOICE)),
    };
    let page = Page(pages.partial.iter().nth(choice)?);
    let index = page.take_from(class, random.below(class.page_blocks()));
    if page.0.dirty.get() > 0 {
        pages.left_alone.note_taken(page.note_taken(), class);
    }
    if page.is_full() {
        pages.unlink(page);
    }
    pages.handed_out += 1;
    pages.taken += 1;
    // SAFETY: As above.
    unsafe { quarantine_of(shard, class) }.asked_bytes += size;
    let zeroed = page.record(index) == Record::Zeroed;
    page.set_record(index, Record::Live(size));
    Some(Taken { address: page.block(class, index), zeroed })
}

impl ClassPages {
    /// Makes a block free that leaves the quarantine, or says where it was written to. Returns its page where that is
    /// now empty and removed, to be released.
    fn end_quarantine(&mut self, class: Class, block: usize) -> Result<Option<Page>, Wrong> {
        // SAFETY: Quarantined blocks lie in pages.
        let page = unsafe { page_at(block) };
        let index = page.index_of(class, block);
        if let Some(offset) = first_written(block, class.size()) {
            return Err(Wrong::Written { block, offset, size: class.size() });
        }
        page.set_record(index, Record::Zeroed);
        let was_full = page.is_full();
        page.put_back(class, index);
        if was_full {
            self.link_again(class, page);
        }
        let releases = page.is_empty(class)
            && self.partial_count > super::kept_pages(class)
            && !page.is_away();
        if releases {
            self.remove(page);
        }
        Ok(releases.then_some(page))
    }
}

/// The offset of the first byte of a cleared block that is not zero. The block's size is a multiple of 16.
#[inline]
pub(crate) fn first_written(block: usize, size: usize) -> Option<usize> {
    const LINE: usize = 8;
    let words = ptr::with_exposed_provenance::<u64>(block);
    let (count, mut seen) = (size / size_of::<u64>(), 0);
    // A line at a time without a branch, which compilers vectorize.
    let whole = count / LINE * LINE;
    for line in (0..whole).step_by(LINE) {
        // SAFETY: The block is that long, and nothing uses it. Any bytes are numbers.
        let numbers = unsafe { words.add(line).cast::<[u64; LINE]>().read() };
        seen |= numbers.iter().fold(0, |all, number| all | number);
    }
    // SAFETY: As above.
    seen |= (whole..count).fold(0, |all, place| all | unsafe { words.add(place).read() });
    if seen == 0 {
        return None;
    }
    let bytes = words.cast::<u8>();
    // SAFETY: As above.
    (0..size).find(|offset| unsafe { bytes.add(*offset).read() } != 0)
}

/// The fault of a pointer or of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// It points to no page.
    NoPage,
    /// It points behind a page's last block.
    BehindLast,
    /// It points into a block of this size, at this offset.
    Inside { offset: usize, size: usize, live: bool },
    /// A block of this size that was freed before.
    FreedTwice { size: usize },
    /// A free block of this size, which was freed before if it was ever handed out.
    IsFree { size: usize },
    /// The block at `block`, of `size` bytes, was written to after it was freed.
    Written { block: usize, offset: usize, size: usize },
}

/// A live block, with the lock of its pages.
pub(crate) struct Held {
    pages: Guard<'static, ClassPages>,
    shard: Shard,
    pub(crate) class: Class,
    page: Page,
    index: usize,
}

/// The live block that starts at `address`.
#[inline]
pub(crate) fn hold(address: usize) -> Result<Held, Wrong> {
    let code = arena::code_of(address);
    let Some(class) = Class::from_code(code) else { return Err(Wrong::NoPage) };
    // SAFETY: Where the class map has a class there is an arena.
    let page = unsafe { page_at(address) };
    let shard = Shard(page.0.shard.get());
    if usize::from(shard.0) >= SHARDS_MAX {
        return Err(Wrong::NoPage);
    }
    let pages = shard.pages(class).lock();
    // The page may have been released before the lock was taken, and another shard may have made one there: then the pointer
    // is not a live block's, or not one of this shard's.
    let is_same = || {
        // SAFETY: As above, while the map says the same.
        let now = unsafe { page_at(address) };
        ptr::eq(now.0, page.0) && now.owner() == shard
    };
    if arena::code_of(address) != code || !is_same() {
        return Err(Wrong::NoPage);
    }
    let offset = address - page.0.address();
    let index = class.block_index(offset);
    if index >= class.page_blocks() || index * class.size() != offset {
        return Err(inside(page, class, offset));
    }
    match page.record(index) {
        Record::Live(_) => Ok(Held { pages, shard, class, page, index }),
        Record::Quarantined => Err(Wrong::FreedTwice { size: class.size() }),
        Record::Zeroed | Record::Unknown => Err(Wrong::IsFree { size: class.size() }),
    }
}

/// The fault of an address `offset` bytes into a page, where no block starts.
#[cold]
#[inline(never)]
fn inside(page: Page, class: Class, offset: usize) -> Wrong {
    let (index, offset) = (offset / class.size(), offset % class.size());
    if index >= class.page_blocks() {
        return Wrong::BehindLast;
    }
    match page.record(index) {
        Record::Live(size) => Wrong::Inside { offset, size, live: true },
        _ => Wrong::Inside { offset, size: class.size(), live: false },
    }
}

impl Held {
    /// The requested size.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        match self.page.record(self.index) {
            Record::Live(size) => size,
            _ => 0,
        }
    }

    /// Changes the requested size to `size`.
    pub(crate) fn set_size(&mut self, size: usize) {
        let before = self.size();
        // SAFETY: The lock of these pages is held.
        let quarantine = unsafe { quarantine_of(self.shard, self.class) };
        quarantine.asked_bytes = quarantine.asked_bytes - before + size;
        self.page.set_record(self.index, Record::Live(size));
    }

    /// Puts the block into quarantine; nothing uses it any more. Returns whether the queue began again, as it does now
    /// and then.
    #[inline]
    pub(crate) fn quarantine(mut self) -> Result<bool, Wrong> {
        let (class, block) = (self.class, self.page.block(self.class, self.index));
        let size = self.size();
        // SAFETY: The block is that long, and nothing uses it.
        unsafe { ptr::with_exposed_provenance_mut::<u8>(block).write_bytes(0, class.size()) };
        self.page.set_record(self.index, Record::Quarantined);
        self.pages.handed_out -= 1;
        // SAFETY: The lock of these pages is held.
        let quarantine = unsafe { quarantine_of(self.shard, class) };
        quarantine.asked_bytes -= size;
        let leaving = quarantine.exchange(class, block);
        let is_round = quarantine.next == 0;
        let empty = if leaving == 0 { Ok(None) } else { self.pages.end_quarantine(class, leaving) };
        let _ = self.pages.check_sparse(self.shard, class);
        drop(self.pages);
        super::flush::count_returned(self.shard, 1);
        if let Some(page) = empty? {
            // SAFETY: Every block of it is free, and it is in no list.
            unsafe { page.release(class) };
        }
        super::purge_step();
        Ok(is_round)
    }
}

/// Empties the quarantines before a request fails; whether there was a block, or the block that was written to.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.reclaim.hardened_forget")]
pub(crate) fn forget() -> Result<bool, Wrong> {
    let mut found = false;
    for (shard, class) in Shard::used().flat_map(|shard| Class::all().map(move |c| (shard, c))) {
        loop {
            let mut pages = shard.pages(class).lock();
            // SAFETY: The lock of these pages is held.
            let Some(block) = unsafe { quarantine_of(shard, class) }.any() else { break };
            let empty = pages.end_quarantine(class, block);
            drop(pages);
            if let Some(page) = empty? {
                // SAFETY: Every block of it is free, and it is in no list.
                unsafe { page.release(class) };
            }
            found = true;
        }
    }
    Ok(found)
}

/// The requested bytes of all live blocks of `class`.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.statistics.hardened_asked_bytes")]
pub(crate) fn asked_bytes(class: Class) -> usize {
    let of_shard = |shard: Shard| {
        let _pages = shard.pages(class).lock();
        // SAFETY: The lock of these pages is held.
        unsafe { quarantine_of(shard, class) }.asked_bytes
    };
    Shard::used().map(of_shard).sum()
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use super::*;
    use crate::blocks::ownership;
    use crate::platform::alone::{self, run_alone};

    #[test]
    fn a_page_that_another_shard_has_made_since_is_not_held() {
        run_alone!();
        const OTHER: u8 = 1;
        ownership::admit(OTHER);
        let class = Class::of_size(5_000);
        let taken = take(Shard::default(), class, 4_000).expect("memory");
        let pages = Shard::default().pages(class).lock();
        let holds = std::thread::spawn(move || hold(taken.address).map(drop).err());
        while !pages.has_sleepers() && !holds.is_finished() {
            std::thread::yield_now();
        }
        // SAFETY: The block lies in a page.
        ownership::note_page(unsafe { page_at(taken.address) }.0, OTHER);
        drop(pages);
        assert_eq!(holds.join().expect("it ends"), Some(Wrong::NoPage));
    }
}
