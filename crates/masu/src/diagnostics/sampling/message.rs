//! Writes a profile as a message of pprof's `profile.proto`, field by field.
//!
//! Relies on the kernel door's files. Many tools read that format. The message has the data that these tools need to
//! find names: addresses, and the files mapped there. The hard idea: nothing is collected first. Repeated fields may
//! come in any order, so each part is written at once; only short parts are built in memory, because their length
//! precedes them.
//!
//! Reference: github.com/google/pprof/proto/profile.proto.

use super::samples::{PARTS_LOG2, Samples};
use crate::memory::metadata;
use crate::platform::kernel::Errno;
use crate::platform::kernel::file::File;

mod mappings;

use mappings::Mappings;

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

pub(super) fn write(samples: &Samples, file: &File) -> Result<(), Errno> {
    let mut output = Output { file, bytes: [0; OUTPUT_BYTES], length: 0, error: None };
    for string in STRINGS {
        output.message(field::STRING, string);
    }
    for (kind, unit) in [(1, COUNT), (3, BYTES), (5, COUNT), (INUSE_SPACE, BYTES)] {
        output.value_type(field::SAMPLE_TYPE, kind, unit);
    }
    output.value_type(field::PERIOD_TYPE, SPACE, BYTES);
    output.number(field::PERIOD, samples.interval);
    output.number(field::DEFAULT_SAMPLE_TYPE, INUSE_SPACE);
    output.number(field::COMMENT, COMMENT);
    if samples.dropped > 0 {
        output.number(field::COMMENT, FULL);
    }
    let mappings = Mappings::now(|mapping| {
        let mut part = Part::new();
        part.number(1, mapping.number);
        part.number(2, mapping.start);
        part.number(3, mapping.end);
        part.number(4, mapping.offset);
        part.number(5, STRINGS.len() + mapping.number - 1);
        output.message(field::MAPPING, part.bytes());
        output.message(field::STRING, mapping.name);
    });
    samples.for_each_frame(|number, address| {
        let mut part = Part::new();
        part.number(1, number);
        part.number(2, mappings.holding(address));
        part.number(3, address);
        output.message(field::LOCATION, part.bytes());
    });
    samples.for_each_stack(|sums, depth, number_of| {
        let mut locations = Part::new();
        for frame in 0..depth {
            locations.varint(number_of(frame));
        }
        let mut values = Part::new();
        // Counts of parts are rounded, not truncated. They saturate where an interval exceeds all memory and a block stands
        // for the largest number.
        let blocks = |parts: usize| parts.saturating_add(1 << (PARTS_LOG2 - 1)) >> PARTS_LOG2;
        values.varint(blocks(sums.allocated_parts));
        values.varint(sums.allocated_bytes);
        values.varint(blocks(sums.live_parts));
        values.varint(sums.live_bytes);
        let mut part = Part::new();
        part.message(1, locations.bytes());
        part.message(2, values.bytes());
        output.message(field::SAMPLE, part.bytes());
    });
    output.flush();
    output.error.map_or(Ok(()), Err)
}

const OUTPUT_BYTES: usize = 2048;

/// The file, behind a buffer.
struct Output<'a> {
    file: &'a File,
    bytes: [u8; OUTPUT_BYTES],
    length: usize,
    error: Option<Errno>,
}

impl Output<'_> {
    #[inline(never)]
    fn flush(&mut self) {
        let bytes = &self.bytes[..core::mem::take(&mut self.length)];
        if self.error.is_none() {
            self.error = self.file.write(bytes).err();
        }
    }

    #[inline(never)]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(OUTPUT_BYTES) {
            if chunk.len() > OUTPUT_BYTES - self.length {
                self.flush();
            }
            self.bytes[self.length..self.length + chunk.len()].copy_from_slice(chunk);
            self.length += chunk.len();
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
