//! What of the free memory stays resident, and what goes back to the kernel.
//!
//! Relies on the books that the ranges keep. The hard idea is the hysteresis: a free run stays
//! resident ("dirty") while the sum of such runs is within a budget: a small share of what is live,
//! plus a *demand* that only purging too early creates, but for some at first, and hardly more than what
//! was live at the last peak. So a program whose memory goes up and down soon makes no system calls, and
//! one that has shrunk for good gives memory back. Where less may stay, a long run is purged from its
//! end, no further than it must be: the rest is what the next request takes.

use super::Ranges;
use crate::kernel;
use crate::options;
use crate::slice::{SLICE_BYTES, Slice};

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
        self.demand.note_free(bytes);
        self.tick();
    }

    /// Time passes: what is remembered fades.
    fn tick(&mut self) {
        self.ticks = self.ticks.wrapping_add(1);
        if let Some(delay) = options::purge_delay_ms() {
            self.note_time(delay);
        }
        if !self.ticks.is_multiple_of(FADES_EVERY) {
            return;
        }
        let all_fades = (self.ticks / FADES_EVERY).is_multiple_of(LASTS);
        let lasts = |bytes: usize| if all_fades { 0 } else { bytes.min(LASTING_BYTES) };
        let (purged, demand) = (self.just_purged_bytes, self.demand.bytes_max());
        self.just_purged_bytes = (purged / 2).max(lasts(purged));
        self.demand.fade_to((demand - demand / 16).max(lasts(demand)));
        if all_fades {
            self.peak_bytes -= (self.peak_bytes - self.live_bytes()) / 16;
        }
    }

    /// How much free memory may stay resident now.
    pub(super) fn budget_bytes(&self) -> usize {
        if let Some(bytes) = options::retain() {
            return bytes;
        }
        if options::purge_delay_ms().is_some() {
            return usize::MAX;
        }
        let live = self.live_bytes();
        let wanted_back = self.demand.bytes().min(self.most_bytes() - live);
        let parking = self.parking_slices * SLICE_BYTES;
        kept_bytes_min().max(live / KEPT_SHARE).saturating_sub(parking).saturating_add(wanted_back)
    }

    /// Whether a run of `slices` slices that is live now may be parked: as part of what may stay
    /// resident however little of it is wanted back.
    pub(super) fn may_park(&self, slices: usize) -> bool {
        let parking = (self.parking_slices + slices) * SLICE_BYTES;
        let live = (self.live_slices - slices) * SLICE_BYTES;
        !is_set() && parking <= kept_bytes_min().max(live / KEPT_SHARE)
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
            let bytes = (most - self.live_bytes()).max(options::retain_min().unwrap_or(0));
            if self.dirty_bytes > bytes {
                self.purge_below(bytes);
            }
        }
    }

    /// Whether `more` slices may be taken under the limit that was set, if one was: gives free memory
    /// back for them where it must.
    pub(super) fn is_within_limit(&mut self, more: usize) -> bool {
        let Some(limit) = options::memory_limit() else { return true };
        let Some(room) = limit.checked_sub(self.live_bytes() + more * SLICE_BYTES) else {
            return false;
        };
        self.purge_down_to(room);
        true
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

    /// Takes a free run out of the dirty ones, if it is one of them; returns its dirty bytes. `list`
    /// is the one for its length.
    #[inline]
    pub(super) fn remove_dirty(&mut self, run: &'static Slice, list: usize) -> usize {
        let dirty = run.dirty.get() as usize;
        if dirty > 0 {
            self.dirty_lists[list].remove(run);
            if self.dirty_lists[list].is_empty() {
                self.dirty_occupied.remove(list);
            }
            self.dirty_bytes -= dirty;
        }
        dirty
    }

    /// Gives free memory back to the kernel until somewhat less than `bytes` of it may be resident.
    pub(super) fn purge_below(&mut self, bytes: usize) {
        let more = MORE_BYTES_MIN.max(self.peak_bytes / MORE_PEAK_SHARE).min(bytes / MORE_SHARE);
        self.purge_down_to(bytes - more);
    }

    /// Gives free memory back to the kernel, longest runs first, until at most `bytes` of it may be
    /// resident. Returns whether anything was given back.
    ///
    /// Not the runs with the most dirty bytes first: that makes 7 % fewer calls where memory is freed
    /// in random order, but 16 % more faults where large buffers come and go.
    pub(super) fn purge_down_to(&mut self, bytes: usize) -> bool {
        let before = self.dirty_bytes;
        while self.dirty_bytes > bytes
            && let Some(list) = self.dirty_occupied.last()
            && let Some(run) = self.dirty_lists[list].first()
        {
            let surplus = self.dirty_bytes - bytes;
            let dirty = self.remove_dirty(run, list);
            let kept = dirty.saturating_sub(surplus) & !(SLICE_BYTES - 1);
            purge(run, kept);
            self.insert_dirty(run, list);
            self.just_purged_bytes += dirty - kept;
        }
        self.dirty_bytes < before
    }

    /// Gives back the free runs that are in the books as not resident but may be: a run knows how
    /// much of it is dirty, not where, so what is cut off one may be counted as the other part.
    /// Returns whether anything was given back.
    pub(super) fn purge_uncertain(&mut self) -> bool {
        let runs = self.lists.iter().flat_map(|list| list.iter());
        runs.filter(|run| run.dirty.get() == 0 && !run.zero.get()).fold(false, |any, run| {
            purge(run, 0);
            any | run.zero.get()
        })
    }
}

/// Whether it was said how much free memory may stay, or for how long.
pub(super) fn is_set() -> bool {
    options::retain().is_some() || options::purge_delay_ms().is_some()
}

/// Free memory that stays resident whatever else holds, in bytes.
fn kept_bytes_min() -> usize {
    options::retain_min().unwrap_or(KEPT_BYTES_MIN)
}

/// Purges a free run that is in no list of dirty ones, all but its first `kept` bytes, a multiple of a
/// slice.
fn purge(run: &'static Slice, kept: usize) {
    run.dirty.set(kept as u32);
    // SAFETY: What is kept is no more than was dirty, so it ends inside the run.
    let start = unsafe { run.start().add(kept) };
    let length = run.count.get() as usize * SLICE_BYTES - kept;
    // SAFETY: The run is free, so nobody needs its contents.
    let purged = unsafe { kernel::discard(start, length) };
    // Refused (locked memory, a sandbox): the memory stays as it is, and is not asked about again
    // until it was used again.
    run.zero.set(kept == 0 && purged);
}
