//! The *batch*: the chunks that a worker has taken, the rest of which others may steal during a long
//! chunk.
//!
//! Relies on two words, and on a lock that the worker takes once or twice a batch. The hard part is the race for a
//! chunk. The worker stores the chunk it begins, then loads the limit; a thief lowers the limit, then loads the
//! worker's chunk. Each needs a barrier between its two steps, and the thief passes one for both ([`heavy_fence`]), so
//! at least one of them sees the other. The worker pays a store and a load a chunk, less than any atomic change.

use std::ops::Range;

use crate::sync::{AtomicU64, Mutex, Ordering, heavy_fence, light_fence, lock};

/// Aligned to a pair of cache lines, which the CPU fetches at once.
#[repr(align(128))]
pub(crate) struct Batch {
    /// The chunk that the worker is in, or is about to begin if the limit lets it.
    at: AtomicU64,
    /// The worker begins no chunk from here on without the lock. Changed under the lock only.
    limit: AtomicU64,
    state: Mutex<State>,
}

struct State {
    end: u64,
    limited: Limited,
}

/// The reason for the limit.
#[derive(PartialEq, Eq)]
enum Limited {
    /// The end of the batch, or a thief is about to take the chunks beyond the limit.
    No,
    /// A thief asked the worker to share at its next chunk.
    Asked,
    /// The worker shared: it begins nothing beyond the limit without the lock.
    Promised,
    Stopped,
}

/// The next step of a worker at its limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The worker does the chunk.
    Go,
    /// The worker does the chunk, and waiting thieves may take the rest of the batch.
    Share,
    /// The batch is over.
    Over,
}

impl Batch {
    pub(crate) fn new() -> Self {
        let (at, limit) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { at, limit, state: Mutex::new(State { end: 0, limited: Limited::No }) }
    }

    /// Starts a batch of these chunks, of which there is at least one, with the first.
    pub(crate) fn begin(&self, chunks: &Range<u64>) {
        let mut state = lock(&self.state);
        *state = State { end: chunks.end, limited: Limited::No };
        // ORDERING: Relaxed: others use both words under the lock only.
        self.at.store(chunks.start, Ordering::Relaxed);
        self.limit.store(chunks.end, Ordering::Relaxed);
    }

    /// Ends the chunk before this one; `true`: this one belongs to the worker as well.
    #[inline(always)]
    pub(crate) fn next(&self, chunk: u64) -> bool {
        // ORDERING: The store-load pair with `rob`: both Relaxed, with a fence between.
        self.at.store(chunk, Ordering::Relaxed);
        light_fence();
        chunk < self.limit.load(Ordering::Relaxed)
    }

    /// The chunk that the worker is in, for the worker itself.
    pub(crate) fn at(&self) -> u64 {
        // ORDERING: Relaxed: only the worker changes it.
        self.at.load(Ordering::Relaxed)
    }

    /// Decides for a worker that [`Self::next`] stopped before this chunk. The worker keeps whole
    /// units of so many chunks.
    #[cold]
    pub(crate) fn turn(&self, chunk: u64, unit: u64) -> Turn {
        let mut state = lock(&self.state);
        if chunk >= state.end || state.limited == Limited::Stopped {
            return Turn::Over;
        }
        let asked = state.limited == Limited::Asked;
        let limit = if asked { after(chunk, unit).min(state.end) } else { state.end };
        state.limited = if asked { Limited::Promised } else { Limited::No };
        // ORDERING: Relaxed: it is changed under the lock.
        self.limit.store(limit, Ordering::Relaxed);
        if asked { Turn::Share } else { Turn::Go }
    }

    /// Whether the worker has chunks that it has not begun.
    pub(crate) fn has_rest(&self) -> bool {
        // ORDERING: Relaxed: a hint. Another worker may take chunks at any time; the fence is in `Idle::share`.
        self.at.load(Ordering::Relaxed) + 1 < lock(&self.state).end
    }

    /// Takes the back half of the chunks that the worker has not begun, in units of so many chunks. If the system has
    /// no fence for two, asks the worker to share at its next chunk instead.
    #[cold]
    pub(crate) fn rob(&self, unit: u64) -> Option<Range<u64>> {
        let mut state = lock(&self.state);
        loop {
            // ORDERING: Relaxed: the limit changes under the lock, and the worker's chunk is checked
            // again.
            let first = match state.limited {
                Limited::Promised => self.limit.load(Ordering::Relaxed),
                Limited::No => after(self.at.load(Ordering::Relaxed), unit),
                Limited::Asked | Limited::Stopped => return None,
            };
            if first >= state.end {
                return None;
            }
            let middle = first + (state.end - first) / 2 / unit * unit;
            if state.limited == Limited::No {
                // ORDERING: The store-load pair with `next`: both Relaxed, with a fence between.
                self.limit.store(middle, Ordering::Relaxed);
                if !heavy_fence() {
                    self.limit.store(0, Ordering::Relaxed);
                    state.limited = Limited::Asked;
                    return None;
                }
                if self.at.load(Ordering::Relaxed) >= middle {
                    // The worker has got there since, and may be waiting for the lock.
                    continue;
                }
            }
            let rest = middle..state.end;
            state.end = middle;
            return Some(rest);
        }
    }

    /// Ends the batch at the chunk that the worker is in.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.limited = Limited::Stopped;
        // ORDERING: Relaxed: it is changed under the lock.
        self.limit.store(0, Ordering::Relaxed);
    }
}

/// The first unit that begins after this chunk.
fn after(chunk: u64, unit: u64) -> u64 {
    (chunk + 1).next_multiple_of(unit)
}
