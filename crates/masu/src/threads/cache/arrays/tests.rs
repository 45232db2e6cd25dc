//! Arrays of a thread's stacks: none overlaps another, and what is free is used again.

extern crate std;

use core::ptr::NonNull;
use std::vec::Vec;

use super::{Arrays, CHUNK_WORDS_MAX, KEPT_WORDS, WORDS_MAX};
use crate::blocks::slot;
use crate::memory::metadata;

fn arrays() -> Arrays {
    slot::note_second();
    Arrays::new()
}

#[test]
fn arrays_of_all_lengths_overlap_nowhere() {
    let arrays = arrays();
    let mut taken = Vec::new();
    for count in (0..400).map(|number| 1 + number * 37 % (2 * WORDS_MAX)) {
        let array = arrays.take(count).expect("memory");
        assert!(
            array.len() >= count.max(metadata::WORDS_MIN)
                && array.as_ptr().addr().is_multiple_of(64)
        );
        array.fill(count);
        taken.push((count, array));
    }
    for (count, array) in taken {
        assert!(array.iter().all(|word| *word == count), "an array of {count} words");
    }
}

#[test]
fn short_arrays_come_again_and_what_is_left_is_cut_into_them() {
    let arrays = arrays();
    let first = NonNull::from(&mut arrays.take(KEPT_WORDS).expect("memory")[0]);
    assert_eq!(arrays.left_words.get(), 0, "a thread that does little takes one array");
    // SAFETY: It came from there, and nothing refers to it.
    unsafe { arrays.give_back(first, KEPT_WORDS) };
    assert_eq!(arrays.take(KEPT_WORDS).expect("memory").as_mut_ptr(), first.as_ptr());
    while arrays.left_words.get() != CHUNK_WORDS_MAX / 2 {
        let _ = arrays.take(KEPT_WORDS);
    }
    let kept = arrays.kept.get();
    for _ in 0..CHUNK_WORDS_MAX / 2 / WORDS_MAX - 1 {
        let _ = arrays.take(WORDS_MAX);
    }
    let _ = arrays.take(KEPT_WORDS);
    assert_eq!((arrays.kept.get(), arrays.left_words.get()), (kept, WORDS_MAX - KEPT_WORDS));
    let _ = arrays.take(WORDS_MAX);
    assert_ne!(arrays.kept.get(), kept, "the rest was cut");
    let of_rest = (WORDS_MAX - KEPT_WORDS) / KEPT_WORDS;
    (0..of_rest).for_each(|_| assert!(arrays.kept.get() != 0 && arrays.take(KEPT_WORDS).is_some()));
    assert_eq!(arrays.kept.get(), kept);
}
