//! The peak RSS of a small program is its own, not that of the process which started it. Alone in
//! its file because other tests in the same process would hold memory meanwhile.

use masu_lab::execute::execute;
use masu_lab::{Catalogue, Input, Limits, Places, Stop, Workload};

#[test]
fn what_the_lab_once_held_is_no_floor_under_a_small_program() {
    let catalogue = Catalogue::find(&Places::default());
    let workload = Workload::new(["true"], Input::Empty).unwrap();
    let variant = catalogue.resolve(&"system".parse().unwrap(), &workload.program).unwrap();
    // 64 MB in blocks small enough for the heap, then freed except for a few that pin its top.
    let mut blocks: Vec<Vec<u8>> = (0..64_000).map(|_| vec![1; 1000]).collect();
    let last = blocks.pop();
    drop(blocks);
    let run = execute(&workload, &variant, &Limits::default(), &Stop::never()).unwrap();
    drop(last);
    assert!((200 << 10..3 << 20).contains(&run.peak_rss_bytes), "{}", run.peak_rss_bytes);
    // It needs less than any process of this lab, and the run knows about what it cannot tell. The
    // kernel's counts of pages are off by some batches in either direction, so the two cannot be
    // compared more closely.
    let floor = run.rss_floor_bytes.unwrap();
    assert!((1 << 20..8 << 20).contains(&floor), "{floor}");
}
