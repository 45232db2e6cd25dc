//! Loads whatever the fuzzer makes up, and unloads it: an error or a load, never a crash, and the
//! arena empty afterwards. How an object is loaded stands in a byte of its header that nobody reads.

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
    // Lengths, splices and what coverage suggests are libFuzzer's part.
    if random.below(3) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    for _ in 0..1 + random.below(4) {
        mutation::change(&mut data[..size], &mut random);
    }
    size
});
