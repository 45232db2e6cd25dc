//! The arena's contents in figures: bytes in use and free, holes, entries.
//!
//! Relies on the books. A report is of one moment.

use std::fmt;

use super::Arena;
use crate::memory::Region;

/// A region's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of addresses.
    pub size: usize,
    /// Bytes in use, the room between neighbors included.
    pub used: usize,
    /// Free bytes in the largest piece.
    pub largest: usize,
    /// Free pieces with something in use behind them.
    pub holes: usize,
    /// Bytes of these pieces: the fragmentation.
    pub hole_bytes: usize,
}

/// The contents of an arena, in figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The lowest address of the range.
    pub base: usize,
    /// Whether code is mapped twice (see [`crate::Writing`]).
    pub dual: bool,
    /// Executable memory.
    pub text: Usage,
    /// Read-only data, with the GOT and unwind tables.
    pub sealed: Usage,
    /// Writable data.
    pub data: Usage,
    /// Objects that are loaded.
    pub objects: usize,
    /// Objects that were unloaded and wait to be freed.
    pub waiting: usize,
    /// Entries of the GOT.
    pub got: usize,
    /// Stubs.
    pub stubs: usize,
    /// Entries of the entry table.
    pub entries: usize,
    /// Threads that registered as readers.
    pub readers: usize,
}

impl Arena {
    /// The contents of the arena now.
    pub fn report(&self) -> Report {
        let state = self.shared.lock();
        let usage = |region| {
            let space = state.space(region);
            let (holes, hole_bytes) = space.inner_holes();
            let (size, free) = (space.size(), space.free_bytes());
            Usage { size, used: size - free, largest: space.largest(), holes, hole_bytes }
        };
        let (got, stubs) = state.slots.counts();
        Report {
            base: state.range.all().start,
            dual: state.range.is_dual(),
            text: usage(Region::Text),
            sealed: usage(Region::Sealed),
            data: usage(Region::Data),
            objects: state.objects.values().filter(|loaded| loaded.is_live).count(),
            waiting: state.waiting,
            got,
            stubs,
            entries: state.entries.len(),
            readers: self.shared.readers.count(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { base, objects, waiting, got, stubs, entries, .. } = self;
        let way = if self.dual { "mapped twice" } else { "sealed in batches" };
        writeln!(to, "{objects} objects at {base:#x}, {way}; {waiting} wait to be freed")?;
        writeln!(to, "{got} GOT entries, {stubs} stubs, {entries} entries")?;
        let regions =
            [("text", self.text), ("read-only data", self.sealed), ("writable data", self.data)];
        for (name, usage) in regions {
            let Usage { size, used, holes, hole_bytes, .. } = usage;
            writeln!(to, "{name:>14}: {used} of {size} bytes, {hole_bytes} in {holes} holes")?;
        }
        Ok(())
    }
}
