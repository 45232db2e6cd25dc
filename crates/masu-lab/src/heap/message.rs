//! pprof's `profile.proto`, read and written.
//!
//! Relies on prost for messages and on flate2 for compressed files. The file may come from anywhere: numbers in it
//! that point nowhere are an error, not a crash.

use std::collections::HashMap;
use std::io::Read;

use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use prost::Message as _;

use super::{Frame, Profile, Sums};

mod format;

#[derive(Clone, Debug)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    pub(super) file: String,
}

/// An address in the program, and the functions it is in where the file has them.
#[derive(Clone, Debug, Default)]
pub(super) struct Location {
    pub(super) address: u64,
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

/// The start of masu's comment about itself; all other comments are for the reader.
const OWN_COMMENT: &str = "heap profile by masu";

const BROKEN: &str =
    "it is no heap profile, or was cut off; MASU_PROFILE=PREFIX has a program write one";

impl Message {
    /// Reads a file's bytes; the error says why they are wrong and names a remedy.
    pub(super) fn read(bytes: &[u8]) -> Result<Message, String> {
        let unpacked = bytes.starts_with(&GZIP).then(|| unpacked(bytes)).transpose()?;
        let profile = format::Profile::decode(unpacked.as_deref().unwrap_or(bytes));
        let profile = profile.map_err(|_| BROKEN.to_owned())?;
        let places = profile.places().ok_or_else(|| {
            "it is no heap profile: it does not have alloc_ and inuse_ values".to_owned()
        })?;
        Message::of(&profile, places).ok_or_else(|| BROKEN.to_owned())
    }

    fn of(profile: &format::Profile, places: [usize; 4]) -> Option<Message> {
        let mappings = profile.mapping.iter().map(|it| {
            let file = profile.string(it.filename)?;
            Some(Mapping {
                start: it.memory_start,
                end: it.memory_limit,
                offset: it.file_offset,
                file,
            })
        });
        let indices: HashMap<u64, usize> =
            profile.location.iter().enumerate().map(|(index, it)| (it.id, index)).collect();
        let samples = profile.sample.iter().map(|it| {
            let value = |place: usize| it.value.get(place).copied();
            let sums = Sums {
                allocated_blocks: value(places[0])?,
                allocated_bytes: value(places[1])?,
                live_blocks: value(places[2])?,
                live_bytes: value(places[3])?,
            };
            let locations = it.location_id.iter().map(|id| indices.get(id).copied());
            Some(Sample { locations: locations.collect::<Option<_>>()?, sums })
        });
        let comments = profile.comment.iter().filter_map(|comment| profile.string(*comment));
        Some(Message {
            interval_bytes: profile.period,
            mappings: mappings.collect::<Option<_>>()?,
            locations: profile.locations()?,
            samples: samples.collect::<Option<_>>()?,
            remarks: comments.filter(|text| !text.starts_with(OWN_COMMENT)).collect(),
        })
    }
}

impl format::Profile {
    fn string(&self, number: i64) -> Option<String> {
        let bytes = self.string_table.get(usize::try_from(number).ok()?)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    /// The index of each of our values among a sample's values.
    fn places(&self) -> Option<[usize; 4]> {
        let kind = |it: &format::ValueType| Some((self.string(it.kind)?, self.string(it.unit)?));
        let kinds = self.sample_type.iter().map(kind).collect::<Option<Vec<_>>>()?;
        let place = |wanted: &(&str, &str)| {
            kinds.iter().position(|(kind, unit)| (kind.as_str(), unit.as_str()) == *wanted)
        };
        let [a, b, c, d] = KINDS.each_ref().map(place);
        Some([a?, b?, c?, d?])
    }

    fn locations(&self) -> Option<Vec<Location>> {
        let mapping = |id: u64| self.mapping.iter().position(|mapping| mapping.id == id);
        let functions: HashMap<u64, &format::Function> =
            self.function.iter().map(|it| (it.id, it)).collect();
        let frame = |line: &format::Line| {
            let function = functions.get(&line.function_id)?;
            Some(Frame {
                function: self.string(function.name)?,
                file: Some(self.string(function.filename)?).filter(|file| !file.is_empty()),
                line: u32::try_from(line.line).unwrap_or(0),
            })
        };
        let location = |it: &format::Location| {
            let frames = it.line.iter().map(frame).collect::<Option<_>>()?;
            Some(Location { address: it.address, mapping: mapping(it.mapping_id), frames })
        };
        self.location.iter().map(location).collect()
    }
}

#[derive(Default)]
struct Strings(HashMap<String, i64>, Vec<Vec<u8>>);

impl Strings {
    fn number(&mut self, text: &str) -> i64 {
        *self.0.entry(text.to_owned()).or_insert_with(|| {
            self.1.push(text.into());
            self.1.len() as i64 - 1
        })
    }
}

/// The first bytes of a compressed file (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The most bytes that a file may hold unpacked: more than any profile has, and too few to do harm.
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
    let plain = message(profile).encode_to_vec();
    let mut packing = GzEncoder::new(plain.as_slice(), Compression::default());
    let mut packed = Vec::new();
    packing.read_to_end(&mut packed).expect("memory to memory, nothing fails");
    packed
}

/// Each frame becomes a location of its own, so that no addresses are needed.
fn message(profile: &Profile) -> format::Profile {
    let mut strings = Strings::default();
    strings.number("");
    let mut value_type =
        |(kind, unit)| format::ValueType { kind: strings.number(kind), unit: strings.number(unit) };
    let mut message = format::Profile {
        sample_type: KINDS.map(&mut value_type).into(),
        period_type: Some(value_type(("space", "bytes"))),
        period: profile.interval_bytes,
        default_sample_type: strings.number("inuse_space"),
        ..format::Profile::default()
    };
    let mut locations: HashMap<&Frame, u64> = HashMap::new();
    let mut functions: HashMap<(&str, Option<&str>), u64> = HashMap::new();
    for (frames, sums) in &profile.stacks {
        let mut location = |frame| {
            let next = locations.len() as u64 + 1;
            *locations.entry(frame).or_insert(next)
        };
        let location_id = frames.iter().rev().map(&mut location).collect();
        let Sums { allocated_blocks, allocated_bytes, live_blocks, live_bytes } = *sums;
        let value = vec![allocated_blocks, allocated_bytes, live_blocks, live_bytes];
        message.sample.push(format::Sample { location_id, value });
    }
    for (frame, id) in locations {
        let next = functions.len() as u64 + 1;
        let function = (frame.function.as_str(), frame.file.as_deref());
        let function_id = *functions.entry(function).or_insert(next);
        let line = vec![format::Line { function_id, line: frame.line.into() }];
        message.location.push(format::Location { id, line, ..format::Location::default() });
    }
    for ((name, file), id) in functions {
        let (name, filename) = (strings.number(name), strings.number(file.unwrap_or("")));
        message.function.push(format::Function { id, name, system_name: name, filename });
    }
    let own = format!("{OWN_COMMENT}, with names");
    let comments = std::iter::once(&own).chain(&profile.remarks);
    message.comment = comments.map(|comment| strings.number(comment)).collect();
    message.string_table = strings.1;
    message
}
