//! Which bytes of a region are free: holes in the order of addresses, joined where they touch.
//!
//! Relies on nothing. The one hard idea is the choice of a hole: always the lowest one that fits,
//! so that what is loaded stays together at the region's beginning and holes are filled again
//! before fresh memory is.

use std::collections::BTreeMap;
use std::ops::Range;

/// The free bytes of a region.
#[derive(Debug)]
pub(crate) struct Space {
    /// Length by offset; no two touch and none is empty.
    holes: BTreeMap<usize, usize>,
    size: usize,
    /// The end of the highest bytes that were ever handed out.
    high: usize,
}

impl Space {
    pub(crate) fn new(size: usize) -> Space {
        let holes = if size > 0 { BTreeMap::from([(0, size)]) } else { BTreeMap::new() };
        Space { holes, size, high: 0 }
    }

    /// The lowest `size` free bytes at a multiple of `align`; `None` where no hole fits.
    ///
    /// `align` is a power of two. Of nothing, nothing is taken and offset 0 returned.
    pub(crate) fn allocate(&mut self, size: usize, align: usize) -> Option<usize> {
        if size == 0 {
            return Some(0);
        }
        let fits = |(&start, &length): (&usize, &usize)| {
            let at = start.checked_next_multiple_of(align)?;
            let end = at.checked_add(size)?;
            (end <= start + length).then_some((start, length, at))
        };
        let (start, length, at) = self.holes.iter().find_map(fits)?;
        self.holes.remove(&start);
        if at > start {
            self.holes.insert(start, at - start);
        }
        if start + length > at + size {
            self.holes.insert(at + size, start + length - at - size);
        }
        self.high = self.high.max(at + size);
        Some(at)
    }

    /// Gives bytes back; returns the hole that they are now part of.
    ///
    /// # Panics
    ///
    /// When some of them are free already: the arena's own books would be wrong.
    pub(crate) fn free(&mut self, at: usize, size: usize) -> Range<usize> {
        if size == 0 {
            return 0..0;
        }
        let (mut start, mut end) = (at, at + size);
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
                self.holes.remove(&after);
            }
        }
        self.holes.insert(start, end - start);
        start..end
    }

    /// Bytes that were handed out before, by the end of the highest.
    pub(crate) fn high(&self) -> usize {
        self.high
    }

    pub(crate) fn free_bytes(&self) -> usize {
        self.holes.values().sum()
    }

    pub(crate) fn largest(&self) -> usize {
        self.holes.values().copied().max().unwrap_or(0)
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Number and bytes of the holes that lie below something in use.
    pub(crate) fn inner_holes(&self) -> (usize, usize) {
        let inner = |(start, length): &(&usize, &usize)| *start + *length < self.size;
        let lengths = self.holes.iter().filter(inner).map(|(_, length)| *length);
        lengths.fold((0, 0), |(count, bytes), length| (count + 1, bytes + length))
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
    fn what_was_freed_joins_into_one_hole() {
        let mut space = Space::new(640);
        let all: Vec<usize> = (0..10).map(|_| space.allocate(64, 16).unwrap()).collect();
        assert_eq!(space.allocate(1, 1), None);
        for index in [3, 5, 4, 0, 9, 1, 2, 8, 6, 7] {
            space.free(all[index], 64);
        }
        assert_eq!((space.largest(), space.free_bytes()), (640, 640));
        assert_eq!(space.inner_holes(), (0, 0));
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
