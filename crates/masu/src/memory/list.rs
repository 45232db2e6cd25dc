//! A doubly linked list of slices, linked through the slices.
//!
//! Relies on slices for the links. Free runs and pages with free blocks are in such lists. A slice is in at most one at a
//! time, and the holder of the list's lock owns the links.

use core::ptr;

use crate::memory::slice::Slice;

/// A list of slices.
pub(crate) struct List {
    first: Option<&'static Slice>,
    last: Option<&'static Slice>,
}

// SAFETY: A list lives behind the lock that guards it and the links of its slices.
unsafe impl Send for List {}

impl List {
    pub(crate) const fn new() -> List {
        List { first: None, last: None }
    }

    pub(crate) fn first(&self) -> Option<&'static Slice> {
        self.first
    }

    pub(crate) fn push_first(&mut self, slice: &'static Slice) {
        slice.links.previous.set(None);
        slice.links.next.set(self.first);
        match self.first {
            Some(old) => old.links.previous.set(Some(slice)),
            None => self.last = Some(slice),
        }
        self.first = Some(slice);
    }

    pub(crate) fn push_last(&mut self, slice: &'static Slice) {
        slice.links.next.set(None);
        slice.links.previous.set(self.last);
        match self.last {
            Some(old) => old.links.next.set(Some(slice)),
            None => self.first = Some(slice),
        }
        self.last = Some(slice);
    }

    /// Inserts `slice` before `next`, which is in this list, or at the end for `None`.
    pub(crate) fn push_before(&mut self, next: Option<&'static Slice>, slice: &'static Slice) {
        let Some(next) = next else { return self.push_last(slice) };
        let Some(previous) = next.links.previous.get() else {
            return self.push_first(slice);
        };
        slice.links.previous.set(Some(previous));
        slice.links.next.set(Some(next));
        previous.links.next.set(Some(slice));
        next.links.previous.set(Some(slice));
    }

    /// The slice behind `slice`, which is in a list.
    pub(crate) fn behind(slice: &'static Slice) -> Option<&'static Slice> {
        slice.links.next.get()
    }

    /// Removes `slice`, which is in this list.
    pub(crate) fn remove(&mut self, slice: &'static Slice) {
        let (next, previous) = (slice.links.next.take(), slice.links.previous.take());
        match previous {
            Some(previous) => previous.links.next.set(next),
            None => {
                debug_assert!(self.first.is_some_and(|first| ptr::eq(first, slice)));
                self.first = next;
            }
        }
        match next {
            Some(next) => next.links.previous.set(previous),
            None => self.last = previous,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Whether there is at most one slice.
    pub(crate) fn is_alone(&self) -> bool {
        self.first.map(ptr::from_ref) == self.last.map(ptr::from_ref)
    }

    /// The slices, first to last. None may be removed during the iteration.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Slice> + use<> {
        core::iter::successors(self.first, |slice| slice.links.next.get())
    }

    /// The same, last to first.
    pub(crate) fn iter_back(&self) -> impl Iterator<Item = &'static Slice> + use<> {
        core::iter::successors(self.last, |slice| slice.links.previous.get())
    }
}
