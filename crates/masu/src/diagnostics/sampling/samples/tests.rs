//! Sums of samples, checked by hand.
extern crate std;

use std::vec::Vec;

use super::*;

const INTERVAL: usize = 1 << 10;

fn extent(bytes: usize) -> Extent {
    Extent { bytes, exposed_bytes: bytes }
}

fn sums(samples: &Samples) -> Vec<(Sums, Vec<usize>)> {
    let mut all = Vec::new();
    samples.for_each_stack(|sums, depth, number_of| {
        all.push((sums, (0..depth).map(number_of).collect()));
    });
    all
}

#[test]
fn freed_samples_are_subtracted_exactly() {
    let mut samples = std::boxed::Box::new(Samples::new(INTERVAL));
    for block in 0..50_000_usize {
        samples.add(block * 16, extent(block % 3000), &[1, 2, 3]);
    }
    // All are found, although the index grew on the way.
    for block in 0..50_000_usize {
        samples.remove(block * 16);
    }
    let all = sums(&samples);
    assert_eq!(all.len(), 1);
    let (sums, frames) = &all[0];
    assert_eq!((sums.live_parts, sums.live_bytes), (0, 0));
    assert_eq!(frames, &[1, 2, 3]);
    assert!(sums.allocated_parts > 50_000 << PARTS_LOG2);
    assert_eq!(samples.dropped, 0);
    samples.reset(1);
    assert_eq!(samples.bytes(), 0);
}

#[test]
fn stacks_share_frames_and_stay_distinct() {
    let mut samples = std::boxed::Box::new(Samples::new(INTERVAL));
    samples.add(16, extent(100_000), &[10, 20, 30]);
    samples.add(32, extent(100_000), &[40, 20, 30]);
    samples.add(48, extent(100_000), &[10, 20, 30]);
    samples.add(64, extent(100_000), &[]);
    let mut frames = Vec::new();
    samples.for_each_frame(|number, address| frames.push((number, address)));
    frames.sort_unstable();
    assert_eq!(frames, [(1, 10), (2, 20), (3, 30), (4, 40)]);
    let mut all = sums(&samples);
    all.sort_by_key(|(_, frames)| frames.clone());
    let bytes: Vec<usize> = all.iter().map(|(sums, _)| sums.live_bytes).collect();
    assert_eq!(bytes, [100_000, 200_000, 100_000]);
}

#[test]
fn a_block_that_grows_is_counted_once() {
    let mut samples = std::boxed::Box::new(Samples::new(INTERVAL));
    samples.add(16, extent(1 << 20), &[1]);
    samples.resize(16, 3 << 20, 2 << 20);
    let (sums, _) = self::sums(&samples)[0];
    assert_eq!((sums.live_bytes, sums.allocated_bytes), (3 << 20, 3 << 20));
    assert_eq!(sums.live_parts, 1 << PARTS_LOG2);
    samples.resize(16, 1 << 20, 0);
    let (sums, _) = self::sums(&samples)[0];
    assert_eq!((sums.live_bytes, sums.allocated_bytes), (1 << 20, 3 << 20));
    // Into unused space: never more live than allocated.
    samples.resize(16, 4 << 20, 0);
    let (sums, _) = self::sums(&samples)[0];
    assert_eq!((sums.live_bytes, sums.allocated_bytes), (4 << 20, 6 << 20));
    assert_eq!((sums.live_parts, sums.allocated_parts), (1 << PARTS_LOG2, 1 << PARTS_LOG2));
    samples.remove(16);
    let (sums, _) = self::sums(&samples)[0];
    assert_eq!((sums.live_bytes, sums.live_parts), (0, 0));
}

#[test]
fn a_reused_address_replaces_an_unseen_free() {
    let mut samples = std::boxed::Box::new(Samples::new(INTERVAL));
    samples.add(16, extent(1 << 20), &[1]);
    samples.add(16, extent(2 << 20), &[2]);
    let live: usize = sums(&samples).iter().map(|(sums, _)| sums.live_bytes).sum();
    assert_eq!(live, 2 << 20);
}
