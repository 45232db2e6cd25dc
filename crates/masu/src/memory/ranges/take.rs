//! Taking runs: from free ones, from committed fronts of arenas, from other stripes, and last from the kernel.
//!
//! Relies on its parent's counts, and on arenas. The hard idea is that the lock of the ranges is released during system
//! calls: an arena grows under a lock of its own, for which only threads that need its growth wait, and no thread holds two
//! stripes at once.

use super::growing::is_large;
use super::held::Held;
use super::probes::{self, Use};
use super::usage::{self, USAGE};
use super::{Filling, LOOKS, Run, stripes};
use crate::memory::arena::{self, Arena};
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::platform::sync::{AtomicUsize, Guard, Ordering};
use crate::settings;

/// Shorter blocks fill no huge page of any system.
const FILLED_SLICES_MIN: usize = (2 << 20) / SLICE_BYTES;

/// Slices of the memory limit that threads were promised and did not get yet. A child of `fork` begins with none.
pub(super) static CLAIMED: AtomicUsize = AtomicUsize::new(0);

/// The arenas that may give a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arenas {
    ThatAre,
    /// A new one, if no other can.
    New,
}

/// A request for a run.
#[derive(Clone, Copy)]
struct Wanted {
    slices: usize,
    /// The same with those that may have to lie beside the run, so that it is aligned.
    padded: usize,
    align: usize,
    kind: Kind,
    filling: Filling,
}

/// Properties of a step of growth.
#[derive(Clone, Copy)]
struct Growth {
    /// With huge pages.
    huge: bool,
    /// More than is needed now.
    ahead: bool,
    /// The live bytes, and their use, where the step may have a probe.
    probes: Option<(usize, Use)>,
}

impl Growth {
    const SMALL: Growth = Growth { huge: false, ahead: true, probes: None };

    /// Places a probe between two slices of an arena, if one is due.
    #[inline(always)]
    fn probe(&self, arena: &Arena, from: usize, end: usize) {
        if self.probes.is_some() {
            self.probe_slow(arena, from, end);
        }
    }

    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.take_probe_slow")]
    fn probe_slow(&self, arena: &Arena, from: usize, end: usize) {
        if let Some((live_bytes, use_so_far)) = self.probes
            && probes::place(arena, from, end, live_bytes, use_so_far)
        {
            USAGE.begin_probes();
        }
    }
}

#[inline(never)]
fn is_worth_huge_pages(live_bytes: usize, filled: bool) -> bool {
    // ORDERING: Relaxed: a thread that misses a new shard asks for huge pages a little earlier.
    arena::is_worth_huge_pages(live_bytes, filled, stripes::many_shards().load(Ordering::Relaxed))
}

impl Held<'_> {
    /// Hands out `slices` slices whose memory starts at a multiple of `align` bytes, a power of two; `None` if the kernel
    /// gives no more. To purge would not help: what the kernel limits is what is committed or reserved.
    pub(crate) fn allocate(&mut self, slices: usize, align: usize, kind: Kind) -> Option<Run> {
        self.allocate_for(Filling::UNKNOWN, slices, align, kind)
    }

    /// [`Held::allocate`] for a request of which something is known.
    #[inline(never)]
    pub(crate) fn allocate_for(
        &mut self,
        filling: Filling,
        slices: usize,
        align: usize,
        kind: Kind,
    ) -> Option<Run> {
        let padding = (align / SLICE_BYTES).saturating_sub(1);
        let padded = slices.checked_add(padding)?;
        let spread = Filling { is_spread: true, ..Filling::UNKNOWN };
        let filling = if padding > slices { spread } else { filling };
        let wanted = Wanted { slices, padded, align, kind, filling };
        // The slices beside an aligned block stay free.
        let claimed = self.claim(slices)?;
        if filling.is_copied {
            self.merge_for_growth();
        }
        let ready = self.take_ready(padded, kind);
        let run = if ready.is_none() && stripes::count() > 1 {
            self.take_among_many(wanted)
        } else {
            let run = ready.or_else(|| self.extend(wanted, Arenas::New));
            run.map(|run| self.hand_out(run, wanted))
        };
        self.drop_claim(claimed);
        run
    }

    /// Hands out the aligned part of a run if none is ready and there are other stripes: from an idle one first, rather than
    /// making more memory resident, and from any if the kernel refuses.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.take_among_many")]
    fn take_among_many(&mut self, wanted: Wanted) -> Option<Run> {
        let idle = (0..LOOKS).find_map(|_| self.take_from_idle(wanted));
        if idle.is_some() {
            return idle;
        }
        if let Some(run) = self.extend(wanted, Arenas::New) {
            return Some(self.hand_out_slow(run, wanted));
        }
        // Each one is waited for: its free memory may save this request.
        let (this, settles) = (self.shared, self.settles);
        self.guard.unlocked(|| {
            stripes::all().iter().filter(|other| *other != this).find_map(|other| {
                let mut other = other.hold_slow(settles);
                let run = other.extend(wanted, Arenas::ThatAre)?;
                Some(other.hand_out_slow(run, wanted))
            })
        })
    }

    /// Hands out a run of the next other stripe, if that is idle.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.take_from_idle")]
    fn take_from_idle(&mut self, wanted: Wanted) -> Option<Run> {
        let mut other = self.idle_one()?;
        let run = other.take_ready(wanted.padded, wanted.kind)?;
        let run = other.hand_out_slow(run, wanted);
        other.stays_idle();
        Some(run)
    }

    /// Hands out the aligned part of a run.
    #[inline(always)]
    fn hand_out(&mut self, run: Run, wanted: Wanted) -> Run {
        let Wanted { slices, padded, align, .. } = wanted;
        let is_aligned = padded == slices;
        let run = if is_aligned { run } else { self.cut_to_align(run, padded, slices, align) };
        self.note_allocated(run, slices, wanted.kind);
        run
    }

    /// [`Held::hand_out`], not inlined, for the rare paths.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.take_hand_out_slow")]
    fn hand_out_slow(&mut self, run: Run, wanted: Wanted) -> Run {
        self.hand_out(run, wanted)
    }

    /// A run with what may lie beside it from a growing arena, or from a new one, if none is ready.
    #[cold]
    #[inline(never)]
    fn extend(&mut self, wanted: Wanted, arenas: Arenas) -> Option<Run> {
        let Wanted { padded: slices, kind, filling, .. } = wanted;
        let live_bytes = self.live_bytes_of_all();
        let (_lock, use_so_far) =
            self.guard.unlocked(|| (arena::hold_growth(), USAGE.live_use(live_bytes)));
        let large = is_large(kind);
        let filled = !large || filling.is_copied;
        // The first touch of a block would make the free memory beside it resident.
        let spread = filling.is_spread;
        // Pages are filled from the front, and large blocks say nothing of them where those have another arena.
        let is_dense = !large && self.is_apart();
        let huge = !spread
            && (is_dense || !USAGE.is_sparse())
            && is_worth_huge_pages(live_bytes + filling.bytes, filled);
        let fills = large
            && !huge
            && !spread
            && slices >= FILLED_SLICES_MIN
            && self.fills(slices, live_bytes, filling);
        let sparse = use_so_far == Use::Sparse && !is_dense;
        // Elsewhere memory has small pages anyway.
        let probes = (!is_dense && (huge || fills)).then_some((live_bytes, use_so_far));
        let (huge, fills) = (huge && !sparse, fills && !sparse);
        let growth = Growth { huge, ahead: !spread, probes };
        if large && (huge || fills) {
            USAGE.begin();
        }
        // Other threads may have freed something, or made an arena grow.
        loop {
            if let Some(run) = self.take_ready(slices, kind) {
                return Some(run);
            }
            let Some(arena) = *self.growing(kind) else { break };
            let committed = fills && self.commit_filled(arena, slices, growth);
            if !committed && !self.commit(arena, slices, growth) {
                break;
            }
        }
        if arenas == Arenas::ThatAre {
            return self.take_left(slices, kind);
        }
        let new = self.guard.unlocked(|| {
            let arena = Arena::reserve(slices, filling.is_copied)?;
            let from = arena.committed_end();
            match arena.commit(arena.front_end(slices)?, huge, !spread) {
                Some(committed) => {
                    // A long block is all of a step, and has an arena to itself.
                    growth.probe(arena, from, committed);
                    arena.note_committed(committed);
                }
                None => {
                    arena.leave();
                    // SAFETY: The arena was reserved just now and nothing of it was handed out; a thread that reads all
                    // arenas holds the lock of growth.
                    unsafe { arena.unmap_new() };
                    return None;
                }
            }
            Some(arena)
        });
        let Some(arena) = new else { return self.take_left(slices, kind) };
        let place = self.shared.place();
        arena.stripe.set(place as u32);
        let first = arena.take_front(slices)?;
        if !arena.is_dedicated() {
            self.offer_to_grow(arena, kind);
        }
        Some(Run { first, zero: true })
    }

    /// A run where the kernel gives no arena: one among many that are too short, or of the growing arena for runs of the other
    /// kind. The caller holds the lock of growth.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.take_left")]
    fn take_left(&mut self, slices: usize, kind: Kind) -> Option<Run> {
        let lists = [&self.dirty, &self.clean];
        let run = lists.into_iter().find_map(|lists| lists.fitting_among_many(slices));
        if let Some(run) = run {
            return Some(self.split(run, slices));
        }
        if !self.is_apart() {
            return None;
        }
        let other = if is_large(kind) { Kind::Page } else { Kind::Large };
        loop {
            let arena = (*self.growing(other))?;
            if !self.commit(arena, slices, Growth::SMALL) {
                return None;
            }
            // Other threads may have taken some of it.
            let run = self.take_front(slices, other);
            if run.is_some() {
                return run;
            }
        }
    }

    /// Live bytes of all stripes, of the others as they were when they last looked.
    fn live_bytes_of_all(&mut self) -> usize {
        if stripes::count() > 1 {
            self.publish();
        }
        self.live_bytes() + self.others.live
    }

    /// Waits for the lock of growth, which precedes this one: other threads may have changed the ranges.
    #[cold]
    #[inline(never)]
    pub(super) fn lock_growth(&mut self) -> Guard<'static, (), false> {
        self.guard.unlocked(arena::hold_growth)
    }

    /// Commits so that an arena has so many slices at its front; returns whether it did. Others may take some of them in
    /// between. The caller holds the lock of growth.
    #[inline(never)]
    fn commit(&mut self, arena: &'static Arena, slices: usize, growth: Growth) -> bool {
        let Some(end) = arena.front_end(slices) else { return false };
        let from = arena.committed_end();
        let committed = self.guard.unlocked(|| {
            let end = arena.commit(end, growth.huge, growth.ahead)?;
            growth.probe(arena, from, end);
            Some(end)
        });
        committed.is_some_and(|committed| {
            arena.note_committed(committed);
            true
        })
    }

    /// Whether a large block is worth the huge pages that it fills.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.take_fills")]
    fn fills(&self, slices: usize, live_bytes: usize, filling: Filling) -> bool {
        let zeroed = (filling.bytes == 0).then(|| USAGE.filled_bytes());
        !USAGE.is_sparse() && arena::fills_huge_pages(slices * SLICE_BYTES, live_bytes, zeroed)
    }

    /// [`Held::commit`] for a block that is to begin with a huge page; what lies before that at the front becomes a free run.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.take_commit_filled")]
    fn commit_filled(&mut self, arena: &'static Arena, slices: usize, growth: Growth) -> bool {
        let (_, before) = arena.front_and_huge_page();
        // A part of a huge page that is not committed would keep all of it from being one.
        let all = before + slices.next_multiple_of(FILLED_SLICES_MIN);
        if !self.commit(arena, all, Growth::SMALL) {
            return false;
        }
        // Other threads may have taken some of it, so that this is too little: then it is tried again.
        let (front, before) = arena.front_and_huge_page();
        if before > 0
            && let Some(run) = arena.take_front(before)
        {
            self.insert(run, before, 0, true);
        }
        let first = front + before;
        self.guard.unlocked(|| {
            arena.request_filled(first, first + slices);
            growth.probe(arena, first, first + slices);
        });
        true
    }

    /// Enlarges a run in place, from `slices` to `wanted` slices, if the slices behind it are free; returns whether they were.
    #[inline(never)]
    pub(crate) fn grow(&mut self, first: &'static Slice, slices: usize, wanted: usize) -> bool {
        let more = wanted - slices;
        let Some(claimed) = self.claim(more) else { return false };
        let grown = self.grow_by(first, slices, more);
        self.drop_claim(claimed);
        grown
    }

    /// [`Held::grow`] by slices that are within the memory limit.
    #[inline]
    fn grow_by(&mut self, first: &'static Slice, slices: usize, more: usize) -> bool {
        let arena = first.arena();
        // SAFETY: The run lies in this arena, so behind it is another slice or the arena's end.
        if !arena.is_dedicated() && unsafe { first.ahead_or_end(slices) }.is_none() {
            return false;
        }
        let is_ready = !arena.ends_at_front(first, slices)
            || arena.committed_front_slices() >= more
            || self.commit_behind(arena, first, slices, more);
        // Other threads may have taken the slices behind it.
        is_ready && self.grow_into(arena, first, slices, more) && {
            first.count.set((slices + more) as u32);
            true
        }
    }

    /// Commits `more` slices behind a run that ends at the front of its arena, unless other threads have moved that; returns
    /// whether they may be free now.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.take_commit_behind")]
    fn commit_behind(
        &mut self,
        arena: &'static Arena,
        first: &'static Slice,
        slices: usize,
        more: usize,
    ) -> bool {
        let _growth = self.lock_growth();
        let filled = self.guard.unlocked(|| usage::is_end_used(first, slices));
        let live_bytes = if filled { self.live_bytes_of_all() } else { 0 };
        let huge = !USAGE.is_sparse() && is_worth_huge_pages(live_bytes, filled);
        if huge {
            USAGE.begin();
        }
        !arena.ends_at_front(first, slices)
            || arena.committed_front_slices() >= more
            || self.commit(arena, more, Growth { huge, ..Growth::SMALL })
    }

    /// Claims `more` slices of the memory limit, if there is one: returns free memory if it must. Until [`Held::drop_claim`]
    /// takes what this returns, no other thread is given them, although this one lets the lock go in between.
    #[inline]
    fn claim(&mut self, more: usize) -> Option<usize> {
        settings::memory_limit().map_or(Some(0), |limit| self.claim_within(limit, more))
    }

    #[inline]
    fn drop_claim(&mut self, claimed: usize) {
        if claimed > 0 {
            self.shared.live_bytes.set(self.live_bytes());
            // ORDERING: Release: a thread that sees that the claim is dropped sees the live bytes.
            if CLAIMED.fetch_sub(claimed, Ordering::Release) < claimed {
                // A handler of a signal that came in between forked, and this is the child.
                // ORDERING: Relaxed: claims of other threads since then are counted as dropped.
                CLAIMED.store(0, Ordering::Relaxed);
            }
        }
    }

    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.take_claim_within")]
    fn claim_within(&mut self, limit: usize, more: usize) -> Option<usize> {
        let rest = limit.checked_sub(more * SLICE_BYTES)?;
        // Before the comparison: of two threads in different stripes, one at least sees the other's claim.
        // ORDERING: Acquire pairs with the Release in `drop_claim`.
        let claimed = CLAIMED.fetch_add(more, Ordering::Acquire);
        // Other stripes let blocks grow under a limit, but hand out none. They may have done so before, and keep what is freed.
        let others = stripes::others(self.shared);
        let live_bytes = self.live_bytes() + others.live;
        let Some(room) = rest.checked_sub(live_bytes + claimed * SLICE_BYTES) else {
            self.drop_claim(more);
            return None;
        };
        let settles = self.settles;
        if others.dirty > 0 && self.dirty_bytes + others.dirty > room {
            let this = self.shared;
            self.guard.unlocked(|| {
                let others = stripes::all().iter().filter(|other| *other != this);
                others.for_each(|other| other.hold_slow(settles).keep_down_to(0));
            });
        }
        self.keep_down_to(room);
        Some(more)
    }

    /// Keeps at most so many bytes of free memory: purges the rest now, or owes it.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.take_keep_down_to")]
    fn keep_down_to(&mut self, bytes: usize) {
        if self.settles {
            self.purge_down_to(bytes);
        } else {
            // An earlier debt stays.
            let bytes = self.owed_down_to.map_or(bytes, |owed| owed.min(bytes));
            self.owe_down_to(bytes);
        }
    }
}
