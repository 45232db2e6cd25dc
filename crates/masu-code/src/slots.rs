//! The GOT and the stubs, shared by all objects of an arena.
//!
//! Relies on [`crate::space`] for room. Each entry counts its users, so that it lives as long as the last object that
//! uses it, and a batch that fails gives back only the room that it took.

use std::collections::HashMap;

use crate::memory::{Range, Region};
use crate::relocation::STUB;
use crate::space::Space;

/// The contents of a GOT entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Slot {
    Address(usize),
    /// The address that the function at this address chooses.
    Chosen(usize),
    /// A distance from the thread pointer.
    Thread(i64),
    /// A module and a place in it, in two entries.
    Pair(u64, u64),
    /// No GOT entry: the stub of the arena's entry at this address.
    Entry(usize),
}

/// A GOT entry or stub that an object uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Shared {
    Slot(Slot),
    /// The stub that jumps to the address in the slot.
    Stub(Slot),
}

#[derive(Debug)]
struct Counted {
    address: usize,
    users: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Slots {
    used: HashMap<Shared, Counted>,
    /// Free entries of 8 bytes, the next to be used last.
    free: Vec<usize>,
}

/// Bytes of GOT at the region's beginning, which is as far as aarch64's shortest form reaches.
const FIRST: usize = 32 << 10;

/// Bytes of each piece of GOT after that.
const MORE: usize = 4 << 10;

impl Slots {
    /// The GOT of an arena whose read-only data is all free.
    pub(crate) fn open(range: &Range, sealed: &mut Space) -> Slots {
        let mut slots = Slots::default();
        let base = range.bytes(Region::Sealed).start;
        if let Some(at) = sealed.allocate(FIRST, 8) {
            slots.add(base + at, FIRST);
        }
        slots
    }

    fn add(&mut self, start: usize, size: usize) {
        self.free.extend((start..start + size).step_by(8).rev());
    }

    /// Adds a user; returns the address if the slot or stub exists.
    pub(crate) fn again(&mut self, what: Shared) -> Option<usize> {
        let counted = self.used.get_mut(&what)?;
        counted.users += 1;
        Some(counted.address)
    }

    pub(crate) fn address(&self, what: Shared) -> Option<usize> {
        self.used.get(&what).map(|counted| counted.address)
    }

    /// Takes room for a new GOT entry with one user; `None` where the region is full.
    pub(crate) fn take(&mut self, slot: Slot, range: &Range, sealed: &mut Space) -> Option<usize> {
        let base = range.bytes(Region::Sealed).start;
        let address = if let Slot::Pair(..) = slot {
            base + sealed.allocate(16, 8)?
        } else {
            if self.free.is_empty() {
                let at = sealed.allocate(MORE, 8)?;
                self.add(base + at, MORE);
            }
            self.free.pop()?
        };
        self.used.insert(Shared::Slot(slot), Counted { address, users: 1 });
        Some(address)
    }

    /// Notes a new stub at an address, for one user.
    pub(crate) fn stub(&mut self, slot: Slot, address: usize) {
        self.used.insert(Shared::Stub(slot), Counted { address, users: 1 });
    }

    /// Removes a user; the last one frees the room.
    pub(crate) fn release(
        &mut self,
        what: Shared,
        range: &Range,
        text: &mut Space,
        sealed: &mut Space,
    ) {
        let Some(counted) = self.used.get_mut(&what) else { return };
        counted.users -= 1;
        if counted.users > 0 {
            return;
        }
        let address = counted.address;
        self.used.remove(&what);
        match what {
            Shared::Stub(_) => drop(text.free(address - range.bytes(Region::Text).start, STUB)),
            Shared::Slot(Slot::Pair(..)) => {
                sealed.free(address - range.bytes(Region::Sealed).start, 16);
            }
            Shared::Slot(_) => self.free.push(address),
        }
    }

    /// GOT entries and stubs in use.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let stubs = self.used.keys().filter(|what| matches!(what, Shared::Stub(_))).count();
        (self.used.len() - stubs, stubs)
    }
}
