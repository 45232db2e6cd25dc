//! Sampled blocks: blocks in a heap profile come from pages of their own.
//!
//! Relies on its parent for the pages, and on the profile for its samples.

use core::ptr;

use super::Shard;
use crate::blocks::page::page_of;
use crate::blocks::slot::{self, CacheHead};
use crate::diagnostics::{guards, sampling};
use crate::memory::class::Class;

/// A block of `class` from the pages of sampled blocks; null without memory.
#[cold]
#[inline(never)]
pub(crate) fn take(class: Class) -> *mut u8 {
    let mut block = [0];
    let taken = Shard::SAMPLED.pages(class).lock().take(class, &mut block);
    if taken == 0 {
        Shard::SAMPLED.refill_from_new(class, &mut block);
    }
    ptr::with_exposed_provenance_mut(block[0])
}

/// Whether one of these free blocks is a sampled or a guarded one, which only a thread can have that has not noticed the
/// profile or the guards yet.
#[inline(always)]
pub(crate) fn are_sampled(blocks: &[usize]) -> bool {
    (sampling::is_running() || guards::are_on())
        && !slot::get().head().is_some_and(CacheHead::has_noticed)
        && blocks.iter().any(|block| page_of(*block).owner().is_special())
}
