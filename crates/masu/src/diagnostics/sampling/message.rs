//! Writes a profile as a message of pprof's `profile.proto`, field by field.
//!
//! Relies on metadata for the message, and on the kernel door's files. Many tools read that format. The message has the data
//! that these tools need to find names: addresses, and the files mapped there. The hard idea: the whole message is made in
//! memory, because the samples are locked while they are read, and a file system may take any time. Repeated fields may come in
//! any order, so nothing is sorted, and parts that precede others by their length are short.
//!
//! Reference: github.com/google/pprof/proto/profile.proto.

use core::mem;
use core::ptr::NonNull;

use super::samples::{PARTS_LOG2, Samples};
use crate::memory::metadata::{self, WORDS_MAX};
use crate::platform::kernel::Errno;
use crate::platform::kernel::file::File;

mod mappings;

pub(crate) use mappings::Mappings;

/// The fixed strings, by number; names of files follow.
const STRINGS: &[&[u8]] = &[
    b"",
    b"alloc_objects",
    b"count",
    b"alloc_space",
    b"bytes",
    b"inuse_objects",
    b"inuse_space",
    b"space",
    b"heap profile by masu; figures are estimates from samples",
    b"the profile was full: some samples are missing",
];
const COUNT: usize = 2;
const BYTES: usize = 4;
const INUSE_SPACE: usize = 6;
const SPACE: usize = 7;
const COMMENT: usize = 8;
const FULL: usize = 9;

/// Fields of `Profile`.
mod field {
    pub(super) const SAMPLE_TYPE: usize = 1;
    pub(super) const SAMPLE: usize = 2;
    pub(super) const MAPPING: usize = 3;
    pub(super) const LOCATION: usize = 4;
    pub(super) const STRING: usize = 6;
    pub(super) const PERIOD_TYPE: usize = 11;
    pub(super) const PERIOD: usize = 12;
    pub(super) const COMMENT: usize = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: usize = 14;
}

/// A message in memory, in chunks of metadata.
pub(super) struct Message {
    /// The chunk that is being filled, or the first one where the message is being written.
    chunk: Option<&'static mut Chunk>,
    lacks_memory: bool,
}

#[repr(C)]
struct Chunk {
    /// The chunk before this one, or behind it where the message is being written.
    next: Option<&'static mut Chunk>,
    length: usize,
    bytes: [u8; CHUNK_BYTES],
}

const CHUNK_BYTES: usize = (WORDS_MAX - 2) * size_of::<usize>();
const _: () = assert!(size_of::<Chunk>() == WORDS_MAX * size_of::<usize>());

impl Message {
    pub(super) fn new() -> Message {
        Message { chunk: None, lacks_memory: false }
    }

    /// Whether there was memory for all of it.
    pub(super) fn is_whole(&self) -> bool {
        !self.lacks_memory
    }

    /// Adds the fixed strings, and the present mappings with theirs: before the samples.
    pub(super) fn add_mappings(&mut self) -> Mappings {
        for string in STRINGS {
            self.message(field::STRING, string);
        }
        Mappings::now(|mapping| {
            let mut part = Part::new();
            part.number(1, mapping.number);
            part.number(2, mapping.start);
            part.number(3, mapping.end);
            part.number(4, mapping.offset);
            part.number(5, STRINGS.len() + mapping.number - 1);
            self.message(field::MAPPING, part.bytes());
            self.message(field::STRING, mapping.name);
        })
    }

    pub(super) fn add_samples(&mut self, samples: &Samples, mappings: &Mappings) {
        for (kind, unit) in [(1, COUNT), (3, BYTES), (5, COUNT), (INUSE_SPACE, BYTES)] {
            self.value_type(field::SAMPLE_TYPE, kind, unit);
        }
        self.value_type(field::PERIOD_TYPE, SPACE, BYTES);
        self.number(field::PERIOD, samples.interval);
        self.number(field::DEFAULT_SAMPLE_TYPE, INUSE_SPACE);
        self.number(field::COMMENT, COMMENT);
        if samples.dropped > 0 {
            self.number(field::COMMENT, FULL);
        }
        samples.for_each_frame(|number, address| {
            let mut part = Part::new();
            part.number(1, number);
            part.number(2, mappings.holding(address));
            part.number(3, address);
            self.message(field::LOCATION, part.bytes());
        });
        samples.for_each_stack(|sums, depth, number_of| {
            let mut locations = Part::new();
            for frame in 0..depth {
                locations.varint(number_of(frame));
            }
            let mut values = Part::new();
            // Counts of parts are rounded, not truncated. They saturate where an interval exceeds all memory and a block
            // stands for the largest number.
            let blocks = |parts: usize| parts.saturating_add(1 << (PARTS_LOG2 - 1)) >> PARTS_LOG2;
            values.varint(blocks(sums.allocated_parts));
            values.varint(sums.allocated_bytes);
            values.varint(blocks(sums.live_parts));
            values.varint(sums.live_bytes);
            let mut part = Part::new();
            part.message(1, locations.bytes());
            part.message(2, values.bytes());
            self.message(field::SAMPLE, part.bytes());
        });
    }

    /// Writes the message to a file. No lock is held.
    pub(super) fn write_to(mut self, file: &File) -> Result<(), Errno> {
        let mut first = None;
        while let Some(chunk) = self.chunk.take() {
            self.chunk = mem::replace(&mut chunk.next, first);
            first = Some(chunk);
        }
        self.chunk = first;
        let mut chunk = self.chunk.as_deref();
        while let Some(Chunk { next, length, bytes }) = chunk {
            file.write(&bytes[..*length])?;
            chunk = next.as_deref();
        }
        Ok(())
    }

    /// Adds a chunk.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let Some(words) = metadata::words(WORDS_MAX) else {
            self.lacks_memory = true;
            return;
        };
        words.fill(0);
        // SAFETY: The array is as long, nothing else uses it, and zeros are a valid value.
        let chunk = unsafe { &mut *words.as_mut_ptr().cast::<Chunk>() };
        chunk.next = self.chunk.take();
        self.chunk = Some(chunk);
    }

    #[inline(never)]
    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.lacks_memory {
            match &mut self.chunk {
                Some(chunk) if chunk.length < CHUNK_BYTES => {
                    let count = bytes.len().min(CHUNK_BYTES - chunk.length);
                    let (now, later) = bytes.split_at(count);
                    chunk.bytes[chunk.length..chunk.length + count].copy_from_slice(now);
                    chunk.length += count;
                    bytes = later;
                }
                _ => self.grow(),
            }
        }
    }

    #[inline(never)]
    fn number(&mut self, field: usize, value: usize) {
        let mut part = Part::new();
        part.number(field, value);
        self.write(part.bytes());
    }

    #[inline(never)]
    fn message(&mut self, field: usize, bytes: &[u8]) {
        let mut part = Part::new();
        part.start_of_message(field, bytes.len());
        self.write(part.bytes());
        self.write(bytes);
    }

    #[inline(never)]
    fn value_type(&mut self, field: usize, kind: usize, unit: usize) {
        let mut part = Part::new();
        part.number(1, kind);
        part.number(2, unit);
        self.message(field, part.bytes());
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        while let Some(chunk) = self.chunk.take() {
            self.chunk = chunk.next.take();
            // SAFETY: The array came from `metadata::words` with this length, and nothing refers to it any more.
            unsafe { metadata::give_back(NonNull::from(chunk).cast(), WORDS_MAX) };
        }
    }
}

/// The largest part: a stack's frames at 4 bytes each and its values.
const PART_BYTES: usize = 640;
const _: () = assert!(super::FRAMES_MAX * 4 + 4 * 10 + 16 <= PART_BYTES);

/// A short message in memory.
struct Part {
    bytes: [u8; PART_BYTES],
    length: usize,
}

impl Part {
    fn new() -> Part {
        Part { bytes: [0; PART_BYTES], length: 0 }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn byte(&mut self, byte: u8) {
        // There is always room. Without room the file would be wrong, but no memory would be overwritten.
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// A number at seven bits a byte.
    #[inline(never)]
    fn varint(&mut self, mut value: usize) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    #[inline(never)]
    fn number(&mut self, field: usize, value: usize) {
        const VARINT: usize = 0;
        self.varint(field << 3 | VARINT);
        self.varint(value);
    }

    fn start_of_message(&mut self, field: usize, length: usize) {
        const LENGTH_DELIMITED: usize = 2;
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(length);
    }

    #[inline(never)]
    fn message(&mut self, field: usize, bytes: &[u8]) {
        self.start_of_message(field, bytes.len());
        bytes.iter().for_each(|byte| self.byte(*byte));
    }
}
