//! How many blocks a refill fetches.
//!
//! Relies on its parent for the stacks, and on shards for blocks. Much that is fetched and not used keeps pages; little means many
//! slow calls. The hard idea: pops leave an array as it is, so an empty stack still shows whether its last refill was used up
//! before anything was freed in its place.

use super::{ThreadCache, entries_in};
use crate::memory::class::Class;
use crate::platform::bounds::Bounded;

/// Bytes of a stack's first refill, so that a thread that needs little takes little; each further one doubles, up to the last.
const REFILL_BYTES_FIRST: usize = 1 << 10;
const REFILL_BYTES_LAST: usize = 8 << 10;
/// Where refills are used up one after the other, the last one has so many blocks at least, or half of what the stack holds.
const REFILL_BLOCKS: usize = 8;

/// The entries of the first refill.
pub(super) fn first(class: Class) -> u16 {
    refill_entries(REFILL_BYTES_FIRST, class) as u16
}

fn refill_entries(bytes: usize, class: Class) -> usize {
    entries_in(bytes, class).max(1)
}

impl ThreadCache {
    /// Lets the next refill of an empty stack be long only if the last one was used up: if the lowest entry is still that refill's.
    /// A program that frees as often as it allocates has put another block there half of the times, unless it frees in reverse.
    #[inline(always)]
    pub(super) fn note_used_up(&self, class: Class) {
        let depth = self.depth(class);
        // SAFETY: An array has room for an entry.
        let lowest = unsafe { depth.base().add(1).read() };
        if lowest != depth.marked.get() {
            let last = refill_entries(REFILL_BYTES_LAST, class) as u16;
            depth.refill.set(depth.refill.get().min(last));
        }
    }

    /// Fetches a batch onto an empty stack; returns how many.
    #[inline(always)]
    pub(super) fn fetch(&self, class: Class) -> usize {
        let depth = self.depth(class);
        let wanted = self.next_refill(class);
        let base = depth.base();
        // SAFETY: The entries are unused, and there are at least `limit`, and one.
        let entries = unsafe { core::slice::from_raw_parts_mut(base.add(1), wanted) };
        let count = self.shard.refill(class, entries);
        if count == 0 {
            return 0;
        }
        self.traffic.refills.add(1);
        self.traffic.refilled_blocks.add(count);
        // The batch lies at the end.
        entries.move_to_start(wanted - count);
        depth.marked.set(*entries.at(0));
        // SAFETY: So many entries above the zero hold blocks now.
        self.stack(class).top.set(unsafe { base.add(count) });
        count
    }

    /// The number of entries to fetch now; doubles for the next time.
    #[inline(always)]
    fn next_refill(&self, class: Class) -> usize {
        let depth = self.depth(class);
        let blocks = REFILL_BLOCKS.min(depth.limit() / 2);
        let most = refill_entries(REFILL_BYTES_LAST, class).max(blocks);
        let wanted = usize::from(depth.refill.get()).min(most).max(1);
        depth.refill.set((wanted * 2) as u16);
        wanted.min(depth.limit()).max(1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use super::*;
    use crate::platform::alone::{self, run_alone};
    use crate::threads::thread;
    use std::vec::Vec;

    #[test]
    fn refills_grow_beyond_the_last_where_each_is_used_up() {
        run_alone!();
        // The larger one passes through the transfer cache.
        for size in [4 << 10, 16 << 10] {
            let (cache, class) = (thread::cache().expect("memory"), Class::of_size(size));
            assert!(cache.open(class));
            while cache.deepen(class) {}
            let last = refill_entries(REFILL_BYTES_LAST, class);
            let most = REFILL_BLOCKS.min(cache.depth(class).limit() / 2);
            assert!(most > last, "the test would show nothing");

            // A pop that misses, and how many blocks came.
            let miss = || {
                let block = cache.pop_slow(class);
                assert!(!block.is_null());
                (block, cache.count(class) + 1)
            };
            let mut blocks = Vec::new();
            let mut fetched = 0;
            for _ in 0..8 {
                let (block, count) = miss();
                fetched = fetched.max(count);
                blocks.push(block);
                while cache.count(class) > 0 {
                    blocks.push(cache.stack(class).pop());
                }
            }
            assert_eq!(fetched, most);

            // Another block was freed in the place of a refill's.
            assert!(cache.stack(class).push(blocks.remove(0)));
            blocks.push(cache.stack(class).pop());
            let (block, count) = miss();
            assert_eq!(count, last);
            blocks.push(block);
            blocks.into_iter().for_each(|block| {
                if !cache.stack(class).push(block) {
                    cache.push_slow(class, block);
                }
            });
        }
    }
}
