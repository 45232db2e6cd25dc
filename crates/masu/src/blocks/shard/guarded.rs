//! Guarded blocks, each in a slot between inaccessible OS pages.
//!
//! Relies on `diagnostics/guards` for the slots. For the rest of the allocator they are like the sampled blocks of a heap
//! profile: in pages that no thread's shard owns, with the same code, and returned here.

use super::Shard;
use crate::blocks::ownership;
use crate::diagnostics::{guards, sampling};
use crate::memory::slice::Slice;

/// Makes a slice hold guarded blocks.
pub(crate) fn admit(slice: &'static Slice) {
    ownership::admit(Shard::GUARDED.0);
    ownership::note_page(slice, Shard::GUARDED.0);
}

/// Frees a guarded block. Ends the program with a report where there is none.
#[cold]
#[inline(never)]
pub(crate) fn put(block: usize) {
    if guards::free(block) {
        sampling::remove(block);
    }
}
