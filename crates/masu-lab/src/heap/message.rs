//! pprof's `profile.proto`, read and written by hand: it is small, and what is read may be anybody's.
//!
//! Relies on flate2 for compressed files. A file is taken for what it says only as far as it is well formed; numbers that lead
//! nowhere are an error, not a crash.
//!
//! Reference: github.com/google/pprof/proto/profile.proto.

use std::collections::HashMap;
use std::io::Read;

use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};

use super::{Frame, Profile, Sums};

/// A file that was mapped.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Where it starts in the file.
    pub(super) offset: u64,
    pub(super) file: String,
}

/// A place in the program, and the functions it is in where the file says so.
#[derive(Clone, Debug, Default)]
pub(super) struct Location {
    pub(super) address: u64,
    /// The mapping it is in, by index.
    pub(super) mapping: Option<usize>,
    pub(super) frames: Vec<Frame>,
}

pub(super) struct Sample {
    /// Locations by index, innermost first.
    pub(super) locations: Vec<usize>,
    pub(super) sums: Sums,
}

/// A profile as it was written.
pub(super) struct Message {
    pub(super) interval_bytes: i64,
    pub(super) mappings: Vec<Mapping>,
    pub(super) locations: Vec<Location>,
    pub(super) samples: Vec<Sample>,
    pub(super) remarks: Vec<String>,
}

/// The kinds of values, in the order of [`Sums`]' fields.
const KINDS: [(&str, &str); 4] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
];

/// How masu's comment about itself begins; others are for the reader.
const OWN_COMMENT: &str = "heap profile by masu";

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn field<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Value<'a>)> {
    let tag = varint(bytes)?;
    let value = match tag & 7 {
        0 => Value::Number(varint(bytes)?),
        wire @ (1 | 2 | 5) => {
            let length = match wire {
                1 => 8,
                5 => 4,
                _ => usize::try_from(varint(bytes)?).ok()?,
            };
            let (value, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            Value::Bytes(value)
        }
        _ => return None,
    };
    Some((tag >> 3, value))
}

/// The fields of a message; `None` where it is not well formed.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Value<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        fields.push(field(&mut bytes)?);
    }
    Some(fields)
}

/// A repeated number: packed, or one a field.
fn push_numbers(value: &Value<'_>, numbers: &mut Vec<u64>) -> Option<()> {
    match *value {
        Value::Number(number) => numbers.push(number),
        Value::Bytes(mut bytes) => {
            while !bytes.is_empty() {
                numbers.push(varint(&mut bytes)?);
            }
        }
    }
    Some(())
}

/// The numbers of a message's fields from 1 to 5; 0 for what is not there.
fn numbers(bytes: &[u8]) -> Option<[u64; 6]> {
    let mut numbers = [0; 6];
    for (field, value) in fields(bytes)? {
        if let (Some(place), Value::Number(number)) = (numbers.get_mut(field as usize), value) {
            *place = number;
        }
    }
    Some(numbers)
}

/// The parts of a message, not looked into yet.
#[derive(Default)]
struct Parts<'a> {
    kinds: Vec<&'a [u8]>,
    samples: Vec<&'a [u8]>,
    mappings: Vec<&'a [u8]>,
    locations: Vec<&'a [u8]>,
    functions: Vec<&'a [u8]>,
    strings: Vec<String>,
    comments: Vec<u64>,
    period: u64,
}

impl<'a> Parts<'a> {
    fn of(bytes: &'a [u8]) -> Option<Parts<'a>> {
        let mut parts = Parts::default();
        for (field, value) in fields(bytes)? {
            match (field, value) {
                (1, Value::Bytes(bytes)) => parts.kinds.push(bytes),
                (2, Value::Bytes(bytes)) => parts.samples.push(bytes),
                (3, Value::Bytes(bytes)) => parts.mappings.push(bytes),
                (4, Value::Bytes(bytes)) => parts.locations.push(bytes),
                (5, Value::Bytes(bytes)) => parts.functions.push(bytes),
                (6, Value::Bytes(bytes)) => {
                    parts.strings.push(String::from_utf8_lossy(bytes).into_owned());
                }
                (12, Value::Number(number)) => parts.period = number,
                (13, value) => push_numbers(&value, &mut parts.comments)?,
                _ => {}
            }
        }
        Some(parts)
    }

    fn string(&self, number: u64) -> Option<&str> {
        self.strings.get(usize::try_from(number).ok()?).map(String::as_str)
    }

    /// Which of a sample's values is which of ours.
    fn places(&self) -> Option<[usize; 4]> {
        let mut kinds = Vec::new();
        for bytes in &self.kinds {
            let [_, kind, unit, ..] = numbers(bytes)?;
            kinds.push((self.string(kind)?, self.string(unit)?));
        }
        let place = |wanted: &(&str, &str)| kinds.iter().position(|kind| kind == wanted);
        let [a, b, c, d] = KINDS.each_ref().map(place);
        Some([a?, b?, c?, d?])
    }

    fn mappings(&self) -> Option<(HashMap<u64, usize>, Vec<Mapping>)> {
        let (mut indices, mut mappings) = (HashMap::new(), Vec::new());
        for bytes in &self.mappings {
            let [_, number, start, end, offset, file] = numbers(bytes)?;
            indices.insert(number, mappings.len());
            let file = self.string(file)?.to_owned();
            mappings.push(Mapping { start, end, offset, file });
        }
        Some((indices, mappings))
    }

    /// The functions' names and files by number.
    fn functions(&self) -> Option<HashMap<u64, (&str, &str)>> {
        let mut functions = HashMap::new();
        for bytes in &self.functions {
            let [_, number, name, _, file, _] = numbers(bytes)?;
            functions.insert(number, (self.string(name)?, self.string(file)?));
        }
        Some(functions)
    }

    fn locations(
        &self,
        mappings: &HashMap<u64, usize>,
    ) -> Option<(HashMap<u64, usize>, Vec<Location>)> {
        let functions = self.functions()?;
        let (mut indices, mut locations) = (HashMap::new(), Vec::new());
        for bytes in &self.locations {
            let (mut location, mut number) = (Location::default(), 0);
            for (field, value) in fields(bytes)? {
                match (field, value) {
                    (1, Value::Number(value)) => number = value,
                    (2, Value::Number(value)) => location.mapping = mappings.get(&value).copied(),
                    (3, Value::Number(value)) => location.address = value,
                    (4, Value::Bytes(line)) => {
                        let [_, function, line, ..] = numbers(line)?;
                        let (name, file) = functions.get(&function)?;
                        let file = Some(*file).filter(|file| !file.is_empty()).map(str::to_owned);
                        let line = u32::try_from(line).unwrap_or(0);
                        location.frames.push(Frame { function: (*name).to_owned(), file, line });
                    }
                    _ => {}
                }
            }
            indices.insert(number, locations.len());
            locations.push(location);
        }
        Some((indices, locations))
    }
}

impl Message {
    /// Reads a file's bytes; the error says what is wrong with them and what to do.
    pub(super) fn read(bytes: &[u8]) -> Result<Message, String> {
        if bytes.starts_with(&GZIP) {
            return Message::read_plain(&unpacked(bytes)?);
        }
        Message::read_plain(bytes)
    }

    fn read_plain(bytes: &[u8]) -> Result<Message, String> {
        let broken = || {
            "it is no heap profile, or was cut off; MASU_PROFILE=PREFIX has a program write one"
                .to_owned()
        };
        let parts = Parts::of(bytes).ok_or_else(broken)?;
        let places = parts.places().ok_or_else(|| {
            "it is no heap profile: it does not have alloc_ and inuse_ values".to_owned()
        })?;
        Message::of(&parts, places).ok_or_else(broken)
    }

    fn of(parts: &Parts<'_>, places: [usize; 4]) -> Option<Message> {
        let (mapping_indices, mappings) = parts.mappings()?;
        let (indices, locations) = parts.locations(&mapping_indices)?;
        let mut samples = Vec::new();
        for bytes in &parts.samples {
            let (mut stack, mut values) = (Vec::new(), Vec::new());
            for (field, value) in fields(bytes)? {
                match field {
                    1 => push_numbers(&value, &mut stack)?,
                    2 => push_numbers(&value, &mut values)?,
                    _ => {}
                }
            }
            let value = |place: usize| values.get(place).map(|value| value.cast_signed());
            let sums = Sums {
                allocated_blocks: value(places[0])?,
                allocated_bytes: value(places[1])?,
                live_blocks: value(places[2])?,
                live_bytes: value(places[3])?,
            };
            let locations = stack.iter().map(|number| indices.get(number).copied());
            samples.push(Sample { locations: locations.collect::<Option<_>>()?, sums });
        }
        let comments = parts.comments.iter().filter_map(|comment| parts.string(*comment));
        let remarks = comments.filter(|text| !text.starts_with(OWN_COMMENT)).map(str::to_owned);
        let remarks = remarks.collect();
        let interval_bytes = parts.period.cast_signed();
        Some(Message { interval_bytes, mappings, locations, samples, remarks })
    }
}

/// A message being written.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, fill: impl FnOnce(&mut Writer)) {
        let mut part = Writer::default();
        fill(&mut part);
        self.bytes(field, &part.0);
    }
}

/// Strings, each once.
struct Strings(HashMap<String, u64>, Vec<String>);

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.0.get(text) {
            return *number;
        }
        let number = self.1.len() as u64;
        self.1.push(text.to_owned());
        self.0.insert(text.to_owned(), number);
        number
    }
}

/// How a compressed file starts (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The most that a file may hold unpacked: more than any profile has, and less than would do harm.
const UNPACKED_BYTES_MAX: u64 = 1 << 30;

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut plain = Vec::new();
    let mut unpacking = GzDecoder::new(bytes).take(UNPACKED_BYTES_MAX);
    unpacking.read_to_end(&mut plain).map_err(|error| {
        format!("it is compressed, and cannot be unpacked: {error}; it may have been cut off")
    })?;
    Ok(plain)
}

/// The profile with names, for tools that read pprof's format: compressed, as they write it themselves.
pub(super) fn write(profile: &Profile) -> Vec<u8> {
    let plain = write_plain(profile);
    let mut packing = GzEncoder::new(plain.as_slice(), Compression::default());
    let mut packed = Vec::new();
    packing.read_to_end(&mut packed).expect("memory to memory, nothing fails");
    packed
}

/// A frame is a location of its own, so that nothing need be known of addresses.
fn write_plain(profile: &Profile) -> Vec<u8> {
    let mut strings = Strings(HashMap::new(), Vec::new());
    strings.number("");
    let mut writer = Writer::default();
    let value_type = |strings: &mut Strings, (kind, unit): (&str, &str)| {
        let (kind, unit) = (strings.number(kind), strings.number(unit));
        move |part: &mut Writer| {
            part.number(1, kind);
            part.number(2, unit);
        }
    };
    for kind in KINDS {
        writer.message(1, value_type(&mut strings, kind));
    }
    let mut locations: HashMap<&Frame, u64> = HashMap::new();
    let mut functions: HashMap<(&str, Option<&str>), u64> = HashMap::new();
    for (frames, sums) in &profile.stacks {
        let mut stack = Writer::default();
        for frame in frames.iter().rev() {
            let next = locations.len() as u64 + 1;
            stack.varint(*locations.entry(frame).or_insert(next));
        }
        let mut values = Writer::default();
        let sums = [sums.allocated_blocks, sums.allocated_bytes, sums.live_blocks, sums.live_bytes];
        sums.iter().for_each(|value| values.varint(value.cast_unsigned()));
        writer.message(2, |part| {
            part.bytes(1, &stack.0);
            part.bytes(2, &values.0);
        });
    }
    for (frame, number) in &locations {
        let next = functions.len() as u64 + 1;
        let function = functions.entry((&frame.function, frame.file.as_deref())).or_insert(next);
        writer.message(4, |part| {
            part.number(1, *number);
            part.message(4, |line| {
                line.number(1, *function);
                line.number(2, u64::from(frame.line));
            });
        });
    }
    for ((name, file), number) in functions {
        let (name, file) = (strings.number(name), strings.number(file.unwrap_or("")));
        writer.message(5, |part| {
            part.number(1, number);
            part.number(2, name);
            part.number(3, name);
            part.number(4, file);
        });
    }
    writer.message(11, value_type(&mut strings, ("space", "bytes")));
    writer.number(12, profile.interval_bytes.cast_unsigned());
    let comment = strings.number(&format!("{OWN_COMMENT}, with names"));
    writer.number(13, comment);
    for remark in &profile.remarks {
        let number = strings.number(remark);
        writer.number(13, number);
    }
    let default = strings.number("inuse_space");
    writer.number(14, default);
    strings.1.iter().for_each(|string| writer.bytes(6, string.as_bytes()));
    writer.0
}
