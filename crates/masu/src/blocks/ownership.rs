//! Ownership of pages: the one place that defines it, for every way of freeing.
//!
//! Relies on slices. A page's owner is in its first slice, written when the page is made and constant for its life. All code
//! that returns a block calls `page_of` and `Page::owner` (`blocks/page.rs`); none derives the owner from the number of
//! threads, shards or heaps. The making of a page itself notes a new owner ([`note_page`]), so no feature can add one that
//! is not known here.
//!
//! Rules for every feature, each with a `debug_assert` where it could be broken:
//!
//! - **Every page has an owner that was admitted** before the page was made: a shard by [`Shard::for_thread`], the pages of
//!   a heap profile by `prepare_samples`, slots by [`admit_guarded`], all under the lock of all threads, because `fork` holds
//!   the locks of admitted owners ([`note_page`]).
//! - **A page is counted by its owner alone**, and its blocks are returned there, whether C's functions, a layout, a thread's
//!   end or the transfer cache frees them, and even if a profile, the number of shards or a budget changed since they were
//!   handed out (`ClassPages::put`).
//! - **Options are not read again** for what was sized by them. A thread's shard stays; arrays carry their lengths
//!   (`threads/cache/remote.rs`), stacks their limits (`threads/cache/depth.rs`), and the transfer cache is bounded by its
//!   length.
//! - **A remote stack holds only blocks of its own lane** (`shard::are_of_lane`): only `free` by the class map fills it.
//! - **A sampled block that is returned leaves the profile** before it can be handed out again (`shard::flush_one`), and none
//!   is passed to other threads while a profile is taken (`sampled::are_sampled`).
//! - **A guarded block is like a block of its class** wherever a layout may free it: of its size and alignment, because a
//!   thread that does not know of guards puts it on the class's stack (`diagnostics/guards.rs`). Any other guarded block must
//!   be freed by the class map, which returns it at once.
//! - **Counts are never trusted**: statistics, and a profile that reads other threads' caches, only read.

use crate::memory::ranges::stripes;
use crate::memory::slice::Slice;
use crate::platform::sync::{AtomicUsize, Ordering};
use crate::settings::SHARDS_MAX;

/// The shard number in pages and mixed slices of first-class heaps: no shard has it.
pub(crate) const NO_SHARD: u8 = 63;

/// A shard, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shard(pub(crate) u8);

impl Shard {
    /// The owner of pages of sampled blocks. No thread has it, so no other block comes from them.
    pub(crate) const SAMPLED: Shard = Shard(SHARDS_MAX as u8);
    /// The owner of guarded slots. It has no list of pages.
    pub(crate) const GUARDED: Shard = Shard(SHARDS_MAX as u8 + 1);

    /// The shard of the thread that starts as number `thread`, of `shards`. The caller holds the lock of all threads.
    pub(crate) fn for_thread(thread: usize, shards: usize) -> Shard {
        let shard = (thread % shards.clamp(1, SHARDS_MAX)) as u8;
        admit(shard);
        Shard(shard)
    }

    /// Whether no thread can have it.
    #[inline(always)]
    pub(crate) fn is_special(self) -> bool {
        self.0 >= Shard::SAMPLED.0
    }

    /// The shards that threads have had so far.
    pub(crate) fn used() -> impl Iterator<Item = Shard> {
        Shard::all().filter(|shard| *shard != Shard::SAMPLED)
    }

    /// As [`Shard::used`], and the one of sampled blocks where a profile was taken. Changes only under the lock of all
    /// threads, which `fork` holds.
    pub(crate) fn all() -> impl Iterator<Item = Shard> {
        (0..=Shard::SAMPLED.0).filter(|shard| is_admitted(*shard)).map(Shard)
    }
}

/// The owners that may have pages, a bit each. The first shard is one from the start, because threads without a cache use it.
static OWNERS: Owners = Owners(AtomicUsize::new(1));

/// On its own pair of cache lines, apart from words that are only read.
#[repr(align(128))]
struct Owners(AtomicUsize);

const _: () = assert!(NO_SHARD < 64 && SHARDS_MAX < NO_SHARD as usize, "a bit each");

/// So many shards are many.
const SHARDS_MANY: u8 = 4;

/// Lets `shard` own pages. The caller holds the lock of all threads, except for [`note_page`].
pub(crate) fn admit(shard: u8) {
    if is_admitted(shard) {
        return;
    }
    // ORDERING: Relaxed: a page of a new owner is reached through that owner's lock, and a thread with one of its blocks
    // has synchronized with the thread that made the page.
    OWNERS.0.fetch_or(1 << shard, Ordering::Relaxed);
    if (SHARDS_MANY - 1..Shard::SAMPLED.0).contains(&shard) {
        let (many, count) = (stripes::many_shards(), usize::from(shard) + 1);
        // The lock of all threads is held, so no other thread changes it.
        // ORDERING: Relaxed: a thread that misses the change shares a line with a neighbor.
        if many.load(Ordering::Relaxed) < count {
            // ORDERING: As above.
            many.store(count, Ordering::Relaxed);
        }
    }
}

/// Whether more than a few threads run at once: then a batch ends where a cache line does, and untouched blocks are left to
/// the shard of their page, so that no two threads share a line. It costs a few instructions and blocks a batch, too much for
/// what few threads would gain.
#[inline(always)]
pub(crate) fn are_many() -> bool {
    // ORDERING: Relaxed, as above.
    stripes::many_shards().load(Ordering::Relaxed) != 0
}

/// The shards that threads have had so far, a bit each.
pub(crate) fn used() -> usize {
    // ORDERING: Relaxed, as above.
    OWNERS.0.load(Ordering::Relaxed) & ((1 << SHARDS_MAX) - 1)
}

/// Whether `shard` may own pages.
pub(crate) fn is_admitted(shard: u8) -> bool {
    // ORDERING: Relaxed, as above.
    OWNERS.0.load(Ordering::Relaxed) & 1 << shard != 0
}

/// Makes a slice hold guarded blocks; the caller holds the lock of all threads.
pub(crate) fn admit_guarded(slice: &Slice) {
    admit(Shard::GUARDED.0);
    note_page(slice, Shard::GUARDED.0);
}

/// Makes the page or the mixed slice that begins with `slice` belong to `shard`, or to none with [`NO_SHARD`]. No block of it
/// was handed out yet.
#[inline]
pub(crate) fn note_page(slice: &Slice, shard: u8) {
    if !is_admitted(shard) {
        // Heaps have no locks that `fork` would have to know here.
        debug_assert!(shard == NO_SHARD, "an owner is admitted under the lock of all threads");
        admit(shard);
    }
    slice.shard.set(shard);
}
