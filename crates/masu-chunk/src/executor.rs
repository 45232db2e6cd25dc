//! The executor: how a job is to be done, and what it can be done with.
//!
//! Relies on [`crate::source`] for the doing. Every question that has a good answer has it already:
//! `Executor::new().slice(&data).map(|chunk| …)` uses all cores, chunks of a sensible size, and
//! keeps the order.

use std::convert::Infallible;
use std::fmt;
use std::io::Read;
use std::num::NonZero;
use std::ops::Range;
use std::sync::OnceLock;
use std::thread;

use crate::control::{Cancel, Progress, Reporter};
use crate::failure::Failure;
use crate::place::{Chunk, Place};
use crate::reader::{Blocks, Items, Records};
use crate::source::{At, Numbers, Slice, SliceMut, Source, Stream, Vector};
use crate::statistics::Statistics;

/// Bytes of a chunk where none was given: half of a small core's first cache.
const CHUNK_BYTES: u64 = 16 << 10;

/// Chunks a worker there should at least be, so that uneven ones even out.
const CHUNKS_A_WORKER: u64 = 16;

/// Items a chunk of an iterator, where none was given.
const ITERATOR_CHUNK: usize = 1024;

/// Bytes a block of a reader, where none was given.
const BLOCK_BYTES: usize = 128 << 10;

/// Bytes of the longest record, unless another limit was set.
const RECORD_BYTES: usize = 16 << 20;

/// How a job is to be done. Cheap to make, and to clone.
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

    /// How many threads work, the calling one included; 0 means 1. Without: one a core.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(NonZero::new(workers).unwrap_or(NonZero::<usize>::MIN));
        self
    }

    /// How many chunks may be in the function at once; 0 means 1. Without: as many as there are
    /// workers. Further workers of a stream read and deliver meanwhile.
    #[must_use]
    pub fn concurrency(mut self, chunks: usize) -> Self {
        self.concurrency = Some(NonZero::new(chunks).unwrap_or(NonZero::<usize>::MIN));
        self
    }

    /// How many items a chunk has, of a reader bytes; 0 means 1. The last chunk has what is left,
    /// and a reader's have what it gives.
    #[must_use]
    pub fn chunk(mut self, items: usize) -> Self {
        self.chunk = Some(NonZero::new(items).unwrap_or(NonZero::<usize>::MIN));
        self
    }

    /// How many chunks of a stream may be begun and not yet delivered; 0 means 1. Without: two a
    /// worker. This bounds the memory: nothing more is read before there is room.
    #[must_use]
    pub fn window(mut self, chunks: usize) -> Self {
        self.window = Some(NonZero::new(chunks).unwrap_or(NonZero::<usize>::MIN));
        self
    }

    /// Results come as they are made, not in the order of the data.
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

    /// Hears how far the job is, some times a second and once at the end where all went well.
    #[must_use]
    pub fn progress(mut self, callback: &'a (dyn Fn(Progress) + Sync)) -> Self {
        self.progress = Some(callback);
        self
    }

    /// A slice: chunks are parts of it, nothing is copied.
    pub fn slice<'e, 'd, T: Sync>(&'e self, items: &'d [T]) -> Job<'e, At<Slice<'d, T>>> {
        self.at::<_, T>(Slice(items))
    }

    /// A slice whose chunks may be changed in place.
    pub fn slice_mut<'e, 'd, T: Send>(
        &'e self,
        items: &'d mut [T],
    ) -> Job<'e, At<SliceMut<'d, T>>> {
        self.at::<_, T>(SliceMut::new(items))
    }

    /// A vector: each chunk owns its items, which stay where they are.
    pub fn vec<T: Send>(&self, items: Vec<T>) -> Job<'_, At<Vector<T>>> {
        self.at::<_, T>(Vector::new(items))
    }

    /// Numbers from `range.start` to `range.end` − 1: chunks are ranges.
    pub fn range(&self, range: Range<u64>) -> Job<'_, At<Numbers>> {
        self.at::<_, u64>(Numbers(range))
    }

    /// An iterator: chunks are vectors. It may be endless; no more than the window is held.
    pub fn iter<I>(&self, items: I) -> Job<'_, Stream<Items<I::IntoIter>>>
    where
        I: IntoIterator,
        I::IntoIter: Send,
        I::Item: Send,
    {
        let items = Items::new(items.into_iter(), self.items_of_iterator());
        Job { executor: self, source: Stream(items) }
    }

    /// A reader cut anywhere: a chunk is what one `read` gave, so that nothing waits for more.
    pub fn blocks<R: Read + Send>(&self, reader: R) -> Job<'_, Stream<Blocks<R>>> {
        let blocks = Blocks::new(reader, self.bytes_of_block());
        Job { executor: self, source: Stream(blocks) }
    }

    /// A reader cut after delimiters: chunks are whole records, about as many bytes as asked for.
    /// A record of more than 16 MiB is an error, so that memory stays bounded;
    /// [`Self::records_up_to`] sets another limit.
    pub fn records<R: Read + Send>(&self, reader: R, delimiter: u8) -> Job<'_, Stream<Records<R>>> {
        let records = self.whole_records(reader, delimiter);
        Job { executor: self, source: Stream(records) }
    }

    /// As [`Self::records`], for records of up to so many bytes.
    pub fn records_up_to<R: Read + Send>(
        &self,
        reader: R,
        delimiter: u8,
        longest: usize,
    ) -> Job<'_, Stream<Records<R>>> {
        let records = Records::new(reader, delimiter, self.bytes_of_block(), longest);
        Job { executor: self, source: Stream(records) }
    }

    fn at<S, T>(&self, source: S) -> Job<'_, At<S>> {
        Job { executor: self, source: At { source, item_bytes: size_of::<T>() } }
    }

    pub(crate) fn workers_or_default(&self) -> usize {
        self.workers.map_or_else(cores, NonZero::get)
    }

    pub(crate) fn concurrency_or(&self, workers: usize) -> usize {
        self.concurrency.map_or(workers, NonZero::get)
    }

    pub(crate) fn window_or_default(&self, workers: usize) -> usize {
        self.window_or(2 * workers)
    }

    pub(crate) fn chunk_of(&self, items: u64, item_bytes: usize) -> u64 {
        let fits = (CHUNK_BYTES / (item_bytes as u64).max(1)).max(1);
        let shared = items.div_ceil(self.workers_or_default() as u64 * CHUNKS_A_WORKER);
        self.chunk.map_or(fits.min(shared).max(1), |chunk| chunk.get() as u64)
    }

    pub(crate) fn items_of_iterator(&self) -> usize {
        self.chunk.map_or(ITERATOR_CHUNK, NonZero::get)
    }

    pub(crate) fn bytes_of_block(&self) -> usize {
        self.chunk.map_or(BLOCK_BYTES, NonZero::get)
    }

    pub(crate) fn whole_records<R: Read + Send>(&self, reader: R, delimiter: u8) -> Records<R> {
        Records::new(reader, delimiter, self.bytes_of_block(), RECORD_BYTES)
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

/// Cores that this process may use. Asked once: the answer costs reads of `/proc` and cgroups.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// What a job that ended well gives.
#[derive(Clone, Debug)]
pub struct Finished<V> {
    /// What was asked for.
    pub value: V,
    /// Who did how much of it.
    pub statistics: Statistics,
}

/// Data with an executor, ready for a function.
///
/// The plain methods take functions that cannot fail; those with `try_` take functions that return
/// a `Result`. A panic is caught in both and becomes a [`Failure`] with the chunk's place.
pub struct Job<'e, S> {
    executor: &'e Executor<'e>,
    source: S,
}

impl<S: Source> Job<'_, S> {
    /// The results of all chunks; in order, unless the executor is unordered.
    ///
    /// # Errors
    ///
    /// The first chunk that panicked or could not be read, or that the job was cancelled.
    pub fn map<R: Send>(
        self,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> R + Sync,
    ) -> Result<Finished<Vec<R>>, Failure<Infallible>> {
        self.try_map(|chunk| Ok(work(chunk)))
    }

    /// The results of all chunks; in order, unless the executor is unordered.
    ///
    /// # Errors
    ///
    /// The first chunk that failed, panicked or could not be read, or that the job was cancelled.
    pub fn try_map<R: Send, E: Send>(
        self,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
    ) -> Result<Finished<Vec<R>>, Failure<E>> {
        let (value, statistics) = self.source.collect(self.executor, work)?;
        Ok(Finished { value, statistics })
    }

    /// All results combined into one; `None` where there is no chunk.
    ///
    /// In order, results are combined from first to last, so that the value is the same each time
    /// also where `combine` rounds; of a slice they are all held until then. Unordered, each worker
    /// combines its own as it goes.
    ///
    /// # Errors
    ///
    /// As [`Self::map`].
    pub fn reduce<R: Send>(
        self,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> R + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> Result<Finished<Option<R>>, Failure<Infallible>> {
        self.try_reduce(|chunk| Ok(work(chunk)), combine)
    }

    /// All results combined into one; see [`Self::reduce`].
    ///
    /// # Errors
    ///
    /// As [`Self::try_map`].
    pub fn try_reduce<R: Send, E: Send>(
        self,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> Result<Finished<Option<R>>, Failure<E>> {
        if self.executor.in_order() && S::KEEPS_ALL {
            let Finished { value, statistics } = self.try_map(work)?;
            return Ok(Finished { value: value.into_iter().reduce(combine), statistics });
        }
        let (value, statistics) = self.source.combine(self.executor, work, combine)?;
        Ok(Finished { value, statistics })
    }

    /// Calls the function on every chunk.
    ///
    /// # Errors
    ///
    /// As [`Self::map`].
    pub fn for_each(
        self,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) + Sync,
    ) -> Result<Statistics, Failure<Infallible>> {
        self.try_for_each(|chunk| {
            work(chunk);
            Ok(())
        })
    }

    /// Calls the function on every chunk.
    ///
    /// # Errors
    ///
    /// As [`Self::try_map`].
    pub fn try_for_each<E: Send>(
        self,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> Result<(), E> + Sync,
    ) -> Result<Statistics, Failure<E>> {
        let (_, statistics) = self.source.combine(self.executor, work, |(), ()| ())?;
        Ok(statistics)
    }

    /// Hands results to `take` one at a time, while further chunks are worked on: in order, unless
    /// the executor is unordered, and never more of them waiting than the window. If a chunk fails,
    /// in order everything before it has been taken.
    ///
    /// # Errors
    ///
    /// As [`Self::try_map`], and what `take` returns.
    pub fn deliver<R: Send, E: Send>(
        self,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
        take: impl FnMut(Place, R) -> Result<(), E> + Send,
    ) -> Result<Statistics, Failure<E>> {
        self.source.deliver(self.executor, work, take)
    }
}
