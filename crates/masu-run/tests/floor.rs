//! The peak RSS of a small program is its own, not that of the process which started it. Alone in
//! its file because other tests in the same process would hold memory at the same time.

use masu_run::execute::{Conditions, execute};
use masu_run::{Input, Stop, Variant, Workload};

#[test]
fn what_the_lab_holds_and_once_held_is_no_floor_under_a_small_program() {
    let workload = Workload::new(["true"], Input::Empty).unwrap();
    // 64 MB in blocks small enough for the heap, of which every other one stays.
    let mut blocks: Vec<Vec<u8>> = (0..64_000).map(|_| vec![1; 1000]).collect();
    let mut index = 0;
    blocks.retain(|_| {
        index += 1;
        index % 2 == 0
    });
    let run =
        execute(&workload, &Variant::default(), &Conditions::default(), &Stop::never()).unwrap();
    assert!(blocks.iter().flatten().all(|byte| *byte == 1));
    assert!((200 << 10..3 << 20).contains(&run.peak_rss_bytes), "{}", run.peak_rss_bytes);
    // The run knows its own uncertainty: the part of this process that it cannot do without, and some batches by which
    // the kernel's counts of pages are off.
    let floor = run.rss_floor_bytes.unwrap();
    assert!((400 << 10..4 << 20).contains(&floor), "{floor}");
}
