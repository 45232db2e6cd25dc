//! The ranges of the process, in stripes, so that threads need not wait for each other's runs.
//!
//! Relies on its parent for a stripe: ranges with a lock, arenas and counts of their own. A freed run returns to the
//! stripe of its arena, whichever thread frees it. The hard idea is the number of stripes. One stripe keeps all free
//! memory in one place, where every request finds it, and is best as long as no thread waits. So there is one at first,
//! and twice as many each time that many calls had to wait, up to one a CPU, or four. Before a stripe asks the kernel
//! for more, it takes dirty runs of another one that was idle for a while. `stripes/README.md` has the invariants of
//! all stripes together, and the races that must not happen.

use core::{mem, ptr};

use super::held::{Held, SharedRanges};
use super::take::CLAIMED;
use super::{Parked, Ranges, now_ms};
use crate::memory::arena;
use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::platform::sync::{AtomicU32, AtomicUsize, Guard, Ordering, Visit};
use crate::settings;

/// The most stripes: the bits of a word. There are fewer shards.
pub(super) const STRIPES_MAX: usize = usize::BITS as usize;

/// Fewer shards are few, and so are CPUs. Then there may be so many stripes, because threads are often more.
const MANY_SHARDS: usize = 4;

/// The number of waiting calls, of [`CALLS`] that took or freed a run, after which there are more stripes.
const WAITS: u32 = if cfg!(loom) { 1 } else { 16 };
/// The same where CPUs are few: a thread also waits because a lock's holder lost its CPU, which more locks do not help,
/// and one place for all free memory is worth more.
const WAITS_FEW: u32 = CALLS / 4;
pub(super) const CALLS: u32 = 1024;

static STRIPES: [SharedRanges; STRIPES_MAX] = [const { SharedRanges::new() }; STRIPES_MAX];

/// Words that all slow calls read and few write: on their own pair of cache lines, which some CPUs fetch together.
#[repr(align(128))]
struct Common {
    /// The number of stripes besides the first. Changed under the lock of a stripe, of which `fork` holds all.
    more: AtomicUsize,
    /// Its maximum, and the number of waiting calls after which it grows: 0 at first, as the maximum is.
    more_max: AtomicUsize,
    waits: AtomicU32,
    /// The stripes that owe memory, a bit each.
    owing: AtomicUsize,
    /// For the layer above, whose slow calls read them beside `owing`: the passes through sparse pages that are under
    /// way and that ever began, and the number of shards that threads have had, 0 while they are few.
    passes: AtomicUsize,
    passes_begun: AtomicUsize,
    many_shards: AtomicUsize,
}

static COMMON: Common = Common {
    more: AtomicUsize::new(0),
    more_max: AtomicUsize::new(0),
    waits: AtomicU32::new(0),
    owing: AtomicUsize::new(0),
    passes: AtomicUsize::new(0),
    passes_begun: AtomicUsize::new(0),
    many_shards: AtomicUsize::new(0),
};

/// The bytes of all stripes, each as it was when it last looked, and the number of steps of purging: on their own pair
/// of cache lines.
#[repr(align(128))]
struct Sum {
    live_bytes: AtomicUsize,
    dirty_bytes: AtomicUsize,
    steps: AtomicUsize,
}

static SUM: Sum = Sum {
    live_bytes: AtomicUsize::new(0),
    dirty_bytes: AtomicUsize::new(0),
    steps: AtomicUsize::new(0),
};

/// The number of stripes.
#[inline]
pub(super) fn count() -> usize {
    // ORDERING: Relaxed: a thread that sees an old number uses another stripe, whose lock `fork` holds too.
    1 + COMMON.more.load(Ordering::Relaxed)
}

/// A stripe's share of some bytes, with the number of stripes rounded to a power of two.
#[inline]
pub(super) fn share(bytes: usize) -> usize {
    // ORDERING: Relaxed, as in `count`.
    bytes >> (usize::BITS - COMMON.more.load(Ordering::Relaxed).leading_zeros())
}

/// All stripes.
pub(crate) fn all() -> &'static [SharedRanges] {
    STRIPES.get(..count()).unwrap_or_default()
}

/// The stripe at this place, if there may be one.
#[inline]
pub(super) fn at(place: usize) -> Option<&'static SharedRanges> {
    STRIPES.get(place)
}

/// The stripe for memory that belongs to no thread.
#[inline]
pub(crate) fn first() -> &'static SharedRanges {
    &STRIPES[0]
}

/// The stripe for the thread with this number. Under a memory limit that is the first, which knows all memory.
#[inline]
pub(crate) fn for_thread(number: u8) -> &'static SharedRanges {
    let count = count();
    if count == 1 || settings::memory_limit().is_some() {
        return first();
    }
    usize::from(number).checked_rem(count).and_then(at).unwrap_or(first())
}

/// The stripe of a live run, or of a slice of one.
#[inline]
pub(crate) fn of(slice: &Slice) -> &'static SharedRanges {
    if cfg!(masu_plant = "runs_to_first") {
        // A planted fault for the oracle: the first stripe takes back every run.
        return first();
    }
    at(slice.arena().stripe.get() as usize).unwrap_or(first())
}

/// Sets the number of shards that threads may have.
pub(crate) fn allow(shards: usize) {
    let has_one = cfg!(feature = "secure") || shards == 1;
    let most = if has_one { 1 } else { shards.clamp(MANY_SHARDS, STRIPES_MAX) };
    let waits = if shards < MANY_SHARDS { WAITS_FEW } else { WAITS };
    // Each thread that starts comes here, and a store would take the line from all others.
    // ORDERING: Relaxed in all four, as in `count`.
    let (now, relaxed) = (&COMMON, Ordering::Relaxed);
    if now.more_max.load(relaxed) != most - 1 || now.waits.load(relaxed) != waits {
        now.waits.store(waits, relaxed);
        now.more_max.store(most - 1, relaxed);
    }
}

/// Whether there may be more stripes: a memory limit is for all memory together, and a delay needs ranges in use.
fn may_widen() -> bool {
    settings::memory_limit().is_none()
        && settings::purge_delay_ms().is_none()
        && !arena::are_limited()
}

/// Doubles the number of stripes, up to the maximum. The caller holds the lock of one.
fn widen() {
    // ORDERING: Relaxed in all three, as in `count`.
    let (relaxed, more) = (Ordering::Relaxed, COMMON.more.load(Ordering::Relaxed));
    let doubled = (2 * more + 1).min(COMMON.more_max.load(relaxed));
    if more < doubled {
        // If a thread in another stripe did the same just now, that is enough.
        let _ = COMMON.more.compare_exchange(more, doubled, relaxed, relaxed);
    }
}

/// For tests: adds stripes as if many calls had waited; returns their number.
pub(crate) fn widen_now() -> usize {
    let _ranges = first().lock_waiting();
    if may_widen() && !first().is_held_for_fork() {
        widen();
    }
    count()
}

/// Whether any stripe owes memory.
#[inline]
pub(crate) fn any_owes() -> bool {
    // ORDERING: Relaxed: a thread that misses a new debt takes a step the next time.
    COMMON.owing.load(Ordering::Relaxed) != 0
}

/// The number of passes through sparse pages that are under way.
#[inline]
pub(crate) fn passes() -> &'static AtomicUsize {
    &COMMON.passes
}

/// Whether a pass through sparse pages is under way.
#[inline]
pub(super) fn is_passing() -> bool {
    // ORDERING: Relaxed: a hint, through which no memory is read.
    COMMON.passes.load(Ordering::Relaxed) != 0
}

/// The number of passes that ever began.
#[inline]
pub(super) fn passes_begun() -> usize {
    // ORDERING: Relaxed: a hint, through which no memory is read.
    COMMON.passes_begun.load(Ordering::Relaxed)
}

/// Counts a pass that begins.
pub(crate) fn note_pass_begun() {
    // ORDERING: As above.
    COMMON.passes_begun.fetch_add(1, Ordering::Relaxed);
}

/// The number of shards that threads have had, 0 while they are few.
#[inline(always)]
pub(crate) fn many_shards() -> &'static AtomicUsize {
    &COMMON.many_shards
}

/// Counts a step of purging, and returns the number of earlier ones.
pub(crate) fn next_step() -> usize {
    // ORDERING: Relaxed: steps counted as one are of one kind, and start at the same stripe.
    let step = SUM.steps.load(Ordering::Relaxed);
    // ORDERING: As above.
    SUM.steps.store(step.wrapping_add(1), Ordering::Relaxed);
    step
}

/// Takes a step of purging: see [`SharedRanges::purge_step`]. Every other time the stripe is `own`, if it owes, and in
/// between each owing stripe in turn, so that no debt waits behind a busy stripe.
pub(crate) fn purge_step(own: &'static SharedRanges, few: usize, step: usize) {
    // ORDERING: Relaxed, as above.
    let owing = COMMON.owing.load(Ordering::Relaxed);
    let from = if step.is_multiple_of(2) { own.place() } else { step / 2 };
    at(next_from(from, owing)).unwrap_or(own).purge_step(few);
}

/// The first bit that is set from bit `from` on, around the end.
fn next_from(from: usize, bits: usize) -> usize {
    let from = from % usize::BITS as usize;
    let distance = bits.rotate_right(from as u32).trailing_zeros() as usize;
    (from + distance) % usize::BITS as usize
}

/// Purges all free memory but about `bytes`.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.trim.stripes_trim")]
pub(crate) fn trim(bytes: usize) {
    let mut kept = bytes;
    for stripe in all() {
        stripe.hold_slow(true).trim(kept);
        // The first stripe keeps the rest.
        kept = 0;
    }
}

/// Before a request fails, returns the free memory of every stripe; returns whether there was any.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.reclaim.stripes_give_up")]
pub(crate) fn give_up() -> bool {
    all().iter().fold(false, |any, stripe| any | stripe.hold_slow(true).give_up())
}

/// Bytes of one or several stripes.
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    pub(super) live: usize,
    pub(super) dirty: usize,
}

impl Bytes {
    pub(super) const NONE: Bytes = Bytes { live: 0, dirty: 0 };
}

/// The bytes of all stripes but `this`, after the last call of each.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.several.stripes_others")]
pub(super) fn others(this: &SharedRanges) -> Bytes {
    let others = all().iter().filter(|other| *other != this);
    others.fold(Bytes::NONE, |sum, other| Bytes {
        live: sum.live + other.live_bytes.get(),
        dirty: sum.dirty + other.dirty_bytes.get(),
    })
}

/// Sums over all stripes, in bytes unless noted.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) live_bytes: usize,
    /// Dirty.
    pub(crate) dirty_bytes: usize,
    pub(crate) metadata_bytes: usize,
    /// Large blocks, their number, their bytes, and the number ever made.
    pub(crate) large_blocks: usize,
    pub(crate) large_bytes: usize,
    pub(crate) large_made: usize,
    /// Bytes of arenas.
    pub(crate) committed_bytes: usize,
    pub(crate) reserved_bytes: usize,
}

/// Sums over all stripes, each at a moment of its own. One is locked at a time, because a thread that holds one and
/// waits for the next would block a `fork` that interrupted the holder of that. The caller holds no lock of a stripe.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.statistics.stripes_read")]
pub(crate) fn read() -> Sums {
    let mut sums = Sums::default();
    for stripe in all() {
        let ranges = stripe.lock_waiting();
        let (blocks, bytes) = ranges.large();
        sums.live_bytes += ranges.live_bytes();
        sums.dirty_bytes += ranges.dirty_bytes;
        sums.metadata_bytes += ranges.metadata_slices * SLICE_BYTES;
        sums.large_blocks += blocks;
        sums.large_bytes += bytes;
        sums.large_made += ranges.large_made;
    }
    // No arena found here is unmapped while this is held.
    let _growth = arena::hold_growth();
    for arena in arena::all() {
        sums.committed_bytes += arena.committed_bytes();
        sums.reserved_bytes += arena.reserved_bytes();
    }
    sums
}

/// A set of stripes.
pub(crate) struct Set(usize);

impl Set {
    pub(crate) fn new() -> Set {
        Set(0)
    }

    pub(crate) fn insert(&mut self, stripe: &SharedRanges) {
        self.0 |= 1 << stripe.place();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static SharedRanges> {
        STRIPES.iter().enumerate().filter(|(place, _)| self.0 & (1 << place) != 0).map(|(_, s)| s)
    }
}

/// Visits the lock of growth and those of all stripes, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    visit.see(arena::GROWTH.0.raw());
    let mut place = 0;
    // The number may grow until the last one is held.
    while place < count()
        && let Some(stripe) = at(place)
    {
        visit.see(stripe.raw());
        place += 1;
    }
}

/// Repairs each stripe in a child: see [`SharedRanges::take_back_after_fork`].
///
/// # Safety
///
/// - The thread that this one is a copy of visited [`each_lock`] to hold the locks.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.stripes_take_back_after_fork")]
pub(crate) unsafe fn take_back_after_fork() {
    // ORDERING: Relaxed: there is one thread.
    CLAIMED.store(0, Ordering::Relaxed);
    // SAFETY: The caller's condition.
    all().iter().for_each(|stripe| unsafe { stripe.take_back_after_fork() });
}

/// In a child, takes back the right to park of a thread that does not exist there, and its run.
///
/// # Safety
///
/// - As [`take_back_after_fork`], and no thread uses `parked`.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.stripes_bring_home_after_fork")]
pub(crate) unsafe extern "C" fn bring_home_after_fork(parked: &Parked) {
    if let Some(stripe) = parked.right_from().and_then(at) {
        // SAFETY: The caller's condition.
        unsafe { stripe.bring_home_after_fork(parked) };
    }
}

impl SharedRanges {
    /// Lets free memory be older at `now`, for a thread that neither takes nor frees a run. Waits for nobody: a holder may
    /// let time pass, and so does the next look. The caller holds no lock.
    pub(crate) fn pass_time(&self, now: usize) {
        if let Some(mut ranges) = self.try_lock_in_others() {
            ranges.note_time(now);
        }
    }

    /// About the live bytes of the process, by those of this stripe.
    pub(crate) fn estimated_live_bytes(&self) -> usize {
        self.live_bytes.get() * count()
    }

    /// The stripe's place; [`STRIPES_MAX`] for ranges of tests.
    pub(super) fn place(&self) -> usize {
        let distance = ptr::from_ref(self).addr().wrapping_sub((&raw const STRIPES).addr());
        (distance / size_of::<SharedRanges>()).min(STRIPES_MAX)
    }

    /// Notes whether the stripe owes memory. The caller holds its lock.
    pub(super) fn note_owing(&self, owes: bool) {
        let place = self.place();
        if place == STRIPES_MAX {
            return;
        }
        // ORDERING: Relaxed, as in `any_owes`.
        if owes {
            COMMON.owing.fetch_or(1 << place, Ordering::Relaxed);
        } else {
            COMMON.owing.fetch_and(!(1 << place), Ordering::Relaxed);
        }
    }

    /// Waits for the ranges, which another thread holds, and adds stripes if that is frequent.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.stripes_wait")]
    pub(super) fn wait(&self) -> Guard<'_, Ranges> {
        // `fork` holds the existing stripes, and releases those.
        if self.is_held_for_fork() {
            return self.lock_waiting();
        }
        let mut ranges = self.lock_waiting();
        // ORDERING: Relaxed, as in `count`.
        let waits = ranges.note_wait() >= COMMON.waits.load(Ordering::Relaxed);
        if waits && self.place() < STRIPES_MAX && may_widen() {
            ranges.forget_waits();
            widen();
        }
        ranges
    }
}

impl Held<'_> {
    /// The next other stripe, if it is not locked and idle.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.refused.stripes_idle_one")]
    pub(super) fn idle_one(&mut self) -> Option<Held<'static>> {
        self.looks = if self.looks + 1 < count() { self.looks + 1 } else { 0 };
        let other = at(self.looks).filter(|other| *other != self.shared)?;
        let mut other = other.try_lock_in_others()?;
        other.is_idle(now_ms()).then_some(other)
    }

    /// Updates the sum of bytes, and limits an idle one to its share, because its own time does not pass.
    #[cold]
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.stripes_visit")]
    pub(super) fn visit(&mut self) {
        self.publish();
        if let Some(mut other) = self.idle_one() {
            other.publish();
            // The bytes that others got since they last looked may be all that this one need not keep.
            if other.others.dirty < other.dirty_bytes {
                other.others = others(other.shared);
            }
            other.come_to_rest();
        }
    }

    /// Updates this stripe's part of the sum, and reads what the others have.
    #[inline(never)]
    #[unsafe(link_section = ".text.masu_cold.purge.stripes_publish")]
    pub(super) fn publish(&mut self) {
        let now = Bytes { live: self.live_bytes(), dirty: self.dirty_bytes };
        let before = mem::replace(&mut self.published, now);
        let others = |sum: &AtomicUsize, before: usize, now: usize| {
            // ORDERING: Relaxed: a sum of what was so a moment ago.
            sum.fetch_add(now.wrapping_sub(before), Ordering::Relaxed).wrapping_sub(before)
        };
        self.others = Bytes {
            live: others(&SUM.live_bytes, before.live, now.live),
            dirty: others(&SUM.dirty_bytes, before.dirty, now.dirty),
        };
    }
}

// The hardened build has one stripe.
#[cfg(all(test, not(loom), not(feature = "secure")))]
mod tests;
