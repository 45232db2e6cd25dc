//! Patterns of one thread with the standard library's collections: they grow, shrink and hold strings.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::hash::BuildHasherDefault;
use std::hint::black_box;

use crate::random::{Random, mix};
use crate::work::Work;

/// Sixteen vectors that grow side by side, up to 64 words at a time; past 1,000 words one starts again. One
/// operation is one push.
pub fn vectors(work: Work) -> u64 {
    let mut random = Random::new(work.seed);
    let mut vectors: [Vec<u64>; 16] = Default::default();
    let (mut sum, mut left) = (0_u64, work.ops);
    while left > 0 {
        let vector = &mut vectors[random.below(16)];
        if vector.len() > 1000 {
            sum = sum.wrapping_add(vector.iter().fold(0, |sum, word| sum ^ word));
            *vector = Vec::new();
        }
        let more = (1 + random.below(64) as u64).min(left);
        for word in 0..more {
            // One by one, like code that does not know the number beforehand.
            vector.push(black_box(left ^ word));
        }
        left -= more;
    }
    vectors.iter().flatten().fold(sum, |sum, word| sum.wrapping_add(*word))
}

/// A hundred thousand vectors of 1 to 64 words, replaced at random. One operation replaces one vector.
pub fn replaced(work: Work) -> u64 {
    const LIVE: usize = 100_000;
    let mut random = Random::new(work.seed);
    let mut live: Vec<Vec<u64>> = vec![Vec::new(); LIVE];
    let ends = |words: &Vec<u64>| {
        let (first, last) = (words.first().copied(), words.last().copied());
        first.unwrap_or_default().wrapping_add(last.unwrap_or_default())
    };
    let mut sum = 0_u64;
    for op in 0..work.ops {
        let place = &mut live[random.below(LIVE)];
        sum = sum.wrapping_add(ends(place));
        *place = vec![op; 1 + random.below(64)];
    }
    live.iter().fold(sum, |sum, words| sum.wrapping_add(ends(words)))
}

/// A buffer to which 4 KiB are added at a time; past 16 MiB it starts again. One operation is one addition.
pub fn buffer(work: Work) -> u64 {
    const PIECE: usize = 4 << 10;
    let mut buffer: Vec<u8> = Vec::new();
    let mut sum = 0_u64;
    let whole = |buffer: &Vec<u8>| {
        buffer.chunks(PIECE).enumerate().fold(0_u64, |sum, (at, piece)| {
            sum.wrapping_add(mix(u64::from(piece[0]) + (at as u64) * 251))
        })
    };
    for op in 0..work.ops {
        if buffer.len() >= 16 << 20 {
            sum = sum.wrapping_add(whole(&buffer));
            buffer = Vec::new();
        }
        buffer.extend_from_slice(&[mix(op ^ work.seed) as u8; PIECE]);
    }
    sum.wrapping_add(whole(&buffer))
}

/// A map of numbers, half of 20,000 keys in it: a key that is there is taken out, another put in.
pub fn tree(work: Work) -> u64 {
    let mut random = Random::new(work.seed);
    let mut tree: BTreeMap<u64, u64> = BTreeMap::new();
    let mut sum = 0_u64;
    for op in 0..work.ops {
        let key = mix(random.below(20_000) as u64);
        match tree.remove(&key) {
            Some(number) => sum = sum.wrapping_add(number),
            None => drop(tree.insert(key, op)),
        }
    }
    tree.iter().fold(sum, |sum, (key, number)| sum.wrapping_add(key ^ number))
}

/// A map whose hashes are the same in every run.
pub type Words = HashMap<String, String, BuildHasherDefault<DefaultHasher>>;

/// A key of 7 to 22 bytes.
fn key(number: usize) -> String {
    let mut key = String::from("key-");
    let tail = ["", "-more", "-much-more"][number % 3];
    // Writing to a string cannot fail.
    let _ = write!(key, "{number:03}{tail}");
    key
}

/// A text of 1 to 120 bytes that grows word by word.
fn text(number: usize) -> String {
    let mut text = String::new();
    for word in 0..=number % 24 {
        text.push_str(["rice", "box", "field"][(number + word) % 3]);
    }
    text
}

/// A map of strings, half of 20,000 keys in it: one operation makes a key, looks it up, and takes it out or puts it
/// in with a text.
pub fn words(work: Work) -> u64 {
    let mut random = Random::new(work.seed);
    let mut words = Words::default();
    let mut sum = 0_u64;
    let checksum = |text: &str| text.bytes().map(u64::from).sum::<u64>();
    for _ in 0..work.ops {
        let number = random.below(20_000);
        match words.entry(key(number)) {
            Entry::Occupied(there) => {
                let (key, text) = there.remove_entry();
                sum = sum.wrapping_add(checksum(&key)).wrapping_add(mix(checksum(&text)));
            }
            Entry::Vacant(place) => drop(place.insert(text(number))),
        }
    }
    words.values().fold(sum, |sum, text| sum.wrapping_add(checksum(text)))
}
