//! Which chunks are still to be done: first all in one *span*, from whose front every worker takes;
//! then also in the [batches](crate::batch) that workers are in, and in a span for each worker with what it
//! stole, from whose back others steal again.
//!
//! Relies on one atomic word a span, its first chunk and its end in 32 bits each; where there are more
//! chunks than that numbers, units of several. Taken from one front,
//! long chunks are begun in the order of the data, as list scheduling does it. The one hard idea:
//! the value of the word *is* the right to the chunks. The thread that changes it by compare-and-swap has
//! what the change took away, so no other order between threads matters, and a value that comes
//! back means the same as it did before. Only its owner moves the front of a worker's span or fills it
//! when it is empty, and nobody brings chunks back to the common one.

use std::ops::Range;

use crate::batch::{Batch, Turn};
use crate::sync::{AtomicU64, Ordering};

/// A span for all, and for each worker one and its batch.
pub(crate) struct Spans {
    common: Span,
    workers: Vec<(Span, Batch)>,
    chunks: u64,
    /// 2 to this many chunks are a unit.
    shift: u32,
}

/// Of units. Alone on its cache lines, and on the pair of them that the CPU fetches at once.
#[repr(align(128))]
struct Span(AtomicU64);

const fn pack(range: &Range<u32>) -> u64 {
    (range.start as u64) << 32 | range.end as u64
}

const fn unpack(word: u64) -> Range<u32> {
    (word >> 32) as u32..word as u32
}

impl Spans {
    /// Chunks 0 to `chunks` − 1.
    pub(crate) fn new(chunks: u64, workers: usize) -> Self {
        let shift = (u64::BITS - chunks.leading_zeros()).saturating_sub(u32::BITS);
        let span = |range| Span(AtomicU64::new(pack(&range)));
        let common = span(0..chunks.div_ceil(1 << shift) as u32);
        let workers = (0..workers).map(|_| (span(0..0), Batch::new())).collect();
        Self { common, workers, chunks, shift }
    }

    /// The batch that a worker is in.
    pub(crate) fn batch(&self, worker: usize) -> &Batch {
        &self.workers[worker].1
    }

    /// The worker takes a batch of up to `most` units: from its own span never more than half, so that
    /// others find some; else from the common one, never more than half of a worker's share.
    pub(crate) fn take(&self, worker: usize, most: u32) -> Option<Range<u64>> {
        let share = 2 * self.workers.len() as u32;
        let (own, batch) = &self.workers[worker];
        let units = take_front(own, most, 2).or_else(|| take_front(&self.common, most, share))?;
        let start = u64::from(units.start) << self.shift;
        let chunks = start..(u64::from(units.end) << self.shift).min(self.chunks);
        batch.begin(&chunks);
        Some(chunks)
    }

    /// What a worker is to do, whom its batch did not let go on to this chunk.
    pub(crate) fn turn(&self, worker: usize, chunk: u64) -> Turn {
        self.batch(worker).turn(chunk, self.unit())
    }

    /// How many chunks a unit has.
    fn unit(&self) -> u64 {
        1 << self.shift
    }

    /// Moves the back half of somebody's span, or else of what somebody has in its batch and has not begun,
    /// to the worker's own span, which is empty.
    pub(crate) fn steal(&self, worker: usize) -> bool {
        let others = || self.workers[worker + 1..].iter().chain(&self.workers[..worker]);
        let rob = |batch: &Batch| {
            let rest = batch.rob(self.unit())?;
            Some((rest.start / self.unit()) as u32..rest.end.div_ceil(self.unit()) as u32)
        };
        let stolen = others()
            .find_map(|(span, _)| take_back(span))
            .or_else(|| others().find_map(|(_, batch)| rob(batch)));
        let Some(stolen) = stolen else { return false };
        // ORDERING: Relaxed, as in `change`. A plain store is enough, because an empty
        // span is changed by its owner alone.
        self.workers[worker].0.0.store(pack(&stolen), Ordering::Relaxed);
        true
    }

    /// Whether the worker has chunks that it has not begun.
    pub(crate) fn has_more(&self, worker: usize) -> bool {
        let (Span(own), batch) = &self.workers[worker];
        // ORDERING: Relaxed, for only a hint is wanted; see `Idle::share` for what it is good for.
        batch.has_rest() || !unpack(own.load(Ordering::Relaxed)).is_empty()
    }

    /// Lets nobody begin anything more of the batches there are.
    pub(crate) fn stop(&self) {
        self.workers.iter().for_each(|(_, batch)| batch.stop());
    }
}

/// Takes the back half.
fn take_back(span: &Span) -> Option<Range<u32>> {
    let mut taken = None;
    change(span, |span| {
        let count = (span.end - span.start).div_ceil(2);
        let middle = span.end - count;
        taken = (count > 0).then_some(middle..span.end);
        (count > 0).then_some(span.start..middle)
    });
    taken
}

/// Takes up to `most` chunks from the front, and no more than one in so many, but one.
fn take_front(span: &Span, most: u32, one_in: u32) -> Option<Range<u32>> {
    let mut taken = None;
    change(span, |span| {
        let count = most.min((span.end - span.start).div_ceil(one_in));
        taken = (count > 0).then(|| span.start..span.start + count);
        (count > 0).then(|| span.start + count..span.end)
    });
    taken
}

fn change(Span(word): &Span, mut change: impl FnMut(Range<u32>) -> Option<Range<u32>>) {
    // ORDERING: Relaxed throughout. The word carries the right to chunks and no data: what the
    // chunks are was there before the job's workers began, what they become is read after all of
    // them ended, and the pool's lock stands on both sides.
    let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
        change(unpack(word)).map(|span| pack(&span))
    });
}
