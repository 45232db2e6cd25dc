//! What of the free memory stays resident, and what goes back to the kernel.
//!
//! Relies on the books that the ranges keep. The hard idea is the hysteresis: a free run stays
//! resident ("dirty") while the sum of such runs is within a budget: a small share of what is live,
//! plus a *demand* that only purging too early creates, but for some at first, and hardly more than what
//! was live at the last peak. So a program whose memory goes up and down soon makes no system calls, and
//! one that has shrunk for good gives memory back. Where less may stay, a long run is purged from its
//! end, no further than it must be: the rest is what the next request takes.
//!
//! With several stripes each has a demand and a peak of its own, and what is kept at least is kept by all together
//! (`stripes/README.md`).
//!
//! Where an option says how long free memory stays (`purge_delay_ms`), neither a thread that waits nor a time for each run
//! is needed: the fewest dirty bytes there were in a *period* are bytes that nobody wanted in all of it, so that many go
//! back at its end, whichever runs they are. What was freed during a period may be wanted yet and waits for the end of the
//! next one. A program that neither frees nor allocates runs keeps what it has.

use super::{Ranges, now_ms, stripes};
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::platform::sync::this_holder;
use crate::settings;

/// What a program that begins is expected to want back of the first memory that it frees, lest it teach the opposite by
/// faults. What it frees for good uses that up.
const FIRST_BYTES: usize = 32 << 20;

/// What that is unless an option says otherwise.
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
/// After so many runs reused or freed, what is remembered fades: of the demand a sixteenth, of what
/// was just purged a half.
pub(super) const FADES_EVERY: u32 = 1024;
/// What is remembered lasts up to so many bytes, and fades only every so many times, as the peak does:
/// programs of this size go up and down in more runs than that, and cost no more than this.
const LASTING_BYTES: usize = 64 << 20;
const LASTS: u32 = 64;
/// So much more is purged than must be, or a share of the last peak if that is more, lest the next free
/// purges again; but no more than a share of what may stay.
const MORE_BYTES_MIN: usize = 256 << 10;
const MORE_PEAK_SHARE: usize = 128;
const MORE_SHARE: usize = 4;
/// After so many runs reused or freed another stripe is looked after: a divisor of [`FADES_EVERY`].
pub(super) const VISITS_EVERY: u32 = 128;
/// The clock is asked at every so many runs reused or freed, where a time was set: it costs more than those do.
const LOOKS_EVERY: u32 = 16;

/// How much free memory is expected to be wanted back soon.
pub(super) struct Demand {
    /// Grows when free memory is used again, shrinks when memory is freed: what a program in full
    /// swing will soon want back, and one that is clearing up will not.
    bytes: usize,
    /// The most that it may be. Grows only when memory had been purged too early, and fades.
    bytes_max: usize,
}

impl Demand {
    pub(super) const NONE: Demand = Demand { bytes: 0, bytes_max: 0 };
    /// Of a program that begins.
    pub(super) const FIRST: Demand = Demand { bytes: FIRST_BYTES, bytes_max: 2 * FIRST_BYTES };

    /// `bytes` of free memory are used again, `too_early` of which had just been purged; no more than
    /// `most` is ever wanted.
    fn note_reuse(&mut self, bytes: usize, too_early: usize, most: usize) {
        self.bytes_max = (self.bytes_max + 2 * too_early).min(most);
        self.bytes = (self.bytes + too_early + bytes).min(self.bytes_max);
    }
}

/// A period of the length that free memory is left, where that was set.
pub(super) struct Period {
    /// When it began, in milliseconds.
    began: usize,
    /// The fewest dirty bytes since.
    fewest: usize,
}

impl Period {
    pub(super) const fn new() -> Period {
        Period { began: 0, fewest: 0 }
    }
}

impl Ranges {
    /// Free memory is used again, `clean` bytes of it not resident; what was purged a short while ago
    /// was purged too early.
    pub(super) fn note_reuse(&mut self, bytes: usize, clean: usize) {
        let too_early = clean.min(self.just_purged_bytes);
        self.just_purged_bytes -= too_early;
        self.demand.note_reuse(bytes, too_early, 2 * self.peak_bytes);
        self.tick();
    }

    pub(super) fn note_free(&mut self, bytes: usize) {
        self.demand.bytes = self.demand.bytes.saturating_sub(bytes);
        self.tick();
    }

    /// Time passes: what is remembered fades.
    fn tick(&mut self) {
        self.ticks = self.ticks.wrapping_add(1);
        if let Some(delay) = settings::purge_delay_ms() {
            self.note_time(delay);
        }
        if !self.ticks.is_multiple_of(VISITS_EVERY) {
            return;
        }
        self.visits = stripes::count() > 1;
        if !self.ticks.is_multiple_of(FADES_EVERY) {
            return;
        }
        let all_fades = (self.ticks / FADES_EVERY).is_multiple_of(LASTS);
        let lasts = |bytes: usize| if all_fades { 0 } else { bytes.min(LASTING_BYTES) };
        let (purged, demand) = (self.just_purged_bytes, self.demand.bytes_max);
        self.just_purged_bytes = (purged / 2).max(lasts(purged));
        self.demand.bytes_max = (demand - demand / 16).max(lasts(demand));
        if all_fades {
            self.peak_bytes -= (self.peak_bytes - self.live_bytes()) / 16;
        }
    }

    /// A run was taken or freed, and a time is set.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.options.kept_note_time")]
    fn note_time(&mut self, delay: usize) {
        self.period.fewest = self.period.fewest.min(self.dirty_bytes);
        if self.ticks.is_multiple_of(LOOKS_EVERY) {
            self.pass_time(now_ms(), delay);
        }
    }

    /// It is `now`: ends the period if its time is over, and gives back what nobody wanted in it.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.options.kept_pass_time")]
    pub(super) fn pass_time(&mut self, now: usize, delay: usize) {
        if now.wrapping_sub(self.period.began) < delay {
            return;
        }
        let unused = self.period.fewest.min(self.dirty_bytes);
        let kept = (self.dirty_bytes - unused).max(self.set_bytes_min());
        self.owe_down_to(kept);
        self.period = Period { began: now, fewest: self.dirty_bytes.min(kept) };
    }

    /// Nobody uses the stripe now: what may stay is no longer what was wanted back when somebody did.
    pub(super) fn come_to_rest(&mut self) {
        if let Some(delay) = settings::purge_delay_ms() {
            return self.pass_time(now_ms(), delay);
        }
        self.expect_nothing_back();
        self.owe_down_to(settings::retain().map_or_else(|| self.least_bytes(), stripes::share));
    }

    /// How much free memory may stay resident now.
    #[inline]
    pub(super) fn budget_bytes(&self) -> usize {
        if let Some(bytes) = settings::retain() {
            return stripes::share(bytes);
        }
        if settings::purge_delay_ms().is_some() {
            return usize::MAX;
        }
        let live = self.live_bytes();
        let wanted_back = self.demand.bytes.min(self.most_bytes() - live);
        let parking = self.parking_slices * SLICE_BYTES;
        self.kept_bytes(live).saturating_sub(parking).saturating_add(wanted_back)
    }

    /// Whether a run of `slices` slices that is live now may be parked: as part of what may stay
    /// resident however little of it is wanted back.
    pub(super) fn may_park(&self, slices: usize) -> bool {
        let parking = (self.parking_slices + slices) * SLICE_BYTES;
        let live = (self.live_slices - slices) * SLICE_BYTES;
        !is_set() && parking <= self.kept_bytes(live)
    }

    /// Free memory that may stay with so many bytes live, however little of it is wanted back.
    fn kept_bytes(&self, live: usize) -> usize {
        self.least_bytes().max(live / KEPT_SHARE)
    }

    /// The same however little is live.
    fn least_bytes(&self) -> usize {
        self.part_of(settings::retain_min().unwrap_or(KEPT_BYTES_MIN))
    }

    /// Free memory that is to stay here whatever else holds, if that was set.
    fn set_bytes_min(&self) -> usize {
        settings::retain_min().map_or(0, |bytes| self.part_of(bytes))
    }

    /// What this stripe keeps of bytes that all keep together: what others lack, and a share at least.
    fn part_of(&self, bytes: usize) -> usize {
        stripes::share(bytes).max(bytes.saturating_sub(self.others_dirty_bytes))
    }

    /// How much may be live and dirty together.
    fn most_bytes(&self) -> usize {
        let large = self.peak_bytes >= LARGE_PEAK_BYTES;
        let share = if large { OVER_LARGE_PEAK_SHARE } else { OVER_PEAK_SHARE };
        self.peak_bytes + OVER_PEAK_BYTES_MIN.max(self.peak_bytes / share)
    }

    /// Keeps what is live and what is dirty together near the most that was ever live: free runs
    /// that did not fit the last requests would add to the peak. Not where it was said how much may
    /// stay, nor below what is to be kept at least.
    pub(super) fn bound_total(&mut self) {
        if is_set() {
            return;
        }
        let most = self.most_bytes();
        if self.live_bytes() + self.dirty_bytes > most {
            let bytes = (most - self.live_bytes()).max(self.set_bytes_min());
            self.owe_below(bytes);
        }
    }

    /// Takes a free run among the dirty ones, if it is dirty; `list` is the one for its length.
    #[inline]
    pub(super) fn insert_dirty(&mut self, run: &'static Slice, list: usize) {
        let dirty = run.dirty.get() as usize;
        if dirty > 0 {
            self.dirty_lists[list].push_first(run);
            self.dirty_occupied.insert(list);
            self.dirty_bytes += dirty;
        }
    }

    /// Takes a free run out of the dirty ones, if it is one of them. `list` is the one for its length.
    #[inline]
    pub(super) fn remove_dirty(&mut self, run: &'static Slice, list: usize) {
        let dirty = run.dirty.get() as usize;
        if dirty > 0 {
            self.dirty_lists[list].remove(run);
            if self.dirty_lists[list].is_empty() {
                self.dirty_occupied.remove(list);
            }
            self.dirty_bytes -= dirty;
        }
    }

    /// Has free memory given back, where more than `bytes` of it may be resident, until it is somewhat less; what was
    /// owed before no longer is.
    pub(super) fn owe_below(&mut self, bytes: usize) {
        if self.dirty_bytes <= bytes {
            self.owed_down_to = None;
            return;
        }
        let more = MORE_BYTES_MIN.max(self.peak_bytes / MORE_PEAK_SHARE).min(bytes / MORE_SHARE);
        self.owed_down_to = Some(bytes - more);
    }

    /// Has free memory given back until at most `bytes` of it may be resident.
    pub(super) fn owe_down_to(&mut self, bytes: usize) {
        self.owed_down_to = Some(bytes);
    }

    /// Whether anything is owed. What was given back or taken since no longer is.
    #[inline]
    pub(super) fn owes(&mut self) -> bool {
        self.owed_down_to = self.owed_down_to.filter(|bytes| self.dirty_bytes > *bytes);
        self.owed_down_to.is_some() || self.leaving.is_some() || self.shrinks || self.visits
    }

    /// Cuts a free run that may be resident off, and sends it away, where more than `bytes` of them all are: no more than must be of
    /// the longest, and about `most` bytes at most.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.kept_send_away")]
    pub(super) fn send_away(&mut self, bytes: usize, most: usize) -> Option<&'static Slice> {
        let surplus = self.dirty_bytes.saturating_sub(bytes).min(most);
        if surplus == 0 {
            return None;
        }
        let run = self.dirty_lists[self.dirty_occupied.last()?].first()?;
        let (count, dirty) = (run.count.get() as usize, run.dirty.get() as usize);
        let kept = dirty.saturating_sub(surplus) & !(SLICE_BYTES - 1);
        self.remove(run);
        // SAFETY: What is kept is no more than was dirty, so it ends inside the run.
        let end = unsafe { run.ahead(kept / SLICE_BYTES) };
        if kept > 0 {
            self.insert(run, kept / SLICE_BYTES, kept, false);
        }
        end.count.set((count - kept / SLICE_BYTES) as u32);
        end.dirty.set((dirty - kept) as u32);
        self.just_purged_bytes += dirty - kept;
        self.note_away(end);
        Some(end)
    }

    /// Takes a free run that is in no list among those that are away, as this thread's.
    fn note_away(&mut self, run: &'static Slice) {
        run.free_blocks.set(this_holder());
        self.away.push_first(run);
    }

    /// A run that is away because of another thread than this one.
    pub(super) fn away_by_others(&self) -> Option<&'static Slice> {
        let this = this_holder();
        self.away.iter().find(|run| run.free_blocks.get() != this)
    }

    /// The same for what is owed.
    pub(super) fn send_owed_away(&mut self, most: usize) -> Option<&'static Slice> {
        self.send_away(self.owed_down_to?, most)
    }

    /// Sends runs away that are in the books as not resident but may be; returns how many.
    pub(super) fn send_uncertain_away(&mut self, away: &mut [Option<&'static Slice>]) -> usize {
        let runs = self.lists.iter().flat_map(|list| list.iter());
        let uncertain = runs.filter(|run| run.dirty.get() == 0 && !run.zero.get());
        let count = away.iter_mut().zip(uncertain).map(|(place, run)| *place = Some(run)).count();
        for run in away.iter().flatten() {
            self.remove(run);
            self.note_away(run);
        }
        count
    }

    /// Takes a run back that was away, and reads as zero now or may be resident no more than it was before.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.kept_put_back")]
    pub(super) fn put_back(&mut self, run: &'static Slice, zero: bool) {
        self.away.remove(run);
        let run = self.insert(run, run.count.get() as usize, 0, zero);
        if settings::retain().is_none() {
            self.release_whole(run);
        }
    }

    /// Expects no free memory to be wanted again.
    pub(super) fn expect_nothing_back(&mut self) {
        self.peak_bytes = self.live_bytes();
        self.demand = Demand::NONE;
        self.has_begun = true;
    }

    /// Nothing counts as purged a short while ago.
    pub(super) fn forget_purged(&mut self) {
        self.just_purged_bytes = 0;
    }
}

/// Whether it was said how much free memory may stay, or for how long.
pub(super) fn is_set() -> bool {
    settings::retain().is_some() || settings::purge_delay_ms().is_some()
}
