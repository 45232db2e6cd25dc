//! Traffic: how many blocks a cache fetched and sent, and which thread uses it.
//!
//! Relies on counts that only the cache's thread changes, on slow paths: a batch costs one or two additions, and the fast
//! paths cost nothing. A cache that serves one thread after another keeps counting.

use super::Count;

/// The counts.
pub(crate) struct Traffic {
    /// Calls that found a stack empty or full, or freed a large block that was not parked.
    pub(crate) slow_calls: Count,
    /// Batches fetched, and their blocks.
    pub(crate) refills: Count,
    pub(crate) refilled_blocks: Count,
    /// Batches sent, and their blocks, without those of other lanes.
    pub(crate) flushes: Count,
    pub(crate) flushed_blocks: Count,
    /// Blocks sent to other lanes: remote frees of the smallest classes.
    pub(crate) lane_blocks: Count,
    /// The user, as a number: see [`User`].
    user: Count,
    /// The generation of forked processes in which its thread began.
    generation: Count,
}

/// The user of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// None: its thread has ended.
    Nobody,
    /// A thread whose number is not known.
    Unknown,
    /// The thread with this number.
    Thread(usize),
}

impl Traffic {
    pub(super) const fn new() -> Traffic {
        Traffic {
            slow_calls: Count::new(0),
            refills: Count::new(0),
            refilled_blocks: Count::new(0),
            flushes: Count::new(0),
            flushed_blocks: Count::new(0),
            lane_blocks: Count::new(0),
            user: Count::new(1),
            generation: Count::new(0),
        }
    }

    pub(crate) fn user(&self) -> User {
        match self.user.get() {
            0 => User::Nobody,
            1 => User::Unknown,
            number => User::Thread(number - 1),
        }
    }

    /// Records the user, and its generation of forked processes.
    pub(crate) fn note_user(&self, user: User, generation: usize) {
        self.user.set(match user {
            User::Nobody => 0,
            User::Unknown => 1,
            User::Thread(number) => number + 1,
        });
        self.generation.set(generation);
    }

    /// The generation of forked processes in which its thread began.
    pub(crate) fn generation(&self) -> usize {
        self.generation.get()
    }
}
