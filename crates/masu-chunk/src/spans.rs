//! Which chunks are still to be done: first all in one *span*, from whose front every worker takes;
//! then also in a span for each worker, with what it gave back, from whose back others steal.
//!
//! Relies on one atomic word a span, its first chunk and its end in 32 bits each. Taken from one front,
//! long chunks are begun in the order of the data, as list scheduling does it. The one hard idea:
//! the value of the word *is* the right to the chunks. Whoever changes it by compare-and-swap has
//! what the change took away, so no other order between threads matters, and a value that comes
//! back means the same as it did before. Only its owner moves the front of a worker's span or fills it
//! when it is empty, and nobody brings chunks back to the common one.

use std::ops::Range;

use crate::sync::{AtomicU64, Ordering};

/// A span for all, and one for each worker.
pub(crate) struct Spans {
    common: Span,
    spans: Vec<Span>,
}

/// Alone on its cache lines, and on the pair of them that the CPU fetches at once.
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
    pub(crate) fn new(chunks: u32, workers: usize) -> Self {
        let span = |range| Span(AtomicU64::new(pack(&range)));
        Self { common: span(0..chunks), spans: (0..workers).map(|_| span(0..0)).collect() }
    }

    /// Takes up to `most` chunks: from the worker's own span never more than half, so that others
    /// find some; else from the common one, never more than half of a worker's share.
    pub(crate) fn take(&self, worker: usize, most: u32) -> Option<Range<u32>> {
        let share = 2 * self.spans.len() as u32;
        take_front(&self.spans[worker], most, 2).or_else(|| take_front(&self.common, most, share))
    }

    /// Puts what was taken last and not begun into the worker's own span.
    pub(crate) fn give_back(&self, worker: usize, rest: Range<u32>) {
        change(&self.spans[worker], |span| {
            debug_assert!(span.is_empty() || rest.end == span.start, "it was not taken last");
            let end = if span.is_empty() { rest.end } else { span.end };
            Some(rest.start..end)
        });
    }

    /// Moves the back half of somebody's span to the worker's own, which is empty.
    pub(crate) fn steal(&self, worker: usize) -> bool {
        let others = (worker + 1..self.spans.len()).chain(0..worker);
        for victim in others {
            let mut stolen = None;
            change(&self.spans[victim], |span| {
                let count = (span.end - span.start).div_ceil(2);
                let middle = span.end - count;
                stolen = (count > 0).then_some(middle..span.end);
                (count > 0).then_some(span.start..middle)
            });
            if let Some(stolen) = stolen {
                // ORDERING: Relaxed, as in `change`. A plain store is enough, because an empty
                // span is changed by its owner alone.
                self.spans[worker].0.store(pack(&stolen), Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Whether the worker's own span has chunks left for others.
    pub(crate) fn has_more(&self, worker: usize) -> bool {
        // ORDERING: Relaxed, for only a hint is wanted; see `Idle::share` for what it is good for.
        !unpack(self.spans[worker].0.load(Ordering::Relaxed)).is_empty()
    }
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
