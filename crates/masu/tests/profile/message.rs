//! The part of a heap profile that the tests check.
//!
//! It relies on the messages of `masu-lab`, not on the writer in `masu`. A malformed message fails the test.

use std::collections::HashMap;

use prost::Message as _;

#[path = "../../../masu-lab/src/heap/message/format.rs"]
mod format;

/// The four values of a sample, or their sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    pub(crate) allocated_blocks: i64,
    pub(crate) allocated_bytes: i64,
    pub(crate) live_blocks: i64,
    pub(crate) live_bytes: i64,
}

pub(crate) struct Message {
    pub(crate) period: i64,
    mappings: Vec<format::Mapping>,
    /// Addresses, innermost first, and values.
    pub(crate) samples: Vec<(Vec<u64>, Values)>,
}

fn holds(mapping: &format::Mapping, address: u64) -> bool {
    (mapping.memory_start..mapping.memory_limit).contains(&address)
}

impl Message {
    pub(crate) fn read(bytes: &[u8]) -> Message {
        let profile = format::Profile::decode(bytes).expect("a profile");
        let text = |index: i64| {
            std::str::from_utf8(&profile.string_table[index as usize]).expect("strings are text")
        };
        assert_eq!(text(0), "", "the first string is empty");
        let types = profile.sample_type.iter().map(|of| (text(of.kind), text(of.unit)));
        let expected = [
            ("alloc_objects", "count"),
            ("alloc_space", "bytes"),
            ("inuse_objects", "count"),
            ("inuse_space", "bytes"),
        ];
        assert_eq!(types.collect::<Vec<_>>(), expected);
        let mappings = profile.mapping;
        assert!(mappings.iter().zip(1..).all(|(mapping, number)| mapping.id == number));
        let mut addresses = HashMap::new();
        for at in &profile.location {
            assert!(addresses.insert(at.id, at.address).is_none() && at.id > 0);
            let mapping = at.mapping_id.checked_sub(1).map(|index| &mappings[index as usize]);
            assert!(mapping.is_none_or(|mapping| holds(mapping, at.address)));
        }
        let sample = |sample: &format::Sample| {
            let address = |number| *addresses.get(number).expect("a location");
            (sample.location_id.iter().map(address).collect(), Values::of(&sample.value))
        };
        let samples = profile.sample.iter().map(sample).collect();
        Message { period: profile.period, mappings, samples }
    }

    pub(crate) fn sum(&self) -> Values {
        Values::sum(self.samples.iter())
    }

    /// The sum of the samples whose stacks contain an address for which `is` is true.
    pub(crate) fn sum_where(&self, is: impl Fn(u64) -> bool) -> Values {
        let has = |(stack, _): &&(Vec<u64>, Values)| stack.iter().any(|address| is(*address));
        Values::sum(self.samples.iter().filter(has))
    }

    pub(crate) fn has_mapping_of(&self, address: u64) -> bool {
        self.mappings.iter().any(|mapping| holds(mapping, address))
    }
}

impl Values {
    fn of(values: &[i64]) -> Values {
        let [allocated_blocks, allocated_bytes, live_blocks, live_bytes] =
            values.try_into().expect("four values");
        let values = Values { allocated_blocks, allocated_bytes, live_blocks, live_bytes };
        assert!(live_blocks >= 0 && live_bytes >= 0 && live_bytes <= allocated_bytes, "{values:?}");
        values
    }

    fn sum<'a>(samples: impl Iterator<Item = &'a (Vec<u64>, Values)>) -> Values {
        samples.fold(Values::default(), |sum, (_, one)| Values {
            allocated_blocks: sum.allocated_blocks + one.allocated_blocks,
            allocated_bytes: sum.allocated_bytes + one.allocated_bytes,
            live_blocks: sum.live_blocks + one.live_blocks,
            live_bytes: sum.live_bytes + one.live_bytes,
        })
    }
}
