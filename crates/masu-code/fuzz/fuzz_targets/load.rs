//! Loads any object that the fuzzer makes, and unloads it: an error or a load, never a crash, and the arena is empty
//! afterwards. A byte of the object's header that no reader uses says how the object is loaded.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

#[path = "../../tests/fixture/mutation.rs"]
mod mutation;
#[path = "../../tests/fixture/attempt.rs"]
mod attempt;

use attempt::Attempts;
use mutation::Random;

thread_local! {
    static ATTEMPTS: RefCell<Attempts> = RefCell::new(Attempts::new());
}

fuzz_target!(|bytes: &[u8]| {
    ATTEMPTS.with_borrow_mut(|attempts| attempts.load(bytes));
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut random = Random(u64::from(seed));
    // libFuzzer itself draws lengths, splices, and changes that coverage suggests.
    if random.below(3) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    for _ in 0..1 + random.below(4) {
        mutation::change(&mut data[..size], &mut random);
    }
    size
});
