//! A table of numbers other than 0, which one writer at a time changes and any thread reads without a lock.
//!
//! Relies on its parent module for the atomics; `tests/loom.rs` supplies modelled ones. The hard idea: readers visit
//! only places that were ever used, so their count is raised after a place is filled. A reader that finds an entry sees
//! everything that its writer wrote before entering it.

use super::{AtomicUsize, Ordering};

/// The table. Places in between may be empty. The first places usually share an OS page with the count.
#[repr(C)]
pub(crate) struct Table<const PLACES: usize> {
    /// One more than the last place ever used. Accessed as `places`.
    used: AtomicUsize,
    /// One writer at a time, any reader; 0 where empty.
    places: [AtomicUsize; PLACES],
}

impl<const PLACES: usize> Table<PLACES> {
    /// A table of these. The caller makes the atomics, because a model checker's are not `const`.
    pub(crate) const fn of(places: [AtomicUsize; PLACES], used: AtomicUsize) -> Table<PLACES> {
        Table { places, used }
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = usize> {
        // ORDERING: Acquire pairs with the Release in `enter`: the places below are filled.
        let used = self.used.load(Ordering::Acquire);
        // ORDERING: Acquire pairs with the Release in `enter`: the writer's earlier writes are seen.
        let places = self
            .places
            .get(..used)
            .unwrap_or_default()
            .iter()
            .map(|place| place.load(Ordering::Acquire));
        places.filter(|entry| *entry != 0)
    }

    /// Enters a number; returns its place, or `None` where all are taken. The caller is the only writer.
    pub(crate) fn enter(&self, entry: usize) -> Option<usize> {
        // ORDERING: Relaxed: only this thread writes.
        let is_free = |place: &AtomicUsize| place.load(Ordering::Relaxed) == 0;
        let (place, free) = self.places.iter().enumerate().find(|(_, place)| is_free(place))?;
        // ORDERING: Release publishes this writer's earlier writes to readers of the entry.
        free.store(entry, Ordering::Release);
        // ORDERING: Release publishes the place above. Relaxed to read: only this thread writes.
        if self.used.load(Ordering::Relaxed) <= place {
            self.used.store(place + 1, Ordering::Release);
        }
        Some(place)
    }

    /// Empties a place. The caller is the only writer, and readers may still find the entry.
    pub(crate) fn leave(&self, place: usize) {
        if let Some(entered) = self.places.get(place) {
            // ORDERING: Relaxed: readers skip empty places.
            entered.store(0, Ordering::Relaxed);
        }
    }
}
