//! Causes in the source of memory and in the way it is given back.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::collections::HashMap;
use std::hint::black_box;
use std::ptr::NonNull;

use crate::kernel;
use crate::random::{Random, mix};

const MIB: usize = 1 << 20;

/// Texts that are in memory together.
const TEXTS: usize = 8;

/// A longer text has a buffer of 128 KiB, which glibc maps by itself.
const TEXT: usize = 60_000;

const LINE: &str = "a line of a text that is put together piece by piece, as many are.\n";

/// Works like a script that keeps its state in texts: they grow, are read, and are freed.
pub fn brk_storm() -> u64 {
    let mut sum = 0_u64;
    for round in 0_u64..5_000 {
        let texts: Vec<String> = (0..TEXTS)
            .map(|place| {
                let mut text = format!("{place} of {round}\n");
                while text.len() + LINE.len() <= TEXT {
                    text.push_str(LINE);
                }
                text
            })
            .collect();
        for (place, text) in texts.iter().enumerate() {
            let right = text.starts_with(&format!("{place} of {round}\n")) && text.ends_with(LINE);
            assert!(right, "a text does not hold what was written");
            sum = sum.wrapping_add(text.len() as u64 ^ mix(round));
        }
    }
    sum
}

/// Even, so that half of them are odd. Above 32 MiB glibc never learns to keep a mapping.
const WORDS: u64 = (48 * MIB / size_of::<u64>()) as u64;

pub fn eager_return() -> u64 {
    let mut sum = 0_u64;
    for round in 0..50 {
        let words: Vec<u64> = black_box((0..WORDS).map(|place| place ^ round).collect());
        let odd = words.iter().filter(|&&word| word % 2 == 1).count() as u64;
        assert_eq!(odd, WORDS / 2, "a vector does not hold what was written");
        sum = sum.wrapping_add(words[words.len() / 2]);
    }
    sum
}

/// The sizes of an entry.
const ENTRY: (usize, usize) = (100, 1_200);

/// One entry in this many stays.
const KEPT_EVERY: u64 = 50;

pub fn phase_change() -> u64 {
    let mut random = Random::new(1);
    let mut entries: HashMap<u64, Box<[u8]>> = HashMap::new();
    let count = (200 * MIB / ((ENTRY.0 + ENTRY.1) / 2)) as u64;
    for key in 0..count {
        let size = ENTRY.0 + random.below(ENTRY.1 - ENTRY.0);
        entries.insert(key, vec![mix(key) as u8; size].into());
    }
    entries.retain(|key, _| key % KEPT_EVERY == 0);
    // The table has no room to spare, so that a diagnosis does not find the table's size instead.
    entries.shrink_to_fit();
    let mut sum = 0_u64;
    for round in 0..10_000 {
        let mut last = 0;
        for (key, entry) in &entries {
            last = entry[round % ENTRY.0];
            assert_eq!(last, mix(*key) as u8, "entry {key} does not hold what was written");
            sum = sum.wrapping_add(u64::from(last));
        }
        black_box(format!("the last of round {round} was {last}"));
    }
    sum
}

/// The answers that are kept: the growth to be found must not exhaust the machine's memory.
const ANSWERS: u64 = 9_000;

/// The bytes of an answer.
const ANSWER: usize = 48 << 10;

/// The steps of computation for one answer.
const STEPS_AN_ANSWER: u64 = 300_000;

/// Every answer is kept, and no key comes twice.
pub fn growth() -> u64 {
    let mut cache: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut sum = 0_u64;
    for key in 0..ANSWERS {
        let value = (0..STEPS_AN_ANSWER).fold(key, |value, _| mix(value));
        cache.insert(key, vec![value as u8; ANSWER]);
        sum = sum.wrapping_add(value);
    }
    cache.values().fold(sum, |sum, answer| sum.wrapping_add(u64::from(answer[ANSWER / 2])))
}

const HUGE_PAGE: usize = 2 << 20;

/// The bytes that a session uses of its memory.
const USED: usize = 4096;

/// Memory of one session, a huge page of its own.
struct Session(NonNull<u8>);

impl Session {
    fn layout() -> Layout {
        Layout::from_size_align(HUGE_PAGE, HUGE_PAGE).expect("a huge page is no large block")
    }

    fn new(stamp: u8) -> Session {
        let layout = Session::layout();
        // SAFETY: The size is not zero.
        let block = NonNull::new(unsafe { alloc(layout) });
        let block = block.unwrap_or_else(|| handle_alloc_error(layout));
        // Before the first touch, because the kernel gives huge pages only for new memory.
        kernel::advise_huge_pages(block, HUGE_PAGE);
        // SAFETY: The block is longer than that, and nobody else has it.
        unsafe { block.write_bytes(stamp, USED) };
        Session(block)
    }

    fn used(&self) -> &[u8] {
        // SAFETY: `new` wrote that much, and nobody writes any more.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), USED) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it with this layout.
        unsafe { dealloc(self.0.as_ptr(), Session::layout()) };
    }
}

pub fn huge_page_waste() -> u64 {
    let sessions: Vec<Session> =
        (0..240 * MIB / HUGE_PAGE).map(|place| Session::new(mix(place as u64) as u8)).collect();
    let mut random = Random::new(1);
    let mut sum = 0_u64;
    for _ in 0..50_000_000 {
        let place = random.below(sessions.len());
        let byte = sessions[place].used()[random.below(USED)];
        assert_eq!(byte, mix(place as u64) as u8, "a session does not hold what was written");
        sum = sum.wrapping_add(u64::from(byte));
    }
    sum
}
