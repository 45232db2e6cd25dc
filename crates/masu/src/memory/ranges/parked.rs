//! Parked runs: a large block that was freed right after it was made, left as it is for the next
//! request of its size.
//!
//! Relies on each thread having a place of its own, behind the thread slot, so parking and taking are plain stores: no lock of
//! the ranges, no exchange, no merge and no cut, no write to the class map. The hard idea is that
//! nothing else may notice. A parked run goes home before its thread takes anything from the ranges or
//! gives them anything (but for the allocator's own memory and for a tail that a block gives up), so it
//! bars no longer run; a run is parked only where its thread was
//! handed two of one length in a row and the last one comes back first; and only with a *right* that
//! the ranges gave, whose sum counts against the free memory that may stay: threads that wait hold no
//! more together than would stay anyway.

use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::platform::sync::{AtomicUsize, Ordering};

/// The bits of an entry that hold the slices.
const SLICES_MASK: usize = SLICE_BYTES - 1;

/// What one thread has parked. Only the thread itself touches it; others may count.
pub(crate) struct Parked {
    /// The run's address, with its slices in the low bits; 0 for none.
    run: AtomicUsize,
    /// The run handed out last, likewise, if the thread has the right to park it; else only its
    /// slices.
    last: AtomicUsize,
    /// Slices that this thread may park, with the place of the stripe that gave the right in the bits above them.
    right: AtomicUsize,
}

fn entry(first: &'static Slice, slices: usize) -> usize {
    first.address() + slices
}

fn slices_of(entry: usize) -> usize {
    entry & SLICES_MASK
}

fn load(word: &AtomicUsize) -> usize {
    // ORDERING: Relaxed: its own thread needs no order, and others only count.
    word.load(Ordering::Relaxed)
}

fn store(word: &AtomicUsize, value: usize) {
    // ORDERING: Relaxed, as above.
    word.store(value, Ordering::Relaxed);
}

impl Parked {
    /// Nothing, and no right to park anything.
    pub(crate) const fn new() -> Parked {
        Parked { run: AtomicUsize::new(0), last: AtomicUsize::new(0), right: AtomicUsize::new(0) }
    }

    /// Takes the parked run if it has exactly `slices` slices.
    #[inline]
    pub(crate) fn take(&self, slices: usize) -> Option<&'static Slice> {
        if slices_of(load(&self.run)) == slices { self.take_any() } else { None }
    }

    /// Takes whatever is parked.
    #[inline]
    fn take_any(&self) -> Option<&'static Slice> {
        let entry = load(&self.run);
        store(&self.run, 0);
        // SAFETY: A parked run lies in an arena, which stays reserved as long as a run is handed out.
        (entry != 0).then(|| unsafe { Slice::at(entry) })
    }

    /// Whether a run that is free now is worth parking, and may be.
    #[inline]
    pub(crate) fn wants(&self, first: &'static Slice, slices: usize) -> bool {
        load(&self.last) == entry(first, slices)
    }

    /// Parks a run that [`Parked::wants`] asked for.
    #[inline]
    pub(crate) fn park(&self, first: &'static Slice, slices: usize) {
        // Whatever is handed out while a run is parked was parked itself, or that one went home.
        debug_assert!(load(&self.run) == 0 && slices_of(load(&self.right)) == slices);
        store(&self.run, entry(first, slices));
    }

    /// Whether a run of `slices` slices, handed out just now, is as long as the one before.
    pub(super) fn repeats(&self, slices: usize) -> bool {
        slices_of(load(&self.last)) == slices
    }

    /// Notes the run that the ranges handed out, with the right to park it, from the stripe at a place, or without.
    pub(super) fn note_handed_out(
        &self,
        first: &'static Slice,
        slices: usize,
        right_from: Option<usize>,
    ) {
        debug_assert!(load(&self.right) == 0, "given back before a run was handed out");
        let (right, last) = match right_from {
            Some(place) => (place * SLICE_BYTES + slices, entry(first, slices)),
            None => (0, slices & SLICES_MASK),
        };
        store(&self.right, right);
        store(&self.last, last);
    }

    /// The place of the stripe that gave the right to park, if one did.
    pub(super) fn right_from(&self) -> Option<usize> {
        self.has_right().then(|| load(&self.right) / SLICE_BYTES)
    }

    /// Gives up the right to park: how many slices it was for, and the run that has to go home.
    pub(super) fn give_up(&self) -> (usize, Option<&'static Slice>) {
        let right = slices_of(load(&self.right));
        store(&self.right, 0);
        self.forget_last();
        (right, self.take_any())
    }

    /// Forgets which run was handed out last, but not how long it was.
    #[inline]
    pub(super) fn forget_last(&self) {
        store(&self.last, slices_of(load(&self.last)));
    }

    /// Whether there is a right to give up.
    pub(crate) fn has_right(&self) -> bool {
        load(&self.right) != 0
    }

    /// Slices parked now.
    pub(crate) fn slices(&self) -> usize {
        slices_of(load(&self.run))
    }
}
