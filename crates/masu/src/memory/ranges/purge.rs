//! Purging of free memory: at once on request or as a last resort, else in steps of bounded work.
//!
//! Relies on `kept.rs` for how much stays and which runs go. The hard idea is that a run being purged is *away*, free and in
//! no list, so that the lock can be released during the system call.

use core::{mem, ptr};

use super::held::Held;
use super::usage::{self, USAGE};
use crate::memory::arena::{self, SHRINKS_BY_PIECES};
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::platform::bounds::Bounded;
use crate::platform::kernel::{self, Span};

/// Runs purged by one call.
pub(crate) const RUNS_MAX: usize = 16;

impl Held<'_> {
    /// Purges all free memory but about `bytes`, and expects none of it to be reused.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.trim.held_trim")]
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.expect_nothing_back();
        self.purge_down_to(bytes);
        self.purge_uncertain();
        // A trim is not purging too early, whatever is allocated next.
        self.just_purged_bytes = 0;
    }

    /// Returns all free memory for a request that would fail otherwise, also arenas of which nothing is live, and the free
    /// ends of others, which make room together with what was never used; returns whether there was any.
    pub(super) fn give_up(&mut self) -> bool {
        let any = self.purge_down_to(0);
        self.shrink(0) || any
    }

    /// Purges free memory, longest runs first, until at most `bytes` of it are dirty. Returns whether anything was purged.
    ///
    /// Not the runs with the most dirty bytes first: that makes 7 % fewer calls if memory is freed in random order, but 16 %
    /// more faults if large buffers come and go.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.purge_down_to")]
    pub(super) fn purge_down_to(&mut self, bytes: usize) -> bool {
        // No more than that is dirty now: other threads may free memory as fast as this one purges it.
        let mut surplus = self.dirty_bytes.saturating_sub(bytes);
        let any = surplus > 0;
        while surplus > 0
            && let Some(run) = self.send_away(bytes, surplus)
        {
            surplus = surplus.saturating_sub(run.dirty.get() as usize);
            self.purge(&[Some(run)]);
        }
        any
    }

    /// Purges free runs that count as clean but may be dirty: a run knows how much of it is dirty, not where, so a part that
    /// is cut off may be counted wrongly.
    pub(super) fn purge_uncertain(&mut self) {
        loop {
            let mut runs = [None; RUNS_MAX];
            let count = self.send_uncertain_away(&mut runs);
            // A refused run would be found again.
            if count == 0 || !self.purge(&runs) || count < RUNS_MAX {
                return;
            }
        }
    }

    /// Purges runs that are away, and takes them back; returns whether they now read as zero.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.purge_purge")]
    fn purge(&mut self, runs: &[Option<&'static Slice>]) -> bool {
        let mut spans = [Span::NONE; RUNS_MAX];
        let mut count = 0;
        while let Some(Some(run)) = runs.get(count) {
            *spans.at_mut(count) = Span::new(run.start(), run.count.get() as usize * SLICE_BYTES);
            count += 1;
        }
        if let Some(Some(run)) = runs.first() {
            self.look_at(run);
        }
        // SAFETY: The runs are free, so their contents are not needed.
        let zero = self.guard.unlocked(|| unsafe { kernel::drop_contents(spans.at(..count)) });
        // Refused (locked memory, a sandbox): the memory is unchanged, and is not tried again until it was reused.
        for run in runs.iter().flatten() {
            self.put_back(run, zero);
        }
        zero
    }

    /// Samples the use of a run that is away, and cancels huge pages if most memory is hardly used.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.purge_look_at")]
    fn look_at(&mut self, run: &'static Slice) {
        let slices = run.count.get() as usize;
        let is_all_dirty = run.dirty.get() as usize == slices * SLICE_BYTES;
        let looks = is_all_dirty && USAGE.wants_look(slices);
        let arena = run.arena();
        let makes_plain = USAGE.is_sparse() && !ptr::eq(self.plain, arena);
        if makes_plain {
            self.plain = arena;
        }
        if !looks && !makes_plain {
            return;
        }
        let end = arena.committed_end();
        let look = self.guard.unlocked(|| {
            if makes_plain {
                // The arena stays as long as a run of it is away.
                arena.call_huge_pages_off(end);
            }
            usage::look(run, slices)
        });
        if looks {
            USAGE.note(look);
        }
    }

    /// Takes a step of so many system calls and bytes; returns whether nothing is owed any more.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.purge_settle")]
    pub(super) fn settle(&mut self, mut calls: usize, mut bytes: usize) -> bool {
        if mem::take(&mut self.shrinks) {
            self.shrink(SHRINKS_BY_PIECES);
        }
        if mem::take(&mut self.visits) {
            self.visit();
        }
        while let Some(arena) = self.leaving_arena() {
            // A thread that found it in the table holds this lock while it uses it.
            drop(self.lock_growth());
            // SAFETY: Nothing of this arena is live, and it left the table.
            self.guard.unlocked(|| unsafe { arena.unmap() });
        }
        loop {
            let mut runs = [None; RUNS_MAX];
            let mut count = 0;
            while bytes > 0
                && calls > 0
                && count < RUNS_MAX
                && let Some(down_to) = self.owed_down_to
                && let Some(run) = self.send_away(down_to, bytes)
            {
                bytes = bytes.saturating_sub(run.dirty.get() as usize);
                calls -= 1;
                runs[count] = Some(run);
                count += 1;
            }
            if count == 0 {
                return !self.owes();
            }
            self.purge(&runs);
        }
    }

    /// Returns the addresses behind the live part of each arena, if they are so many pieces at least, and with 0 those of an
    /// arena of which nothing is live; returns whether any were.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.purge_shrink")]
    fn shrink(&mut self, pieces: usize) -> bool {
        let _growth = self.lock_growth();
        let place = self.shared.place() as u32;
        let mut any = false;
        for arena in arena::all().filter(|it| it.stripe.get() == place && !it.is_dedicated()) {
            let Some(run) = arena.free_end() else { continue };
            if pieces == 0 && self.release_run(run) {
                self.forget_growing(arena);
            } else if arena.ends_in(run, pieces) {
                self.remove(run);
                arena.shrink_to(run);
                if !self.is_growing(arena) {
                    self.offer_to_grow(arena, Kind::Page);
                }
                self.guard.unlocked(|| arena.unmap_behind());
            } else {
                continue;
            }
            any = true;
        }
        any
    }

    /// Unmaps the last `less` slices of a block in an arena of its own, whose contents are gone, unless something lies behind
    /// them.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.purge_cut_dedicated")]
    pub(super) fn cut_dedicated(&mut self, first: &'static Slice, less: usize) {
        let _growth = self.lock_growth();
        let (arena, slices) = (first.arena(), first.count.get() as usize);
        if arena.ends_at_front(first, slices) && arena.cut_front(less) {
            first.count.set((slices - less) as u32);
            self.live_slices -= less;
            self.count_large(0, -less.cast_signed());
            self.guard.unlocked(|| arena.unmap_behind());
        }
    }
}
