//! Large blocks of the hardened build: slices between guards, and a quarantine of addresses.
//!
//! Relies on the ranges for runs of slices. A run begins and ends with inaccessible slices. Between them lies the block, of
//! which only the requested OS pages are open. So an overrun beyond the last OS page, whose rest holds a canary, faults at
//! once.
//!
//! A free purges the block's memory and closes its addresses while they are in quarantine, so a use after free faults too.
//! The block's size is in its first slice's metadata, where a free page has links.

use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};

use super::report::{self, Call, Reason};
use super::{Expected, canary, count, uncount};
use crate::blocks::shard::hardened::{self, Wrong};
use crate::memory::class::{FOREIGN, LARGE};
use crate::memory::map;
use crate::memory::random::Random;
use crate::memory::ranges::{Filling, Ranges, Run, large, stripes};
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Advice, Protection};
use crate::threads::statistics::page;
use crate::threads::thread;

/// The most blocks that the quarantine holds.
const QUARANTINED: usize = 64;
/// The most slices of all quarantined blocks together; a longer block is not quarantined.
const RESTING_SLICES_MAX: usize = (256 << 20) / SLICE_BYTES;

/// The most blocks with guards, quarantined ones too: each takes up to three of the 65,530 mappings of a process, and a
/// process without a free mapping can commit no memory.
const GUARDED_MAX: usize = 12 << 10;

/// The quarantined blocks, by their first slices.
struct Quarantined {
    random: Random,
    blocks: [Option<&'static Slice>; QUARANTINED],
    slices: usize,
    /// Blocks with guards.
    guarded: usize,
}

/// Guarded by the ranges' lock.
struct Place(UnsafeCell<Quarantined>);

// SAFETY: The value is touched only under the ranges' lock.
unsafe impl Sync for Place {}

static PLACE: Place = Place(UnsafeCell::new(Quarantined {
    random: Random::new(),
    blocks: [None; QUARANTINED],
    slices: 0,
    guarded: 0,
}));

#[expect(clippy::mut_from_ref, reason = "the lock that is held gives the right")]
fn quarantine(_held: &Ranges) -> &mut Quarantined {
    // SAFETY: The caller holds the lock, and the reference lives no longer than that.
    unsafe { &mut *PLACE.0.get() }
}

/// A large block, by its first slice. There, `count` is the slices of its whole run, `back` those before the block, and
/// `number` the requested bytes.
#[derive(Clone, Copy)]
struct Block(&'static Slice);

impl Block {
    fn size(self) -> usize {
        self.0.belongs.number.get()
    }

    /// Slices between the guards.
    fn slices(self) -> usize {
        self.0.count.get() as usize - self.0.back.get() as usize - 1
    }

    fn run(self) -> &'static Slice {
        // SAFETY: The run begins that many slices earlier.
        unsafe { self.0.behind(self.0.back.get() as usize) }
    }

    fn at(self, offset: usize) -> NonNull<u8> {
        // SAFETY: The offset lies in the run.
        unsafe { self.0.start().add(offset) }
    }

    /// Whether slices around the block are closed.
    fn is_guarded(self) -> bool {
        self.0.zero.get()
    }

    /// Writes the size, and the canary behind it.
    fn set_size(self, size: usize) {
        self.0.belongs.number.set(size);
        // SAFETY: The block is open that far.
        unsafe { canary::write(self.0.start().as_ptr(), size, opened(size)) };
    }

    fn is_overrun(self) -> bool {
        let size = self.size();
        // SAFETY: As above.
        !unsafe { canary::is_intact(self.0.start().as_ptr(), size, opened(size)) }
    }
}

/// Bytes of open OS pages for a block of `size` bytes.
fn opened(size: usize) -> usize {
    size.max(1).next_multiple_of(kernel::page_size())
}

/// Bytes of `slices` slices beyond a block's `size`.
fn unused(slices: usize, size: usize) -> isize {
    (slices * SLICE_BYTES - size).cast_signed()
}

/// Allocates `size` bytes aligned to `align`, a power of two. Null without memory, and where the size or the alignment
/// is beyond the address space.
pub(super) fn allocate(size: usize, align: usize, zeroed: bool) -> *mut u8 {
    allocate_with(size, align, zeroed, 0)
}

/// The same with closed addresses behind the block for it to grow into.
pub(super) fn allocate_to_grow(size: usize, align: usize) -> *mut u8 {
    let block = allocate_with(size, align, false, size / SLICE_BYTES / 2);
    if block.is_null() { allocate(size, align, false) } else { block }
}

#[inline(never)]
fn allocate_with(size: usize, align: usize, zeroed: bool, spare: usize) -> *mut u8 {
    let Some(slices) = large::slices_if_possible(size, align) else { return ptr::null_mut() };
    let _ = thread::cache();
    let align = align.max(SLICE_BYTES);
    // The first aligned slice behind a guard is at most that far into the run.
    let most_before = align / SLICE_BYTES;
    let filling = Filling::of_new(size, zeroed);
    // This comes before more memory is taken from the kernel.
    let _ = stripes::first().open_one();
    let take = || {
        let mut ranges = stripes::first().lock();
        let all = most_before + slices + spare + 1;
        let run = ranges.allocate_for(filling, all, 1, Kind::Opaque)?;
        let start = run.first.address();
        let before = ((start + SLICE_BYTES).next_multiple_of(align) - start) / SLICE_BYTES;
        let slices = all - before - 1;
        ranges.count_large(1, slices.cast_signed());
        ranges.count_unused(unused(slices, size));
        let is_guarded = quarantine(&ranges).enter_guarded();
        Some((run, before, slices, is_guarded))
    };
    // The quarantine is kept where even an empty one would not help: the request exceeds all reserved memory.
    let may_fit = || size <= stripes::read().reserved_bytes;
    let taken = take().or_else(|| (may_fit() && forget_quarantined()).then(take)?);
    let Some((run, before, slices, is_guarded)) = taken else { return ptr::null_mut() };
    // SAFETY: The slice lies in the run, within its arena's first GiB: a longer arena has no other run, and that run
    // begins right behind the head.
    let first = unsafe { run.first.ahead(before) };
    let block = Block(first);
    first.count.set(run.first.count.get());
    first.back.set(before as u32);
    first.sampled.set(0);
    first.zero.set(is_guarded);
    if is_guarded {
        let behind = (slices + 1) * SLICE_BYTES - opened(size);
        close(run.first.start(), before * SLICE_BYTES);
        close(block.at(opened(size)), behind);
    }
    large::zeroed_if(zeroed, Run { first, ..run }, size);
    block.set_size(size);
    first.kind.set(Kind::Large);
    map::set(first.address(), 1, LARGE);
    page::refresh_for_large(slices);
    count(first.address(), size);
    first.start().as_ptr()
}

/// Closes a part of a run that nothing uses. If the kernel refuses, usually because of the limit on mappings, the part
/// stays open.
fn close(start: NonNull<u8>, bytes: usize) {
    // SAFETY: The range lies in a run, and nothing uses it.
    let _ = unsafe { kernel::protect(start, bytes, Protection::None) };
}

/// The live large block at `address`; the class map has `LARGE` for its slice. Ends the program where no live block
/// starts there.
fn live(address: usize, call: Call) -> Block {
    // SAFETY: The class map knows the address, so it lies within the first GiB of an arena.
    let first = unsafe { Slice::at(address) };
    let block = Block(first);
    let offset = address - first.address();
    let is_live = first.kind.is(Kind::Large);
    if offset != 0 {
        let inside = Wrong::Inside { offset, size: block.size(), live: is_live };
        report::stop(call, address, Reason::Wrong(inside));
    }
    if !is_live {
        let twice = Wrong::FreedTwice { size: block.size() };
        report::stop(call, address, Reason::Wrong(twice));
    }
    block
}

/// As [`live`], and checks the canary, and the size and alignment that the caller states.
fn checked(address: usize, expected: Expected, call: Call) -> Block {
    let block = live(address, call);
    if let Err(reason) = expected.admits(address, block.size()) {
        report::stop(call, address, reason);
    }
    if block.is_overrun() {
        report::stop(call, address, Reason::Overrun { size: block.size() });
    }
    block
}

/// The size of the large block at `address`, checked likewise.
pub(super) fn size(address: usize, expected: Expected, call: Call) -> usize {
    checked(address, expected, call).size()
}

/// Frees a large block, which must match `expected`.
///
/// # Safety
///
/// - Nothing uses it any more, and the class map has `LARGE` for it.
#[inline(never)]
pub(super) unsafe fn free(block: NonNull<u8>, expected: Expected, call: Call) {
    let address = block.as_ptr().addr();
    let block = checked(address, expected, call);
    let size = block.size();
    uncount(address);
    let slices = block.slices();
    let ranges = stripes::first().lock();
    // Two threads may free it at the same time.
    if !block.0.kind.is(Kind::Large) {
        drop(ranges);
        report::stop(call, address, Reason::Wrong(Wrong::FreedTwice { size }));
    }
    block.0.kind.set(Kind::Parked);
    drop(ranges);
    if block.is_guarded() {
        // SAFETY: Nothing uses the block.
        unsafe { kernel::close(block.at(0), opened(size)) };
    } else {
        // SAFETY: As above.
        let _ = unsafe { kernel::advise(block.at(0), opened(size), Advice::DontNeed) };
    }
    let mut ranges = stripes::first().lock();
    ranges.count_large(-1, -slices.cast_signed());
    ranges.count_unused(-unused(slices, size));
    let leaving = quarantine(&ranges).exchange(block);
    drop(ranges);
    leaving.into_iter().for_each(leave);
    let mut left = true;
    while left {
        let surplus = quarantine(&stripes::first().lock()).surplus();
        left = surplus.is_some();
        surplus.into_iter().for_each(leave);
    }
    page::refresh_for_large(slices);
}

impl Quarantined {
    /// Counts one more block with guards; returns whether the block may have guards.
    fn enter_guarded(&mut self) -> bool {
        let enters = self.guarded < GUARDED_MAX;
        self.guarded += usize::from(enters);
        enters
    }

    /// Puts a block into quarantine. Returns the block that it displaces where no place is empty, or the block itself
    /// where it is too long.
    fn exchange(&mut self, block: Block) -> Option<Block> {
        let slices = block.0.count.get() as usize;
        if slices > RESTING_SLICES_MAX {
            return Some(block);
        }
        self.slices += slices;
        let from = self.random.below(QUARANTINED);
        let (before, behind) = self.blocks.split_at_mut(from);
        if let Some(place) = behind.iter_mut().chain(before).find(|place| place.is_none()) {
            *place = Some(block.0);
            return None;
        }
        let left = self.blocks[from].replace(block.0);
        left.map(|left| self.note_left(left))
    }

    /// A block that must leave because there are too many slices.
    fn surplus(&mut self) -> Option<Block> {
        if self.slices <= RESTING_SLICES_MAX {
            return None;
        }
        self.any()
    }

    /// Removes some block.
    fn any(&mut self) -> Option<Block> {
        let from = self.random.below(QUARANTINED);
        let (before, behind) = self.blocks.split_at_mut(from);
        let left = behind.iter_mut().chain(before).find_map(Option::take)?;
        Some(self.note_left(left))
    }

    fn note_left(&mut self, left: &'static Slice) -> Block {
        self.slices -= left.count.get() as usize;
        Block(left)
    }
}

/// Empties this quarantine and that of small blocks, and opens the slices that the kernel refused to open before.
/// Returns whether there were any.
#[cold]
#[inline(never)]
pub(super) fn forget_quarantined() -> bool {
    let mut found = match hardened::forget() {
        Ok(found) => found,
        Err(wrong) => report::stop(Call::Malloc, 0, Reason::Wrong(wrong)),
    };
    loop {
        let left = quarantine(&stripes::first().lock()).any();
        let Some(block) = left else { break };
        leave(block);
        found = true;
    }
    while stripes::first().open_one() {
        found = true;
    }
    found
}

/// Frees the run of a block that leaves the quarantine.
fn leave(block: Block) {
    let (run, count) = (block.run(), block.0.count.get() as usize);
    let is_guarded = block.is_guarded();
    map::set(block.0.address(), 1, FOREIGN);
    block.0.kind.set(Kind::Opaque);
    block.0.back.set(0);
    let mut ranges = stripes::first().lock();
    quarantine(&ranges).guarded -= usize::from(is_guarded);
    if is_guarded {
        drop(ranges);
        // SAFETY: The run was the block's, which nothing uses.
        let _ = unsafe { stripes::first().free_closed(run, count) };
    } else {
        // SAFETY: As above.
        unsafe { ranges.free(run, count, 0) };
    }
}

/// Resizes the large block at `address`, which was checked, in place; returns whether that was possible.
pub(super) fn resize(address: usize, size: usize) -> bool {
    let block = live(address, Call::Realloc);
    let room = block.slices() * SLICE_BYTES;
    if size > room || size < room / 4 {
        return false;
    }
    let (before, after) = (opened(block.size()), opened(size));
    if after > before {
        // SAFETY: The block has room for that.
        if unsafe { kernel::protect(block.at(before), after - before, Protection::ReadWrite) }
            .is_err()
        {
            return false;
        }
    } else if after < before {
        // SAFETY: The caller has given up the block's tail.
        let _ = unsafe { kernel::advise(block.at(after), before - after, Advice::DontNeed) };
        if block.is_guarded() {
            close(block.at(after), before - after);
        }
    }
    stripes::first().lock().count_unused(block.size().cast_signed() - size.cast_signed());
    block.set_size(size);
    true
}
