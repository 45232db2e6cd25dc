//! Sparse pages: where few blocks keep many pages, the free memory inside the pages is purged.
//!
//! Relies on pages to say what is worth purging. There may be thousands of pages, and no call of the program must wait for
//! all of them. So a flush that finds a class's pages sparse only begins a *pass*: a place in their list, which moves on by a
//! *step* of bounded work in each slow call of any thread until all were visited. The hard idea is that no lock is held
//! while the kernel works: a page is *away* then. It is in no list, so none of its blocks is handed out, while returned
//! blocks are marked in it as always.
//!
//! In a child that was forked while another thread had a page away, the page stays away forever, and its free blocks are not
//! handed out. Each thread has few pages away at once.

use super::{ClassPages, Pages, Shard, kept_pages, note_free};
use crate::blocks::page::Page;
use crate::blocks::page::purge::Purge;
use crate::blocks::slot;
use crate::memory::class::{CLASSES, Class};
use crate::memory::list::List;
use crate::memory::ranges::{RUNS_MAX, stripes};
use crate::memory::slice::{SLICE_BYTES, SLICE_SHIFT, Slice};
use crate::platform::bounds::Bounded;
use crate::platform::kernel;
use crate::platform::sync::{AtomicUsize, Ordering};
use crate::settings::{self, SHARDS_MAX};

/// Pages of less than this together are never sparse.
const SPARSE_BYTES_MIN: usize = 256 << 10;
/// Pages are sparse when less than one part in this many is handed out.
const SPARSE_SHARE: usize = 4;

/// Sparse pages of less than this together are not purged at first, unless an option says otherwise.
const LEFT_ALONE_BYTES_MIN: usize = 4 << 20;

/// The work of one step: ranges purged, their bytes, pages visited. The last page may exceed the first two. Where each range
/// is a system call of its own, a step is shorter, most of all in a program with other threads: each call waits for their
/// CPUs.
const STEP_RANGES: usize = 16;
const STEP_CALLS: usize = 4;
const STEP_CALLS_ALONE: usize = 8;
const STEP_BYTES: usize = 256 << 10;
const STEP_PAGES: usize = 256;
/// Pages that a thread has away at most.
const AWAY_MAX: usize = 8;
/// Steps at the end of a thread.
const STEPS_AT_END: usize = 1024;

const WORD_BITS: usize = usize::BITS as usize;

/// The passes under way: a bit for each class of each shard, by its index. Changed under the lock of the class's pages, read
/// by any thread. [`stripes::passes`] is their number.
static PASSES: [[AtomicUsize; CLASSES.div_ceil(WORD_BITS)]; SHARDS_MAX + 1] =
    [const { [const { AtomicUsize::new(0) }; CLASSES.div_ceil(WORD_BITS)] }; SHARDS_MAX + 1];

/// The next page of a pass, or none: the page's address in slices, because a class's data fill their cache line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    pub(super) const NONE: Place = Place(0);

    fn of(page: Option<&'static Slice>) -> Place {
        Place(page.map_or(0, |page| (page.address() >> SLICE_SHIFT) as u32))
    }

    pub(super) fn page(self) -> Option<&'static Slice> {
        let address = (self.0 as usize) << SLICE_SHIFT;
        // SAFETY: A page's slice: a page that leaves the list moves the place on.
        (address != 0).then(|| unsafe { Slice::at(address) })
    }
}

/// The work left in a step.
struct Step {
    ranges: usize,
    bytes: usize,
    pages: usize,
}

impl Step {
    fn new() -> Step {
        Step { ranges: step_ranges(), bytes: STEP_BYTES, pages: STEP_PAGES }
    }

    fn is_over(&self) -> bool {
        self.ranges == 0 || self.bytes == 0 || self.pages == 0
    }
}

/// Pages that are away, and their purge.
struct Away {
    pages: [Option<Page>; AWAY_MAX],
    count: usize,
    purge: Purge,
}

impl Away {
    const fn new() -> Away {
        Away { pages: [None; AWAY_MAX], count: 0, purge: Purge::new() }
    }

    fn has_room_for(&self, class: Class) -> bool {
        self.count < AWAY_MAX && self.purge.has_room_for(class)
    }

    /// Removes the last page; the purge is cleared when none is left.
    fn take_back(&mut self) -> Option<Page> {
        let page = self.count.checked_sub(1).and_then(|last| self.pages.at_mut(last).take());
        self.count = self.count.saturating_sub(1);
        if self.count == 0 {
            self.purge.clear();
        }
        page
    }
}

/// Continues to purge, once in each slow call: a step of bounded work, of a pass or of what the ranges owe. The caller holds
/// no lock.
#[inline]
pub(crate) fn purge_step() {
    if is_due() {
        take_step();
    }
}

/// Ranges purged in one step.
fn step_ranges() -> usize {
    match kernel::batches_purges() {
        true => STEP_RANGES,
        false if slot::are_several() => STEP_CALLS,
        false => STEP_CALLS_ALONE,
    }
}

/// Whether there is work for a step.
#[inline]
fn is_due() -> bool {
    stripes::any_owes() || is_under_way()
}

fn is_under_way() -> bool {
    // ORDERING: Relaxed: a thread that misses a pass that has just begun finds it the next time.
    stripes::passes().load(Ordering::Relaxed) != 0
}

/// Finishes all passes. Their number is no sign of the end: in a child of a `fork` that could not have a lock, it may be wrong.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.trim.sparse_finish")]
pub(super) fn finish() {
    while any_pass().is_some() {
        take_pass_step();
    }
}

/// Takes many steps at the end of a thread, because it makes no more slow calls and its blocks were just flushed.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.sparse_steps_at_exit")]
pub(crate) fn purge_steps_at_exit() {
    let mut steps = STEPS_AT_END;
    while steps > 0 && is_due() {
        purge_step();
        steps -= 1;
    }
}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.sparse_take_step")]
fn take_step() {
    let step = stripes::next_step();
    // Where there is work of both kinds, every other step is one of the ranges.
    if stripes::any_owes() && (!step.is_multiple_of(2) || !is_under_way()) {
        stripes::purge_step(slot::ranges(), step_ranges().min(RUNS_MAX / 2), step / 2);
    } else {
        take_pass_step();
    }
}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.sparse_take_pass_step")]
fn take_pass_step() {
    let mut step = Step::new();
    while !step.is_over()
        && let Some((shard, class)) = any_pass()
    {
        shard.pass_on(class, &mut step);
    }
}

/// A class of a shard with a pass under way.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.purge.sparse_any_pass")]
fn any_pass() -> Option<(Shard, Class)> {
    PASSES.iter().enumerate().find_map(|(shard, words)| {
        // ORDERING: Relaxed: a thread that finds a pass that has just ended has nothing to do.
        let words = words.iter().map(|word| word.load(Ordering::Relaxed)).enumerate();
        let index = words
            .filter(|(_, bits)| *bits != 0)
            .map(|(word, bits)| word * WORD_BITS + bits.trailing_zeros() as usize);
        Some((Shard(shard as u8), Class::from_index(index.min()?)?))
    })
}

impl Shard {
    /// Continues the pass through the pages of a class, a few pages at a time, until the pass or the step ends.
    fn pass_on(self, class: Class, step: &mut Step) {
        let mut away = Away::new();
        loop {
            let mut pages = self.pages(class).lock();
            let mut empty = [None; AWAY_MAX];
            let mut any_empty = false;
            while let Some(page) = away.take_back() {
                let removed = pages.put_back(class, page);
                any_empty |= removed.is_some();
                *empty.at_mut(away.count) = removed;
            }
            pages.send_away(self, class, step, &mut away);
            drop(pages);
            if any_empty {
                // SAFETY: `put_back` removed the pages because every block of them is free.
                unsafe { Page::release_all(class, &empty) };
            }
            if away.count == 0 {
                return;
            }
            // SAFETY: The pages are away, so no block of them is handed out.
            unsafe { away.purge.run() };
            if kernel::batches_purges() {
                // The wait for other CPUs is most of such a call, so that one is a step.
                step.ranges = 0;
            }
        }
    }

    /// Records that a pass through the pages of a class begins or ends. The caller holds their lock.
    fn note_pass(self, class: Class, begins: bool) {
        let index = class.page_index();
        let (word, bit) =
            (PASSES.at(usize::from(self.0)).at(index / WORD_BITS), 1 << (index % WORD_BITS));
        // ORDERING: Relaxed on all: the lock of the pages orders their data.
        if begins && word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
            stripes::passes().fetch_add(1, Ordering::Relaxed);
            stripes::note_pass_begun();
        } else if !begins && word.fetch_and(!bit, Ordering::Relaxed) & bit != 0 {
            // ORDERING: As above.
            stripes::passes().fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Whether a pass through the pages of a class is under way.
#[cfg(debug_assertions)]
pub(super) fn is_passing(shard: Shard, class: Class) -> bool {
    let index = class.page_index();
    // ORDERING: Relaxed: the lock of the pages orders their data.
    let word = PASSES.at(usize::from(shard.0)).at(index / WORD_BITS).load(Ordering::Relaxed);
    word >> (index % WORD_BITS) & 1 != 0
}

impl ClassPages {
    /// Checks the pages after a flush, and begins a pass where few blocks keep many.
    #[inline]
    pub(super) fn check_sparse(&mut self, shard: Shard, class: Class) -> Pages {
        if !self.is_sparse(class) {
            return Pages::Ordinary;
        }
        self.begin_pass(shard, class);
        Pages::Sparse
    }

    /// Bytes of the pages with a free block.
    fn partial_bytes(&self, class: Class) -> usize {
        self.partial_count as usize * class.page_slices() * SLICE_BYTES
    }

    /// Whether few blocks keep many pages.
    #[inline]
    fn is_sparse(&self, class: Class) -> bool {
        let bytes = self.partial_bytes(class);
        bytes >= SPARSE_BYTES_MIN && self.handed_out * class.size() < bytes / SPARSE_SHARE
    }

    /// Begins a pass through sparse pages, if they are many and a good part was freed since the last one began.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.sparse_begin_pass")]
    fn begin_pass(&mut self, shard: Shard, class: Class) {
        let bytes = self.partial_bytes(class);
        let before = self.handed_out_at_purge;
        let handed_out = u32::try_from(self.handed_out).unwrap_or(u32::MAX);
        let freed_enough = before == 0 || handed_out < before / 4 * 3;
        let left_alone = settings::retain().unwrap_or(LEFT_ALONE_BYTES_MIN);
        if bytes < left_alone.saturating_add(self.left_alone.bytes()) || !freed_enough {
            self.handed_out_at_purge = before.max(handed_out);
            return;
        }
        self.handed_out_at_purge = handed_out;
        self.left_alone.fade();
        self.pass_through_all(shard, class);
    }

    /// Begins a pass if there are pages, however many blocks are live.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.sparse_pass_through_all")]
    pub(super) fn pass_through_all(&mut self, shard: Shard, class: Class) {
        self.place = Place::of(self.partial.first());
        if self.place != Place::NONE {
            shard.note_pass(class, true);
        }
    }

    /// Sends the next pages away that are worth purging; none where the step or the pass is over.
    fn send_away(&mut self, shard: Shard, class: Class, step: &mut Step, away: &mut Away) {
        while !step.is_over()
            && away.has_room_for(class)
            && let Some(page) = self.place.page().map(Page)
        {
            step.pages -= 1;
            let (ranges, bytes) = (away.purge.count(), away.purge.bytes());
            if page.is_worth_purging(class) {
                page.plan_purge(class, &mut away.purge);
            }
            if away.purge.count() == ranges {
                self.leave(page);
                continue;
            }
            // Moves the place on.
            self.unlink(page);
            page.set_away(true);
            *away.pages.at_mut(away.count) = Some(page);
            away.count += 1;
            step.ranges = step.ranges.saturating_sub(away.purge.count() - ranges);
            step.bytes = step.bytes.saturating_sub(away.purge.bytes() - bytes);
        }
        if self.place == Place::NONE {
            shard.note_pass(class, false);
        }
    }

    /// Moves a pass on that has come to this page.
    #[inline]
    pub(super) fn leave(&mut self, page: Page) {
        if self.place == Place::of(Some(page.0)) {
            self.place = Place::of(<List>::behind(page.0));
        }
    }

    /// Puts a page that was away back into the list; or returns it, removed, where it became empty and is not kept.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.sparse_put_back")]
    fn put_back(&mut self, class: Class, page: Page) -> Option<Page> {
        page.set_away(false);
        if page.is_empty(class) && self.partial_count >= kept_pages(class) {
            self.pages -= 1;
            self.note_removed(class);
            return Some(page);
        }
        if self.partial.is_empty() {
            note_free(page.owner(), class);
        }
        // Behind the pages that the pass has visited.
        self.partial.push_before(self.place.page(), page.0);
        self.partial_count += 1;
        None
    }
}

/// Bytes of sparse pages that are not purged, beyond [`LEFT_ALONE_BYTES_MIN`]. Grows when purged blocks are used again, and
/// fades with each pass.
pub(super) struct LeftAlone(u32);

/// The unit of its count, the smallest block.
const UNIT: usize = 16;

impl LeftAlone {
    pub(super) const NONE: LeftAlone = LeftAlone(0);

    fn bytes(&self) -> usize {
        self.0 as usize * UNIT
    }

    /// Counts purged `blocks` of `class` that were handed out.
    pub(super) fn note_taken(&mut self, blocks: usize, class: Class) {
        self.0 = self.0.saturating_add((2 * blocks * (class.size() / UNIT)) as u32);
    }

    fn fade(&mut self) {
        self.0 -= self.0 / 8;
    }
}

// Their pages are those of the ordinary build.
#[cfg(all(test, not(feature = "secure")))]
#[path = "sparse/tests.rs"]
mod tests;
