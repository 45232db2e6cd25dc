//! Whose a block is: the one place that says it, for every way of freeing.
//!
//! Relies on slices. A page's owner stands in its first slice, written when the page is made and constant
//! for its life. Everyone who brings a block home asks [`page_of`] and [`Page::owner`]; nobody concludes it from how many
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
//!   arrays carry their lengths (`cache/remote.rs`), limits of stacks are read from the stacks
//!   (`cache/depth.rs`), and what is kept in the transfer cache is bounded by the room that there is.
//! - **A remote stack holds blocks of its own lane alone** ([`are_of_lane`]): only `free` by the class map fills it.
//! - **A sampled block that comes home leaves the profile** before it can be handed out again (`sampled::forget`), and none is
//!   passed on to other threads while a profile is taken ([`are_sampled`]).
//! - **A guarded block is like a block of its class** wherever a layout may free it: as long and as aligned, for a thread
//!   that does not know of guards puts it on the class's stack (`guards.rs`). One that is not must go by the class
//!   map, which leads home at once.
//! - **Counts are never believed**: statistics, and a profile that looks at other threads' caches, only read.

use super::Shard;
use crate::arena::{self, Place};
use crate::cache::ThreadCache;
use crate::class::{Class, FOREIGN, HEAP, LARGE, SAMPLED};
use crate::fault::{self, Fault};
use crate::map;
use crate::options::SHARDS_MAX;
use crate::page::{NO_SHARD, Page};
use crate::slice::Slice;
use crate::sync::{AtomicU32, Ordering};
use crate::{guards, profile, slot};

/// The owners that there may be pages of, as bits by number. The first shard's is there from the start, for threads without a
/// cache use it.
static OWNERS: AtomicU32 = AtomicU32::new(FIRST);

/// The first shard, as the only one.
const FIRST: u32 = 1;

const _: () = assert!(NO_SHARD < 32 && SHARDS_MAX < NO_SHARD as usize, "a bit each");

/// Lets `shard` own pages. But for what [`note_page`] does, the caller holds the lock of all threads.
pub(crate) fn admit(shard: u8) {
    // ORDERING: Relaxed: a page of a new owner is seen through that owner's lock, and a thread with one of its blocks has
    // synchronised with the thread that made it.
    OWNERS.fetch_or(1 << shard, Ordering::Relaxed);
}

/// Whether `shard` may own pages.
pub(super) fn is_admitted(shard: u8) -> bool {
    // ORDERING: Relaxed, as above.
    OWNERS.load(Ordering::Relaxed) & 1 << shard != 0
}

/// Whether every block that was ever handed out from a page is the first shard's.
#[inline]
pub(super) fn is_always_first() -> bool {
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

/// The page in which a block lies. Ends the program where it lies in none: a layout's free looks at nothing before a
/// block comes here.
#[inline(always)]
pub(crate) fn page_of(block: usize) -> Page {
    let code = (map::double_code(block) >> 1) as u8;
    if code < SAMPLED {
        check_unmapped(block, code);
    }
    // SAFETY: The class map, or its arena, says that it lies in a page or in a mixed slice.
    Page(unsafe { Slice::at(block) }.page())
}

/// Ends the program because of an address for which the class map has this code, unless that is for want of a map.
#[cold]
#[inline(never)]
fn check_unmapped(block: usize, code: u8) {
    fault::stop(match (arena::place_of(block), code) {
        (Place::In(slice), FOREIGN) => match arena::code_in(slice) {
            FOREIGN => Fault::FreedTwice,
            LARGE => Fault::NotTheLayouts,
            HEAP => Fault::NotTheHeaps,
            _ if map::is_established() => Fault::FreedTwice,
            _ => return,
        },
        (_, HEAP) => Fault::NotTheHeaps,
        (_, LARGE) => Fault::NotTheLayouts,
        (Place::Beyond, _) => Fault::NotABlock,
        _ => Fault::ForeignPointer,
    });
}

impl Page {
    /// Ends the program where this is no page of `class`, as a layout may say of a block that has another one.
    #[inline(always)]
    pub(super) fn check_class(self, class: Class) {
        let code = self.0.code.get();
        if code != class.homed().code_in(self.0.shard.get()) {
            self.check_sampled(class);
        }
    }

    /// The same where its code is not that class's: it may be that of sampled blocks.
    #[cold]
    #[inline(never)]
    fn check_sampled(self, class: Class) {
        let sampled = Class::from_code(self.0.sampled.get());
        if self.owner() != Shard::SAMPLED
            || sampled.is_none_or(|sampled| sampled.page_index() != class.page_index())
        {
            fault::stop(Fault::NotTheLayouts);
        }
    }

    /// Who owns this page.
    #[inline(always)]
    pub(crate) fn owner(self) -> Shard {
        let shard = self.0.shard.get();
        debug_assert!(is_admitted(shard), "no page was made for it");
        Shard(shard)
    }
}

/// Whether these blocks of a homed class are all of the lane of `shard`.
pub(crate) fn are_of_lane(class: Class, shard: Shard, blocks: &[usize]) -> bool {
    blocks.iter().all(|block| {
        let owner = page_of(*block).owner();
        class.code_in(owner.0) == class.code_in(shard.0)
    })
}

/// Whether a heap profile is taken or blocks are guarded, and one of these free blocks is a sampled or a guarded one, as
/// only a thread has them that did not notice yet.
#[inline(always)]
pub(crate) fn are_sampled(blocks: &[usize]) -> bool {
    (profile::is_running() || guards::are_on())
        && !slot::get().cache().is_some_and(ThreadCache::has_noticed)
        && blocks.iter().any(|block| page_of(*block).owner().is_unusual())
}
