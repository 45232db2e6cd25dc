//! Readers and iterators as sources: blocks of bytes as they come, whole records, vectors of items.
//!
//! Relies on `std::io::Read`. The hard part is the bound on memory: buffers of finished blocks are reused, so that a
//! job has as many as its window, and a record longer than the longest block is an error and not a larger buffer.

use std::fmt;
use std::io::{self, Read};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::stream::Pull;
use crate::sync::{Mutex, lock};

/// Buffers to be reused. Each keeps its length, so that the bytes behind a short read are set to zero once.
type Spare = Arc<Mutex<Vec<Vec<u8>>>>;

/// Bytes of a reader, and the byte before them. Dropping the block returns its buffer to the reader.
pub struct Block {
    bytes: Vec<u8>,
    /// The number of bytes that were read.
    len: usize,
    before: Option<u8>,
    spare: Spare,
}

impl Block {
    /// The byte before the first of this block; `None` at the beginning of the data.
    pub fn before(&self) -> Option<u8> {
        self.before
    }

    /// A block sent by another process.
    #[cfg(feature = "timely")]
    pub(crate) fn sent(bytes: Vec<u8>, before: Option<u8>) -> Self {
        Self { len: bytes.len(), bytes, before, spare: Spare::default() }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { before, .. } = self;
        to.debug_struct("Block")
            .field("bytes", &&**self)
            .field("before", before)
            .finish_non_exhaustive()
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        lock(&self.spare).push(std::mem::take(&mut self.bytes));
    }
}

/// The room for the first read, in bytes. A read that fills its room doubles that of the next one, up to the size of a
/// chunk, so that a chunk may have any size and costs no more memory than there is data.
const FIRST: usize = 128 << 10;

/// A reader cut into blocks.
pub struct Blocks<R> {
    reader: R,
    size: usize,
    room: usize,
    before: Option<u8>,
    spare: Spare,
}

impl<R: Read + Send> Blocks<R> {
    pub(crate) fn new(reader: R, size: usize) -> Self {
        let size = size.max(1);
        Self { reader, size, room: size.min(FIRST), before: None, spare: Spare::default() }
    }

    /// Reads once, behind the `known` bytes; returns the number of bytes.
    fn read(&mut self, bytes: &mut Vec<u8>, known: usize) -> io::Result<usize> {
        let end = known + self.room;
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        let count = loop {
            match self.reader.read(&mut bytes[known..end]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A broken reader says more than it had room for.
                read => break read?.min(self.room),
            }
        };
        if count == self.room {
            self.room = self.size.min(2 * self.room);
        }
        Ok(count)
    }

    /// A buffer, with old bytes.
    fn buffer(&self) -> Vec<u8> {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// The first `len` bytes of a buffer and their number; `None` where there are none.
    fn block(&mut self, bytes: Vec<u8>, len: usize) -> Option<(Block, u64)> {
        let &last = bytes[..len].last()?;
        let before = self.before.replace(last);
        Some((Block { bytes, len, before, spare: Arc::clone(&self.spare) }, len as u64))
    }
}

/// A block is the result of one read, so that available data does not wait for more.
impl<R: Read + Send> Pull for Blocks<R> {
    type Data = Block;

    fn pull(&mut self) -> io::Result<Option<(Block, u64)>> {
        let mut bytes = self.buffer();
        let count = self.read(&mut bytes, 0)?;
        Ok(self.block(bytes, count))
    }
}

/// A reader cut after delimiters.
pub struct Records<R> {
    blocks: Blocks<R>,
    delimiter: u8,
    longest: usize,
    /// The beginning of an unfinished record.
    rest: Vec<u8>,
    ended: bool,
}

impl<R: Read + Send> Records<R> {
    pub(crate) fn new(reader: R, delimiter: u8, size: usize, longest: usize) -> Self {
        let blocks = Blocks::new(reader, size);
        Self { blocks, delimiter, longest, rest: Vec::new(), ended: false }
    }

    /// The beginning of the first record over the limit, among whole records.
    fn first_too_long(&self, records: &[u8]) -> Option<usize> {
        if records.len() <= self.longest {
            return None;
        }
        let mut start = 0;
        for record in records.split_inclusive(|&byte| byte == self.delimiter) {
            if record.len() - 1 > self.longest {
                return Some(start);
            }
            start += record.len();
        }
        None
    }

    fn too_long(&self) -> io::Error {
        let Self { delimiter, longest, .. } = self;
        let delimiter = delimiter.escape_ascii();
        io::Error::other(format!("a record has no delimiter `{delimiter}` within {longest} bytes"))
    }
}

/// A block holds whole records, each with its delimiter; the last may lack it.
impl<R: Read + Send> Pull for Records<R> {
    type Data = Block;

    fn pull(&mut self) -> io::Result<Option<(Block, u64)>> {
        if self.ended {
            return Ok(None);
        }
        let mut bytes = self.blocks.buffer();
        let mut known = self.rest.len();
        if bytes.len() < known {
            bytes.resize(known, 0);
        }
        bytes[..known].copy_from_slice(&self.rest);
        self.rest.clear();
        loop {
            if known > self.longest {
                return Err(self.too_long());
            }
            let end = known + self.blocks.read(&mut bytes, known)?;
            self.ended = end == known;
            let found = bytes[known..end].iter().rposition(|&byte| byte == self.delimiter);
            if let Some(at) = found.map(|at| known + at + 1) {
                // The records before one that is too long come first; the next call finds that one in the rest.
                let at = self.first_too_long(&bytes[..at]).unwrap_or(at);
                if at == 0 {
                    return Err(self.too_long());
                }
                self.rest.extend_from_slice(&bytes[at..end]);
                known = at;
                break;
            }
            known = end;
            if self.ended {
                break;
            }
        }
        Ok(self.blocks.block(bytes, known))
    }
}

/// An iterator cut into vectors of so many items.
pub struct Items<I> {
    iterator: I,
    chunk: usize,
}

impl<I: Iterator> Items<I> {
    pub(crate) fn new(iterator: I, chunk: usize) -> Self {
        Self { iterator, chunk: chunk.max(1) }
    }
}

impl<I> Pull for Items<I>
where
    I: Iterator + Send,
    I::Item: Send,
{
    type Data = Vec<I::Item>;

    fn pull(&mut self) -> io::Result<Option<(Vec<I::Item>, u64)>> {
        // With `by_ref().take` the vector has its final length from the beginning where the iterator
        // knows its length, and no surplus item is taken.
        let items: Vec<_> = self.iterator.by_ref().take(self.chunk).collect();
        let count = items.len() as u64;
        Ok((count > 0).then_some((items, count)))
    }

    fn total(&self) -> Option<u64> {
        let (least, most) = self.iterator.size_hint();
        (Some(least) == most).then_some(least as u64)
    }
}
