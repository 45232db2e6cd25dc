//! Parked runs: a large block that its thread freed right after allocating it, kept for the thread's next request of that
//! size.
//!
//! Relies on each thread having a place of its own behind the thread slot, so parking and taking are plain stores: no lock,
//! no atomic exchange, no merging or splitting of runs, no write to the class map. The hard idea is that nothing else may
//! notice. A parked run is returned before its thread takes anything from the ranges or frees anything to them (except for
//! metadata and for tails of blocks that shrink), so it never blocks the merging of a longer run. A run is parked only if its
//! thread was handed two of one length in a row and frees the last one first. And it needs a *right* from the ranges; the sum
//! of rights counts against the free memory that may stay resident, so parked runs of idle threads hold no more than would
//! stay anyway.

use crate::memory::slice::{SLICE_BYTES, Slice};
use crate::platform::sync::{AtomicUsize, Ordering};

/// The bits of an entry that hold the slices.
const SLICES_MASK: usize = SLICE_BYTES - 1;

/// A thread's parked run. Only its thread changes it; others may count.
pub(crate) struct Parked {
    /// The run's address, with its slices in the low bits; 0 for none.
    run: AtomicUsize,
    /// The run handed out last, likewise, if the thread has the right to park it; else only its slices.
    last: AtomicUsize,
    /// The slices of the right to park, with the place of the stripe that gave it in the bits above.
    right: AtomicUsize,
}

fn entry(first: &'static Slice, slices: usize) -> usize {
    first.address() + slices
}

fn slices_of(entry: usize) -> usize {
    entry & SLICES_MASK
}

fn load(word: &AtomicUsize) -> usize {
    // ORDERING: Relaxed: the thread itself needs no order, and other threads only count.
    word.load(Ordering::Relaxed)
}

fn store(word: &AtomicUsize, value: usize) {
    // ORDERING: Relaxed, as above.
    word.store(value, Ordering::Relaxed);
}

impl Parked {
    /// Nothing parked, and no right to park.
    pub(crate) const fn new() -> Parked {
        Parked { run: AtomicUsize::new(0), last: AtomicUsize::new(0), right: AtomicUsize::new(0) }
    }

    /// Takes the parked run if it has exactly `slices` slices.
    #[inline]
    pub(crate) fn take(&self, slices: usize) -> Option<&'static Slice> {
        if slices_of(load(&self.run)) == slices { self.take_any() } else { None }
    }

    #[inline]
    fn take_any(&self) -> Option<&'static Slice> {
        let entry = load(&self.run);
        store(&self.run, 0);
        // SAFETY: A parked run lies in an arena, which stays reserved while a run of it is handed out.
        (entry != 0).then(|| unsafe { Slice::at(entry) })
    }

    /// Whether a run that was just freed should be parked, and may be.
    #[inline]
    pub(crate) fn wants(&self, first: &'static Slice, slices: usize) -> bool {
        load(&self.last) == entry(first, slices)
    }

    /// Parks a run that [`Parked::wants`] accepted.
    #[inline]
    pub(crate) fn park(&self, first: &'static Slice, slices: usize) {
        // Taking a parked run or the ranges empties the place before another run is handed out.
        debug_assert!(load(&self.run) == 0 && slices_of(load(&self.right)) == slices);
        store(&self.run, entry(first, slices));
    }

    /// Whether a run of `slices` slices, handed out just now, is as long as the one before.
    pub(super) fn repeats(&self, slices: usize) -> bool {
        slices_of(load(&self.last)) == slices
    }

    /// Records the run that the ranges handed out, with the right to park it from a stripe, or without.
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

    /// Gives up the right to park: returns its slices, and the run to return.
    pub(super) fn give_up(&self) -> (usize, Option<&'static Slice>) {
        let right = slices_of(load(&self.right));
        store(&self.right, 0);
        self.forget_last();
        (right, self.take_any())
    }

    /// Forgets the run that was handed out last, but not its length.
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
