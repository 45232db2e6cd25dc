//! The ranges in the hands of a thread, and what it does for them once it no longer holds their lock.
//!
//! Relies on the books that the ranges keep, and on arenas. All threads wait for one lock here, so no call of the kernel that
//! may take long is made under it. The hard idea is that what is under way is nobody's: a run on its way back to the
//! kernel is *away*, free and in no list, and an arena grows under a lock of its own, for which only those wait that need it
//! to have grown. What a free or an allocation finds to be too much is *owed*, and given back by *steps* of
//! few system calls and bytes, or several times the bytes that the call itself moved. Where a run is taken or freed by
//! itself, that is when the lock is let go; a flush, which may release pages many times, leaves it to the end of the
//! slow call ([`SharedRanges::go_on`]).
//!
//! In a child that was forked while runs were away they are free again; an arena that a thread was just about to
//! unmap stays mapped there.

use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr;

use super::{LOOKS, Parked, Ranges, Run, stripes, usage};
use crate::memory::arena::{self, Arena, GROWTH};
use crate::memory::slice::{Kind, SLICE_BYTES, Slice};
use crate::platform::kernel::{self, Clock, Span};
use crate::platform::sync::{self, Guard, Lock};
use crate::settings;

/// What a call that takes or frees a run gives back at most, but for the bytes where it moved more: system calls, and
/// bytes. A run that is freed leaves at most one more to give back, and the longest go first.
const STEP_CALLS: usize = 4;
pub(super) const STEP_BYTES: usize = 1 << 20;
/// The same for the bytes that a call frees or allocates by itself: the books of what may stay change by little more
/// than that, twice at most.
const STEP_TIMES: usize = 4;
/// System calls of a step, however much was left.
pub(crate) const CALLS_MAX: usize = 32;
/// Runs that go back together.
pub(crate) const RUNS_MAX: usize = 16;

/// Ranges that threads share. Equal only to themselves.
#[repr(align(128))]
pub(crate) struct SharedRanges(Lock<Ranges>);

impl PartialEq for SharedRanges {
    fn eq(&self, other: &SharedRanges) -> bool {
        ptr::eq(self, other)
    }
}

impl SharedRanges {
    pub(super) const fn new() -> SharedRanges {
        SharedRanges(Lock::new(Ranges::new()))
    }

    /// Waits until the ranges are this thread's, which holds no other shared lock: it may have to give memory back when it
    /// lets go.
    #[inline]
    pub(crate) fn lock(&self) -> Held<'_> {
        // A handler of `fork` may interrupt the holder of any.
        debug_assert!(
            sync::no_lock_is_held() || self.0.is_held_for_fork(),
            "others would wait while memory is given back"
        );
        self.hold_with(true)
    }

    /// The same for a thread that gives nothing back when it lets go: it may hold other locks, or goes on later.
    pub(crate) fn lock_in_others(&self) -> Held<'_> {
        self.hold_with(false)
    }

    #[inline]
    fn hold_with(&self, settles: bool) -> Held<'_> {
        let guard = self.0.try_lock().unwrap_or_else(|| self.wait());
        Held { guard: ManuallyDrop::new(guard), shared: self, settles }
    }

    /// The same where no other thread holds them; nothing is given back at the end.
    fn try_lock_in_others(&self) -> Option<Held<'_>> {
        let guard = ManuallyDrop::new(self.0.try_lock()?);
        Some(Held { guard, shared: self, settles: false })
    }

    /// Whether this thread holds them across `fork`.
    pub(super) fn is_held_for_fork(&self) -> bool {
        self.0.is_held_for_fork()
    }

    /// Waits for the lock, however long.
    pub(super) fn lock_waiting(&self) -> Guard<'_, Ranges> {
        self.0.lock()
    }

    /// Takes a step of giving back what is owed: a few system calls, and one for each slice that flushes left since the
    /// last step, so that no debt grows. The caller holds no lock.
    pub(crate) fn go_on(&self, few: usize) {
        let mut held = self.lock();
        held.settles = false;
        let moved = core::mem::take(&mut held.moved_bytes);
        if held.owes() {
            let calls = (few + moved / SLICE_BYTES).min(few.max(CALLS_MAX));
            held.settle(calls, STEP_BYTES.max(calls * SLICE_BYTES).max(STEP_TIMES * moved));
        }
    }

    /// Holds the ranges across `fork`.
    pub(super) fn hold(&self) {
        self.0.hold();
    }

    /// Takes back, in the child, what other threads had away in the parent. What this thread itself has away, where a
    /// signal handler forked, it puts back when it goes on; and where it was changing the ranges it goes on with that.
    ///
    /// # Safety
    ///
    /// - The thread that this one is a copy of called [`SharedRanges::hold`].
    pub(super) unsafe fn take_back_after_fork(&self) {
        if !self.0.is_held_for_fork() {
            return;
        }
        // SAFETY: The caller's condition.
        let ranges = unsafe { self.0.held() };
        while let Some(run) = ranges.away_by_others() {
            ranges.put_back(run, false);
        }
    }

    /// Ends [`SharedRanges::hold`].
    ///
    /// # Safety
    ///
    /// - This thread, or the one it was forked from, called it and not yet this.
    pub(super) unsafe fn let_go(&self) {
        // SAFETY: The caller's condition.
        unsafe { self.0.let_go() };
    }
}

/// Which other stripes may give a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    Idle,
    Any,
}

/// The ranges, while this thread has them.
pub(crate) struct Held<'a> {
    guard: ManuallyDrop<Guard<'a, Ranges>>,
    shared: &'a SharedRanges,
    /// Whether what is owed may be given back.
    settles: bool,
}

impl Deref for Held<'_> {
    type Target = Ranges;

    #[inline]
    fn deref(&self) -> &Ranges {
        &self.guard
    }
}

impl DerefMut for Held<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Ranges {
        &mut self.guard
    }
}

impl Drop for Held<'_> {
    // One for all callers.
    #[inline(never)]
    fn drop(&mut self) {
        self.end_call();
        // SAFETY: Nobody uses the guard after this.
        unsafe { ManuallyDrop::drop(&mut self.guard) };
    }
}

impl Held<'_> {
    /// Gives back what is owed, as far as one call has to.
    #[inline]
    pub(super) fn end_call(&mut self) {
        let bytes = STEP_BYTES.max(STEP_TIMES * self.moved_bytes);
        let owes = self.owes() && !(self.settles && self.settle(STEP_CALLS, bytes));
        if self.settles {
            self.moved_bytes = 0;
        }
        if owes != self.is_known_to_owe {
            self.is_known_to_owe = owes;
            self.shared.note_owing(owes);
        }
    }

    /// Takes back what a thread has parked, and the right to: before anything else is taken or given
    /// by it. A thread without a cache parks nothing.
    #[inline]
    pub(crate) fn bring_home(&mut self, parked: Option<&Parked>) {
        let Some(parked) = parked else { return };
        if let Some(place) = parked.right_from() {
            self.bring_home_from(place, parked);
        } else {
            parked.forget_last();
        }
    }

    /// The same where the stripe at `place` gave the right.
    #[inline(never)]
    fn bring_home_from(&mut self, place: usize, parked: &Parked) {
        match stripes::at(place) {
            // The number of stripes has grown since, or this thread frees another one's memory.
            Some(other) if other != self.shared => {
                self.guard.unlocked(|| other.lock_in_others().take_home(parked));
            }
            _ => self.take_home(parked),
        }
    }

    /// Notes the run of a large block that was just handed out to a thread: if it asks for runs of
    /// this length again and again, it may park this one.
    pub(crate) fn note_handed_out(&mut self, parked: &Parked, first: &'static Slice) {
        let slices = first.count.get() as usize;
        let may_park = parked.repeats(slices)
            && !first.arena().is_dedicated()
            // Of another stripe's run this one's books know nothing.
            && first.arena().stripe.get() as usize == self.shared.place()
            && self.may_park(slices);
        if may_park {
            self.parking_slices += slices;
        }
        parked.note_handed_out(first, slices, may_park.then(|| self.shared.place()));
    }

    /// Hands out `slices` slices whose memory starts at a multiple of `align` bytes, a power of
    /// two; `None` where the kernel gives no more, even after everything free went back.
    pub(crate) fn allocate(&mut self, slices: usize, align: usize, kind: Kind) -> Option<Run> {
        self.allocate_for(0, slices, align, kind)
    }

    /// The same for a request of which `used_bytes` will soon be written, most likely.
    #[inline(never)]
    pub(crate) fn allocate_for(
        &mut self,
        used_bytes: usize,
        slices: usize,
        align: usize,
        kind: Kind,
    ) -> Option<Run> {
        let padding = (align / SLICE_BYTES).saturating_sub(1);
        let padded = slices.checked_add(padding)?;
        if !self.is_within_limit(padded) {
            return None;
        }
        let run = match self.take_ready(padded) {
            Some(run) => run,
            None if stripes::count() > 1 => {
                return self.take_among_many(padded, used_bytes, slices, align, kind);
            }
            None => self.take_slow(padded, used_bytes, kind)?,
        };
        Some(self.hand_out(run, padded, slices, align, kind))
    }

    /// Hands out the aligned part of a run where none is ready and there are other stripes.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.held_take_among_many")]
    fn take_among_many(
        &mut self,
        padded: usize,
        used_bytes: usize,
        slices: usize,
        align: usize,
        kind: Kind,
    ) -> Option<Run> {
        let idle = self.take_from_others(Others::Idle, padded, slices, align, kind);
        if idle.is_some() {
            return idle;
        }
        match self.take_slow(padded, used_bytes, kind) {
            Some(run) => Some(self.hand_out_slow(run, padded, slices, align, kind)),
            None => self.take_from_others(Others::Any, padded, slices, align, kind),
        }
    }

    /// Hands out the aligned part of a run.
    #[inline(always)]
    fn hand_out(
        &mut self,
        run: Run,
        padded: usize,
        slices: usize,
        align: usize,
        kind: Kind,
    ) -> Run {
        let is_aligned = padded == slices;
        let run = if is_aligned { run } else { self.cut_to_align(run, padded, slices, align) };
        self.note_allocated(run, slices, kind);
        run
    }

    /// The same, one copy for the rare ways.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.held_hand_out_slow")]
    fn hand_out_slow(
        &mut self,
        run: Run,
        padded: usize,
        slices: usize,
        align: usize,
        kind: Kind,
    ) -> Run {
        self.hand_out(run, padded, slices, align, kind)
    }

    /// Hands out a run of another stripe that nobody holds now: of a few that are not used, rather than make more memory
    /// resident, or of any, rather than none.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.held_take_from_others")]
    fn take_from_others(
        &mut self,
        others: Others,
        padded: usize,
        slices: usize,
        align: usize,
        kind: Kind,
    ) -> Option<Run> {
        let any = others == Others::Any;
        let now = kernel::nanoseconds(Clock::Coarse) / 1_000_000;
        let mut looks = if any { stripes::count() } else { LOOKS };
        while looks > 0 {
            looks -= 1;
            self.looks = self.looks.wrapping_add(1);
            if let Some(stripe) = stripes::at(self.looks % stripes::count())
                && stripe != self.shared
                && let Some(mut other) = stripe.try_lock_in_others()
                && (other.is_idle(now) || any)
                && let Some(run) = other.take_ready(padded)
            {
                return Some(other.hand_out_slow(run, padded, slices, align, kind));
            }
        }
        None
    }

    /// A run of exactly `slices`, where none is ready.
    #[cold]
    #[inline(never)]
    fn take_slow(&mut self, slices: usize, used_bytes: usize, kind: Kind) -> Option<Run> {
        if let Some(run) = self.extend(slices, used_bytes, kind) {
            return Some(run);
        }
        if !self.settles {
            return None;
        }
        self.purge_down_to(0);
        self.extend(slices, used_bytes, kind)
    }

    /// A run from an arena that grows for it, or from a new one.
    fn extend(&mut self, slices: usize, used_bytes: usize, kind: Kind) -> Option<Run> {
        let _growth = self.lock_growth();
        let large = matches!(kind, Kind::Large | Kind::HeapLarge | Kind::Opaque);
        // Stripes are about alike.
        let live_bytes = self.live_bytes() * stripes::count();
        let huge =
            !self.usage.is_sparse() && arena::is_worth_huge_pages(live_bytes + used_bytes, large);
        // Others may have freed something, or made an arena grow.
        loop {
            if let Some(run) = self.take_ready(slices) {
                return Some(run);
            }
            let Some(arena) = self.arena else { break };
            if !self.commit(arena, slices, huge) {
                break;
            }
        }
        let arena = self.guard.unlocked(|| {
            let arena = Arena::reserve(slices)?;
            match arena.commit(arena.front_end(slices)?, huge) {
                Some(committed) => arena.note_committed(committed),
                None => {
                    arena.leave();
                    // SAFETY: The arena was reserved just now and nothing of it was handed out.
                    unsafe { arena.unmap_unused() };
                    return None;
                }
            }
            Some(arena)
        })?;
        arena.stripe.set(self.shared.place() as u32);
        let first = arena.take_front(slices)?;
        if !arena.is_dedicated() {
            self.offer_to_grow(arena);
        }
        Some(Run { first, zero: true })
    }

    /// Waits for the lock of growth, which comes before this one: others may have changed the ranges.
    #[cold]
    #[inline(never)]
    fn lock_growth(&mut self) -> Guard<'static, (), false> {
        self.guard.unlocked(|| GROWTH.lock())
    }

    /// Makes an arena grow until it has so many slices at its front, whatever others take of them in between;
    /// whether it did. The caller holds the lock of growth.
    fn commit(&mut self, arena: &'static Arena, slices: usize, huge: bool) -> bool {
        let Some(end) = arena.front_end(slices) else { return false };
        let committed = self.guard.unlocked(|| arena.commit(end, huge));
        committed.is_some_and(|committed| {
            arena.note_committed(committed);
            true
        })
    }

    /// Enlarges a run in place, from `slices` to `wanted` slices, where what lies behind it is
    /// free; whether it was.
    #[inline(never)]
    pub(crate) fn grow(&mut self, first: &'static Slice, slices: usize, wanted: usize) -> bool {
        let arena = first.arena();
        let more = wanted - slices;
        if arena.is_dedicated() || !self.is_within_limit(more) {
            return false;
        }
        // SAFETY: The run lies in this arena, so behind it is another slice or the arena's end.
        let Some(behind) = (unsafe { first.ahead_or_end(slices) }) else { return false };
        if arena.is_front(behind) && arena.committed_front_slices() < more {
            let growth = self.lock_growth();
            let seems_used = self.guard.unlocked(|| usage::is_end_used(first, slices));
            let live_bytes = if seems_used { self.live_bytes() * stripes::count() } else { 0 };
            let huge = !self.usage.is_sparse() && arena::is_worth_huge_pages(live_bytes, true);
            let grown = !arena.is_front(behind)
                || arena.committed_front_slices() >= more
                || self.commit(arena, more, huge);
            drop(growth);
            if !grown {
                return false;
            }
        }
        // Others may have taken what was behind it.
        self.grow_into(arena, behind, more) && {
            first.count.set(wanted as u32);
            true
        }
    }

    /// Whether `more` slices may be taken under the limit that was set, if one was: gives free memory
    /// back for them where it must.
    #[inline]
    fn is_within_limit(&mut self, more: usize) -> bool {
        settings::memory_limit().is_none_or(|limit| self.is_within(limit, more))
    }

    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.held_is_within")]
    fn is_within(&mut self, limit: usize, more: usize) -> bool {
        // Other stripes hand nothing out under a limit, but may have done so before there was one.
        let live_bytes = match stripes::count() {
            1 => self.live_bytes(),
            _ => self.guard.unlocked(|| stripes::read().live_bytes),
        };
        let Some(room) = limit.checked_sub(live_bytes + more * SLICE_BYTES) else { return false };
        if self.settles {
            self.purge_down_to(room);
        } else {
            self.owe_down_to(room);
        }
        true
    }

    /// Gives all free memory but about `bytes` back, and expects none of it to be wanted again;
    /// whether anything was given back.
    pub(crate) fn trim(&mut self, bytes: usize) -> bool {
        self.expect_nothing_back();
        let purged = self.purge_down_to(bytes) | self.purge_uncertain();
        // Who asks for this does not purge too early, whatever is allocated next.
        self.forget_purged();
        purged
    }

    /// Gives free memory back to the kernel, longest runs first, until at most `bytes` of it may be
    /// resident. Returns whether anything was given back.
    ///
    /// Not the runs with the most dirty bytes first: that makes 7 % fewer calls where memory is freed
    /// in random order, but 16 % more faults where large buffers come and go.
    pub(super) fn purge_down_to(&mut self, bytes: usize) -> bool {
        let mut any = false;
        while let Some(run) = self.send_away(bytes, usize::MAX) {
            self.purge(&[Some(run)]);
            any = true;
        }
        any
    }

    /// Gives back the free runs that are in the books as not resident but may be: a run knows how
    /// much of it is dirty, not where, so what is cut off one may be counted as the other part.
    /// Returns whether anything was given back.
    pub(super) fn purge_uncertain(&mut self) -> bool {
        let mut any = false;
        loop {
            let mut runs = [None; RUNS_MAX];
            let count = self.send_uncertain_away(&mut runs);
            let purged = count > 0 && self.purge(&runs);
            any |= purged;
            // What is refused is found again.
            if count < RUNS_MAX || !purged {
                return any;
            }
        }
    }

    /// Drops the contents of runs that are away, and takes them back; whether they read as zero now.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.held_purge")]
    fn purge(&mut self, runs: &[Option<&'static Slice>]) -> bool {
        let mut spans = [Span::NONE; RUNS_MAX];
        let mut count = 0;
        while let Some(Some(run)) = runs.get(count) {
            spans[count] = Span::new(run.start(), run.count.get() as usize * SLICE_BYTES);
            count += 1;
        }
        if let Some(Some(run)) = runs.first() {
            self.look_at(run);
        }
        // SAFETY: The runs are free, so nobody needs their contents.
        let zero = self.guard.unlocked(|| unsafe { kernel::drop_contents(&spans[..count]) });
        // Refused (locked memory, a sandbox): the memory stays as it is, and is not asked about again
        // until it was used again.
        for run in runs.iter().flatten() {
            self.put_back(run, zero);
        }
        zero
    }

    /// Looks at how much of a run was used that is away, and calls huge pages off where that is mostly little.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.held_look_at")]
    fn look_at(&mut self, run: &'static Slice) {
        let slices = run.count.get() as usize;
        let is_all_dirty = run.dirty.get() as usize == slices * SLICE_BYTES;
        let looks = is_all_dirty && self.usage.wants_look(slices);
        let arena = run.arena();
        let makes_plain = self.usage.makes_plain(arena);
        if !looks && !makes_plain {
            return;
        }
        let end = arena.committed_end();
        let look = self.guard.unlocked(|| {
            if makes_plain {
                // It stays as long as a run of it is away.
                arena.call_huge_pages_off(end);
            }
            usage::look(run, slices)
        });
        if looks {
            self.usage.note(look);
        }
    }

    /// Takes a step of so many system calls and bytes; whether nothing is owed any more.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.held_settle")]
    fn settle(&mut self, mut calls: usize, mut bytes: usize) -> bool {
        if core::mem::take(&mut self.shrinks) {
            self.shrink();
        }
        while let Some(arena) = self.leaving_arena() {
            // SAFETY: Nobody has memory of this arena, and it left the table.
            self.guard.unlocked(|| unsafe { arena.unmap() });
        }
        loop {
            let mut runs = [None; RUNS_MAX];
            let mut count = 0;
            while bytes > 0
                && calls > 0
                && count < RUNS_MAX
                && let Some(run) = self.send_owed_away(bytes)
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

    /// Gives the addresses back behind what is handed out of the arena that grows, if they are many.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.held_shrink")]
    fn shrink(&mut self) {
        let _growth = self.lock_growth();
        // Others may have taken it, or made another arena grow.
        if let Some(arena) = self.arena
            && let Some(run) = arena.free_end()
            && arena.ends_in(run)
        {
            self.remove(run);
            arena.shrink_to(run);
            self.guard.unlocked(|| arena.unmap_behind());
        }
    }
}
