//! The executor: the settings of a job.
//!
//! Every setting has a good default: `Executor::new().slice(&data).map(|chunk| …)` uses all cores and
//! chunks of a sensible size, and keeps the order. [`crate::job`] lists the jobs.

use std::fmt;
use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

use crate::control::{Cancel, Progress, Reporter};
use crate::pool;

/// Default bytes a chunk: half of a small core's first-level cache.
const CHUNK_BYTES: u64 = 16 << 10;

/// Default for the fewest chunks a worker: if all the work lies in the last hundredth of the data, several chunks share it.
const CHUNKS_A_WORKER: u64 = 128;

/// Default items a chunk of an iterator.
const ITERATOR_CHUNK: usize = 1024;

/// Default bytes a block of a reader.
const BLOCK_BYTES: usize = 128 << 10;

/// The settings of a job. Cheap to make and to clone.
#[derive(Clone, Default)]
pub struct Executor<'a> {
    workers: Option<NonZero<usize>>,
    concurrency: Option<NonZero<usize>>,
    chunk: Option<NonZero<usize>>,
    window: Option<NonZero<usize>>,
    unordered: bool,
    cancel: Option<Cancel>,
    progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl<'a> Executor<'a> {
    /// All cores, chunks of a sensible size, results in order.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of threads that work, the calling one included; 0 means 1, and 513 is the most. The default is one a
    /// core.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(NonZero::new(workers).unwrap_or(NonZero::<usize>::MIN));
        self
    }

    /// The number of chunks that may be in the function at once; 0 means 1. The default is the number
    /// of workers. Further workers of a stream read and deliver at the same time.
    #[must_use]
    pub fn concurrency(mut self, chunks: usize) -> Self {
        self.concurrency = Some(NonZero::new(chunks).unwrap_or(NonZero::<usize>::MIN));
        self
    }

    /// Items a chunk (bytes for a reader); 0 means 1. The last chunk may be shorter, and a reader's chunks are as
    /// long as the reader makes them. By default the chunks of the last eighth of the data may be shorter than the
    /// others: [`Place::items`](crate::Place::items) has each chunk's own.
    #[must_use]
    pub fn chunk(mut self, items: usize) -> Self {
        self.chunk = Some(NonZero::new(items).unwrap_or(NonZero::<usize>::MIN));
        self
    }

    /// The number of chunks of a stream that may be begun and not yet delivered; 0 means 1. The default
    /// is two a worker. This bounds the memory: nothing more is read before there is room.
    #[must_use]
    pub fn window(mut self, chunks: usize) -> Self {
        self.window = Some(NonZero::new(chunks).unwrap_or(NonZero::<usize>::MIN));
        self
    }

    /// Results come in the order in which they are made, not in that of the data.
    #[must_use]
    pub fn unordered(mut self) -> Self {
        self.unordered = true;
        self
    }

    /// A token that stops the job.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// A callback for the progress, called some times a second and once at the end if all went well.
    #[must_use]
    pub fn progress(mut self, callback: &'a (dyn Fn(Progress) + Sync)) -> Self {
        self.progress = Some(callback);
        self
    }

    pub(crate) fn workers_or_default(&self) -> usize {
        self.workers.map_or_else(cores, NonZero::get).min(pool::WORKERS_MAX)
    }

    /// Workers of a job in which all that a worker does is in the function.
    pub(crate) fn workers_in_function(&self) -> usize {
        let workers = self.workers_or_default();
        self.concurrency_or(workers).min(workers)
    }

    pub(crate) fn concurrency_or(&self, workers: usize) -> usize {
        self.concurrency.map_or(workers, NonZero::get)
    }

    /// Whether the caller has set the items of a chunk.
    pub(crate) fn sets_chunk(&self) -> bool {
        self.chunk.is_some()
    }

    pub(crate) fn chunk_of(&self, items: u64, item_bytes: usize) -> u64 {
        let fits = (CHUNK_BYTES / (item_bytes as u64).max(1)).max(1);
        let least = self.workers_or_default() as u64 * CHUNKS_A_WORKER;
        let shared = items.div_ceil(least);
        self.chunk.map_or(fits.min(shared).max(1), |chunk| chunk.get() as u64)
    }

    pub(crate) fn items_of_iterator(&self) -> usize {
        self.chunk.map_or(ITERATOR_CHUNK, NonZero::get)
    }

    pub(crate) fn bytes_of_block(&self) -> usize {
        self.chunk.map_or(BLOCK_BYTES, NonZero::get)
    }

    pub(crate) fn window_or(&self, chunks: usize) -> usize {
        self.window.map_or(chunks, NonZero::get)
    }

    pub(crate) fn in_order(&self) -> bool {
        !self.unordered
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(Cancel::is_cancelled)
    }

    pub(crate) fn reporter(&self, items_total: Option<u64>) -> Reporter<'a> {
        Reporter::new(self.progress, items_total)
    }
}

impl fmt::Debug for Executor<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workers, concurrency, chunk, window, unordered, .. } = self;
        to.debug_struct("Executor")
            .field("workers", workers)
            .field("concurrency", concurrency)
            .field("chunk", chunk)
            .field("window", window)
            .field("unordered", unordered)
            .finish_non_exhaustive()
    }
}

/// Cores that this process may use. Cached: finding out reads `/proc` and cgroups.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}
