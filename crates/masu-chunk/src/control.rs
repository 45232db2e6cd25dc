//! Control of a running job: a token that cancels it, and a callback for its progress.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::sync::Mutex;

/// A token that stops jobs: clones share it.
///
/// A job checks the token between chunks, so a chunk that has begun is finished. A job that waits for its reader
/// notices when the reader returns.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A token that has stopped nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the jobs that were given this token, now and for ever.
    pub fn cancel(&self) {
        // ORDERING: Relaxed, because the flag publishes nothing: jobs only have to see it soon.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`Self::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        // ORDERING: Relaxed, as above.
        self.0.load(Ordering::Relaxed)
    }
}

/// The progress of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Chunks done.
    pub chunks: u64,
    /// Items done; for a reader, bytes.
    pub items: u64,
    /// Items in all, if that number is known.
    pub items_total: Option<u64>,
}

/// The shortest time between two calls of the callback.
const INTERVAL: Duration = Duration::from_millis(100);

/// Adds up the workers' reports, and calls the callback now and then, one call at a time.
pub(crate) struct Reporter<'a> {
    callback: Option<&'a (dyn Fn(Progress) + Sync)>,
    state: Mutex<Reported>,
}

struct Reported {
    progress: Progress,
    last: Instant,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(
        callback: Option<&'a (dyn Fn(Progress) + Sync)>,
        items_total: Option<u64>,
    ) -> Self {
        let progress = Progress { chunks: 0, items: 0, items_total };
        Self { callback, state: Mutex::new(Reported { progress, last: Instant::now() }) }
    }

    /// Adds finished chunks and items. Costs nothing without a callback. `Err`: the callback panicked.
    pub(crate) fn add(&self, chunks: u64, items: u64) -> thread::Result<()> {
        let Some(callback) = self.callback else { return Ok(()) };
        let mut state = crate::sync::lock(&self.state);
        state.progress.chunks += chunks;
        state.progress.items += items;
        if state.last.elapsed() < INTERVAL {
            return Ok(());
        }
        state.last = Instant::now();
        // Under the lock, so that calls come one after another and figures only grow.
        catch_unwind(AssertUnwindSafe(|| callback(state.progress)))
    }

    /// Calls the callback a last time, with the final figures. `Err`: it panicked.
    pub(crate) fn finish(&self) -> thread::Result<()> {
        let Some(callback) = self.callback else { return Ok(()) };
        let state = crate::sync::lock(&self.state);
        catch_unwind(AssertUnwindSafe(|| callback(state.progress)))
    }
}
