//! Mixed slices: one slice that all small classes of a heap share, so that a heap of few blocks takes one slice and not one
//! for each class.
//!
//! Relies on the slice's bitmap. A word of it covers 1 KiB in steps of 16 bytes: a *part*. A part in use has blocks of one
//! class, and its word has the free ones. A class gets few parts; beyond them it has pages of its own, so large heaps pay
//! nothing for this. The hard idea is where a part's class is stored: in the owner, which `free` finds by the slice, because
//! the slice's 64 bytes have no room for it, and the heap's memory holds only blocks.

#[cfg(debug_assertions)]
mod audit;

use super::Owner;
use crate::blocks::ownership::{self, NO_SHARD};
use crate::blocks::slot;
use crate::memory::class::{Class, FIRST, FOREIGN, HEAP};
use crate::memory::map;
use crate::memory::slice::{BITMAP_WORDS, Kind, SLICE_BYTES, Slice};
use crate::platform::bounds::Bounded;
use crate::platform::fault::{self, Fault};

/// Parts of a slice.
pub(super) const PARTS: usize = BITMAP_WORDS;
/// Bytes of a part.
const PART_BYTES: usize = SLICE_BYTES / PARTS;
/// A class with this many parts gets no more.
const PARTS_MAX: u32 = 4;
/// The classes whose blocks fit a part.
const CLASSES: usize = Class::of_size(PART_BYTES).index() - FIRST + 1;

/// The mixed slice of a heap, if it has one.
pub(super) struct Mixed {
    slice: Option<&'static Slice>,
    /// The parts in use, a bit each.
    used: u64,
    /// Those with a free block.
    partial: u64,
    /// Those of each class.
    parts: [u64; CLASSES],
}

/// The part that contains an address.
#[inline(always)]
fn part_at(address: usize) -> usize {
    address / PART_BYTES % PARTS
}

/// The index in its part of the block of `class` that starts at this address. Ends the program where none does.
fn index_of(class: Class, block: usize) -> usize {
    let offset = block % PART_BYTES;
    let index = class.block_index(offset);
    // There may be room for part of a block behind the last one.
    if index >= class.block_index(PART_BYTES) || index * class.size() != offset {
        fault::stop(Fault::NotABlock);
    }
    index
}

/// A part's word of the bitmap while every block of `class` in it is free.
fn all_free(class: Class) -> u64 {
    u64::MAX >> (u64::BITS as usize - class.block_index(PART_BYTES))
}

impl Owner {
    /// The class index of the part that contains this address in the heap's mixed slice.
    #[inline(always)]
    pub(crate) fn mixed_code(&self, address: usize) -> u8 {
        self.codes[part_at(address)].get()
    }

    /// The class of the block that starts at this address in the heap's mixed slice. Ends the program where none does.
    pub(crate) fn mixed_class(&self, block: usize) -> Class {
        let Some(class) = Class::from_code(self.mixed_code(block)) else {
            fault::stop(Fault::NotABlock)
        };
        index_of(class, block);
        class
    }
}

impl Mixed {
    pub(super) const fn new() -> Mixed {
        Mixed { slice: None, used: 0, partial: 0, parts: [0; CLASSES] }
    }

    pub(super) fn is_without_slice(&self) -> bool {
        self.slice.is_none()
    }

    /// Takes the slice to share; false without memory.
    pub(super) fn begin(&mut self, owner: &'static Owner) -> bool {
        let mut ranges = slot::ranges().lock();
        ranges.bring_home(slot::parked());
        let Some(run) = ranges.allocate(1, 1, Kind::HeapMixed) else { return false };
        drop(ranges);
        let slice = run.first;
        slice.back.set(0);
        slice.purged.set(0);
        slice.sampled.set(0);
        ownership::note_page(slice, NO_SHARD);
        owner.take_in(slice);
        map::set(slice.address(), 1, HEAP);
        self.slice = Some(slice);
        true
    }

    /// Whether `class` may have one more part.
    pub(super) fn may_begin_part(&self, class: Class) -> bool {
        let own = self.parts.get(class.index() - FIRST);
        self.used != u64::MAX && own.is_some_and(|own| own.count_ones() < PARTS_MAX)
    }

    /// Gives `class`, which may have it, one more part, with all blocks free.
    pub(super) fn begin_part(&mut self, owner: &'static Owner, class: Class) {
        let Some(slice) = self.slice else { return };
        let part = self.used.trailing_ones() as usize;
        owner.codes.at(part).set(class.index() as u8);
        slice.bitmap(PARTS).at(part).set(all_free(class));
        self.used |= 1 << part;
        self.partial |= 1 << part;
        *self.parts.at_mut(class.index() - FIRST) |= 1 << part;
    }

    /// Takes free blocks of `class` into the *end* of `blocks`, lowest address of each part last, lowest part last. Returns
    /// how many.
    pub(super) fn take(&mut self, class: Class, blocks: &mut [usize]) -> usize {
        let Some((slice, own)) = self.slice.zip(self.parts.get(class.index() - FIRST)) else {
            return 0;
        };
        let mut parts = own & self.partial;
        let mut left = blocks.len();
        while parts != 0 && left > 0 {
            let part = parts.trailing_zeros() as usize;
            parts &= parts - 1;
            let word = slice.bitmap(PARTS).at(part);
            let first = slice.address() + part * PART_BYTES;
            let mut free = word.get();
            while free != 0 && left > 0 {
                left -= 1;
                *blocks.at_mut(left) = first + free.trailing_zeros() as usize * class.size();
                free &= free - 1;
            }
            word.set(free);
            if free == 0 {
                self.partial &= !(1 << part);
            }
        }
        blocks.len() - left
    }

    /// Frees a block of `class` in this slice. Ends the program where it is not one, or is free already.
    pub(super) fn put(&mut self, owner: &'static Owner, class: Class, block: usize) {
        let part = part_at(block);
        let Some(slice) = self.slice.filter(|_| self.used & (1 << part) != 0) else {
            // The part went out of use when its last block was freed.
            fault::stop(Fault::FreedTwice)
        };
        if usize::from(owner.codes[part].get()) != class.index() {
            fault::stop(Fault::NotTheHeaps);
        }
        let (word, bit) = (slice.bitmap(PARTS).at(part), 1 << index_of(class, block));
        let free = word.get();
        if free & bit != 0 {
            fault::stop(Fault::FreedTwice);
        }
        word.set(free | bit);
        self.partial |= 1 << part;
        if free | bit == all_free(class) {
            self.used &= !(1 << part);
            self.partial &= !(1 << part);
            *self.parts.at_mut(class.index() - FIRST) &= !(1 << part);
        }
    }

    /// Takes the slice out of use if all its blocks are free.
    pub(super) fn close_if_empty(&mut self) -> Option<&'static Slice> {
        if self.used == 0 { self.close() } else { None }
    }

    /// Takes the slice out of use; the caller frees it.
    pub(super) fn close(&mut self) -> Option<&'static Slice> {
        let slice = self.slice?;
        *self = Mixed::new();
        map::set(slice.address(), 1, FOREIGN);
        slice.kind.set(Kind::Opaque);
        Some(slice)
    }
}

const _: () = assert!(CLASSES * size_of::<u64>() <= 256, "an owner stays small");
const _: () = assert!(PART_BYTES / 16 <= u64::BITS as usize, "a word has a bit for each block");
