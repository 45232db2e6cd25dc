//! Checks an owner's counts and lists against its memory, for tests.
//!
//! Relies on the arenas to find it.

use core::ptr;

use super::{Counts, Holdings};
use crate::blocks::owner::Owner;
use crate::blocks::page::Page;
use crate::memory::arena::audit::each_run;
use crate::memory::class::Class;
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};

impl Holdings {
    /// Checks all that this owner has against its counts and lists. No other thread uses masu.
    pub(in crate::blocks::owner) fn audit(&self, owner: &'static Owner) {
        let mut found = self.mixed.audit(owner);
        let (mut full, mut partial, mut occupied) = (0, 0, 0_u128);
        each_run(&mut |first: &'static Slice| match first.kind.get() {
            Kind::HeapPage if owner.owns(first) => {
                let Some(class) = Class::from_code(first.code.get()) else { unreachable!() };
                let free = Page(first).audit(class);
                found.blocks += class.page_blocks() - free;
                found.block_bytes += (class.page_blocks() - free) * class.size();
                found.page_bytes += class.page_slices() * SLICE_BYTES;
                full += usize::from(free == 0);
                partial += usize::from(free > 0);
                occupied |= u128::from(free > 0) << class.page_index();
                assert!(first.belongs.number.get() == owner.number(), "of an earlier heap");
            }
            Kind::HeapLarge if owner.owns(first) => {
                found.large_blocks += 1;
                found.large_bytes += first.count.get() as usize * SLICE_BYTES;
                assert!(first.belongs.number.get() == owner.number(), "of an earlier heap");
            }
            _ => {}
        });
        assert_eq!(self.counts, found);
        assert_eq!(self.large.iter().count(), found.large_blocks);
        assert_eq!((self.full.iter().count(), self.occupied), (full, occupied));
        let lists = self.partial.iter().map(|list| list.iter().count());
        assert_eq!(lists.sum::<usize>(), partial);
        let is_listed = |place: &Slice| {
            self.partial.iter().flat_map(|list| list.iter()).any(|page| ptr::eq(page, place))
        };
        assert!(self.place.is_none_or(is_listed), "a pass is at a page in no list");
    }

    /// Checks that a block of `class`, which a cache has, was taken from this owner.
    pub(in crate::blocks::owner) fn audit_taken(
        &self,
        owner: &'static Owner,
        class: Class,
        block: usize,
    ) {
        // SAFETY: The block was handed out from an arena.
        let slice = unsafe { Slice::at(block) };
        assert!(owner.owns(slice));
        match slice.kind.get() {
            Kind::HeapMixed => self.mixed.audit_taken(owner, class, block),
            _ => Page(slice.page()).audit_taken(class, block),
        }
    }
}

impl Counts {
    /// Adds blocks of a class.
    pub(in crate::blocks::owner) fn add_blocks(&mut self, class: Class, blocks: usize) {
        self.blocks += blocks;
        self.block_bytes += blocks * class.size();
    }
}
