//! Counts of bytes: what is handed out, what is free, what the kernel was asked for.
//!
//! Relies on the books that each room keeps anyway; nothing is counted on a fast path. What is
//! live is what pages handed out less what caches hold.

use crate::arena::Arena;
use crate::ranges::RANGES;
use crate::slice::SLICE_BYTES;
use crate::{arena, shard, thread, transfer};

/// Counts of bytes at one moment; while other threads allocate they are close, not exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes in blocks handed out, each counted with its whole usable size.
    pub live_bytes: usize,
    /// Bytes of large blocks (over 64 KiB, or over 32 KiB and grown or zeroed) among them.
    pub large_bytes: usize,
    /// Large blocks handed out.
    pub large_blocks: usize,
    /// Bytes of free blocks in thread caches and in the transfer cache.
    pub cached_bytes: usize,
    /// Bytes of them in thread caches.
    pub thread_cached_bytes: usize,
    /// Bytes free inside pages, caches and free runs that may be resident.
    pub free_bytes: usize,
    /// Bytes of free runs among them: kept for a next use, within the budget of the hysteresis.
    pub kept_bytes: usize,
    /// Bytes readable and writable: what the kernel may have to back. RSS is at most this, besides
    /// the program's own memory.
    pub committed_bytes: usize,
    /// Bytes of addresses reserved.
    pub reserved_bytes: usize,
    /// Shards whose pages hold blocks that are handed out.
    pub shards: usize,
}

/// The counts now.
pub(crate) fn now() -> Statistics {
    // Whoever takes the locks below must have begun, see `thread::before_fork`.
    let _ = thread::cache();
    let thread_cached_bytes = thread::cached_bytes();
    let cached_bytes = thread_cached_bytes + transfer::kept_bytes();
    let (shards, handed_out_bytes) = shard::handed_out();
    let small_bytes = handed_out_bytes.saturating_sub(cached_bytes);
    let (parked_blocks, parked_slices) = thread::parked();
    let ranges = RANGES.lock();
    let (large_blocks, large_bytes) = ranges.large();
    let large_blocks = large_blocks.saturating_sub(parked_blocks);
    let large_bytes = large_bytes.saturating_sub(parked_slices * SLICE_BYTES);
    let live_bytes = small_bytes + large_bytes;
    Statistics {
        live_bytes,
        large_bytes,
        large_blocks,
        cached_bytes,
        thread_cached_bytes,
        free_bytes: (ranges.live_bytes() + ranges.dirty_bytes())
            .saturating_sub(ranges.metadata_bytes() + live_bytes),
        kept_bytes: ranges.dirty_bytes(),
        committed_bytes: arena::all().map(Arena::committed_bytes).sum(),
        reserved_bytes: arena::all().map(Arena::reserved_bytes).sum(),
        shards,
    }
}
