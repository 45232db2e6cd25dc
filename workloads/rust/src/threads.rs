//! Arcs on their way between threads: the thread that drops the last one frees a block that another thread allocated.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::boxes::{Checked, Object};
use crate::random::Random;
use crate::work::Work;

/// A message of one of three lengths.
fn message(kind: usize, stamp: u64) -> Arc<dyn Checked> {
    match kind {
        0 => Arc::new(Object([stamp; 1])),
        1 => Arc::new(Object([stamp; 5])),
        _ => Arc::new(Object([stamp; 14])),
    }
}

/// Arcs on their way together, so that the channel is not the part that is measured.
const BATCH: u64 = 256;

/// Threads in pairs: one makes Arcs, its partner reads and drops them. One operation is one Arc.
pub fn arcs(work: Work) -> u64 {
    let pairs = (work.threads / 2).max(1);
    let of_pairs = Work { threads: pairs, ..work };
    thread::scope(|scope| {
        let takers: Vec<_> = (0..pairs)
            .map(|pair| {
                let (sender, receiver) = sync_channel::<Vec<Arc<dyn Checked>>>(16);
                let (seed, ops) = (work.seed.wrapping_add(pair), of_pairs.share(pair));
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    let mut left = ops;
                    while left > 0 {
                        let count = left.min(BATCH);
                        let batch = (0..count)
                            .map(|at| message(random.below(3), left.wrapping_add(at)))
                            .collect();
                        if sender.send(batch).is_err() {
                            break;
                        }
                        left -= count;
                    }
                });
                scope.spawn(move || {
                    let batches = receiver.into_iter();
                    batches.flatten().fold(0_u64, |sum, arc| sum.wrapping_add(arc.checksum()))
                })
            })
            .collect();
        let sums = takers.into_iter().map(|taker| taker.join().unwrap_or_default());
        sums.fold(0, u64::wrapping_add)
    })
}
