//! What came to a cache and went from it, and who uses it.
//!
//! Relies on counts that the cache's thread alone changes, on slow paths: a batch costs an addition or
//! two, and the fast paths cost nothing. A cache that serves one thread after the other goes on
//! counting.

use super::Count;

/// The counts.
pub(crate) struct Traffic {
    /// Calls that found a stack empty or full, or that freed a large block that was not parked.
    pub(crate) slow_calls: Count,
    /// Batches fetched, and their blocks.
    pub(crate) refills: Count,
    pub(crate) refilled_blocks: Count,
    /// Batches sent away, and their blocks, other lanes' not among them.
    pub(crate) flushes: Count,
    pub(crate) flushed_blocks: Count,
    /// Blocks of other lanes sent on their way home: remote frees of the smallest classes.
    pub(crate) lane_blocks: Count,
    /// Who uses the cache, as a number: see [`User`].
    user: Count,
    /// In which generation of forked processes its thread began.
    generation: Count,
}

/// Who uses a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// Nobody: its thread has ended.
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

    /// Notes who uses the cache from now on, and in which generation of forked processes.
    pub(crate) fn note_user(&self, user: User, generation: usize) {
        self.user.set(match user {
            User::Nobody => 0,
            User::Unknown => 1,
            User::Thread(number) => number + 1,
        });
        self.generation.set(generation);
    }

    /// In which generation of forked processes its thread began.
    pub(crate) fn generation(&self) -> usize {
        self.generation.get()
    }
}
