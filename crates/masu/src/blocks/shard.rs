//! Shards: the owners of pages. Threads own only their caches.
//!
//! Relies on pages; thread caches take and return blocks as arrays of pointers. There is about one shard a CPU, and each has
//! for every class a list of its pages with free blocks, behind a lock of its own. The hard idea: because pages never belong
//! to a thread, a thread's end is at most a flush, and a block freed by any thread returns the same way.

#[cfg(debug_assertions)]
pub(crate) mod audit;
mod flush;
#[cfg(feature = "secure")]
pub(crate) mod hardened;
mod refill;
pub(crate) mod sampled;
mod sparse;

use crate::blocks::ownership::{self, Shard};
use crate::blocks::page::{Page, PageView, page_of};
use crate::diagnostics::guards;
use crate::memory::class::{CLASSES, Class};
use crate::memory::list::List;
use crate::platform::bounds::Bounded;
use crate::platform::fault::{self, Fault};
use crate::platform::sync::{AtomicUsize, Lock, Ordering, Visit};
use crate::settings::{self, SHARDS_MAX};
use flush::{EMPTY_MAX, Empty};
pub(crate) use flush::{flush, flush_one};
use sparse::{LeftAlone, Place};
pub(crate) use sparse::{purge_step, purge_steps_at_exit};

/// The pages of one class in one shard.
pub(crate) struct ClassPages {
    /// Pages with a free block, roughly lowest address first.
    partial: List,
    /// The number of pages in `partial`.
    partial_count: u32,
    /// The number of pages, full ones too.
    pages: u32,
    /// Blocks taken from these pages, live or in caches.
    handed_out: usize,
    /// Blocks that were freed into these pages and not taken again, about: the other free ones were never touched.
    freed: u32,
    /// `handed_out` when the last pass through sparse pages began, or its maximum since; 0 at first. No more than fits.
    handed_out_at_purge: u32,
    /// Sparse pages up to this size together are left alone.
    left_alone: LeftAlone,
    /// The next page of a pass through sparse pages.
    place: Place,
    /// Blocks ever taken from these pages.
    taken: usize,
}

/// A lock on a cache line of its own.
#[repr(align(64))]
struct Line(Lock<ClassPages>);

const _: () = assert!(size_of::<Line>() == 64, "no longer than its line");

static SHARDS: [[Line; CLASSES]; SHARDS_MAX] =
    [const { [const { Line(Lock::new(ClassPages::new())) }; CLASSES] }; SHARDS_MAX];
/// The shards that have free blocks of a class, or had when a thread last checked: a bit each. Written under the lock of the
/// class's pages.
static FREE: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];
/// The pages of [`Shard::SAMPLED`], apart from those that every program touches.
static SAMPLED: [Line; CLASSES] = [const { Line(Lock::new(ClassPages::new())) }; CLASSES];

impl Shard {
    fn pages(self, class: Class) -> &'static Lock<ClassPages> {
        let shard = SHARDS.get(usize::from(self.0)).unwrap_or_else(|| self.special_pages());
        &shard[class.page_index()].0
    }

    /// The pages of sampled blocks. Pages of first-class heaps belong to no shard: their blocks return to their heap.
    #[cold]
    fn special_pages(self) -> &'static [Line; CLASSES] {
        if self != Shard::SAMPLED {
            fault::stop(Fault::NotTheHeaps);
        }
        &SAMPLED
    }
}

/// Records that `shard` has free blocks of `class`. The caller holds the lock of its pages.
#[inline(never)]
fn note_free(shard: Shard, class: Class) {
    let (free, bit) = (&FREE[class.page_index()], 1 << shard.0);
    // Mostly the bit is set. Sampled blocks are not for other shards.
    // ORDERING: Relaxed, as in `first_of_others`.
    if !shard.is_special() && free.load(Ordering::Relaxed) & bit == 0 {
        free.fetch_or(bit, Ordering::Relaxed);
    }
}

/// Untouched blocks of up to this size are left to their shard where shards are many. A page of each such class, of which
/// little may be used, is 2 MiB of addresses for a shard.
const LEFT_BYTES_MAX: usize = 1 << 10;

/// Whether untouched blocks of `class` are left to their shard. Under a memory limit, it is pages that count.
fn is_left_to_its_shard(class: Class) -> bool {
    class.size() <= LEFT_BYTES_MAX && ownership::are_many() && settings::memory_limit().is_none()
}

/// Whether these blocks of a laned class are all of the lane of `shard`.
pub(crate) fn are_of_lane(class: Class, shard: Shard, blocks: &[usize]) -> bool {
    blocks.iter().all(|block| {
        let owner = page_of(*block).owner();
        class.code_in(owner.0) == class.code_in(shard.0)
    })
}

/// Admits pages of sampled blocks; the caller holds the lock of all threads.
pub(crate) fn prepare_samples() {
    ownership::admit(Shard::SAMPLED.0);
}

/// The state of the pages after a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub(crate) enum Pages {
    /// Nothing to do.
    Ordinary,
    /// The blocks were of many shards: the more come at once, the more of them share a lock and a page.
    Scattered,
    /// Few blocks keep many pages, so cached blocks should be flushed too.
    Sparse,
}

/// Empty pages of fewer blocks are not kept.
const KEPT_BLOCKS_MIN: usize = 64;

/// The number of empty pages of `class` that are kept: one, so that blocks freed and allocated in turns cost no page, unless
/// it has so few blocks that caches suffice.
fn kept_pages(class: Class) -> u32 {
    let keeps = class.page_blocks() >= KEPT_BLOCKS_MIN && settings::retain() != Some(0);
    u32::from(keeps)
}

impl ClassPages {
    const fn new() -> ClassPages {
        ClassPages {
            partial: List::new(),
            partial_count: 0,
            handed_out: 0,
            freed: 0,
            handed_out_at_purge: 0,
            left_alone: LeftAlone::NONE,
            place: Place::NONE,
            pages: 0,
            taken: 0,
        }
    }

    /// Adds a new page, of which `taken` blocks were taken; to the list only if some are left.
    #[inline]
    fn enter(&mut self, class: Class, page: Page, taken: usize) {
        self.pages += 1;
        self.note_taken(taken);
        if !page.is_full() {
            self.link(page);
            if self.lendable(class) > 0 {
                note_free(page.owner(), class);
            }
        }
    }

    #[inline(always)]
    fn note_taken(&mut self, blocks: usize) {
        self.handed_out += blocks;
        self.taken += blocks;
        self.freed = self.freed.saturating_sub(blocks as u32);
    }

    /// Blocks that threads of other shards may take. Where shards are many, only the freed ones of the small blocks are: to
    /// touch a new page costs no more memory than to touch the rest of another shard's, and no line is shared. But
    /// under a memory limit, it is pages that count.
    fn lendable(&self, class: Class) -> usize {
        if self.partial.is_empty() {
            0
        } else if is_left_to_its_shard(class) {
            self.freed as usize
        } else {
            usize::MAX
        }
    }

    /// Enters a page with free blocks into the list: lower addresses at the front, so that higher ones become empty.
    #[inline(never)]
    fn link(&mut self, page: Page) {
        let lower = self.partial.first().is_none_or(|first| page.0.address() < first.address());
        if lower {
            self.partial.push_first(page.0);
        } else {
            self.partial.push_last(page.0);
        }
        self.partial_count += 1;
    }

    /// Enters a page that had no free block until now.
    #[inline(never)]
    fn link_again(&mut self, class: Class, page: Page) {
        if self.partial.is_empty() {
            note_free(page.owner(), class);
        }
        self.link(page);
    }

    #[inline(never)]
    fn unlink(&mut self, page: Page) {
        self.leave(page);
        self.partial.remove(page.0);
        self.partial_count -= 1;
    }

    /// Removes a page that is to be released. A call of `note_removed` must follow.
    fn remove(&mut self, page: Page) {
        self.unlink(page);
        self.pages -= 1;
    }

    /// Counts no more freed blocks than the pages that are left have.
    #[inline(never)]
    fn note_removed(&mut self, class: Class) {
        let free = self.pages as usize * class.page_blocks() - self.handed_out;
        self.freed = self.freed.min(free as u32);
    }

    #[inline(never)]
    fn take(&mut self, class: Class, blocks: &mut [usize]) -> usize {
        let wanted = blocks.len();
        let mut left = wanted;
        while left > 0
            && let Some(first) = self.partial.first()
        {
            let page = Page(first);
            left -= page.take(class, blocks.at_mut(..left));
            self.left_alone.note_taken(page.note_taken(), class);
            if page.is_full() {
                self.unlink(page);
            } else if left == 0 {
                if ownership::are_many() {
                    left = page.leave_line(class, blocks);
                }
                break;
            }
        }
        // The blocks taken lie at the end of `blocks`, also if they are fewer.
        self.note_taken(wanted - left);
        wanted - left
    }

    /// Marks those of `blocks` free that are `left` and belong to pages of `owner`, which these are. Pages that become empty
    /// and are removed join `empty`, until that is full. Returns the blocks that are still left.
    #[inline(never)]
    fn put(
        &mut self,
        owner: Shard,
        class: Class,
        blocks: &[usize],
        left: u64,
        empty: &mut Empty,
    ) -> u64 {
        let code = class.laned().code_in(owner.0);
        // SAFETY: There is a block for each bit.
        let block_at = |bits: u64| unsafe { *blocks.get_unchecked(bits.trailing_zeros() as usize) };
        let (mut ahead, mut others, mut is_over) = (left, 0, false);
        while ahead != 0 && !is_over {
            let mut block = block_at(ahead);
            let page = page_of(block);
            if page.owner() != owner {
                others |= ahead & ahead.wrapping_neg();
                ahead &= ahead - 1;
                continue;
            }
            page.check_code(class, code);
            let home = PageView::new(page, class, block);
            let (mut count, mut lowest) = (0, usize::MAX);
            loop {
                lowest = lowest.min(home.mark(class, block));
                count += 1;
                ahead &= ahead - 1;
                if ahead == 0 {
                    break;
                }
                block = block_at(ahead);
                if !home.has(class, block) {
                    break;
                }
            }
            let free = home.note(count, lowest);
            is_over = self.note_put(class, page, count, free, empty);
        }
        others | ahead
    }

    /// Notes that `count` blocks came home to a page that has `free` free ones now; returns whether `empty` is full.
    #[inline(always)]
    fn note_put(
        &mut self,
        class: Class,
        page: Page,
        count: usize,
        free: usize,
        empty: &mut Empty,
    ) -> bool {
        self.handed_out -= count;
        if free == count {
            self.link_again(class, page);
        }
        free == class.page_blocks() && self.note_empty(class, page, empty)
    }

    /// Counts blocks that came home to pages of `owner`.
    #[inline(always)]
    fn note_freed(&mut self, owner: Shard, class: Class, blocks: usize) {
        if self.freed == 0 {
            note_free(owner, class);
        }
        // Too few after an overflow, and others make pages.
        self.freed = self.freed.wrapping_add(blocks as u32);
    }

    /// Keeps an empty page, or removes it and adds it to `empty`; returns whether that is now full.
    #[inline(never)]
    fn note_empty(&mut self, class: Class, page: Page, empty: &mut Empty) -> bool {
        if self.partial_count > kept_pages(class) && !page.is_away() {
            self.remove(page);
            *empty.pages.at_mut(empty.count) = Some(page);
            empty.count += 1;
        }
        empty.count == EMPTY_MAX
    }

    /// [`ClassPages::put`] for one block; returns whether its page, which is `page`, is now empty and removed.
    #[inline(always)]
    fn put_one(&mut self, class: Class, page: Page, block: usize) -> bool {
        page.check_class(class);
        let free = page.put_one(class, block);
        self.handed_out -= 1;
        let was_full = free == 1;
        let releases = page.is_empty(class)
            && self.partial_count + u32::from(was_full) > kept_pages(class)
            && !page.is_away();
        // A page of one block was in no list.
        match (was_full, releases) {
            (true, true) => self.pages -= 1,
            (true, false) => self.link_again(class, page),
            (false, true) => self.remove(page),
            (false, false) => {}
        }
        releases
    }

    /// Takes an empty page out of the list, to be released.
    fn take_empty(&mut self, class: Class) -> Option<Page> {
        let page = self.partial.iter().map(Page).find(|page| page.is_empty(class))?;
        self.remove(page);
        self.note_removed(class);
        Some(page)
    }
}

/// Ends the passes through sparse pages, after one through all pages if `purges`; releases the empty pages that were kept.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.trim.shard_trim")]
pub(crate) fn trim(purges: bool) {
    for shard in Shard::all().filter(|_| purges) {
        Class::all().for_each(|class| shard.pages(class).lock().pass_through_all(shard, class));
    }
    sparse::finish();
    for shard in Shard::all() {
        for class in Class::all() {
            loop {
                // Not in the condition: the guard would live through the release.
                let empty = shard.pages(class).lock().take_empty(class);
                let Some(page) = empty else { break };
                // SAFETY: Every block of the page is free and it is in no list.
                unsafe { page.release(class) };
            }
        }
    }
}

/// The counts of a class's pages, over all shards.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) pages: usize,
    /// Blocks out of pages, live or in caches, and guarded ones.
    pub(crate) handed_out: usize,
    /// The guarded ones among them, which lie in no page.
    pub(crate) guarded: usize,
    /// Blocks ever taken from pages.
    pub(crate) taken: usize,
}

/// The counts of `class`, a plain one.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.statistics.shard_counts")]
pub(crate) fn counts(class: Class) -> Counts {
    let (guarded, taken) = guards::counts_of(class);
    let first = Counts { pages: 0, handed_out: guarded, guarded, taken };
    Shard::all().fold(first, |sum, shard| {
        let pages = shard.pages(class).lock();
        Counts {
            pages: sum.pages + pages.pages as usize,
            handed_out: sum.handed_out + pages.handed_out,
            guarded,
            taken: sum.taken.wrapping_add(pages.taken),
        }
    })
}

/// The number of shards with blocks that are live or in caches.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.statistics.shard_active")]
pub(crate) fn active() -> usize {
    let has_any = |shard: Shard| Class::all().any(|class| shard.pages(class).lock().handed_out > 0);
    Shard::used().filter(|shard| has_any(*shard)).count()
}

/// Visits every lock of this module, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    for shard in Shard::all() {
        Class::all().for_each(|class| visit.see(shard.pages(class).raw()));
    }
}

#[cfg(test)]
#[path = "shard/tests.rs"]
mod tests;
