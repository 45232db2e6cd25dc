//! Late merging: the run of a freed large block keeps its length for a while.
//!
//! Relies on its parent, which merges runs. A program that frees large blocks soon requests others of the same lengths. If their
//! runs were merged at once, they would be cut elsewhere each time, and the ends of the new blocks would lie in OS pages that
//! nothing wrote before. So such a run stays *unmerged*: a large block of its length takes the one that was freed last, if it
//! is not among many of other lengths. All are merged before a large block takes a run of another length, before a page takes a run that is not dirty, before a purge, and
//! when a block grows; then what is freed next merges at once. The hard idea: neighbors see only that an unmerged run is not
//! free, so they do not join it. In all counts its bytes are those of a free run.

use super::Ranges;
use super::lists::Lists;
use crate::memory::arena;
use crate::memory::slice::{Kind, Slice};

/// The most unmerged runs, all of which one request may have to merge.
pub(super) const UNMERGED_MAX: usize = 1024;
/// Runs freed after a block grew that are merged at once, and runs that merge where one too many waits.
pub(super) const MERGED_AT_ONCE: u32 = 64;

/// Runs of so many slices or more are merged at once.
const SLICES_MAX: usize = 64;

/// The unmerged runs, all of them dirty.
pub(super) struct Unmerged {
    pub(super) count: usize,
    /// Large blocks' runs to be merged at once, before others wait again.
    at_once: u32,
    pub(super) runs: Lists,
}

impl Unmerged {
    pub(super) const NONE: Unmerged = Unmerged { count: 0, at_once: 0, runs: Lists::new() };
}

impl Ranges {
    /// Frees a run that was handed out, and merges it later if it was a large block's.
    pub(super) fn insert_freed(
        &mut self,
        run: &'static Slice,
        count: usize,
        dirty: usize,
    ) -> &'static Slice {
        let is_large = matches!(run.kind.get(), Kind::Large | Kind::Parked);
        // Where addresses are limited, the free end of an arena goes back at once.
        if !is_large || count >= SLICES_MAX || dirty == 0 || arena::are_limited() {
            return self.insert(run, count, dirty, false);
        }
        if self.unmerged.at_once > 0 {
            self.unmerged.at_once -= 1;
            return self.insert(run, count, dirty, false);
        }
        if self.unmerged.count == UNMERGED_MAX {
            self.merge(MERGED_AT_ONCE as usize);
        }
        mark_free(run, count, dirty, false, Kind::Unmerged);
        self.unmerged.count += 1;
        self.unmerged.runs.insert(run);
        self.dirty_bytes += dirty;
        run
    }

    /// A dirty run of at least `slices` slices.
    pub(super) fn fitting_dirty(&mut self, slices: usize, kind: Kind) -> Option<&'static Slice> {
        if self.unmerged.count > 0 && kind == Kind::Large {
            let newest = self.unmerged.runs.exact(slices);
            if newest.is_some() {
                return newest;
            }
            self.merge_all();
        }
        loop {
            let run = self.dirty.fitting(slices);
            if run.is_some() || self.unmerged.count == 0 {
                return run;
            }
            self.merge_all();
        }
    }

    /// Merges all, and what is freed next, for a block that grows: grown ones take the places of others that grew, and want free
    /// neighbors.
    pub(super) fn merge_for_growth(&mut self) {
        self.unmerged.at_once = MERGED_AT_ONCE;
        self.merge_all();
    }

    pub(super) fn merge_all(&mut self) {
        self.merge(UNMERGED_MAX);
    }

    /// Merges up to `most` runs, the longest first, and of those the ones that were freed first.
    #[inline(never)]
    fn merge(&mut self, most: usize) {
        for _ in 0..most {
            let Some(run) = self.unmerged.runs.longest_unused() else { return };
            self.remove(run);
            let run = self.insert(run, run.count.get() as usize, run.dirty.get() as usize, false);
            // As `free` does with a run that it merges at once.
            if !self.keeps_all() {
                self.release_whole(run);
            }
        }
    }
}

/// Marks a run as free at both ends: [`Kind::Free`], or not merged yet.
#[inline(never)]
pub(super) fn mark_free(first: &'static Slice, count: usize, dirty: usize, zero: bool, kind: Kind) {
    // SAFETY: The last slice of the run.
    let last = unsafe { first.ahead(count - 1) };
    first.back.set(0);
    last.kind.set(kind);
    last.back.set(count as u32 - 1);
    first.kind.set(kind);
    first.count.set(count as u32);
    first.dirty.set(dirty as u32);
    first.zero.set(zero);
}
