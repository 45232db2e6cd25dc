//! Guarded blocks: those that lie between OS pages that nobody may touch, each in a slot of its own.
//!
//! Relies on the room of guards for the slots. To the rest of the allocator they are blocks like the sampled ones of a heap
//! profile: in pages that no shard of a thread's owns, under the same code, and brought home here.

use super::Shard;
use crate::blocks::whose;
use crate::diagnostics::{guards, sampling};
use crate::memory::slice::Slice;

/// Has a slice hold guarded blocks from now on.
pub(crate) fn admit(slice: &'static Slice) {
    whose::admit(Shard::GUARDED.0);
    whose::note_page(slice, Shard::GUARDED.0);
}

/// Brings a guarded block home. Ends the program with a report where there is none.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.guards.guarded_put")]
pub(crate) fn put(block: usize) {
    if guards::free(block) {
        sampling::remove(block);
    }
}
