//! Refills: where a thread's cache gets free blocks of its shard from.
//!
//! Relies on its parent for the pages of each class and their locks. Pages of the shard come first, then blocks that other
//! shards lend, then a new page. The hard idea: where shards are many, only blocks that were freed are lent, because a new
//! page costs no more memory than the untouched rest of another shard's, and shares no cache line with its threads.

use super::{FREE, Shard, is_left_to_its_shard};
use crate::blocks::ownership;
use crate::blocks::page::Page;
use crate::memory::class::Class;
use crate::platform::bounds::Bounded;
use crate::platform::sync::Ordering;

/// The bytes of a laned class that a shard hands out from its own pages before it takes blocks of others.
const OWN_BYTES_MIN: usize = 1 << 20;
/// The same for other small blocks where shards are many. Threads that fill and empty heaps alternately would have blocks in each
/// other's pages: each flush then goes to many shards, and each page's line to and fro.
const OWN_BYTES_MIN_MANY: usize = 64 << 10;

/// The blocks that a thread takes from the pages of other shards.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lent {
    /// Those of [`ClassPages::lendable`].
    Freed,
    /// All, where no page can be made.
    All,
}

/// The bytes of `class` that a shard hands out from its own pages before it takes blocks of others.
#[inline(always)]
fn own_bytes_min(class: Class) -> usize {
    if class.is_laned() {
        OWN_BYTES_MIN
    } else if is_left_to_its_shard(class) {
        OWN_BYTES_MIN_MANY
    } else {
        0
    }
}

impl Shard {
    /// Takes up to `blocks.len()` free blocks into the *end* of `blocks`; the lowest address comes last. Returns their
    /// number; 0 only without memory.
    pub(crate) fn refill(self, class: Class, blocks: &mut [usize]) -> usize {
        let mut pages = self.pages(class).lock();
        let taken = pages.take(class, blocks);
        if taken > 0 {
            return taken;
        }
        let own_bytes = pages.handed_out * class.size();
        drop(pages);
        // Blocks of other shards would all be freed to those shards, and not be reused here.
        if own_bytes < own_bytes_min(class) {
            let taken = self.refill_from_new(class, blocks);
            if taken > 0 {
                return taken;
            }
        }
        // The free blocks of other shards are used up before a new page is made.
        let mut taken = self.refill_from_others(class, blocks, Lent::Freed);
        if taken == 0 {
            taken = self.refill_from_new(class, blocks);
        }
        if taken == 0 { self.refill_from_others(class, blocks, Lent::All) } else { taken }
    }

    /// [`Shard::refill`] for one block; 0 without memory.
    pub(crate) fn refill_one(self, class: Class) -> usize {
        let mut block = [0];
        self.refill(class, &mut block);
        block[0]
    }

    /// The other shards that have free blocks of `class` for this one, or had some, a bit each.
    #[inline(always)]
    fn others(self, class: Class) -> usize {
        // ORDERING: Relaxed: a thread that misses free blocks makes a page.
        FREE[class.page_index()].load(Ordering::Relaxed) & !(1 << self.0)
    }

    /// [`Shard::refill`] from the first other shard that has free blocks of `class` for this one; 0 if none has.
    #[inline(never)]
    pub(super) fn refill_from_others(
        self,
        class: Class,
        blocks: &mut [usize],
        lent: Lent,
    ) -> usize {
        let mut others = match lent {
            Lent::Freed => self.others(class),
            Lent::All => ownership::used() & !(1 << self.0),
        };
        while others != 0 {
            // From the next one on: if all began with the first, they would wait for each other there.
            let behind = others & usize::MAX << self.0;
            let next = if behind != 0 { behind } else { others };
            let other = Shard(next.trailing_zeros() as u8);
            others &= !(1 << other.0);
            let mut pages = other.pages(class).lock();
            let lendable = match lent {
                Lent::Freed => pages.lendable(class),
                Lent::All => usize::MAX,
            };
            if lendable > 0
                && let Some(first) = pages.partial.first()
            {
                Page(first).own_lines(class);
                let start = blocks.len().saturating_sub(lendable);
                return pages.take(class, blocks.at_mut(start..));
            }
            // ORDERING: Relaxed, as above.
            FREE[class.page_index()].fetch_and(!(1 << other.0), Ordering::Relaxed);
        }
        0
    }

    /// [`Shard::refill`] from a new page.
    #[inline(never)]
    pub(super) fn refill_from_new(self, class: Class, blocks: &mut [usize]) -> usize {
        let Some(page) = Page::create(class, self.0) else { return 0 };
        let mut taken = page.take(class, blocks);
        if taken == blocks.len() && !page.is_full() && ownership::are_many() {
            taken -= page.leave_line(class, blocks);
        }
        self.pages(class).lock().enter(class, page, taken);
        taken
    }
}
