//! Sampled blocks: those that a heap profile knows one by one come from pages of their own.
//!
//! Relies on their parent for the pages. Frees by layout are looked through many at once for them (`cache/freed.rs`), so
//! what is asked here has to be cheap: whether there are any, and in which slices.

use core::ptr;

use super::Shard;
use crate::class::{CLASSES, Class};
use crate::slice::SLICE_SHIFT;
use crate::sync::{AtomicU32, Ordering};

/// The first, with all bits the other way round, and the last slice in which sampled blocks ever lay, by class. As a rule these
/// are one page's, for samples are few.
static LAIN_IN: [(AtomicU32, AtomicU32); CLASSES] =
    [const { (AtomicU32::new(0), AtomicU32::new(0)) }; CLASSES];

/// Neighbouring slices, by number.
#[derive(Clone, Copy)]
pub(crate) struct Slices {
    first: u32,
    count: u32,
}

impl Slices {
    /// Whether `address` lies in one of them.
    #[inline(always)]
    pub(crate) fn hold(self, address: usize) -> bool {
        ((address >> SLICE_SHIFT) as u32).wrapping_sub(self.first) < self.count
    }
}

/// Where the sampled blocks of `class` lie that are not back in their pages, among others if need be; `None` where all are.
#[inline]
pub(crate) fn slices(class: Class) -> Option<Slices> {
    if super::SAMPLED[class.page_index()].0.lock().handed_out == 0 {
        return None;
    }
    let (first, last) = &LAIN_IN[class.page_index()];
    // ORDERING: Relaxed: whoever has a sampled block has synchronised with the thread that it was handed out to.
    let (first, last) = (!first.load(Ordering::Relaxed), last.load(Ordering::Relaxed));
    Some(Slices { first, count: last.wrapping_sub(first).wrapping_add(1) })
}

/// A block of `class` from the pages of sampled blocks; null for want of memory.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile")]
pub(crate) fn take(class: Class) -> *mut u8 {
    let mut block = [0];
    let taken = Shard::SAMPLED.pages(class).lock().take(class, &mut block);
    if taken == 0 {
        Shard::SAMPLED.refill_from_new(class, &mut block);
    }
    let (first, last) = &LAIN_IN[class.page_index()];
    let slice = (block[0] >> SLICE_SHIFT) as u32;
    if slice != 0 {
        // ORDERING: Relaxed, as in `slices`.
        first.fetch_max(!slice, Ordering::Relaxed);
        // ORDERING: As above.
        last.fetch_max(slice, Ordering::Relaxed);
    }
    ptr::with_exposed_provenance_mut(block[0])
}
