//! Free bytes of a region: holes by address, joined where they touch.
//!
//! An allocation takes the lowest hole that fits, so that objects stay together at the region's beginning and holes are
//! reused before fresh memory. Holes are indexed by the *class* of their length, an eighth of a power of two, because
//! thousands of objects may leave thousands that are too small.

#[cfg(test)]
use std::cell::Cell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The free bytes of a region: all from `top` on, and the holes below.
#[derive(Debug)]
pub(crate) struct Space {
    /// The start of the free end.
    top: usize,
    /// Length by offset; no two holes touch, none is empty, and none touches `top`.
    holes: BTreeMap<usize, usize>,
    /// The offsets of the same holes, by the class of their lengths; no set is empty.
    by_class: BTreeMap<usize, BTreeSet<usize>>,
    size: usize,
    /// The end of the highest bytes that were ever handed out.
    high: usize,
    /// Holes inspected in the search for the lowest.
    #[cfg(test)]
    looked_at: Cell<usize>,
}

/// The class of a length, which is not 0: its highest bit and the three below. Small lengths that are multiples of
/// their spacing have a class of their own.
fn class(length: usize) -> usize {
    let power = length.ilog2();
    (power as usize) << 3 | length << 3 >> power & 7
}

impl Space {
    pub(crate) fn new(size: usize) -> Space {
        Space {
            top: 0,
            holes: BTreeMap::new(),
            by_class: BTreeMap::new(),
            size,
            high: 0,
            #[cfg(test)]
            looked_at: Cell::new(0),
        }
    }

    /// Notes a hole, unless it is empty.
    fn add(&mut self, start: usize, length: usize) {
        if length > 0 {
            self.holes.insert(start, length);
            self.by_class.entry(class(length)).or_default().insert(start);
        }
    }

    /// Forgets a hole; returns its length.
    fn remove(&mut self, start: usize) -> usize {
        let length = self.holes.remove(&start).unwrap_or(0);
        if length > 0
            && let Entry::Occupied(mut same) = self.by_class.entry(class(length))
        {
            same.get_mut().remove(&start);
            if same.get().is_empty() {
                same.remove();
            }
        }
        length
    }

    /// The offset in a hole where `size` bytes at a multiple of `align` fit.
    fn fit(&self, start: usize, size: usize, align: usize) -> Option<usize> {
        #[cfg(test)]
        self.looked_at.update(|count| count + 1);
        let at = start.checked_next_multiple_of(align)?;
        (at.checked_add(size)? <= start + self.holes[&start]).then_some(at)
    }

    /// The lowest hole that fits, and the offset where the bytes fit.
    fn find(&self, size: usize, align: usize) -> Option<(usize, usize)> {
        let mut lowest: Option<(usize, usize)> = None;
        for holes in self.by_class.range(class(size)..).map(|(_, holes)| holes) {
            let lower =
                holes.iter().take_while(|&&start| lowest.is_none_or(|(low, _)| start < low));
            let mut fitting =
                lower.filter_map(|&start| Some((start, self.fit(start, size, align)?)));
            lowest = fitting.next().or(lowest);
        }
        lowest
    }

    /// The lowest `size` free bytes at a multiple of `align`; `None` where no hole fits.
    ///
    /// `align` is a power of two. For a size of 0, nothing is taken and offset 0 is returned.
    pub(crate) fn allocate(&mut self, size: usize, align: usize) -> Option<usize> {
        if size == 0 {
            return Some(0);
        }
        if let Some((start, at)) = self.find(size, align) {
            let end = start + self.remove(start);
            self.add(start, at - start);
            self.add(at + size, end - at - size);
            return Some(at);
        }
        let at = self.top.checked_next_multiple_of(align)?;
        let end = at.checked_add(size).filter(|&end| end <= self.size)?;
        self.add(self.top, at - self.top);
        self.top = end;
        self.high = self.high.max(end);
        Some(at)
    }

    /// Gives bytes back; returns the hole that they are now part of.
    ///
    /// # Panics
    ///
    /// When some of the bytes are free already: the arena's own books would be wrong.
    pub(crate) fn free(&mut self, at: usize, size: usize) -> Range<usize> {
        if size == 0 {
            return 0..0;
        }
        let (mut start, mut end) = (at, at + size);
        assert!(end <= self.top, "freed twice");
        if let Some((&before, &length)) = self.holes.range(..=at).next_back() {
            assert!(before + length <= at, "freed twice");
            if before + length == at {
                start = before;
            }
        }
        if let Some((&after, &length)) = self.holes.range(at..).next() {
            assert!(end <= after, "freed twice");
            if after == end {
                end += length;
                self.remove(after);
            }
        }
        self.remove(start);
        if end == self.top {
            self.top = start;
            return start..self.size;
        }
        self.add(start, end - start);
        start..end
    }

    /// Bytes that were handed out before, by the end of the highest.
    pub(crate) fn high(&self) -> usize {
        self.high
    }

    pub(crate) fn free_bytes(&self) -> usize {
        self.holes.values().sum::<usize>() + self.size - self.top
    }

    pub(crate) fn largest(&self) -> usize {
        self.holes.values().copied().max().unwrap_or(0).max(self.size - self.top)
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Number and bytes of the holes below something in use.
    pub(crate) fn inner_holes(&self) -> (usize, usize) {
        (self.holes.len(), self.holes.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_hole_that_fits_is_taken() {
        let mut space = Space::new(1000);
        let [a, b, c] = [10, 20, 30].map(|size| space.allocate(size, 1).unwrap());
        assert_eq!((a, b, c), (0, 10, 30));
        space.free(a, 10);
        space.free(b, 20);
        assert_eq!(space.inner_holes(), (1, 30));
        assert_eq!(space.allocate(31, 16), Some(64));
        assert_eq!(space.allocate(25, 16), Some(0));
    }

    #[test]
    fn it_is_the_lowest_whatever_the_lengths_of_holes() {
        // Compares with a plain search, over holes of many lengths and requests of many alignments.
        let mut space = Space::new(1 << 16);
        let mut held: Vec<(usize, usize)> = Vec::new();
        let mut state = 7_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        for _ in 0..4000 {
            if !held.is_empty() && random(3) == 0 {
                let (at, size) = held.swap_remove(random(held.len()));
                space.free(at, size);
                continue;
            }
            let (size, align) = (1 + random(100), 1 << random(6));
            let top = (&space.top, &(space.size - space.top));
            let plain = space.holes.iter().chain([top]).find_map(|(&start, &length)| {
                let at = start.next_multiple_of(align);
                (at + size <= start + length).then_some(at)
            });
            assert_eq!(space.allocate(size, align), plain);
            held.extend(plain.map(|at| (at, size)));
        }
        let holes: usize = space.by_class.values().map(BTreeSet::len).sum();
        assert_eq!(holes, space.holes.len());
        for (at, size) in held {
            space.free(at, size);
        }
        assert_eq!((space.free_bytes(), space.largest(), space.top), (1 << 16, 1 << 16, 0));
    }

    #[test]
    fn holes_that_are_a_little_too_small_are_not_looked_at() {
        let mut space = Space::new(1 << 20);
        let all: Vec<usize> = (0..2000).map(|_| space.allocate(64, 16).unwrap()).collect();
        for &at in all.iter().step_by(2) {
            space.free(at, 64);
        }
        assert_eq!(space.inner_holes().0, 1000);
        for size in [80, 96, 112] {
            assert!(space.allocate(size, 16).unwrap() >= 2000 * 64);
        }
        assert_eq!(space.looked_at.get(), 0);
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn freeing_twice_is_noticed() {
        let mut space = Space::new(100);
        space.allocate(50, 1).unwrap();
        space.free(0, 10);
        space.free(5, 10);
    }

    #[test]
    fn sizes_that_overflow_do_not_fit() {
        let mut space = Space::new(100);
        assert_eq!(space.allocate(usize::MAX, 16), None);
        assert_eq!(space.allocate(usize::MAX - 15, 1 << 63), None);
    }
}
