//! Runs of slices: the free ones, the live ones, and when free ones are purged.
//!
//! Relies on arenas for addresses and committed memory. Free runs are kept in lists by length and merged with their free
//! neighbors, many of them late (`memory/ranges/unmerged.rs`); `memory/ranges/kept.rs` decides which of them stay
//! resident. The hard idea is the merging: the first and the last slice of a free run say that it is free, which is all
//! that a neighbor needs to join it. Purging happens inside `free`; there is no background thread.

#[cfg(feature = "secure")]
mod closed;
mod growing;
mod held;
mod kept;
pub(crate) mod large;
mod lists;
mod parked;
mod probes;
mod purge;
pub(crate) mod stripes;
mod take;
mod unmerged;
pub(crate) mod usage;

use core::ptr;

use crate::memory::arena::{Arena, SHRINKS_BY_PIECES};
use crate::memory::class::FOREIGN;
use crate::memory::list::List;
use crate::memory::map;
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Clock};
#[cfg(all(test, not(feature = "secure")))]
pub(crate) use held::CALLS_MAX;
pub(crate) use held::SharedRanges;
use kept::{Demand, Period};
use lists::Lists;
pub(crate) use parked::Parked;
pub(crate) use purge::RUNS_MAX;
use stripes::Bytes;
use unmerged::{Unmerged, mark_free};

/// Other stripes checked before the kernel is asked for more.
const LOOKS: usize = 4;
/// A stripe of which nothing was taken or freed for so many milliseconds gives runs to others.
const IDLE_MS: usize = 1000;

/// A run handed out.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// Its first slice.
    pub(crate) first: &'static Slice,
    /// Whether it is known to read as zero.
    pub(crate) zero: bool,
}

/// How much of a run will be written, as far as its request tells.
#[derive(Clone, Copy)]
pub(crate) struct Filling {
    /// 0 if nothing is known: a page of small blocks, or a zeroed block, often a table that is used in small parts only.
    bytes: usize,
    /// At least half of the bytes are copied there at once.
    is_copied: bool,
    /// Most of the run lies beside the block, which must be aligned, and stays free.
    is_spread: bool,
}

impl Filling {
    pub(crate) const UNKNOWN: Filling = Filling { bytes: 0, is_copied: false, is_spread: false };

    /// That of a new block of `size` bytes.
    pub(crate) fn of_new(size: usize, zeroed: bool) -> Filling {
        Filling { bytes: if zeroed { 0 } else { size }, ..Filling::UNKNOWN }
    }

    /// That of a block of `size` bytes that takes the place of one of `old_size` bytes.
    pub(crate) fn of_moved(size: usize, old_size: usize) -> Filling {
        Filling { bytes: size, is_copied: size / 2 <= old_size, is_spread: false }
    }
}

/// Free runs, and the counts of live ones.
// Fields that every program touches come first, to share one OS page.
#[repr(C)]
pub(crate) struct Ranges {
    /// The arena that grows.
    arena: Option<&'static Arena>,
    /// The growing arena of large blocks, where they have one of their own.
    large_arena: Option<&'static Arena>,
    live_slices: usize,
    dirty_bytes: usize,
    /// Live large blocks, and their slices.
    large_blocks: usize,
    large_slices: usize,
    /// Large blocks ever handed out from here, except parked ones taken again.
    large_made: usize,
    /// Bytes of large blocks that the program may not use, in the hardened build.
    large_unused_bytes: usize,
    /// Live slices of metadata.
    metadata_slices: usize,
    /// Slices that threads have the right to park.
    parking_slices: usize,
    /// The peak of live bytes, fading towards the current number.
    peak_bytes: usize,
    demand: Demand,
    /// Bytes that were purged recently and not reused yet.
    just_purged_bytes: usize,
    /// The passes through sparse pages that had begun when the past faded last.
    passes_begun: usize,
    /// The bytes of other stripes when this one last looked, each as it was when that one last did.
    others: Bytes,
    /// This stripe's part of the sum of all stripes.
    published: Bytes,
    /// Runs reused or freed.
    ticks: u32,
    /// The time when the past faded last, in milliseconds.
    faded_at: usize,
    /// Recent calls that waited for another thread, and `ticks` at the first of them.
    waits: u32,
    waits_since: u32,
    /// `ticks` when another stripe checked whether this one is in use, and the time of the first check that found the
    /// same number, in milliseconds.
    looked_ticks: u32,
    looked_at: usize,
    /// The place from which this stripe looks for an idle one next.
    looks: usize,
    /// Free memory must be purged until at most so much of it is dirty.
    owed_down_to: Option<usize>,
    /// Arenas to be unmapped.
    leaving: Option<&'static Arena>,
    /// The end of an arena must be unmapped, because addresses are limited.
    shrinks: bool,
    /// It is time to look after another stripe.
    visits: bool,
    /// Other threads know that purging is owed.
    is_known_to_owe: bool,
    /// Bytes handed out, or freed and perhaps dirty, since the last purge.
    moved_bytes: usize,
    /// Runs being purged.
    away: List,
    /// Runs that nothing uses, but which the kernel did not open again.
    #[cfg(feature = "secure")]
    closed: List,
    /// The arena for which huge pages were cancelled last; it may no longer exist.
    plain: *const Arena,
    unmerged: Unmerged,
    /// Free runs that may be resident, at least in part, and others.
    dirty: Lists,
    clean: Lists,
    /// The time that free memory beyond the budget stays.
    period: Period,
}

// SAFETY: The references to the arena and to slices are used only under the lock around this.
unsafe impl Send for Ranges {}

impl Ranges {
    const fn new() -> Ranges {
        Ranges {
            dirty: Lists::new(),
            clean: Lists::new(),
            period: Period::new(),
            unmerged: Unmerged::NONE,
            arena: None,
            large_arena: None,
            live_slices: 0,
            dirty_bytes: 0,
            large_blocks: 0,
            large_slices: 0,
            large_made: 0,
            large_unused_bytes: 0,
            metadata_slices: 0,
            parking_slices: 0,
            peak_bytes: 0,
            demand: Demand::NONE,
            just_purged_bytes: 0,
            passes_begun: 0,
            others: Bytes::NONE,
            published: Bytes::NONE,
            ticks: 0,
            faded_at: 0,
            waits: 0,
            waits_since: 0,
            looked_ticks: 0,
            looked_at: 0,
            looks: 0,
            owed_down_to: None,
            leaving: None,
            shrinks: false,
            visits: false,
            is_known_to_owe: false,
            moved_bytes: 0,
            away: List::new(),
            #[cfg(feature = "secure")]
            closed: List::new(),
            plain: ptr::null(),
        }
    }

    /// Bytes of live runs.
    pub(crate) fn live_bytes(&self) -> usize {
        self.live_slices * SLICE_BYTES
    }

    /// Large blocks, live or parked, and their bytes.
    pub(crate) fn large(&self) -> (usize, usize) {
        (self.large_blocks, self.large_slices * SLICE_BYTES - self.large_unused_bytes)
    }

    /// Counts a change in the number of large blocks and in their slices.
    #[inline]
    pub(crate) fn count_large(&mut self, blocks: isize, slices: isize) {
        self.large_blocks = self.large_blocks.wrapping_add_signed(blocks);
        self.large_made += blocks.max(0).cast_unsigned();
        self.large_slices = self.large_slices.wrapping_add_signed(slices);
    }

    /// Counts a change in the bytes of large blocks that the program may not use.
    #[cfg(feature = "secure")]
    pub(crate) fn count_unused(&mut self, bytes: isize) {
        self.large_unused_bytes = self.large_unused_bytes.wrapping_add_signed(bytes);
    }

    /// Counts a run that is handed out.
    #[inline(always)]
    fn note_allocated(&mut self, run: Run, slices: usize, kind: Kind) {
        run.first.kind.set(kind);
        run.first.count.set(slices as u32);
        self.add_live(slices);
        match kind {
            Kind::Metadata => self.metadata_slices += slices,
            // Counted here, in the stripe of the run, which may not be the thread's.
            Kind::Large | Kind::HeapLarge => self.count_large(1, slices.cast_signed()),
            _ => {}
        }
    }

    /// Frees the parts before and behind the aligned part of a run.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.ranges_cut_to_align")]
    fn cut_to_align(&mut self, run: Run, padded: usize, slices: usize, align: usize) -> Run {
        let start = run.first.address();
        let before = (start.wrapping_neg() & (align - 1)) / SLICE_BYTES;
        // SAFETY: The aligned part lies inside the run.
        let first = unsafe { run.first.ahead(before) };
        let behind = padded - before - slices;
        if first.arena().is_dedicated() {
            return Run { first, zero: run.zero };
        }
        let dirty = if run.zero { 0 } else { run.first.dirty.get() as usize };
        if before > 0 {
            self.insert(run.first, before, dirty.min(before * SLICE_BYTES), run.zero);
        }
        if behind > 0 {
            // SAFETY: So does the part behind it.
            let rest = unsafe { first.ahead(slices) };
            let dirty = dirty.saturating_sub((before + slices) * SLICE_BYTES);
            self.insert(rest, behind, dirty, run.zero);
        }
        Run { first, zero: run.zero }
    }

    /// A run of exactly `slices`, free or committed at an arena's front.
    #[inline(never)]
    fn take_ready(&mut self, slices: usize, kind: Kind) -> Option<Run> {
        // Resident memory first: it costs no fault and makes nothing else resident.
        let free = self.fitting_dirty(slices, kind).or_else(|| self.clean.fitting(slices));
        if let Some(run) = free {
            return Some(self.split(run, slices));
        }
        self.take_front(slices, kind)
    }

    /// Takes the first `slices` slices of a free run, and notes how much of them is dirty; the rest stays free.
    #[inline(never)]
    fn split(&mut self, run: &'static Slice, slices: usize) -> Run {
        let (count, dirty, zero) =
            (run.count.get() as usize, run.dirty.get() as usize, run.zero.get());
        self.remove(run);
        let taken_dirty = dirty.min(slices * SLICE_BYTES);
        if count > slices {
            // SAFETY: The rest lies inside the run.
            let rest = unsafe { run.ahead(slices) };
            self.insert(rest, count - slices, dirty - taken_dirty, zero);
        }
        run.dirty.set(taken_dirty as u32);
        self.note_reuse(slices * SLICE_BYTES, slices * SLICE_BYTES - taken_dirty);
        Run { first: run, zero }
    }

    /// Frees a run of `slices` slices, of which `dirty` bytes may be resident.
    ///
    /// # Safety
    ///
    /// - It was handed out by `allocate` as one run or a part of one, and nothing uses it any more.
    pub(crate) unsafe extern "C" fn free(
        &mut self,
        first: &'static Slice,
        slices: usize,
        dirty: usize,
    ) {
        self.live_slices -= slices;
        let arena = first.arena();
        if arena.is_dedicated() {
            // It holds one run only.
            return self.release(arena);
        }
        let run = self.insert_freed(first, slices, dirty);
        self.note_free(slices * SLICE_BYTES);
        self.moved_bytes += dirty;
        if !self.keeps_all() && !self.release_whole(run) {
            self.shrinks |= arena.ends_in(run, SHRINKS_BY_PIECES);
            self.owe_after_grace(dirty);
        }
    }

    /// Frees the run of a large block that nothing uses any more.
    ///
    /// # Safety
    ///
    /// - It was handed out by `allocate` to a large block, whose size is the run's.
    pub(crate) unsafe fn free_large(&mut self, first: &'static Slice) {
        let slices = first.count.get() as usize;
        map::set(first.address(), 1, FOREIGN);
        self.count_large(-1, -slices.cast_signed());
        // SAFETY: The caller's condition.
        unsafe { self.free(first, slices, slices * SLICE_BYTES) };
    }

    /// Takes back the right to park, and the run parked by it.
    #[inline(never)]
    fn take_home(&mut self, parked: &Parked) {
        let (right, run) = parked.give_up();
        self.parking_slices -= right;
        if let Some(first) = run {
            // SAFETY: It was a large block's, which the thread freed.
            unsafe { self.free_large(first) };
        }
    }

    /// Notes a call that waited for another thread; returns the number of recent ones.
    fn note_wait(&mut self) -> u32 {
        if self.ticks.wrapping_sub(self.waits_since) >= stripes::CALLS {
            self.forget_waits();
        }
        self.waits += 1;
        self.waits
    }

    /// Whether nothing was taken or freed here for a while, by the checks of other stripes; it is `now`, in
    /// milliseconds.
    fn is_idle(&mut self, now: usize) -> bool {
        if self.looked_ticks != self.ticks {
            (self.looked_ticks, self.looked_at) = (self.ticks, now);
        }
        now.wrapping_sub(self.looked_at) >= IDLE_MS
    }

    /// Ignores the run that another stripe took just now, which found this one idle.
    fn stays_idle(&mut self) {
        self.looked_ticks = self.ticks;
    }

    fn forget_waits(&mut self) {
        (self.waits, self.waits_since) = (0, self.ticks);
    }

    /// Releases an arena whose memory is all free, unless it is a growing one; returns whether it was released.
    #[inline(never)]
    fn release_whole(&mut self, run: &'static Slice) -> bool {
        !self.is_growing(run.arena()) && self.release_run(run)
    }

    /// Releases an arena if this free run is all of it that was handed out; returns whether it was.
    fn release_run(&mut self, run: &'static Slice) -> bool {
        let arena = run.arena();
        if !arena.is_whole(run, run.count.get() as usize) {
            return false;
        }
        self.remove(run);
        self.release(arena);
        true
    }

    /// Has an arena unmapped when the lock is released. Nothing of it is live or in a list.
    fn release(&mut self, arena: &'static Arena) {
        arena.leave();
        arena.next_leaving.set(self.leaving.replace(arena));
    }

    /// Takes an arena to be unmapped by the caller.
    fn leaving_arena(&mut self) -> Option<&'static Arena> {
        let arena = self.leaving?;
        self.leaving = arena.next_leaving.get();
        Some(arena)
    }

    /// Takes the `more` slices behind a run of `slices` slices, if they are free; returns whether they were.
    fn grow_into(
        &mut self,
        arena: &'static Arena,
        first: &'static Slice,
        slices: usize,
        more: usize,
    ) -> bool {
        if arena.ends_at_front(first, slices) {
            if !arena.grow_front(more) {
                return false;
            }
        } else {
            // In an arena of its own a block has only the front to grow into.
            if arena.is_dedicated() {
                return false;
            }
            // SAFETY: Before the front is another slice of this arena.
            let behind = unsafe { first.ahead(slices) };
            self.merge_for_growth();
            if behind.kind.get() != Kind::Free || (behind.count.get() as usize) < more {
                return false;
            }
            self.split(behind, more);
        }
        self.add_live(more);
        true
    }

    /// Counts slices of a new run, or of one that grew.
    fn add_live(&mut self, slices: usize) {
        self.live_slices += slices;
        self.peak_bytes = self.peak_bytes.max(self.live_bytes());
        self.moved_bytes += slices * SLICE_BYTES;
        self.bound_total();
    }

    /// Frees a run, merged with its free neighbors; returns the first slice of the whole.
    fn insert(
        &mut self,
        run: &'static Slice,
        count: usize,
        dirty: usize,
        zero: bool,
    ) -> &'static Slice {
        let (mut first, mut count, mut dirty, mut zero) = (run, count, dirty, zero);
        run.kind.set(Kind::Opaque);
        // SAFETY: Behind the run lies another slice, or the arena's end, which is `None`.
        if let Some(next) = unsafe { run.ahead_or_end(count) }
            && next.kind.get() == Kind::Free
        {
            count += next.count.get() as usize;
            dirty += next.dirty.get() as usize;
            zero &= next.zero.get();
            self.remove(next);
        }
        // SAFETY: Before the first slice of a run lies another one, or the head's last.
        let before = unsafe { run.behind(1) };
        if before.kind.get() == Kind::Free {
            // SAFETY: The last slice of a free run leads to its first.
            first = unsafe { before.behind(before.back.get() as usize) };
            count += first.count.get() as usize;
            dirty += first.dirty.get() as usize;
            zero &= first.zero.get();
            self.remove(first);
        }
        mark_free(first, count, dirty, zero, Kind::Free);
        self.dirty_bytes += dirty;
        self.lists_of(first).insert(first);
        first
    }

    /// The lists that a free run is in.
    #[inline]
    fn lists_of(&mut self, run: &Slice) -> &mut Lists {
        match (run.kind.get(), run.dirty.get()) {
            (Kind::Unmerged, _) => &mut self.unmerged.runs,
            (_, 0) => &mut self.clean,
            _ => &mut self.dirty,
        }
    }

    #[inline(never)]
    fn remove(&mut self, run: &'static Slice) {
        let count = run.count.get() as usize;
        self.dirty_bytes -= run.dirty.get() as usize;
        self.unmerged.count -= usize::from(run.kind.is(Kind::Unmerged));
        self.lists_of(run).remove(run);
        // SAFETY: The last slice of the run.
        let last = unsafe { run.ahead(count - 1) };
        last.kind.set(Kind::Opaque);
        last.back.set(0);
        run.kind.set(Kind::Opaque);
        run.back.set(0);
    }
}

/// The time in milliseconds, as of the kernel's last tick.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.refused.ranges_now_ms")]
pub(crate) fn now_ms() -> usize {
    kernel::nanoseconds(Clock::Coarse) / 1_000_000
}

#[cfg(test)]
#[path = "ranges/tests.rs"]
mod tests;

// Not for the hardened build, whose free runs are closed.
#[cfg(all(test, not(loom), not(feature = "secure")))]
#[path = "ranges/model/tests.rs"]
mod model;
