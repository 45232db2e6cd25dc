//! Free runs in lists by length.
//!
//! Relies on slices for the links. Short runs of each length have a list of their own, longer ones share four lists a
//! doubling. A word says which lists are not empty, because it is read whenever a run is taken or freed.

use crate::memory::list::List;
use crate::memory::slice::Slice;

/// Runs of each length below this have a list of their own.
const EXACT_LISTS: usize = 16;
/// Longer runs share four lists a doubling. No run of an arena of 1 GiB is so long that it would be in the last list with others.
const LISTS: usize = u64::BITS as usize;
/// Runs checked in a list of mixed lengths before the next list is taken.
const TRIES: usize = 16;

pub(super) struct Lists {
    occupied: u64,
    lists: [List; LISTS],
}

impl Lists {
    pub(super) const fn new() -> Lists {
        Lists { occupied: 0, lists: [const { List::new() }; LISTS] }
    }

    pub(super) fn insert(&mut self, run: &'static Slice) {
        let list = list_of(run.count.get() as usize);
        self.lists[list].push_first(run);
        self.occupied |= 1 << list;
    }

    pub(super) fn remove(&mut self, run: &'static Slice) {
        let list = list_of(run.count.get() as usize);
        self.lists[list].remove(run);
        if self.lists[list].is_empty() {
            self.occupied &= !(1 << list);
        }
    }

    /// The shortest run of at least `slices`, or nearly so: the one freed last.
    pub(super) fn fitting(&self, slices: usize) -> Option<&'static Slice> {
        let from = list_of(slices);
        let mut left = self.occupied >> from << from;
        while left != 0 {
            let list = &self.lists[left.trailing_zeros() as usize];
            let run = list.iter().take(TRIES).find(|run| run.count.get() as usize >= slices);
            if run.is_some() {
                return run;
            }
            left &= left - 1;
        }
        None
    }

    /// A run of at least `slices` that [`Lists::fitting`] may have missed among many shorter ones.
    pub(super) fn fitting_among_many(&self, slices: usize) -> Option<&'static Slice> {
        self.lists[list_of(slices)].iter().find(|run| run.count.get() as usize >= slices)
    }

    /// The run of exactly `slices` that was freed last, if it is not among many of other lengths.
    pub(super) fn exact(&self, slices: usize) -> Option<&'static Slice> {
        let mut runs = self.lists[list_of(slices)].iter().take(TRIES);
        runs.find(|run| run.count.get() as usize == slices)
    }

    /// The longest run, or nearly so.
    pub(super) fn longest(&self) -> Option<&'static Slice> {
        self.lists[self.occupied.checked_ilog2()? as usize].first()
    }

    /// The same, but of such runs the one that was freed first.
    pub(super) fn longest_unused(&self) -> Option<&'static Slice> {
        self.lists[self.occupied.checked_ilog2()? as usize].iter_back().next()
    }

    /// All runs, from the shortest lists on; in each list those that were freed first come first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static Slice> {
        self.lists.iter().flat_map(List::iter_back)
    }

    /// Checks that each run is in the list of its length.
    #[cfg(test)]
    pub(super) fn check(&self) {
        for (index, list) in self.lists.iter().enumerate() {
            assert!(list.iter().all(|run| list_of(run.count.get() as usize) == index));
            assert_eq!(self.occupied & 1 << index == 0, list.is_empty());
        }
    }
}

/// The list for runs of `count` slices.
fn list_of(count: usize) -> usize {
    if count < EXACT_LISTS {
        return count;
    }
    let doubling = count.ilog2() as usize;
    let quarter = (count >> (doubling - 2)) & 3;
    (EXACT_LISTS + (doubling - EXACT_LISTS.ilog2() as usize) * 4 + quarter).min(LISTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_is_monotonic() {
        let mut last = 0;
        for count in 1..1 << 20 {
            let list = list_of(count);
            assert!(list >= last && list < LISTS);
            last = list;
        }
    }
}
