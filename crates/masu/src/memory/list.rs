//! A doubly linked list of slices, linked through the slices.
//!
//! Relies on slices for the links. Free runs and pages with free blocks are in such lists. A slice is in at most one at a
//! time, and the holder of the list's lock owns the links. Dirty free runs are in a second list with links of its own.

use core::ptr;

use crate::memory::slice::{Links, Slice};

/// A list of slices, linked by [`Slice::dirty_links`] if `DIRTY`, else by [`Slice::links`].
pub(crate) struct List<const DIRTY: bool = false> {
    first: Option<&'static Slice>,
    last: Option<&'static Slice>,
}

// SAFETY: A list lives behind the lock that guards it and the links of its slices.
unsafe impl<const DIRTY: bool> Send for List<DIRTY> {}

impl<const DIRTY: bool> List<DIRTY> {
    pub(crate) const fn new() -> List<DIRTY> {
        List { first: None, last: None }
    }

    fn links(slice: &'static Slice) -> &'static Links {
        if DIRTY { &slice.dirty_links } else { &slice.links }
    }

    pub(crate) fn first(&self) -> Option<&'static Slice> {
        self.first
    }

    pub(crate) fn push_first(&mut self, slice: &'static Slice) {
        Self::links(slice).previous.set(None);
        Self::links(slice).next.set(self.first);
        match self.first {
            Some(old) => Self::links(old).previous.set(Some(slice)),
            None => self.last = Some(slice),
        }
        self.first = Some(slice);
    }

    pub(crate) fn push_last(&mut self, slice: &'static Slice) {
        Self::links(slice).next.set(None);
        Self::links(slice).previous.set(self.last);
        match self.last {
            Some(old) => Self::links(old).next.set(Some(slice)),
            None => self.first = Some(slice),
        }
        self.last = Some(slice);
    }

    /// Inserts `slice` before `next`, which is in this list, or at the end for `None`.
    pub(crate) fn push_before(&mut self, next: Option<&'static Slice>, slice: &'static Slice) {
        let Some(next) = next else { return self.push_last(slice) };
        let Some(previous) = Self::links(next).previous.get() else {
            return self.push_first(slice);
        };
        Self::links(slice).previous.set(Some(previous));
        Self::links(slice).next.set(Some(next));
        Self::links(previous).next.set(Some(slice));
        Self::links(next).previous.set(Some(slice));
    }

    /// The slice behind `slice`, which is in a list of this kind.
    pub(crate) fn behind(slice: &'static Slice) -> Option<&'static Slice> {
        Self::links(slice).next.get()
    }

    /// Removes `slice`, which is in this list.
    pub(crate) fn remove(&mut self, slice: &'static Slice) {
        let (next, previous) = (Self::links(slice).next.take(), Self::links(slice).previous.take());
        match previous {
            Some(previous) => Self::links(previous).next.set(next),
            None => {
                debug_assert!(self.first.is_some_and(|first| ptr::eq(first, slice)));
                self.first = next;
            }
        }
        match next {
            Some(next) => Self::links(next).previous.set(previous),
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
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Slice> + use<DIRTY> {
        core::iter::successors(self.first, |slice| Self::links(slice).next.get())
    }

    /// The same, last to first.
    pub(crate) fn iter_back(&self) -> impl Iterator<Item = &'static Slice> + use<DIRTY> {
        core::iter::successors(self.last, |slice| Self::links(slice).previous.get())
    }
}
