//! The lock of the ranges, the work at its release, and `fork`.
//!
//! Relies on its parent's counts. All threads of a stripe wait for one lock, so no long system call is made under it: runs in
//! such a call belong to nobody, see `take.rs` and `purge.rs`. Memory that a free or an allocation finds to be too much is
//! *owed*, and purged in *steps* of few system calls and bytes, or a multiple of the bytes that the call itself moved. A
//! single free or allocation takes its step when it releases the lock; a flush, which may release many pages, leaves it to
//! the end of the slow call ([`SharedRanges::purge_step`]).
//!
//! In a child forked while runs were away they are free again; an arena that another thread was about to unmap stays mapped
//! there.

use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr;

use super::{Parked, Ranges, stripes};
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::platform::kernel;
use crate::platform::sync::{self, Count, Guard, Lock, RawLock};

/// The bound of a step after a call that takes or frees one run: system calls, and bytes unless the call moved more, with the
/// rest of a huge page. A freed run adds at most one more to purge, and the longest go first.
const STEP_CALLS: usize = 4;
pub(super) const STEP_BYTES: usize = 1 << 20;
/// The same where a step is one system call. Others wait for its CPU then, and the next slow call is another thread's.
pub(super) const BATCH_BYTES: usize = 256 << 10;
/// Bytes of a step for each byte that a call frees or allocates: the budget changes by little more than that, twice at most.
const STEP_TIMES: usize = 4;
/// The most system calls of a step.
pub(crate) const CALLS_MAX: usize = 32;

#[inline]
fn step_bytes() -> usize {
    if kernel::batches_purges() { BATCH_BYTES } else { STEP_BYTES }
}

/// Ranges that threads share. Equal only to themselves.
#[repr(C, align(128))]
pub(crate) struct SharedRanges {
    /// Live bytes, and dirty ones, after the last call. The lock's holder writes them, anyone reads them.
    pub(super) live_bytes: Count,
    pub(super) dirty_bytes: Count,
    ranges: Lock<Ranges>,
}

impl PartialEq for SharedRanges {
    fn eq(&self, other: &SharedRanges) -> bool {
        ptr::eq(self, other)
    }
}

impl SharedRanges {
    pub(super) const fn new() -> SharedRanges {
        SharedRanges {
            live_bytes: Count::new(0),
            dirty_bytes: Count::new(0),
            ranges: Lock::new(Ranges::new()),
        }
    }

    /// Waits for the ranges. The thread holds no other shared lock, because it may have to purge when it releases this one.
    #[inline]
    pub(crate) fn lock(&self) -> Held<'_> {
        // A handler of `fork` may interrupt the holder of any.
        debug_assert!(
            sync::no_lock_is_held() || self.ranges.is_held_for_fork(),
            "others would wait while memory is given back"
        );
        self.hold_with(true)
    }

    /// [`SharedRanges::lock`] for a thread that does not purge at the release: it may hold other locks, or purges later.
    pub(crate) fn lock_in_others(&self) -> Held<'_> {
        self.hold_slow(false)
    }

    /// The part that callers share; every program runs it, so it is not in the cold segment.
    #[inline(never)]
    pub(super) fn hold_slow(&self, settles: bool) -> Held<'_> {
        self.hold_with(settles)
    }

    #[inline]
    fn hold_with(&self, settles: bool) -> Held<'_> {
        let guard = self.ranges.try_lock().unwrap_or_else(|| self.wait());
        Held { guard: ManuallyDrop::new(guard), shared: self, settles }
    }

    /// [`SharedRanges::lock_in_others`] if no other thread holds the ranges.
    #[inline(never)]
    pub(super) fn try_lock_in_others(&self) -> Option<Held<'_>> {
        let guard = ManuallyDrop::new(self.ranges.try_lock()?);
        Some(Held { guard, shared: self, settles: false })
    }

    /// Whether this thread holds them across `fork`.
    pub(super) fn is_held_for_fork(&self) -> bool {
        self.ranges.is_held_for_fork()
    }

    /// Waits for the lock, however long.
    #[inline(never)]
    pub(super) fn lock_waiting(&self) -> Guard<'_, Ranges> {
        self.ranges.lock()
    }

    /// Takes a step of purging what is owed: a few system calls, and one for each slice that flushes released since the last
    /// step, so that the debt does not grow. The caller holds no lock.
    pub(crate) fn purge_step(&self, few: usize) {
        let mut held = self.lock();
        held.settles = false;
        let moved = core::mem::take(&mut held.moved_bytes);
        if held.owes() {
            let calls = (few + moved / SLICE_BYTES).min(few.max(CALLS_MAX));
            held.settle(calls, step_bytes().max(calls * SLICE_BYTES).max(STEP_TIMES * moved));
        }
    }

    /// The ranges' lock, for `fork`.
    pub(super) fn raw(&self) -> &RawLock {
        self.ranges.raw()
    }

    /// In the child, takes back runs that other threads had away in the parent. Runs of this thread, if a signal handler
    /// forked, are put back when it continues; and if it was changing the ranges it continues with that.
    ///
    /// # Safety
    ///
    /// - The thread that this one is a copy of held the lock across `fork`, or missed it.
    pub(super) unsafe fn take_back_after_fork(&self) {
        if !self.ranges.is_held_for_fork() {
            return;
        }
        // SAFETY: The caller's condition.
        let ranges = unsafe { self.ranges.held() };
        while let Some(run) = ranges.away_by_others() {
            ranges.put_back(run, false);
        }
    }

    /// In the child, takes back the right to park of a thread that does not exist there, and its run.
    ///
    /// # Safety
    ///
    /// - As [`SharedRanges::take_back_after_fork`].
    pub(super) unsafe fn bring_home_after_fork(&self, parked: &Parked) {
        if self.ranges.is_held_for_fork() {
            // SAFETY: The caller's condition.
            unsafe { self.ranges.held() }.take_home(parked);
        }
    }
}

/// The ranges, locked by this thread.
pub(crate) struct Held<'a> {
    pub(super) guard: ManuallyDrop<Guard<'a, Ranges>>,
    pub(super) shared: &'a SharedRanges,
    /// Whether to purge what is owed at the release.
    pub(super) settles: bool,
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
    #[inline(always)]
    fn drop(&mut self) {
        release(self);
    }
}

// One copy for all callers.
#[inline(never)]
extern "C" fn release(held: &mut Held<'_>) {
    held.end_call();
    // SAFETY: The guard is not used after this.
    unsafe { ManuallyDrop::drop(&mut held.guard) };
}

impl Held<'_> {
    /// Purges what is owed, as far as one call has to.
    #[inline]
    pub(super) fn end_call(&mut self) {
        let moved = STEP_TIMES * self.moved_bytes;
        let owes =
            self.owes() && !(self.settles && self.settle(STEP_CALLS, step_bytes().max(moved)));
        if self.settles {
            self.moved_bytes = 0;
        }
        if owes != self.is_known_to_owe {
            self.is_known_to_owe = owes;
            self.shared.note_owing(owes);
        }
        self.shared.live_bytes.set(self.live_bytes());
        self.shared.dirty_bytes.set(self.dirty_bytes);
    }

    /// Sizes the step at the release for `slices` slices that this thread freed in several calls: other threads may have
    /// taken their bytes for steps of their own in between.
    #[inline]
    pub(crate) fn note_moved(&mut self, slices: usize) {
        self.moved_bytes = self.moved_bytes.max(slices * SLICE_BYTES);
    }

    /// Takes back a thread's parked run and the right to park: before the thread takes or frees anything else. A thread
    /// without a cache parks nothing.
    #[inline]
    pub(crate) fn bring_home(&mut self, parked: Option<&Parked>) {
        let Some(parked) = parked else { return };
        if let Some(place) = parked.right_from() {
            self.bring_home_from(place, parked);
        } else {
            parked.forget_last();
        }
    }

    /// [`Held::bring_home`] if the stripe at `place` gave the right.
    #[inline(never)]
    extern "C" fn bring_home_from(&mut self, place: usize, parked: &Parked) {
        match stripes::at(place) {
            // The number of stripes has grown since, or this thread frees another one's memory.
            Some(other) if other != self.shared => {
                self.guard.unlocked(|| other.lock_in_others().take_home(parked));
            }
            _ => self.take_home(parked),
        }
    }

    /// Notes the run of a large block handed out to a thread: if the thread repeats this length, it may park the run.
    pub(crate) fn note_handed_out(&mut self, parked: &Parked, first: &'static Slice) {
        let slices = first.count.get() as usize;
        let may_park = parked.repeats(slices)
            && !first.arena().is_dedicated()
            // Another stripe counts its own runs.
            && first.arena().stripe.get() as usize == self.shared.place()
            && self.may_park(slices);
        if may_park {
            self.parking_slices += slices;
        }
        parked.note_handed_out(first, slices, may_park.then(|| self.shared.place()));
    }
}
