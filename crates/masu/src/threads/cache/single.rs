//! Single blocks: the slow path of `free` for classes whose blocks are sent to the transfer cache, most often one at a time.
//!
//! Relies on `threads/cache/depth.rs` for the policy, and on the transfer cache and shards for blocks. A stack of such a class
//! often holds a few blocks, so many slow calls send one block, at a cost that other classes share among a batch. The hard idea
//! is to leave out what only batches need: arrays of blocks, and bounds that follow from a depth's floor, which is one block here.

use core::slice;

use super::depth::Destination;
use super::{Stack, ThreadCache};
use crate::blocks::shard::{self, Pages};
use crate::blocks::transfer;
use crate::memory::class::Class;
use crate::platform::bounds::Bounded;
use crate::platform::fault::{self, Fault};

impl ThreadCache {
    /// As [`ThreadCache::push_slow`].
    #[inline(never)]
    pub(super) fn push_single(&'static self, class: Class, block: *mut u8) {
        // As in `push_batch`, there may be room.
        let stack = self.plain_stack(class);
        if stack.push(block) {
            return;
        }
        self.count_slow_call(Some(class));
        let depth = self.depth(class);
        let has_room = if depth.base().is_null() {
            if !self.open(class) {
                let _ = shard::flush_one(class, block.expose_provenance());
                return;
            }
            true
        } else {
            // SAFETY: At least the zero below the entries is there.
            if unsafe { stack.top.get().read() } == block.addr() {
                fault::stop(Fault::FreedTwice);
            }
            depth.missed.replace(false) && self.deepen(class)
        };
        if has_room {
            let pushed = stack.push(block);
            debug_assert!(pushed, "room was made");
            return;
        }
        depth.overflowed.set(true);
        self.push_over_oldest(class, block);
        // As in `push_batch`.
        shard::purge_step();
    }

    /// Pushes a block onto a full stack: sends away the older half of it, at least one block.
    #[inline(always)]
    fn push_over_oldest(&'static self, class: Class, block: *mut u8) {
        let (stack, depth) = (self.plain_stack(class), self.depth(class));
        let limit = depth.limit();
        if limit >= 4 {
            self.send_oldest(class, limit / 2, Destination::Transfer);
            let pushed = stack.push(block);
            debug_assert!(pushed, "room was made");
            return;
        }
        self.remove_mark(class);
        // SAFETY: The stack is full: it holds `limit` entries above the zero, and no mark.
        let entries = unsafe { slice::from_raw_parts_mut(depth.base().add(1), limit) };
        let oldest = *entries.at(0);
        for place in 1..entries.len() {
            *entries.at_mut(place - 1) = *entries.at(place);
        }
        *entries.at_mut(limit - 1) = block.expose_provenance();
        self.traffic.flushes.add(1);
        self.traffic.flushed_blocks.add(1);
        if transfer::give_one(class, oldest) == Pages::Sparse {
            self.send_from_sparse(class, entries.at(..limit - 1));
            *entries.at_mut(0) = *entries.at(limit - 1);
            stack.top.set(depth.base().wrapping_add(1));
        }
    }

    /// The stack of a class that is not laned.
    #[inline(always)]
    fn plain_stack(&self, class: Class) -> &Stack {
        debug_assert!(!class.is_laned());
        self.stacks.stacks.at(class.index())
    }
}
