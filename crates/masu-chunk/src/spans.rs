//! The chunks still to be done: at first all in one *span*, from whose front every worker takes. Later
//! also in the workers' [batches](crate::batch), and in a span for each worker with its stolen chunks,
//! from whose back others steal again.
//!
//! Relies on one atomic word a span, its first chunk and its end in 32 bits each; if there are more chunks, the numbers
//! are of units of several. Long chunks taken from one front begin in the order of the data, as in list scheduling. The
//! value of the word *is* the right to the chunks. The thread that changes it by compare-and-swap owns the removed
//! chunks, so no other order between threads matters, and a value that recurs means the same as before. Only its owner
//! moves the front of a worker's span or fills it when empty, and nobody returns chunks to the common one.

use std::ops::Range;

use crate::batch::{Batch, Turn};
use crate::sync::{AtomicU64, Ordering};

/// A common span, and for each worker a span and a batch.
pub(crate) struct Spans {
    common: Span,
    workers: Vec<(Span, Batch)>,
    chunks: u64,
    /// A unit is 2 to this power chunks.
    shift: u32,
}

/// A span, of units. Aligned to a pair of cache lines, which the CPU fetches at once.
#[repr(align(128))]
struct Span(AtomicU64);

impl Span {
    /// Fills the span, which is empty and the calling worker's.
    fn fill(&self, range: &Range<u32>) {
        // ORDERING: Relaxed, as in `change`. A plain store is enough, because an empty span is changed by its owner alone.
        self.0.store(pack(range), Ordering::Relaxed);
    }
}

const fn pack(range: &Range<u32>) -> u64 {
    (range.start as u64) << 32 | range.end as u64
}

const fn unpack(word: u64) -> Range<u32> {
    (word >> 32) as u32..word as u32
}

impl Spans {
    /// Chunks 0 to `chunks` − 1.
    pub(crate) fn new(chunks: u64, workers: usize) -> Self {
        // At most 2^31 units. With one bit more, rounding up could make 2^32 of them, which 32 bits hold as none.
        let shift = (u64::BITS - chunks.leading_zeros()).saturating_sub(u32::BITS - 1);
        let span = |range| Span(AtomicU64::new(pack(&range)));
        let common = span(0..chunks.div_ceil(1 << shift) as u32);
        let workers = (0..workers).map(|_| (span(0..0), Batch::new())).collect();
        Self { common, workers, chunks, shift }
    }

    pub(crate) fn batch(&self, worker: usize) -> &Batch {
        &self.workers[worker].1
    }

    /// Takes a batch of up to `most` units: from the worker's own span at most half, so that others
    /// find some; else from the common one. Where chunks are short, the worker moves half of its share of the common span
    /// to its own: so neighbors in memory have one worker, and the common word rests.
    pub(crate) fn take(&self, worker: usize, most: u32, are_short: bool) -> Option<Range<u64>> {
        let share = 2 * self.workers.len() as u32;
        let (own, batch) = &self.workers[worker];
        let units = take_front(own, most, 2).or_else(|| {
            let stretch = if are_short { u32::MAX } else { most };
            let taken = take_front(&self.common, stretch, share)?;
            let middle = taken.end.min(taken.start.saturating_add(most));
            own.fill(&(middle..taken.end));
            Some(taken.start..middle)
        })?;
        let start = u64::from(units.start) << self.shift;
        let end = u64::try_from(u128::from(units.end) << self.shift).unwrap_or(u64::MAX);
        let chunks = start..end.min(self.chunks);
        batch.begin(&chunks);
        Some(chunks)
    }

    /// Decides for a worker that its batch stopped before this chunk.
    pub(crate) fn turn(&self, worker: usize, chunk: u64) -> Turn {
        self.batch(worker).turn(chunk, self.unit())
    }

    /// The number of chunks in a unit.
    fn unit(&self) -> u64 {
        1 << self.shift
    }

    /// Moves the back half of another worker's span to the worker's own, which is empty.
    pub(crate) fn steal(&self, worker: usize) -> bool {
        let stolen = self.others(worker).find_map(|(span, _)| take_back(span));
        stolen.inspect(|stolen| self.workers[worker].0.fill(stolen)).is_some()
    }

    /// Moves the back half of the chunks that another worker has not begun of its batch to the worker's own span, which is
    /// empty. Interrupts all workers: for one that found no span for longer than a batch of short chunks takes.
    pub(crate) fn rob(&self, worker: usize) -> bool {
        let robbed = self.others(worker).find_map(|(_, batch)| batch.rob(self.unit()));
        let Some(rest) = robbed else { return false };
        let units = rest.start / self.unit()..rest.end.div_ceil(self.unit());
        self.workers[worker].0.fill(&(units.start as u32..units.end as u32));
        true
    }

    /// The other workers, from the next one on.
    fn others(&self, worker: usize) -> impl Iterator<Item = &(Span, Batch)> {
        self.workers[worker + 1..].iter().chain(&self.workers[..worker])
    }

    /// Whether the worker has chunks that it has not begun.
    pub(crate) fn has_more(&self, worker: usize) -> bool {
        let (Span(own), batch) = &self.workers[worker];
        // ORDERING: Relaxed: a hint. Another worker may take chunks at any time; the fence is in `Idle::share`.
        batch.has_rest() || !unpack(own.load(Ordering::Relaxed)).is_empty()
    }

    /// Stops all existing batches.
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

/// Takes up to `most` units from the front, and at most one in `one_in`, but at least one.
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
    // ORDERING: Relaxed throughout. The word carries the right to chunks and no data: the chunks were
    // there before the job's workers began, and their results are read after all of them ended. The
    // pool's lock orders both.
    let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
        change(unpack(word)).map(|span| pack(&span))
    });
}
