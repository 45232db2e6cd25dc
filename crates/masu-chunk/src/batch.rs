//! What a worker has taken and works off: its *batch*, and how others take the rest of it while the
//! worker is in a long chunk.
//!
//! Relies on two words, and on a lock that the worker takes once or twice a batch. The one hard idea
//! is who gets a chunk that two want. The worker says which chunk it is at and then looks at the limit;
//! an idle one lowers the limit and then looks where the worker is. Between the two steps each needs a
//! barrier, and the idle one passes it for both ([`heavy_fence`]). So at least one of them sees
//! the other, and for the worker all this is a store and a load a chunk, less than any atomic change.

use std::ops::Range;

use crate::sync::{AtomicU64, Mutex, Ordering, heavy_fence, light_fence, lock};

/// Alone on its cache lines, and on the pair of them that the CPU fetches at once.
#[repr(align(128))]
pub(crate) struct Batch {
    /// The chunk that the worker is in, or is about to begin if the limit lets it.
    at: AtomicU64,
    /// From this chunk on the worker asks under the lock. Changed under the lock alone.
    limit: AtomicU64,
    state: Mutex<State>,
}

struct State {
    /// Where the batch ends.
    end: u64,
    limited: Limited,
}

/// Why the limit is where it is.
#[derive(PartialEq, Eq)]
enum Limited {
    /// It is the end, or somebody is about to take what is beyond it.
    No,
    /// The worker is to come to its turn at its next chunk.
    Asked,
    /// The worker set it there for others, and will not go beyond it without its turn.
    Promised,
    /// Nothing more is to be begun.
    Stopped,
}

/// What a worker does that came to the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The chunk is its own.
    Go,
    /// The chunk is its own, and others wait to learn that the rest of the batch is theirs to take.
    Share,
    /// The batch is over.
    Over,
}

impl Batch {
    pub(crate) fn new() -> Self {
        let (at, limit) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { at, limit, state: Mutex::new(State { end: 0, limited: Limited::No }) }
    }

    /// The worker takes these chunks, of which there is at least one, and is in the first.
    pub(crate) fn begin(&self, chunks: &Range<u64>) {
        let mut state = lock(&self.state);
        *state = State { end: chunks.end, limited: Limited::No };
        // ORDERING: Relaxed, for others go by them under the lock only.
        self.at.store(chunks.start, Ordering::Relaxed);
        self.limit.store(chunks.end, Ordering::Relaxed);
    }

    /// The worker is done with the chunk before this one; `true`: this one is its own as well.
    #[inline(always)]
    pub(crate) fn next(&self, chunk: u64) -> bool {
        // ORDERING: The store-load pair with `rob`: both Relaxed, with a fence between.
        self.at.store(chunk, Ordering::Relaxed);
        light_fence();
        chunk < self.limit.load(Ordering::Relaxed)
    }

    /// The chunk that the worker is in, for the worker itself.
    pub(crate) fn at(&self) -> u64 {
        // ORDERING: Relaxed, for only the worker changes it.
        self.at.load(Ordering::Relaxed)
    }

    /// What the worker is to do, whom [`Self::next`] did not let go on to this chunk. It keeps whole
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
        // ORDERING: Relaxed, for it is changed under the lock.
        self.limit.store(limit, Ordering::Relaxed);
        if asked { Turn::Share } else { Turn::Go }
    }

    /// Whether the worker holds more than it is in.
    pub(crate) fn has_rest(&self) -> bool {
        // ORDERING: Relaxed, for only a hint is wanted; see `Idle::share` for what it is good for.
        self.at.load(Ordering::Relaxed) + 1 < lock(&self.state).end
    }

    /// Takes the back half of what the worker has not begun, in units of so many chunks. Where the
    /// system has no fence for two, it asks the worker, who is to share at its next chunk.
    #[cold]
    pub(crate) fn rob(&self, unit: u64) -> Option<Range<u64>> {
        let mut state = lock(&self.state);
        loop {
            // ORDERING: Relaxed: the limit is changed under the lock, and where the worker is will be
            // looked at again.
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
                    // The worker went there in that time, and may be waiting for the lock.
                    continue;
                }
            }
            let rest = middle..state.end;
            state.end = middle;
            return Some(rest);
        }
    }

    /// Lets the worker begin nothing more of this batch.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.limited = Limited::Stopped;
        // ORDERING: Relaxed, for it is changed under the lock.
        self.limit.store(0, Ordering::Relaxed);
    }
}

/// The first unit that begins after this chunk.
fn after(chunk: u64, unit: u64) -> u64 {
    (chunk + 1).next_multiple_of(unit)
}
