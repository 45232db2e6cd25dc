//! Arrays of a thread's stacks: none overlaps another, and what is free is used again.

extern crate std;

use core::ptr::NonNull;
use std::vec::Vec;

use super::{Arrays, CHUNK_WORDS_MAX, REST_WORDS, WORDS_MAX, WORDS_MIN};
use crate::blocks::slot;

fn arrays() -> Arrays {
    slot::note_several();
    Arrays::new(0)
}

#[test]
fn arrays_of_all_lengths_overlap_nowhere() {
    let arrays = arrays();
    let mut taken = Vec::new();
    for count in (0..400).map(|number| 1 + number * 37 % (2 * WORDS_MAX)) {
        let array = arrays.take(count).expect("memory");
        assert!(array.len() >= count.max(WORDS_MIN) && array.as_ptr().addr().is_multiple_of(64));
        array.fill(count);
        taken.push((count, array));
    }
    for (count, array) in taken {
        assert!(array.iter().all(|word| *word == count), "an array of {count} words");
    }
}

#[test]
fn short_arrays_come_again_whatever_their_lengths() {
    let arrays = arrays();
    // As stacks do that grow and are taken away, in turn for one, two and more of them.
    let mut taken = None;
    for round in 0..1000 {
        for (stack, shortest) in (0..round % 8).zip([WORDS_MIN, REST_WORDS].iter().cycle()) {
            let mut words = *shortest;
            let mut array = NonNull::from(&mut arrays.take(words).expect("memory")[0]);
            while words < (4 * WORDS_MAX) >> (stack % 2) {
                let longer = NonNull::from(&mut arrays.take(2 * words).expect("memory")[0]);
                // SAFETY: It came from there, and nothing refers to it.
                unsafe { arrays.give_back(array, words) };
                (array, words) = (longer, 2 * words);
            }
            // SAFETY: As above.
            unsafe { arrays.give_back(array, words) };
        }
        if round >= 8 {
            let before = *taken.get_or_insert(arrays.taken_words.get());
            assert_eq!(arrays.taken_words.get(), before, "round {round}");
        }
    }
}

#[test]
fn a_thread_that_does_little_takes_little_and_no_word_is_lost() {
    let arrays = arrays();
    let _ = arrays.take(REST_WORDS).expect("memory");
    assert_eq!(arrays.left_words.get(), 0, "a thread that does little takes one array");
    while arrays.left_words.get() != CHUNK_WORDS_MAX / 2 {
        let _ = arrays.take(REST_WORDS);
    }
    for _ in 0..CHUNK_WORDS_MAX / 2 / WORDS_MAX - 1 {
        let _ = arrays.take(WORDS_MAX);
    }
    let _ = arrays.take(WORDS_MIN);
    assert_eq!(arrays.left_words.get(), WORDS_MAX - WORDS_MIN);
    let _ = arrays.take(WORDS_MAX);
    // The rest was cut: this takes it, and nothing new.
    let before = (arrays.left_words.get(), arrays.taken_words.get());
    for _ in 0..WORDS_MAX / REST_WORDS - 1 {
        let _ = arrays.take(REST_WORDS);
    }
    let _ = arrays.take(WORDS_MIN);
    assert_eq!((arrays.left_words.get(), arrays.taken_words.get()), before);
}
