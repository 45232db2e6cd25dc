//! The statistics of all layers together: live, free and committed memory, and how often blocks and memory moved.
//!
//! Relies on counts that each layer keeps for its own work or on slow paths; nothing is counted on a fast path. Live
//! blocks are those that pages handed out, less those in caches.
//!
//! The hard idea is that reading stops no other thread: each number is read under its own layer's lock, so while other
//! threads allocate, numbers of different layers are from different moments. When no other thread allocates, they are
//! exact and sums agree.

pub(crate) mod page;

use core::ptr;

use crate::blocks::{owner, shard, transfer};
use crate::diagnostics::guards;
use crate::memory::class::{Class, FIRST, LANED_FIRST};
use crate::memory::ranges::stripes;
use crate::memory::slice::SLICE_BYTES;
use crate::platform::kernel;
use crate::platform::sync::Count;
use crate::threads::cache::{ThreadCache, User, all, heap_cache};

/// The number of size classes.
pub const CLASSES: usize = LANED_FIRST - FIRST;

/// The version of what `statistics::json` writes, and of the statistics page: `docs/observing.md`.
pub const VERSION: usize = 1;

macro_rules! structure {
    (
        $(#[$about:meta])*
        $name:ident { $($(#[doc = $meaning:literal])+ $field:ident,)+ }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $field: usize,)+
        }

        impl $name {
            /// The number of numbers.
            pub const LENGTH: usize = size_of::<$name>() / size_of::<usize>();
            /// Their names in order, each followed by a comma. One text, because an array of texts would be relocated
            /// whenever the library is loaded.
            pub(crate) const NAMES: &str = concat!($(stringify!($field), ","),+);

            /// The numbers in order.
            pub(crate) fn values(&self) -> &[usize] {
                // SAFETY: The structure consists of so many numbers, and its layout is C's.
                unsafe { core::slice::from_raw_parts(ptr::from_ref(self).cast(), Self::LENGTH) }
            }
        }
    };
}

structure! {
    /// Statistics of the whole process at one moment; while other threads allocate they are approximate. New ones are
    /// added at the end.
    Statistics {
        /// Bytes in live blocks, each counted with its usable size.
        live_bytes,
        /// Bytes of live large blocks (over 64 KiB, or over 32 KiB and grown or zeroed).
        large_bytes,
        /// Live large blocks.
        large_blocks,
        /// Bytes of free blocks in thread caches and in the transfer cache.
        cached_bytes,
        /// Their number.
        cached_blocks,
        /// Bytes of those in thread caches.
        thread_cached_bytes,
        /// Bytes free in pages, caches and free runs that may be resident.
        free_bytes,
        /// Bytes of free runs among them, which are kept for later use.
        kept_bytes,
        /// Bytes readable and writable, which the kernel may have to back. RSS is at most this, plus the program's
        /// other memory.
        committed_bytes,
        /// Bytes of addresses reserved.
        reserved_bytes,
        /// Bytes of runs that hold the allocator's own data, such as thread caches.
        metadata_bytes,
        /// Shards with live blocks in their pages.
        shards,
        /// Thread caches in use, without those that a `fork` left behind.
        threads,
        /// Thread caches whose thread has ended, kept for the next one.
        idle_caches,
        /// Calls that a thread cache could not serve: a stack was empty or full, or a freed large block was not parked.
        /// Allocations of large blocks are not included.
        slow_calls,
        /// Large blocks ever handed out, except those that their own thread freed and took again at once.
        large_made,
        /// Batches of blocks that thread caches fetched from the transfer cache or from pages.
        refills,
        /// Their blocks.
        refilled_blocks,
        /// Batches of blocks that thread caches sent to the transfer cache or to pages.
        flushes,
        /// Their blocks.
        flushed_blocks,
        /// Remote frees of the smallest classes: blocks sent to the lane they belong to.
        lane_blocks,
        /// Blocks that a thread returned to pages of another shard than its own.
        shard_blocks,
        /// Blocks ever put into the transfer cache.
        transfer_in_blocks,
        /// Blocks ever taken from it.
        transfer_out_blocks,
        /// Purges: calls that returned contents to the kernel.
        purges,
        /// Their bytes.
        purged_bytes,
        /// Purges that the kernel refused.
        refused_purges,
        /// Bytes for which huge pages were ever requested. `AnonHugePages` of `/proc/self/smaps` says how many there
        /// are.
        huge_page_bytes,
        /// First-class heaps.
        heaps,
        /// Bytes in their live blocks except large ones. They are live, and in no class below.
        heap_bytes,
        /// Guarded blocks that are live, or in caches because a thread freed them by layout.
        guarded_blocks,
        /// Their bytes, as requested.
        guarded_bytes,
        /// Bytes of those that C's functions allocated. They are live, and in no class below.
        guarded_apart_bytes,
        /// Blocks ever guarded.
        guarded_made,
        /// Blocks to guard for which no slot was free.
        guarded_skipped,
    }
}

structure! {
    /// Statistics of one size class.
    ClassStatistics {
        /// Bytes of a block.
        size,
        /// Live blocks.
        live_blocks,
        /// Free blocks in thread caches.
        thread_cached_blocks,
        /// Free blocks in the transfer cache.
        transfer_blocks,
        /// Free blocks in pages.
        free_blocks,
        /// Pages.
        pages,
        /// Bytes of a page.
        page_bytes,
        /// Bytes of all pages behind their last block.
        tail_bytes,
        /// Blocks ever taken from pages.
        taken_blocks,
        /// Blocks ever returned to pages.
        returned_blocks,
        /// Blocks ever put into the transfer cache.
        transfer_in_blocks,
        /// Blocks ever taken from it.
        transfer_out_blocks,
        /// Bytes of live blocks that hold canaries, in the hardened build; else 0.
        canary_bytes,
    }
}

structure! {
    /// Statistics of one thread cache. It keeps counting when it serves one thread after another.
    ThreadStatistics {
        /// 0: the thread has ended. 1: it runs. 2: a `fork` left it behind, so its blocks stay in the cache forever.
        state,
        /// The thread's number (TID), known while the statistics page is on; else 0.
        thread,
        /// Its shard.
        shard,
        /// Free blocks held.
        cached_blocks,
        /// Bytes of them.
        cached_bytes,
        /// Bytes that the stacks may hold at their present limits.
        limit_bytes,
        /// Bytes of the large block that is parked.
        parked_bytes,
        /// This and the following as in [`Statistics`], for this cache.
        slow_calls,
        /// Batches fetched.
        refills,
        /// Blocks in them.
        refilled_blocks,
        /// Batches sent.
        flushes,
        /// Blocks in them.
        flushed_blocks,
        /// Blocks sent to other lanes.
        lane_blocks,
        /// Blocks returned to pages of other shards.
        shard_blocks,
    }
}

impl ClassStatistics {
    /// Bytes in live blocks, each counted with its usable size.
    #[must_use]
    pub fn live_bytes(&self) -> usize {
        (self.live_blocks * self.size).saturating_sub(self.canary_bytes)
    }

    /// Bytes of free blocks in caches.
    #[must_use]
    pub fn cached_bytes(&self) -> usize {
        (self.thread_cached_blocks + self.transfer_blocks) * self.size
    }

    /// Bytes of pages that are not in live blocks.
    #[must_use]
    pub fn waste_bytes(&self) -> usize {
        (self.pages * self.page_bytes).saturating_sub(self.live_bytes())
    }

    #[cold]
    #[inline(never)]
    fn of(class: Class) -> ClassStatistics {
        let pages = shard::counts(class);
        let page_bytes = class.page_slices() * SLICE_BYTES;
        let mut row = ClassStatistics { size: class.size(), page_bytes, ..Default::default() };
        // Most programs use few classes; a class that never had a page has no cached blocks.
        if pages.taken == 0 {
            return row;
        }
        let transfer = transfer::counts(class);
        let in_caches: usize = all::caches().map(|cache| cache.held_blocks(class)).sum();
        row.live_blocks = pages.handed_out.saturating_sub(in_caches + transfer.kept);
        row.thread_cached_blocks = in_caches;
        row.transfer_blocks = transfer.kept;
        let in_pages = pages.pages * class.page_blocks() + pages.guarded;
        row.free_blocks = in_pages.saturating_sub(pages.handed_out);
        row.pages = pages.pages;
        row.tail_bytes = pages.pages * (page_bytes - class.page_blocks() * class.size());
        row.taken_blocks = pages.taken;
        row.returned_blocks = pages.taken.wrapping_sub(pages.handed_out);
        row.transfer_in_blocks = transfer.given;
        row.transfer_out_blocks = transfer.fetched;
        #[cfg(feature = "secure")]
        {
            let asked = shard::hardened::asked_bytes(class);
            row.canary_bytes = (row.live_blocks * row.size).saturating_sub(asked);
        }
        row
    }
}

impl ThreadStatistics {
    #[cold]
    #[inline(never)]
    fn of(cache: &ThreadCache) -> ThreadStatistics {
        let traffic = &cache.traffic;
        let (state, thread) = match traffic.user() {
            User::Nobody => (0, 0),
            _ if all::is_orphaned(cache) => (2, 0),
            User::Unknown => (1, 0),
            User::Thread(number) => (1, number),
        };
        let mut row = ThreadStatistics {
            state,
            thread,
            shard: usize::from(cache.shard.0),
            limit_bytes: cache.limit_bytes(),
            parked_bytes: cache.parked.slices() * SLICE_BYTES,
            slow_calls: traffic.slow_calls.get(),
            refills: traffic.refills.get(),
            refilled_blocks: traffic.refilled_blocks.get(),
            flushes: traffic.flushes.get(),
            flushed_blocks: traffic.flushed_blocks.get(),
            lane_blocks: traffic.lane_blocks.get(),
            shard_blocks: cache.returned_blocks.get(),
            ..Default::default()
        };
        for class in Class::all() {
            let blocks = cache.held_blocks(class);
            row.cached_blocks += blocks;
            row.cached_bytes += blocks * class.size();
        }
        row
    }
}

impl Statistics {
    fn add_class(&mut self, class: &ClassStatistics) {
        self.live_bytes += class.live_bytes();
        self.cached_bytes += class.cached_bytes();
        self.cached_blocks += class.thread_cached_blocks + class.transfer_blocks;
        self.thread_cached_bytes += class.thread_cached_blocks * class.size;
        self.transfer_in_blocks = self.transfer_in_blocks.wrapping_add(class.transfer_in_blocks);
        self.transfer_out_blocks = self.transfer_out_blocks.wrapping_add(class.transfer_out_blocks);
    }

    #[inline(never)]
    fn add_thread(&mut self, cache: &ThreadCache) {
        let traffic = &cache.traffic;
        let add = |sum: &mut usize, count: &Count| *sum = sum.wrapping_add(count.get());
        add(&mut self.slow_calls, &traffic.slow_calls);
        add(&mut self.refills, &traffic.refills);
        add(&mut self.refilled_blocks, &traffic.refilled_blocks);
        add(&mut self.flushes, &traffic.flushes);
        add(&mut self.flushed_blocks, &traffic.flushed_blocks);
        add(&mut self.lane_blocks, &traffic.lane_blocks);
        add(&mut self.shard_blocks, &cache.returned_blocks);
        match traffic.user() {
            User::Nobody => self.idle_caches += 1,
            _ if all::is_orphaned(cache) => {}
            User::Unknown | User::Thread(_) => self.threads += 1,
        }
    }

    /// Adds what belongs to no class and no thread. Called last, because it needs the sums.
    #[inline(never)]
    fn add_rest(&mut self) {
        self.shards = shard::active();
        let advised = kernel::advised();
        self.purges = advised.purges;
        self.purged_bytes = advised.purged_bytes;
        self.refused_purges = advised.refused_purges;
        self.huge_page_bytes = advised.huge_page_bytes;
        (self.heaps, self.heap_bytes) = heaps();
        let (parked_blocks, parked_slices) = all::parked();
        let runs = stripes::read();
        self.large_blocks = runs.large_blocks.saturating_sub(parked_blocks);
        self.large_bytes = runs.large_bytes.saturating_sub(parked_slices * SLICE_BYTES);
        self.large_made = runs.large_made;
        self.metadata_bytes = runs.metadata_bytes;
        self.kept_bytes = runs.dirty_bytes;
        (self.committed_bytes, self.reserved_bytes) = (runs.committed_bytes, runs.reserved_bytes);
        let guarded = guards::counts();
        self.guarded_blocks = guarded.blocks;
        self.guarded_bytes = guarded.bytes;
        self.guarded_apart_bytes = guarded.exact_bytes;
        self.guarded_made = guarded.made;
        self.guarded_skipped = guarded.skipped;
        self.live_bytes += self.large_bytes + self.heap_bytes + self.guarded_apart_bytes;
        let run_bytes = runs.live_bytes + self.kept_bytes;
        let used_bytes = self.metadata_bytes + self.live_bytes;
        self.free_bytes = free_bytes(run_bytes, guarded.bytes, used_bytes);
    }
}

/// The bytes of runs and guarded blocks that are not in use. Other threads may have guarded and freed blocks since
/// those in use were counted, so that more may be guarded than is in use, and more in use than there is.
fn free_bytes(run_bytes: usize, guarded_bytes: usize, used_bytes: usize) -> usize {
    (run_bytes + guarded_bytes).saturating_sub(used_bytes)
}

/// The statistics of the process now; passes those of each size class, with its index, to `take`. The calling thread
/// must be registered, because this takes locks that `fork` must be able to take.
#[cold]
#[inline(never)]
pub(crate) fn collect(take: &mut dyn FnMut(usize, &ClassStatistics)) -> Statistics {
    let mut sums = Statistics::default();
    for (place, class) in Class::all().enumerate() {
        let row = ClassStatistics::of(class);
        sums.add_class(&row);
        take(place, &row);
    }
    all::caches().for_each(|cache| sums.add_thread(cache));
    sums.add_rest();
    sums
}

/// The statistics of each size class, each read when the iterator reaches it.
pub(crate) fn classes() -> impl Iterator<Item = ClassStatistics> {
    Class::all().map(ClassStatistics::of)
}

/// The statistics of each thread cache, likewise.
pub(crate) fn threads() -> impl Iterator<Item = ThreadStatistics> {
    all::caches().map(ThreadStatistics::of)
}

/// The number of heaps with memory, and the bytes of their live blocks in pages.
#[cold]
#[inline(never)]
fn heaps() -> (usize, usize) {
    let (heaps, counts) = owner::all_counts();
    if heaps == 0 {
        return (0, 0);
    }
    let (_, cached_bytes) = heap_cache::cached_by_all(|_| true);
    (heaps, counts.block_bytes.saturating_sub(cached_bytes))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::free_bytes;

    #[test]
    fn free_bytes_never_pass_below_zero() {
        assert_eq!(free_bytes(10_000, 4096, 14_000), 96);
        assert_eq!(free_bytes(10_000, 4096, 100), 13_996, "more is guarded than was in use");
        assert_eq!(free_bytes(10_000, 0, 20_000), 0, "less is left than was in use");
    }
}
