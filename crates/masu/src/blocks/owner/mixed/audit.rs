//! Checks a mixed slice's sets of parts against its bitmaps, for tests.

use super::{FIRST, Mixed, PARTS, all_free, index_of, part_at};
use crate::blocks::owner::Owner;
use crate::blocks::owner::holdings::Counts;
use crate::memory::class::Class;
use crate::memory::slice::SLICE_BYTES;

impl Mixed {
    /// Checks the slice against the sets of its parts; returns the counts of its blocks.
    pub(in crate::blocks::owner) fn audit(&self, owner: &'static Owner) -> Counts {
        let mut counts = Counts::NONE;
        let Some(slice) = self.slice else {
            assert!(self.used == 0 && self.partial == 0 && self.parts.iter().all(|own| *own == 0));
            return counts;
        };
        assert!(owner.owns(slice) && slice.belongs.number.get() == owner.number());
        counts.page_bytes = SLICE_BYTES;
        for part in 0..PARTS {
            let owners = self.parts.iter().filter(|own| **own >> part & 1 != 0).count();
            if self.used >> part & 1 == 0 {
                assert!(owners == 0 && self.partial >> part & 1 == 0, "a part that is not used");
                continue;
            }
            let code = owner.codes[part].get();
            let Some(class) = Class::from_code(code) else { unreachable!("{code} is no class") };
            let free = slice.bitmap(PARTS)[part].get();
            assert!(owners == 1 && self.parts[class.index() - FIRST] >> part & 1 != 0);
            assert!(free & !all_free(class) == 0 && free != all_free(class), "a part of its class");
            assert_eq!(self.partial >> part & 1 != 0, free != 0);
            counts.add_blocks(class, (all_free(class) & !free).count_ones() as usize);
        }
        counts
    }

    /// Checks that a block of `class`, which a cache has, was taken from this slice.
    pub(in crate::blocks::owner) fn audit_taken(
        &self,
        owner: &'static Owner,
        class: Class,
        block: usize,
    ) {
        let part = part_at(block);
        assert_eq!(usize::from(owner.codes[part].get()), class.index());
        let free =
            self.slice.map(|slice| slice.bitmap(PARTS)[part].get() >> index_of(class, block) & 1);
        assert_eq!(free, Some(0), "a block in a cache is free in its part");
    }
}
