//! Whose a block is: the one place that says it, for every way of freeing.
//!
//! Relies on slices. A page's owner stands in its first slice, written when the page is made and constant
//! for its life. Everyone who brings a block home asks `page_of` and `Page::owner` (`blocks/page.rs`); nobody concludes it from how many
//! threads, shards or heaps there are. The hard idea is the one shortcut: as long as every page ever made belongs to the
//! first shard, looking is left out. What allows it is a word that the making of a page itself changes ([`note_page`]),
//! so no feature can add an owner that this does not know.
//!
//! What features have to keep, each with a `debug_assert` where it could be broken:
//!
//! - **Every page has an owner that was admitted** before the page was made: a shard by [`Shard::for_thread`], the
//!   pages of a heap profile by `prepare_samples`, slots by `guarded::admit`, all under the lock of all threads, for
//!   `fork` holds the locks of those that were admitted ([`note_page`]).
//! - **A page is in the books of its owner alone**, and its blocks go back there, be they freed by C's functions, by a layout,
//!   by a thread's end, by the transfer cache, or while a profile, another number of shards or another
//!   budget holds than when they were handed out (`ClassPages::put`).
//! - **What an option said once is not asked for again** by what was sized by it. A thread's shard stays its own;
//!   arrays carry their lengths (`threads/cache/remote.rs`), limits of stacks are read from the stacks
//!   (`threads/cache/depth.rs`), and what is kept in the transfer cache is bounded by the room that there is.
//! - **A remote stack holds blocks of its own lane alone** (`shard::are_of_lane`): only `free` by the class map fills it.
//! - **A sampled block that comes home leaves the profile** before it can be handed out again (`sampled::forget`), and none is
//!   passed on to other threads while a profile is taken (`sampled::are_sampled`).
//! - **A guarded block is like a block of its class** wherever a layout may free it: as long and as aligned, for a thread
//!   that does not know of guards puts it on the class's stack (`diagnostics/guards.rs`). One that is not must go by the class
//!   map, which leads home at once.
//! - **Counts are never believed**: statistics, and a profile that looks at other threads' caches, only read.

use crate::memory::slice::Slice;
use crate::platform::sync::{AtomicUsize, Ordering};
use crate::settings::SHARDS_MAX;

/// What the pages and mixed slices of first-class heaps have for a shard: none that there is.
pub(crate) const NO_SHARD: u8 = 63;

/// A shard, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shard(pub(crate) u8);

impl Shard {
    /// The owner of pages whose blocks a heap profile samples: no thread's, so that no other block
    /// comes from them.
    pub(crate) const SAMPLED: Shard = Shard(SHARDS_MAX as u8);
    /// The owner of slots, where blocks lie between guards. It has no books, and no list of pages.
    pub(crate) const GUARDED: Shard = Shard(SHARDS_MAX as u8 + 1);

    /// The shard for the thread that starts as number `thread`, where there are to be `shards`; the caller holds
    /// the lock of all threads.
    pub(crate) fn for_thread(thread: usize, shards: usize) -> Shard {
        let shard = (thread % shards.clamp(1, SHARDS_MAX)) as u8;
        admit(shard);
        Shard(shard)
    }

    /// Whether it is no thread's.
    #[inline(always)]
    pub(crate) fn is_unusual(self) -> bool {
        self.0 >= Shard::SAMPLED.0
    }

    /// The shards that threads were given so far.
    pub(crate) fn used() -> impl Iterator<Item = Shard> {
        Shard::all().filter(|shard| *shard != Shard::SAMPLED)
    }

    /// As [`Shard::used`], and where a profile was taken the one of sampled blocks too. That changes only while the
    /// lock of threads is held, as `fork` holds it.
    pub(crate) fn all() -> impl Iterator<Item = Shard> {
        (0..=Shard::SAMPLED.0).filter(|shard| is_admitted(*shard)).map(Shard)
    }
}

/// The owners that there may be pages of, as bits by number. The first shard's is there from the start, for threads without a
/// cache use it.
static OWNERS: AtomicUsize = AtomicUsize::new(FIRST);

/// The first shard, as the only one.
const FIRST: usize = 1;

const _: () = assert!(NO_SHARD < 64 && SHARDS_MAX < NO_SHARD as usize, "a bit each");

/// Lets `shard` own pages. But for what [`note_page`] does, the caller holds the lock of all threads.
pub(crate) fn admit(shard: u8) {
    // ORDERING: Relaxed: a page of a new owner is seen through that owner's lock, and a thread with one of its blocks has
    // synchronised with the thread that made it.
    OWNERS.fetch_or(1 << shard, Ordering::Relaxed);
}

/// Whether `shard` may own pages.
pub(crate) fn is_admitted(shard: u8) -> bool {
    // ORDERING: Relaxed, as above.
    OWNERS.load(Ordering::Relaxed) & 1 << shard != 0
}

/// Whether every block that was ever handed out from a page is the first shard's.
#[inline]
pub(crate) fn is_always_first() -> bool {
    // ORDERING: Relaxed, as above.
    let owners = OWNERS.load(Ordering::Relaxed);
    if cfg!(masu_plant = "samples_as_first") {
        // A fault planted for the oracle: the pages of sampled blocks are forgotten.
        return owners & ((1 << SHARDS_MAX) - 1) == FIRST;
    }
    owners == FIRST
}

/// Has the page or the mixed slice that begins with `slice` belong to `shard`, or to no shard with [`NO_SHARD`]. No block of it was
/// handed out yet.
#[inline]
pub(crate) fn note_page(slice: &Slice, shard: u8) {
    if !is_admitted(shard) {
        // Heaps have no locks here that `fork` would have to know.
        debug_assert!(shard == NO_SHARD, "an owner is admitted under the lock of all threads");
        admit(shard);
    }
    slice.shard.set(shard);
}
