//! The hysteresis: which free memory stays resident, and which is purged.
//!
//! Relies on its parent's counts. The hard idea: a free run stays resident ("dirty") while the sum of such runs is within a
//! budget. The budget is a small share of live memory plus a *demand*, which grows only when memory was purged too early, and
//! hardly exceeds the live memory of the last peak. So a program whose memory goes up and down soon makes no system calls, and
//! one that has shrunk for good returns memory. If less may stay, a long run is purged from its end, no further than
//! necessary, or to the start of a huge page: the next request takes the rest.
//!
//! Each stripe has a demand and a peak of its own; the minimum that is kept is shared by all (`stripes/README.md`).
//!
//! Free memory beyond the budget stays for a *grace* of a tenth of a second, up to a bound, because most of it is reused
//! sooner, and a purge splits huge pages, which do not come back. Neither this nor the option `purge_delay_ms`, a longer or
//! shorter grace for all free memory, needs a waiting thread or a time for each run: the fewest bytes beyond the budget in a
//! *period* are bytes that nothing reused in all of it, so that many are purged at its end, whichever runs they are. Memory
//! freed during a period waits for the end of the next one. A program whose threads make no slow call keeps its memory.

use super::usage::USAGE;
use super::{Ranges, now_ms, stripes};
use crate::memory::arena;
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::platform::sync::this_holder;
use crate::settings;

/// The default of the minimum that is kept.
const KEPT_BYTES_MIN: usize = 4 << 20;
/// The excess of live and dirty memory together over the last peak of live memory, in bytes or as a share, whichever is
/// more. The larger share leaves room for free runs of the wrong lengths, which are purged again and again otherwise: in a
/// large heap, and in a small one as far as memory was purged too early. Else it would only cost memory.
const OVER_PEAK_BYTES_MIN: usize = 512 << 10;
const OVER_PEAK_SHARE: usize = 16;
const OVER_PEAK_SHARE_MOST: usize = 4;
const LARGE_PEAK_BYTES: usize = 64 << 20;
/// So many bytes purged too early raise that bound by one. A bound that purges again and again makes no program smaller at its
/// peak, for free runs that do not fit the next request are there at the peak as well.
const OVER_COST: usize = 8;
/// The most by which it rises, as a share of twice the last peak.
const OVER_SHARE: usize = 8;
/// The share of live memory that may stay resident while free.
const KEPT_SHARE: usize = 8;
/// Runs reused or freed after which the past fades by a sixteenth: the demand and the recently purged bytes. The peak fades
/// only every so many times: programs go up and down in more runs than that.
pub(super) const FADES_EVERY: u32 = 1024;
const LASTS: u32 = 64;
/// Not more often than once in so many milliseconds: memory that is wanted again within a second or two costs more to fault
/// in than to keep, however many runs that is.
pub(super) const FADES_EVERY_MS: usize = 100;
/// And not less often than once in so many, for programs that take and free few runs.
pub(super) const FADES_WITHIN_MS: usize = 500;
/// Excess purged at once, or a share of the last peak if that is more, so that the next free does not purge again; but no
/// more than a share of the budget.
const MORE_BYTES_MIN: usize = 256 << 10;
const MORE_PEAK_SHARE: usize = 128;
const MORE_SHARE: usize = 4;
/// Where a huge page is no more than such a share of the last peak, a run is purged from the start of one on: what is left of
/// a part has small pages, for good. Longer huge pages than the second would make a step of purging long.
const HUGE_PAGE_SHARE: usize = 16;
const HUGE_PAGE_MAX: usize = 2 << 20;
/// Runs reused or freed after which a stripe looks after another one, and at the clock: a divisor of [`FADES_EVERY`].
pub(super) const VISITS_EVERY: u32 = 128;
/// Runs reused or freed between two readings of the clock, because a reading costs more than those.
const LOOKS_EVERY: u32 = 16;
/// The grace in milliseconds, and how much may have it, or as far as memory was purged too early: where no thread calls any
/// more, it stays.
const GRACE_MS: usize = 100;
const GRACE_BYTES: usize = 64 << 20;
const GRACE_BYTES_MOST: usize = 256 << 20;

/// The free memory that is expected to be reused soon.
pub(super) struct Demand {
    /// Grows when free memory is reused, shrinks when memory is freed: a program in full swing soon reuses memory, one that
    /// is clearing up does not.
    bytes: usize,
    /// Its bound. Grows only when memory was purged too early, and fades.
    pub(super) bytes_max: usize,
    /// The bytes by which the bound of live and dirty memory together was found too low. Fades.
    over: usize,
}

impl Demand {
    pub(super) const NONE: Demand = Demand { bytes: 0, bytes_max: 0, over: 0 };

    /// Notes the reuse of `bytes` of free memory, `too_early` of which were purged recently; the demand never exceeds `most`.
    fn note_reuse(&mut self, bytes: usize, too_early: usize, most: usize) {
        self.bytes_max = (self.bytes_max + 2 * too_early).min(most);
        self.bytes = (self.bytes + too_early + bytes).min(self.bytes_max);
        self.over = (self.over + too_early / OVER_COST).min(most / OVER_SHARE);
    }
}

/// A period of the grace.
pub(super) struct Period {
    /// Its start, in milliseconds.
    began: usize,
    /// The fewest dirty bytes beyond the budget since then.
    fewest: usize,
}

impl Period {
    pub(super) const fn new() -> Period {
        Period { began: 0, fewest: 0 }
    }
}

impl Ranges {
    /// Notes the reuse of free memory, `clean` bytes of it not resident: recently purged memory was purged too early.
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

    /// Counts a reused or freed run; the past fades.
    fn tick(&mut self) {
        self.ticks = self.ticks.wrapping_add(1);
        if self.period.fewest > 0 || self.ticks.is_multiple_of(LOOKS_EVERY) {
            self.note_excess();
        }
        if !self.ticks.is_multiple_of(VISITS_EVERY) {
            return;
        }
        self.visits = stripes::count() > 1;
        let fades = self.ticks.is_multiple_of(FADES_EVERY);
        if fades && (self.ticks / FADES_EVERY).is_multiple_of(LASTS) {
            self.peak_bytes -= (self.peak_bytes - self.live_bytes()) / 16;
        }
        // Tests pass no time.
        let now = if cfg!(test) { self.faded_at + FADES_EVERY_MS } else { now_ms() };
        self.fade(now, if fades { FADES_EVERY_MS } else { FADES_WITHIN_MS });
    }

    /// Lets the past fade, if at least `least` milliseconds passed at `now` since it did last. A thread may have read the clock
    /// before it had the lock, so that `now` is earlier than another thread's.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.kept_fade")]
    pub(super) fn fade(&mut self, now: usize, least: usize) {
        let passed = now.saturating_sub(self.faded_at);
        if passed < least {
            return;
        }
        self.faded_at = now;
        // Where no run is taken or freed, nothing else looks after another stripe.
        self.visits = stripes::count() > 1;
        let times = (passed / FADES_WITHIN_MS).clamp(1, 16);
        let faded = |bytes: usize| bytes - bytes / 16 * times;
        self.passes_begun = stripes::passes_begun();
        self.just_purged_bytes = faded(self.just_purged_bytes);
        self.demand.bytes = faded(self.demand.bytes);
        self.demand.bytes_max = faded(self.demand.bytes_max);
        self.demand.over = faded(self.demand.over);
    }

    /// Notes that less may be beyond the budget, and reads the clock now and then.
    #[inline(never)]
    fn note_excess(&mut self) {
        let excess = self.excess_bytes();
        self.period.fewest = self.period.fewest.min(excess);
        if excess > 0 && self.ticks.is_multiple_of(LOOKS_EVERY) {
            self.pass_time(now_ms());
        }
    }

    /// Ends a period that is over at `now`, for a thread that neither takes nor frees a run.
    pub(super) fn note_time(&mut self, now: usize) {
        if !cfg!(test) {
            self.fade(now, FADES_WITHIN_MS);
        }
        if self.excess_bytes() > 0 {
            self.pass_time(now);
        }
    }

    /// The dirty bytes that only their grace keeps.
    #[inline(never)]
    fn excess_bytes(&self) -> usize {
        self.unowed_bytes().saturating_sub(self.budget_bytes())
    }

    /// The dirty bytes that are not owed.
    fn unowed_bytes(&self) -> usize {
        self.owed_down_to.map_or(self.dirty_bytes, |bytes| bytes.min(self.dirty_bytes))
    }

    /// Ends a period that is over at `now`, and purges what nothing reused in it.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.kept_pass_time")]
    pub(super) fn pass_time(&mut self, now: usize) {
        if now.saturating_sub(self.period.began) < settings::purge_delay_ms().unwrap_or(GRACE_MS) {
            return;
        }
        let excess = self.excess_bytes();
        let unused = self.period.fewest.min(excess);
        if unused > 0 {
            self.owe_down_to(self.unowed_bytes() - unused);
        }
        self.period = Period { began: now, fewest: excess - unused };
    }

    /// Owes purging what nothing reuses, as if much time passed.
    #[cfg(test)]
    pub(crate) fn pass_much_time(&mut self) {
        for _ in 0..2 {
            self.pass_time(self.period.began + 1_000_000);
        }
    }

    /// Ends the demand of an idle stripe.
    pub(super) fn come_to_rest(&mut self) {
        if settings::purge_delay_ms().is_some() {
            return self.pass_time(now_ms());
        }
        self.expect_nothing_back();
        self.owe_down_to(settings::retain().map_or_else(|| self.least_bytes(), stripes::share));
    }

    /// The bytes of free memory that may stay resident now, without a grace.
    #[inline(never)]
    pub(super) fn budget_bytes(&self) -> usize {
        if let Some(bytes) = settings::retain() {
            return stripes::share(bytes);
        }
        if settings::purge_delay_ms().is_some() {
            return self.set_bytes_min();
        }
        let live = self.live_bytes();
        let wanted_back = self.demand.bytes.min(self.most_bytes() - live);
        let parking = self.parking_slices * SLICE_BYTES;
        self.kept_bytes(live).saturating_sub(parking).saturating_add(wanted_back)
    }

    /// The most bytes beyond the budget that have a grace: none where the program says how much may stay.
    #[inline(never)]
    pub(super) fn grace_bytes(&self) -> usize {
        if let Some(delay) = settings::purge_delay_ms() {
            if delay == 0 { 0 } else { usize::MAX }
        } else if settings::retain().is_some() || settings::retain_min().is_some() {
            0
        } else {
            stripes::share(GRACE_BYTES.max(self.missed_bytes()))
        }
    }

    /// Free memory that was purged too early and may come back: its share has a grace as well. None while there is a pass
    /// through sparse pages, or where one began since the past faded last: then less is resident than ranges know, and this
    /// would raise the peak.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.kept_missed_bytes")]
    fn missed_bytes(&self) -> usize {
        if self.passes_begun != stripes::passes_begun() || stripes::is_passing() {
            return 0;
        }
        self.demand.bytes_max.min(self.peak_bytes - self.live_bytes()).min(GRACE_BYTES_MOST)
    }

    /// Whether a live run of `slices` slices may be parked: it counts as memory that may stay without any demand.
    pub(super) fn may_park(&self, slices: usize) -> bool {
        let parking = (self.parking_slices + slices) * SLICE_BYTES;
        let live = (self.live_slices - slices) * SLICE_BYTES;
        !is_set() && parking <= self.kept_bytes(live)
    }

    /// Free memory that may stay with so many live bytes and no demand.
    fn kept_bytes(&self, live: usize) -> usize {
        self.least_bytes().max(live / KEPT_SHARE)
    }

    /// The same without live memory.
    fn least_bytes(&self) -> usize {
        self.part_of(settings::retain_min().unwrap_or(KEPT_BYTES_MIN))
    }

    /// Free memory that must stay here, if that option is set.
    fn set_bytes_min(&self) -> usize {
        settings::retain_min().map_or(0, |bytes| self.part_of(bytes))
    }

    /// This stripe's part of bytes that all keep together: what the others lack, but at least a share.
    fn part_of(&self, bytes: usize) -> usize {
        stripes::share(bytes).max(bytes.saturating_sub(self.others.dirty))
    }

    /// The bound of live and dirty memory together.
    fn most_bytes(&self) -> usize {
        let (least, most) =
            (self.peak_bytes / OVER_PEAK_SHARE, self.peak_bytes / OVER_PEAK_SHARE_MOST);
        let wanted = if self.peak_bytes >= LARGE_PEAK_BYTES { most } else { self.demand.bytes_max };
        self.peak_bytes + OVER_PEAK_BYTES_MIN.max(wanted.max(least).min(most)) + self.demand.over
    }

    /// Bounds live and dirty memory together near the peak of live memory, because free runs that did not fit the last
    /// requests would add to it. Not if an option sets what may stay, nor below the minimum that is kept.
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

    /// Whether an option has all free memory stay for now, and free arenas.
    #[inline(never)]
    pub(super) extern "C" fn keeps_all(&self) -> bool {
        is_set() && self.dirty_bytes <= self.budget_bytes().saturating_add(self.grace_bytes())
    }

    /// Owes purging what exceeds the budget and has no grace, after `freed` bytes more are dirty. Bytes over the budget that are
    /// owed already stay owed.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.kept_owe_after_grace")]
    pub(super) fn owe_after_grace(&mut self, freed: usize) {
        let budget = self.budget_bytes();
        let owed = self.owed_down_to.filter(|_| self.dirty_bytes > budget);
        self.owe_below(budget.saturating_add(self.grace_bytes()));
        if let Some(bytes) = owed {
            self.owe_down_to(self.unowed_bytes().min(bytes + freed));
        }
    }

    /// Ends the grace of all free memory, because the program frees much at once and for good.
    pub(crate) fn end_grace(&mut self) {
        if settings::purge_delay_ms().is_none() {
            self.owe_below(self.budget_bytes());
        }
    }

    /// If more than `bytes` of free memory are dirty, owes purging until somewhat fewer are; replaces the previous debt.
    pub(super) fn owe_below(&mut self, bytes: usize) {
        if self.dirty_bytes <= bytes {
            self.owed_down_to = None;
            return;
        }
        let more = MORE_BYTES_MIN.max(self.peak_bytes / MORE_PEAK_SHARE).min(bytes / MORE_SHARE);
        self.owed_down_to = Some(bytes - more);
    }

    /// Owes purging until at most `bytes` of free memory are dirty.
    pub(super) fn owe_down_to(&mut self, bytes: usize) {
        self.owed_down_to = Some(bytes);
    }

    /// Whether purging is owed, after reuse and purging since.
    #[inline]
    pub(super) fn owes(&mut self) -> bool {
        self.owed_down_to = self.owed_down_to.filter(|bytes| self.dirty_bytes > *bytes);
        self.owed_down_to.is_some() || self.leaving.is_some() || self.shrinks || self.visits
    }

    /// If more than `bytes` of free memory are dirty, cuts off a part of the longest dirty run and sends it away: no more
    /// than necessary, about `most` bytes at most, and the rest of a huge page.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.kept_send_away")]
    pub(super) fn send_away(&mut self, bytes: usize, most: usize) -> Option<&'static Slice> {
        if self.dirty_bytes > bytes {
            // This may release an arena.
            self.merge_all();
        }
        let surplus = self.dirty_bytes.saturating_sub(bytes).min(most);
        if surplus == 0 {
            return None;
        }
        let run = self.dirty.longest()?;
        let (count, dirty) = (run.count.get() as usize, run.dirty.get() as usize);
        let kept = dirty.saturating_sub(surplus) & !(SLICE_BYTES - 1);
        let part = self.huge_page_part(run.address() + kept);
        let kept = kept.checked_sub(part).unwrap_or(kept);
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

    /// The bytes from the start of a huge page to this address; 0 where huge pages are not asked for, or are a large part of
    /// memory, or an option says what stays.
    fn huge_page_part(&self, address: usize) -> usize {
        let huge_page = arena::huge_page_bytes();
        let is_little = huge_page <= HUGE_PAGE_MAX.min(self.peak_bytes / HUGE_PAGE_SHARE);
        let is_set = is_set() || settings::retain_min().is_some();
        let aligns = is_little && !is_set && settings::huge_pages() && !USAGE.is_sparse();
        if aligns { address & (huge_page - 1) } else { 0 }
    }

    /// Notes a free run that is in no list as away because of this thread.
    fn note_away(&mut self, run: &'static Slice) {
        run.free_blocks.set(this_holder());
        self.away.push_first(run);
    }

    /// A run that is away because of another thread.
    pub(super) fn away_by_others(&self) -> Option<&'static Slice> {
        let this = this_holder();
        self.away.iter().find(|run| run.free_blocks.get() != this)
    }

    /// Sends runs away that count as clean but may be dirty; returns their number.
    pub(super) fn send_uncertain_away(&mut self, away: &mut [Option<&'static Slice>]) -> usize {
        // Those that were put back are the first ones, and would be visited again and again.
        let uncertain = self.clean.iter().filter(|run| !run.zero.get());
        let count = away.iter_mut().zip(uncertain).map(|(place, run)| *place = Some(run)).count();
        for run in away.iter().flatten() {
            self.remove(run);
            self.note_away(run);
        }
        count
    }

    /// Takes back a run that was away, which now reads as zero or is unchanged.
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

    /// Ends the demand: no free memory is expected to be reused.
    pub(super) fn expect_nothing_back(&mut self) {
        self.peak_bytes = self.live_bytes();
        self.demand = Demand::NONE;
    }
}

/// Whether an option sets how much free memory may stay, or for how long.
fn is_set() -> bool {
    settings::retain().is_some() || settings::purge_delay_ms().is_some()
}

#[cfg(test)]
#[path = "kept/tests.rs"]
mod tests;
