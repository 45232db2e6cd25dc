//! The contract of single items: one vector in order, pairs of sources, and cleanup after a failure.

use std::sync::atomic::{AtomicI64, Ordering};

use masu_chunk::{Cancel, Cause, Executor};

#[path = "shared/counted.rs"]
mod counted;
#[path = "shared/quietly.rs"]
mod quietly;

use counted::Counted;
use quietly::quietly;

#[test]
fn each_item_has_its_result_at_its_place() {
    for count in [0, 1, 7, 1_000, 100_001] {
        for chunk in [1, 3, 4_096] {
            let executor = Executor::new().chunk(chunk).workers(3);
            let numbers: Vec<u64> = (0..count).collect();
            let doubled: Vec<u64> = (0..count).map(|number| 2 * number).collect();
            assert_eq!(executor.slice(&numbers).map_items(|item| 2 * item).unwrap().value, doubled);
            assert_eq!(executor.range(0..count).map_items(|item| 2 * item).unwrap().value, doubled);
            let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let lengths: Vec<usize> = texts.iter().map(String::len).collect();
            assert_eq!(executor.vec(texts).map_items(|text| text.len()).unwrap().value, lengths);
        }
    }
}

#[test]
fn two_sources_go_side_by_side_as_far_as_the_shorter() {
    let alive = AtomicI64::new(0);
    for (left, right) in [(0, 5), (5, 0), (10, 10), (1_000, 700), (700, 1_000)] {
        let executor = Executor::new().chunk(64);
        let numbers: Vec<u64> = (0..left).collect();
        let owned: Vec<Counted<'_>> = (0..right).map(|it| Counted::new(&alive, it)).collect();
        let pairs = executor.slice(&numbers).zip(executor.vec(owned));
        let sums = pairs.map_items(|(number, counted)| number + counted.1).unwrap().value;
        assert_eq!(sums, (0..left.min(right)).map(|number| 2 * number).collect::<Vec<_>>());
        assert_eq!(alive.load(Ordering::Relaxed), 0, "{left} beside {right}");
    }
    let (from, mut to) = (vec![1, 2, 3], vec![0; 3]);
    let executor = Executor::new();
    let copied = executor.slice(&from).zip(executor.slice_mut(&mut to)).for_each(|chunk| {
        let (from, to) = chunk.into_inner();
        to.copy_from_slice(from);
    });
    copied.unwrap();
    assert_eq!(from, to);
}

#[test]
fn after_an_error_all_items_and_results_are_dropped_once() {
    for workers in [1, 4] {
        for bad in [0, 1, 499, 998, 999] {
            let alive = AtomicI64::new(0);
            let items: Vec<Counted<'_>> = (0..1_000).map(|it| Counted::new(&alive, it)).collect();
            let executor = Executor::new().workers(workers).chunk(10);
            let failed = executor.vec(items).try_map_items(|item| {
                if item.1 == bad { Err("bad") } else { Ok(Counted::new(&alive, item.1)) }
            });
            let failure = failed.err().unwrap();
            assert!(matches!(failure.cause, Cause::Error("bad")));
            assert!(failure.place.items.contains(&bad), "{}", failure.place);
            assert_eq!(alive.load(Ordering::Relaxed), 0, "{workers} workers, item {bad}");
        }
    }
}

#[test]
fn after_a_panic_or_cancelled_nothing_is_left() {
    let alive = AtomicI64::new(0);
    let one = |item| {
        assert!(item != 500, "item {item}");
        Counted::new(&alive, item)
    };
    let panicked = quietly(|| Executor::new().chunk(7).range(0..1_000).map_items(one));
    assert_eq!(panicked.err().unwrap().cause.panic_message(), Some("item 500"));
    assert_eq!(alive.load(Ordering::Relaxed), 0);
    let cancel = Cancel::new();
    cancel.cancel();
    let executor = Executor::new().cancelled_by(&cancel);
    let cancelled = executor.range(0..1_000).map_items(|item| Counted::new(&alive, item));
    assert!(matches!(cancelled.err().unwrap().cause, Cause::Cancelled));
    assert_eq!(alive.load(Ordering::Relaxed), 0);
}

/// Its drop panics where the number is 3.
struct Fragile<'a>(Counted<'a>);

impl Drop for Fragile<'_> {
    fn drop(&mut self) {
        assert!(self.0.1 != 3, "in a drop");
    }
}

#[test]
fn a_result_whose_drop_panics_leaves_no_other_of_its_chunk() {
    for failing in [5, 15] {
        let alive = AtomicI64::new(0);
        let job = || {
            let executor = Executor::new().workers(1).chunk(10);
            let failed = executor.range(0..20).try_map_items(|item| {
                if item == failing { Err(()) } else { Ok(Fragile(Counted::new(&alive, item))) }
            });
            failed.err().unwrap().cause.panic_message().map(str::to_owned)
        };
        let caught = quietly(|| std::panic::catch_unwind(job));
        // In the chunk that failed it is the chunk's panic; in one before, the job's.
        assert_eq!(caught.ok(), (failing == 5).then(|| Some("in a drop".to_owned())));
        assert_eq!(alive.load(Ordering::Relaxed), 0, "item {failing}");
    }
}
