//! Runs of slices: which are free, which are handed out, and when free ones go back to the kernel.
//!
//! Relies on arenas for addresses and commitment. Free runs are merged with their free neighbours
//! and kept in lists by length. The hard idea is the hysteresis: a free run stays resident ("dirty")
//! while the sum of such runs is within a budget: a small share of what is live, plus a *demand* that
//! only purging too early creates, and no more than what was live at the last peak. So a program
//! whose memory goes up and down soon makes no system calls, and one that has shrunk for good gives
//! memory back. Purging happens inside `free`, in batches; there is no hidden thread.

use core::ptr::{self, NonNull};

use crate::arena::Arena;
use crate::kernel::{self, Advice};
use crate::list::List;
use crate::options;
use crate::slice::{Kind, SLICE_BYTES, Slice};
use crate::sync::Lock;

/// All runs of the process.
pub(crate) static RANGES: Lock<Ranges> = Lock::new(Ranges::new());

/// Runs of each length below this have a list of their own.
const EXACT_LISTS: usize = 64;
/// Longer runs share four lists a doubling.
const LISTS: usize = 128;
/// Runs looked at in a list that mixes lengths before the next list is taken.
const TRIES: usize = 16;
/// Free memory that stays resident whatever else holds, in bytes.
const KEPT_BYTES_MIN: usize = 4 << 20;
/// How far live and dirty memory together may pass the last peak of live memory, in bytes or as a
/// share, whichever is more. A share of a large heap must leave room for free runs of the wrong
/// lengths, or they are purged again and again; in a small one it would only show as memory.
const OVER_PEAK_BYTES_MIN: usize = 512 << 10;
const OVER_PEAK_SHARE: usize = 16;
const OVER_LARGE_PEAK_SHARE: usize = 8;
const LARGE_PEAK_BYTES: usize = 64 << 20;
/// This share of live memory may stay resident while free.
const KEPT_SHARE: usize = 8;
/// After so many runs reused or freed, what is remembered fades: of peak and demand a sixteenth, of
/// what was just purged a half.
const FADES_EVERY: u32 = 1024;

/// A run that was handed out.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    /// Its first slice.
    pub(crate) first: &'static Slice,
    /// Whether it is known to read as zero.
    pub(crate) zero: bool,
}

/// Free runs, and the books of what is handed out.
pub(crate) struct Ranges {
    lists: [List; LISTS],
    /// Bit *i* is set while list *i* holds a run.
    occupied: u128,
    /// The arena that grows.
    arena: Option<&'static Arena>,
    live_slices: usize,
    dirty_slices: usize,
    /// Large blocks among what is live, and their slices.
    large_blocks: usize,
    large_slices: usize,
    /// Slices of the allocator's own among what is live.
    metadata_slices: usize,
    /// The most that was live, fading towards what is.
    peak_bytes: usize,
    /// Grows when free memory is used again, shrinks when memory is freed: what a program in full
    /// swing will soon want back, and one that is clearing up will not.
    demand_bytes: usize,
    /// The most that demand may be. Grows only when memory had been purged too early, and fades.
    demand_bytes_max: usize,
    /// What was purged a short while ago and was not wanted again yet.
    just_purged_bytes: usize,
    /// Runs that were reused or freed.
    ticks: u32,
}

// SAFETY: The references to the arena and to slices are used only under the lock around this.
unsafe impl Send for Ranges {}

impl Ranges {
    const fn new() -> Ranges {
        Ranges {
            lists: [const { List::new() }; LISTS],
            occupied: 0,
            arena: None,
            live_slices: 0,
            dirty_slices: 0,
            large_blocks: 0,
            large_slices: 0,
            metadata_slices: 0,
            peak_bytes: 0,
            demand_bytes: 0,
            demand_bytes_max: 0,
            just_purged_bytes: 0,
            ticks: 0,
        }
    }

    /// Bytes handed out as runs.
    pub(crate) fn live_bytes(&self) -> usize {
        self.live_slices * SLICE_BYTES
    }

    /// Bytes of runs that hold the allocator's own memory.
    pub(crate) fn metadata_bytes(&self) -> usize {
        self.metadata_slices * SLICE_BYTES
    }

    /// How many large blocks are handed out, and their bytes.
    pub(crate) fn large(&self) -> (usize, usize) {
        (self.large_blocks, self.large_slices * SLICE_BYTES)
    }

    /// Notes a change in the number of large blocks and in their slices.
    pub(crate) fn count_large(&mut self, blocks: isize, slices: isize) {
        self.large_blocks = self.large_blocks.wrapping_add_signed(blocks);
        self.large_slices = self.large_slices.wrapping_add_signed(slices);
    }

    /// Bytes of free runs that may be resident.
    pub(crate) fn dirty_bytes(&self) -> usize {
        self.dirty_slices * SLICE_BYTES
    }

    /// Hands out `slices` slices whose memory starts at a multiple of `align` bytes, a power of
    /// two; `None` where the kernel gives no more, even after everything free went back.
    pub(crate) fn allocate(&mut self, slices: usize, align: usize, kind: Kind) -> Option<Run> {
        let padding = (align / SLICE_BYTES).saturating_sub(1);
        let padded = slices.checked_add(padding)?;
        let run = self.take(padded).or_else(|| {
            self.purge_down_to(0);
            self.take(padded)
        })?;
        let run = if padding == 0 { run } else { self.cut_to_align(run, padded, slices, align) };
        run.first.kind.set(kind);
        run.first.count.set(slices as u32);
        self.add_live(slices);
        if kind == Kind::Metadata {
            self.metadata_slices += slices;
        }
        self.bound_total();
        Some(run)
    }

    /// Gives back what lies before and behind the aligned part of a run.
    fn cut_to_align(&mut self, run: Run, padded: usize, slices: usize, align: usize) -> Run {
        let start = run.first.address();
        let before = (start.next_multiple_of(align) - start) / SLICE_BYTES;
        // SAFETY: The aligned part lies inside the run.
        let first = unsafe { run.first.ahead(before) };
        let behind = padded - before - slices;
        if first.arena().is_dedicated() {
            return Run { first, zero: run.zero };
        }
        let dirty = |count| if run.zero { 0 } else { count };
        if before > 0 {
            self.insert(run.first, before, dirty(before), run.zero);
        }
        if behind > 0 {
            // SAFETY: So does the part behind it.
            let rest = unsafe { first.ahead(slices) };
            self.insert(rest, behind, dirty(behind), run.zero);
        }
        Run { first, zero: run.zero }
    }

    /// A run of exactly `slices`, from the free ones or from an arena's front.
    fn take(&mut self, slices: usize) -> Option<Run> {
        if let Some(run) = self.take_free(slices) {
            return Some(run);
        }
        let live_bytes = self.live_bytes();
        if let Some(first) = self.arena.and_then(|arena| arena.take_front(slices, live_bytes)) {
            return Some(Run { first, zero: true });
        }
        let arena = Arena::reserve(slices)?;
        let Some(first) = arena.take_front(slices, live_bytes) else {
            // SAFETY: The arena was reserved just now and nothing of it was handed out.
            unsafe { arena.release() };
            return None;
        };
        if !arena.is_dedicated() {
            self.offer_to_grow(arena);
        }
        Some(Run { first, zero: true })
    }

    /// Lets the arena grow from here on that has more left. What the other one has committed
    /// becomes a free run; the rest of it stays reserved for its last run to grow into.
    fn offer_to_grow(&mut self, offered: &'static Arena) {
        let Some(growing) = self.arena.replace(offered) else { return };
        let retired = if growing.front_slices() > offered.front_slices() {
            self.arena = Some(growing);
            offered
        } else {
            growing
        };
        let left = retired.committed_front_slices();
        if left > 0
            && let Some(first) = retired.take_front(left, 0)
        {
            self.insert(first, left, 0, true);
        }
    }

    fn take_free(&mut self, slices: usize) -> Option<Run> {
        let smallest = list_of(slices);
        let mut left = self.occupied >> smallest << smallest;
        while left != 0 {
            let list = left.trailing_zeros() as usize;
            left &= left - 1;
            let fitting =
                self.lists[list].iter().take(TRIES).find(|r| r.count.get() as usize >= slices);
            if let Some(run) = fitting {
                return Some(self.split(run, slices));
            }
        }
        None
    }

    /// Takes the first `slices` slices of a free run; the rest stays free.
    fn split(&mut self, run: &'static Slice, slices: usize) -> Run {
        let (count, dirty, zero) =
            (run.count.get() as usize, run.dirty.get() as usize, run.zero.get());
        self.remove(run);
        let taken_dirty = dirty.min(slices);
        if count > slices {
            // SAFETY: The rest lies inside the run.
            let rest = unsafe { run.ahead(slices) };
            self.insert(rest, count - slices, dirty - taken_dirty, zero);
        }
        self.note_reuse(slices * SLICE_BYTES, dirty == 0);
        Run { first: run, zero }
    }

    /// Free memory is used again; what was purged a short while ago was purged too early.
    fn note_reuse(&mut self, bytes: usize, was_clean: bool) {
        if was_clean {
            let too_early = bytes.min(self.just_purged_bytes);
            self.just_purged_bytes -= too_early;
            self.demand_bytes_max =
                (self.demand_bytes_max + 2 * too_early).min(2 * self.peak_bytes);
            self.demand_bytes += too_early;
        }
        self.tick();
        self.demand_bytes = (self.demand_bytes + bytes).min(self.demand_bytes_max);
    }

    fn note_free(&mut self, bytes: usize) {
        self.demand_bytes = self.demand_bytes.saturating_sub(bytes);
        self.tick();
    }

    /// Time passes: what is remembered fades.
    fn tick(&mut self) {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(FADES_EVERY) {
            self.just_purged_bytes /= 2;
            self.demand_bytes_max -= self.demand_bytes_max / 16;
            self.peak_bytes -= (self.peak_bytes - self.live_bytes()) / 16;
        }
    }

    /// Gives all free memory but about `bytes` back, and expects none of it to be wanted again;
    /// whether anything was given back.
    pub(crate) fn trim(&mut self, bytes: usize) -> bool {
        self.peak_bytes = self.live_bytes();
        self.demand_bytes = 0;
        self.demand_bytes_max = 0;
        let purged = self.purge_down_to(bytes);
        // Who asks for this does not purge too early, whatever is allocated next.
        self.just_purged_bytes = 0;
        purged
    }

    /// How much free memory may stay resident now.
    fn budget_bytes(&self) -> usize {
        if let Some(bytes) = options::retain() {
            return bytes;
        }
        let live = self.live_bytes();
        let wanted_back = self.demand_bytes.min(self.peak_bytes - live);
        KEPT_BYTES_MIN.max(live / KEPT_SHARE) + wanted_back
    }

    /// Takes a run of `slices` slices back.
    ///
    /// # Safety
    ///
    /// - It was handed out by `allocate` as (part of) one run, and nobody uses it any more.
    pub(crate) unsafe fn free(&mut self, first: &'static Slice, slices: usize) {
        self.live_slices -= slices;
        let arena = first.arena();
        if arena.is_dedicated() {
            // SAFETY: A dedicated arena holds one run only.
            unsafe { arena.release() };
            return;
        }
        let run = self.insert(first, slices, slices, false);
        self.note_free(slices * SLICE_BYTES);
        let budget = self.budget_bytes();
        let keeps = options::retain().is_some() && self.dirty_bytes() <= budget;
        if keeps || self.release_whole(run) {
            return;
        }
        if self.dirty_bytes() > budget {
            self.purge_down_to(budget / 4 * 3);
        }
    }

    /// Gives an arena back whose memory is all free, unless it is the one that grows; whether it
    /// was.
    fn release_whole(&mut self, run: &'static Slice) -> bool {
        let arena = run.arena();
        let grows = self.arena.is_some_and(|growing| ptr::eq(growing, arena));
        if grows || !arena.is_whole(run, run.count.get() as usize) {
            return false;
        }
        self.remove(run);
        // SAFETY: Nobody has memory of this arena, and its run is in no list.
        unsafe { arena.release() };
        true
    }

    /// Enlarges a run in place, from `slices` to `wanted` slices, where what lies behind it is
    /// free; whether it was.
    pub(crate) fn grow(&mut self, first: &'static Slice, slices: usize, wanted: usize) -> bool {
        let arena = first.arena();
        if arena.is_dedicated() {
            return false;
        }
        let more = wanted - slices;
        // SAFETY: The run lies in this arena, so behind it is another slice or the arena's end.
        let Some(behind) = (unsafe { first.ahead_or_end(slices) }) else { return false };
        if arena.is_front(behind) {
            if arena.take_front(more, self.live_bytes()).is_none() {
                return false;
            }
        } else {
            if behind.kind.get() != Kind::Free || (behind.count.get() as usize) < more {
                return false;
            }
            self.split(behind, more);
        }
        behind.kind.set(Kind::Opaque);
        first.count.set(wanted as u32);
        self.add_live(more);
        true
    }

    /// Keeps what is live and what is dirty together near the most that was ever live: free runs
    /// that did not fit the last requests would add to the peak. Not where it was said how much may
    /// stay.
    fn bound_total(&mut self) {
        if options::retain().is_some() {
            return;
        }
        let large = self.peak_bytes >= LARGE_PEAK_BYTES;
        let share = if large { OVER_LARGE_PEAK_SHARE } else { OVER_PEAK_SHARE };
        let most = self.peak_bytes + OVER_PEAK_BYTES_MIN.max(self.peak_bytes / share);
        if self.live_bytes() + self.dirty_bytes() > most {
            self.purge_down_to((most - self.live_bytes()) / 4 * 3);
        }
    }

    fn add_live(&mut self, slices: usize) {
        self.live_slices += slices;
        self.peak_bytes = self.peak_bytes.max(self.live_bytes());
    }

    /// Makes a run free, merged with its free neighbours; returns the first slice of the whole.
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
        // SAFETY: The last slice of the run.
        let last = unsafe { first.ahead(count - 1) };
        first.back.set(0);
        last.kind.set(Kind::Free);
        last.back.set(count as u32 - 1);
        first.kind.set(Kind::Free);
        first.count.set(count as u32);
        first.dirty.set(dirty as u32);
        first.zero.set(zero);
        let list = list_of(count);
        self.lists[list].push_first(first);
        self.occupied |= 1 << list;
        self.dirty_slices += dirty;
        first
    }

    fn remove(&mut self, run: &'static Slice) {
        let count = run.count.get() as usize;
        let list = list_of(count);
        self.lists[list].remove(run);
        if self.lists[list].is_empty() {
            self.occupied &= !(1 << list);
        }
        self.dirty_slices -= run.dirty.get() as usize;
        // SAFETY: The last slice of the run.
        let last = unsafe { run.ahead(count - 1) };
        last.kind.set(Kind::Opaque);
        last.back.set(0);
        run.kind.set(Kind::Opaque);
        run.back.set(0);
    }

    /// Gives free memory back to the kernel, longest runs first, until at most `bytes` of it may
    /// be resident. Returns whether anything was given back.
    fn purge_down_to(&mut self, bytes: usize) -> bool {
        let before = self.dirty_slices;
        for list in (0..LISTS).rev() {
            if self.occupied & (1 << list) == 0 {
                continue;
            }
            for run in self.lists[list].iter() {
                if self.dirty_bytes() <= bytes {
                    return self.dirty_slices < before;
                }
                let dirty = purge(run);
                self.dirty_slices -= dirty;
                self.just_purged_bytes += dirty * SLICE_BYTES;
            }
        }
        self.dirty_slices < before
    }
}

/// Purges a free run; returns how many slices of it were dirty.
fn purge(run: &'static Slice) -> usize {
    let dirty = run.dirty.replace(0) as usize;
    if dirty > 0 {
        let start: NonNull<u8> = run.start();
        let length = run.count.get() as usize * SLICE_BYTES;
        // SAFETY: The run is free, so nobody needs its contents.
        let purged = unsafe { kernel::advise(start, length, Advice::DontNeed) };
        // Refused (locked memory, a sandbox): the memory stays as it is, and is not asked about
        // again until it was used again.
        run.zero.set(purged.is_ok());
    }
    dirty
}

/// The list for runs of `count` slices.
fn list_of(count: usize) -> usize {
    if count < EXACT_LISTS {
        return count;
    }
    let doubling = count.ilog2() as usize;
    let quarter = (count >> (doubling - 2)) & 3;
    (EXACT_LISTS + (doubling - EXACT_LISTS.ilog2() as usize) * 4 + quarter).min(LISTS - 1)
}

#[cfg(test)]
#[path = "ranges/tests.rs"]
mod tests;
