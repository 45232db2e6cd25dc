//! A reader of the part of pprof's `profile.proto` that the tests check.
//!
//! It relies on nothing of masu's: the field numbers are repeated from the format's definition. A
//! malformed message fails the test.

/// The four values of a sample, or their sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) allocated_blocks: i64,
    pub(crate) allocated_bytes: i64,
    pub(crate) live_blocks: i64,
    pub(crate) live_bytes: i64,
}

pub(crate) struct Mapping {
    start: u64,
    end: u64,
}

impl Mapping {
    pub(crate) fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

pub(crate) struct Message {
    pub(crate) period: i64,
    pub(crate) mappings: Vec<Mapping>,
    /// Addresses, innermost first, and values.
    samples: Vec<(Vec<u64>, Values)>,
}

/// A field: its number, and a number or bytes.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number has at most ten bytes")
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("a length");
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(value)
            }
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

fn numbers(mut bytes: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(varint(&mut bytes));
    }
    numbers
}

fn number_in(bytes: &[u8], wanted: u64) -> u64 {
    let found = fields(bytes).into_iter().find(|(field, _)| *field == wanted);
    match found {
        Some((_, Value::Number(number))) => number,
        _ => 0,
    }
}

impl Message {
    pub(crate) fn read(bytes: &[u8]) -> Message {
        let (mut strings, mut types, mut locations) = (Vec::new(), Vec::new(), Vec::new());
        let mut message = Message { period: 0, mappings: Vec::new(), samples: Vec::new() };
        let mut raw = Vec::new();
        for (field, value) in fields(bytes) {
            match (field, value) {
                (1, Value::Bytes(bytes)) => types.push((number_in(bytes, 1), number_in(bytes, 2))),
                (2, Value::Bytes(bytes)) => raw.push(bytes),
                (3, Value::Bytes(bytes)) => {
                    assert_eq!(number_in(bytes, 1), message.mappings.len() as u64 + 1);
                    let (start, end) = (number_in(bytes, 2), number_in(bytes, 3));
                    message.mappings.push(Mapping { start, end });
                }
                (4, Value::Bytes(bytes)) => locations.push(bytes),
                (6, Value::Bytes(bytes)) => {
                    strings.push(std::str::from_utf8(bytes).expect("strings are text"));
                }
                (12, Value::Number(number)) => message.period = number.cast_signed(),
                _ => {}
            }
        }
        assert_eq!(strings.first(), Some(&""), "the first string is empty");
        let named = |(kind, unit): &(u64, u64)| (strings[*kind as usize], strings[*unit as usize]);
        let types: Vec<_> = types.iter().map(named).collect();
        let expected = [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ];
        assert_eq!(types, expected);
        let mut addresses = std::collections::HashMap::new();
        for location in locations {
            let (number, mapping) = (number_in(location, 1), number_in(location, 2));
            let address = number_in(location, 3);
            assert!(addresses.insert(number, address).is_none() && number > 0);
            let mapping = mapping.checked_sub(1).map(|index| &message.mappings[index as usize]);
            assert!(mapping.is_none_or(|mapping| mapping.holds(address)));
        }
        message.samples = raw.iter().map(|bytes| sample(bytes, &addresses)).collect();
        message
    }

    pub(crate) fn sum(&self) -> Values {
        self.samples.iter().fold(Values::default(), |sum, (_, values)| sum.plus(values))
    }

    /// The sum of the samples whose stacks contain such an address.
    pub(crate) fn sum_where(&self, is: impl Fn(u64) -> bool) -> Values {
        let has = |(stack, _): &&(Vec<u64>, Values)| stack.iter().any(|address| is(*address));
        self.samples.iter().filter(has).fold(Values::default(), |sum, (_, values)| sum.plus(values))
    }
}

fn sample(bytes: &[u8], addresses: &std::collections::HashMap<u64, u64>) -> (Vec<u64>, Values) {
    let (mut stack, mut values) = (Vec::new(), Vec::new());
    for (field, value) in fields(bytes) {
        match (field, value) {
            (1, Value::Bytes(bytes)) => stack = numbers(bytes),
            (2, Value::Bytes(bytes)) => values = numbers(bytes),
            _ => panic!("field {field} of a sample"),
        }
    }
    let [allocated_blocks, allocated_bytes, live_blocks, live_bytes] =
        <[u64; 4]>::try_from(values).expect("four values").map(u64::cast_signed);
    let values = Values { allocated_blocks, allocated_bytes, live_blocks, live_bytes };
    assert!(live_blocks >= 0 && live_bytes >= 0 && live_bytes <= allocated_bytes, "{values:?}");
    let stack = stack.iter().map(|number| *addresses.get(number).expect("a location")).collect();
    (stack, values)
}

impl Values {
    fn plus(self, other: &Values) -> Values {
        Values {
            allocated_blocks: self.allocated_blocks + other.allocated_blocks,
            allocated_bytes: self.allocated_bytes + other.allocated_bytes,
            live_blocks: self.live_blocks + other.live_blocks,
            live_bytes: self.live_bytes + other.live_bytes,
        }
    }
}
