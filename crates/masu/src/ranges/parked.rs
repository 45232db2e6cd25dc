//! Parked runs: a large block that was freed right after it was made, left as it is for the next
//! request of its size.
//!
//! Relies on atomics alone: parking and taking are one exchange each, without the lock of the ranges,
//! without a merge and a cut, and without a write to the class map. The hard idea is that nothing else
//! may notice. A parked run goes home before its shard takes anything from the ranges or gives them
//! anything, so it never bars a longer run; and a run is parked only where its shard handed out two
//! of one length in a row and the last one comes back first.

use crate::options::{self, SHARDS_MAX};
use crate::slice::{SLICE_BYTES, Slice};
use crate::sync::{AtomicUsize, Ordering};

/// Longer runs are not parked: what they hold would show in a small program.
pub(crate) const PARKED_SLICES_MAX: usize = 16;
/// The bits of an entry that hold the slices.
const SLICES_MASK: usize = SLICE_BYTES - 1;

/// What one shard has parked, on a cache line of its own.
#[repr(align(64))]
struct Place {
    /// The run's address, with its slices in the low bits; 0 for none.
    run: AtomicUsize,
    /// The run handed out last, likewise, if the one before was as long; else only its slices.
    last: AtomicUsize,
}

static PLACES: [Place; SHARDS_MAX] = [const { Place::new() }; SHARDS_MAX];

/// A shard's number, as a place.
fn place(shard: u8) -> &'static Place {
    &PLACES[usize::from(shard) % SHARDS_MAX]
}

fn entry(first: &'static Slice, slices: usize) -> usize {
    first.address() + slices
}

fn slices_of(entry: usize) -> usize {
    entry & SLICES_MASK
}

fn first_of(entry: usize) -> Option<&'static Slice> {
    // SAFETY: A parked run lies in an arena, which stays reserved as long as a run is handed out.
    (entry != 0).then(|| unsafe { Slice::at(entry) })
}

/// Takes the parked run if it has exactly `slices` slices.
pub(crate) fn take(shard: u8, slices: usize) -> Option<&'static Slice> {
    let run = &place(shard).run;
    // ORDERING: Relaxed: only a guess, which the exchange proves.
    let entry = run.load(Ordering::Relaxed);
    if slices_of(entry) != slices {
        return None;
    }
    // ORDERING: Acquire pairs with the Release in `park`: its user is done with the memory. An entry
    // is the same run whenever it is there, so it does not matter if it was away in between.
    run.compare_exchange(entry, 0, Ordering::Acquire, Ordering::Relaxed).ok()?;
    first_of(entry)
}

/// Notes the run, of at most [`PARKED_SLICES_MAX`], that the ranges handed out for a request that
/// found nothing parked.
pub(crate) fn note_handed_out(shard: u8, first: &'static Slice, slices: usize) {
    let last = &place(shard).last;
    // ORDERING: Relaxed: this is only advice to `wants`.
    let repeats = slices_of(last.load(Ordering::Relaxed)) == slices;
    let parks = repeats && options::retain().is_none();
    // ORDERING: Relaxed, as above.
    last.store(if parks { entry(first, slices) } else { slices }, Ordering::Relaxed);
}

/// Whether a run that is free now is worth parking.
pub(crate) fn wants(shard: u8, first: &'static Slice, slices: usize) -> bool {
    // ORDERING: Relaxed: advice.
    place(shard).last.load(Ordering::Relaxed) == entry(first, slices)
}

/// Parks a run that [`wants`] asked for; returns the one that was there, which has to go home.
#[must_use]
pub(crate) fn park(shard: u8, first: &'static Slice, slices: usize) -> Option<&'static Slice> {
    debug_assert!((1..=PARKED_SLICES_MAX).contains(&slices));
    // ORDERING: Release pairs with the Acquire of whoever takes the run; Acquire, for the one before.
    first_of(place(shard).run.swap(entry(first, slices), Ordering::AcqRel))
}

/// Takes whatever is parked, to bring it home.
pub(crate) fn take_any(shard: u8) -> Option<&'static Slice> {
    let run = &place(shard).run;
    // ORDERING: Relaxed: what was parked by another thread just now may stay.
    if run.load(Ordering::Relaxed) == 0 {
        return None;
    }
    // ORDERING: Acquire, as in `take`.
    first_of(run.swap(0, Ordering::Acquire))
}

/// How many runs are parked, and their slices.
pub(crate) fn count() -> (usize, usize) {
    // ORDERING: Relaxed: a count of one moment.
    let entries = PLACES.iter().map(|place| place.run.load(Ordering::Relaxed));
    entries
        .filter(|entry| *entry != 0)
        .fold((0, 0), |(runs, sum), e| (runs + 1, sum + slices_of(e)))
}

impl Place {
    const fn new() -> Place {
        Place { run: AtomicUsize::new(0), last: AtomicUsize::new(0) }
    }
}
