//! Decides when retired code may be freed: after every thread that may run it has been
//! quiescent once.
//!
//! Relies on [`crate::sync`]. Retiring code first makes it unreachable (entries are replaced), then advances the
//! *epoch*. A quiescent thread records the epoch that it sees; when all have recorded one at least as new, no thread
//! uses code that was unreachable by then. A call pays nothing: threads record an epoch when they choose to. The
//! states, steps and the race that must not happen are in `quiescence/README.md`.

use std::any::Any;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::sync::{Arc, AtomicUsize, Mutex, MutexGuard, Ordering};

/// The note of a thread that runs no loaded code for now.
const AWAY: usize = usize::MAX;

/// The epoch a thread noted, on a cache line of its own.
#[derive(Debug)]
#[repr(align(64))]
struct Note(AtomicUsize);

/// The threads that may run loaded code, and the epoch.
#[derive(Debug)]
pub(crate) struct Readers {
    epoch: AtomicUsize,
    notes: Mutex<Vec<Arc<Note>>>,
}

impl Readers {
    pub(crate) fn new() -> Arc<Readers> {
        Arc::new(Readers { epoch: AtomicUsize::new(1), notes: Mutex::new(Vec::new()) })
    }

    /// Advances the epoch and returns it. Code that was made unreachable before may be freed once all threads have
    /// [`Readers::passed`] the returned epoch.
    pub(crate) fn retire(&self) -> usize {
        // ORDERING: Release publishes that the code is unreachable; it pairs with the Acquire in `Reader::quiescent`.
        // AcqRel, so that later epochs also publish the writes of earlier epochs.
        self.epoch.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Whether every thread has been quiescent since the epoch began.
    pub(crate) fn passed(&self, epoch: usize) -> bool {
        // ORDERING: Acquire pairs with the Release of `Reader::quiescent`, so that all uses of the code by the thread
        // happened before the code is freed.
        let has_passed = |note: &Arc<Note>| note.0.load(Ordering::Acquire) >= epoch;
        self.notes().iter().all(has_passed)
    }

    pub(crate) fn count(&self) -> usize {
        self.notes().len()
    }

    /// The list's lock, if no thread has it.
    pub(crate) fn try_hold(&self) -> Option<impl Sized + use<'_>> {
        self.notes.try_lock().ok()
    }

    fn notes(&self) -> MutexGuard<'_, Vec<Arc<Note>>> {
        // A thread that panicked here left the list whole.
        self.notes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A thread that may run loaded code.
///
/// While it exists and is not [away](Reader::away), nothing that the thread may have reached since its last
/// [`Reader::quiescent`] is freed, not even when the arena is dropped. A reader may move to another thread, but belongs
/// to one thread at a time.
#[derive(Debug)]
pub struct Reader {
    readers: Arc<Readers>,
    note: Arc<Note>,
    /// The arena. Not `Sync`: no thread may say for another that it is quiescent.
    _arena: Box<dyn Any + Send>,
}

// A panic leaves no note half written, and a reader only keeps the arena.
impl UnwindSafe for Reader {}
impl RefUnwindSafe for Reader {}

impl Reader {
    pub(crate) fn register(readers: &Arc<Readers>, arena: Box<dyn Any + Send>) -> Reader {
        let mut notes = readers.notes();
        // ORDERING: Acquire, as in `quiescent`.
        let now = readers.epoch.load(Ordering::Acquire);
        let note = Arc::new(Note(AtomicUsize::new(now)));
        notes.push(Arc::clone(&note));
        drop(notes);
        Reader { readers: Arc::clone(readers), note, _arena: arena }
    }

    /// Says that this thread runs no loaded code, and holds no address of loaded code except those that a
    /// [`crate::Function`] keeps.
    #[inline]
    pub fn quiescent(&self) {
        // ORDERING: Acquire pairs with the Release of `Readers::retire`: a reader that notes an epoch sees the entries
        // that were replaced before it. The Release of the note pairs with `Readers::passed`.
        let now = self.readers.epoch.load(Ordering::Acquire);
        self.note.0.store(now, Ordering::Release);
    }

    /// Says the same until [`Reader::back`] is called. Call this before the thread waits.
    pub fn away(&self) {
        // ORDERING: Release, as in `quiescent`.
        self.note.0.store(AWAY, Ordering::Release);
    }

    /// Ends [`Reader::away`].
    pub fn back(&self) {
        // Under the lock, because a note that is written while `passed` reads could be missed: a
        // store followed by a load of an entry is not ordered by anything weaker.
        let _notes = self.readers.notes();
        self.quiescent();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.readers.notes().retain(|note| !Arc::ptr_eq(note, &self.note));
    }
}
