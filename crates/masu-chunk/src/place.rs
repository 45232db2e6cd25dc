//! The place of a chunk in the data, and the chunk as a function gets it.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};

/// The place of a chunk: its number, and its items or bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number of the chunk, from 0, in the order of the data.
    pub index: u64,
    /// The chunk's items, counted from 0; for a reader, its bytes. Empty if reading the chunk failed.
    pub items: Range<u64>,
}

impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { index, items: Range { start, end } } = self;
        if start == end {
            return write!(to, "chunk {index}, which begins at {start}");
        }
        write!(to, "chunk {index}, which is {start} to {}", end - 1)
    }
}

/// The argument of a function: the data of one chunk, and its place.
///
/// It derefs to the data: `chunk.iter()` just works on a chunk of a slice.
#[derive(Debug)]
pub struct Chunk<D> {
    place: Place,
    data: D,
}

impl<D> Chunk<D> {
    pub(crate) fn new(place: Place, data: D) -> Self {
        Self { place, data }
    }

    /// The place of this chunk in the data.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The data alone, to keep it or to take its items.
    pub fn into_inner(self) -> D {
        self.data
    }
}

impl<D> Deref for Chunk<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.data
    }
}

impl<D> DerefMut for Chunk<D> {
    fn deref_mut(&mut self) -> &mut D {
        &mut self.data
    }
}
