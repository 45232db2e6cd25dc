//! The executor's job on several machines: the same function on every chunk, the results brought to
//! the first process, on the engine of the `timely` crate.
//!
//! Relies on timely for moving chunks and results, on TCP for knowing that a process is gone, and in
//! each process on the [stream engine](crate::stream) for its workers. The one hard idea is that the
//! first process deals ([`dealer`]): it alone reads the data, every other process says how much it can
//! hold and asks for more with each result. So chunks go to the process that is free, what is under way is
//! bounded, and whatever goes wrong anywhere ends in one place, which tells everybody.

use std::fmt;
use std::io;
use std::io::Read;
use std::ops::Range;
use std::time::Duration;

use crate::executor::Executor;
use crate::place::{Chunk, Place};
use crate::reader::{Blocks, Items};

mod dealer;
mod job;
mod member;
mod sockets;
mod spread;

pub use spread::{Spread, SpreadBlocks, SpreadItems, SpreadNumbers, SpreadRecords, SpreadSlice};
/// What can be sent to another process: what serde can take apart and put together again.
pub use timely::ExchangeData;

/// Processes that do jobs together. Each calls the same methods, in the same order, with the same
/// function.
///
/// ```
/// use masu_chunk::cluster::Cluster;
///
/// // A cluster of this process alone; others would have more addresses, and each its own number.
/// let cluster = Cluster::new(vec!["127.0.0.1:0".into()], 0).workers(2).chunk(100);
/// let sums = cluster.range(0..1050).map(|chunk| chunk.into_inner().sum::<u64>())?;
/// assert_eq!(sums.map(|sums| sums.len()), Some(11));
/// # Ok::<(), masu_chunk::cluster::ClusterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cluster {
    addresses: Vec<String>,
    process: usize,
    executor: Executor<'static>,
    patience: Duration,
}

/// Why a job of a cluster ended early.
#[derive(Debug)]
pub enum ClusterError {
    /// A chunk failed, panicked or could not be read, in whichever process.
    Chunk {
        /// Which.
        place: Place,
        /// What happened: it `failed: …`, `panicked: …`, or `cannot be read: …`.
        said: String,
    },
    /// The other processes could not all be reached.
    Connect {
        /// The address that this process was busy with.
        address: String,
        /// Why not.
        error: io::Error,
    },
    /// A process went away, or what it sent was damaged.
    Lost(String),
}

impl fmt::Display for ClusterError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chunk { place, said } => write!(to, "{place}, {said}"),
            Self::Connect { address, error } => {
                write!(to, "the cluster did not come together: {address}: {error}")
            }
            Self::Lost(said) => write!(to, "a process of the cluster is gone: {said}"),
        }
    }
}

impl std::error::Error for ClusterError {}

impl Cluster {
    /// The process number `process` of those at `addresses`, each `HOST:PORT`, with one worker.
    pub fn new(addresses: Vec<String>, process: usize) -> Self {
        let patience = Duration::from_secs(30);
        Self { addresses, process, executor: Executor::new().workers(1), patience }
    }

    /// Workers of this process; 0 means 1. Processes may have different numbers.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Self { executor: self.executor.workers(workers), ..self }
    }

    /// Items a chunk, of a reader bytes; 0 means 1. Without: as [`Executor`] has it. What the first
    /// process says counts.
    #[must_use]
    pub fn chunk(self, items: usize) -> Self {
        Self { executor: self.executor.chunk(items), ..self }
    }

    /// How many chunks may be begun and not yet delivered; 0 means 1. Without: four for each worker of
    /// all processes. What the first process says counts.
    #[must_use]
    pub fn window(self, chunks: usize) -> Self {
        Self { executor: self.executor.window(chunks), ..self }
    }

    /// Results come as they are made.
    #[must_use]
    pub fn unordered(self) -> Self {
        Self { executor: self.executor.unordered(), ..self }
    }

    /// How long to wait for the other processes to come; 30 seconds where nothing is said.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Numbers: chunks are ranges of them, indexes perhaps into what every process can reach.
    pub fn range(&self, range: Range<u64>) -> ClusterJob<'_, SpreadNumbers> {
        ClusterJob { cluster: self, source: SpreadNumbers(range) }
    }

    /// A slice that every process has, the same in each: chunks are parts of it, no item is sent.
    pub fn slice<'d, T: Sync>(&self, items: &'d [T]) -> ClusterJob<'_, SpreadSlice<'d, T>> {
        ClusterJob { cluster: self, source: SpreadSlice(items) }
    }

    /// An iterator of the first process, which may be endless: chunks are vectors. Those of other
    /// processes are not asked for anything.
    pub fn iter<I>(&self, items: I) -> ClusterJob<'_, SpreadItems<I::IntoIter>>
    where
        I: IntoIterator,
        I::IntoIter: Send,
        I::Item: ExchangeData + Clone,
    {
        let items = Items::new(items.into_iter(), self.executor.items_of_iterator());
        ClusterJob { cluster: self, source: SpreadItems(items) }
    }

    /// A reader of the first process, cut anywhere: a chunk is what one `read` gave. Those of other
    /// processes are not read.
    pub fn blocks<R: Read + Send>(&self, reader: R) -> ClusterJob<'_, SpreadBlocks<R>> {
        let blocks = Blocks::new(reader, self.executor.bytes_of_block());
        ClusterJob { cluster: self, source: SpreadBlocks(blocks) }
    }

    /// A reader of the first process, cut after delimiters: chunks are whole records, of 16 MiB at
    /// most. Those of other processes are not read.
    pub fn records<R: Read + Send>(
        &self,
        reader: R,
        delimiter: u8,
    ) -> ClusterJob<'_, SpreadRecords<R>> {
        let records = self.executor.whole_records(reader, delimiter);
        ClusterJob { cluster: self, source: SpreadRecords(records) }
    }
}

/// Data with a cluster, ready for a function: what [`crate::Job`] is in one process.
///
/// What the methods give, they give in process 0, and `None` in the others, which return when all is
/// done. The first process waits for its reader or iterator like any other program: results that come
/// in that time, and the news that a process is gone, wait with it.
pub struct ClusterJob<'e, S> {
    cluster: &'e Cluster,
    source: S,
}

impl<S: Spread> ClusterJob<'_, S> {
    /// The results of all chunks; in order, unless the cluster is unordered.
    ///
    /// # Errors
    ///
    /// The first chunk that panicked or could not be read, in every process alike; a process that did
    /// not come, or went away.
    pub fn map<R: ExchangeData + Clone>(
        self,
        work: impl Fn(Chunk<S::Data>) -> R + Sync,
    ) -> Result<Option<Vec<R>>, ClusterError> {
        self.try_map(|chunk| Ok::<_, String>(work(chunk)))
    }

    /// The results of all chunks; in order, unless the cluster is unordered.
    ///
    /// # Errors
    ///
    /// As [`Self::map`], and the first chunk that failed.
    pub fn try_map<R: ExchangeData + Clone, E: fmt::Display>(
        self,
        work: impl Fn(Chunk<S::Data>) -> Result<R, E> + Sync,
    ) -> Result<Option<Vec<R>>, ClusterError> {
        let is_first = self.cluster.process == 0;
        let mut results = Vec::new();
        self.deliver(work, |_, result| {
            results.push(result);
            Ok(())
        })?;
        Ok(is_first.then_some(results))
    }

    /// All results combined into one; `None` also where there is no chunk. In order, they are combined
    /// from first to last in process 0; unordered, each process combines its own and sends one result.
    ///
    /// # Errors
    ///
    /// As [`Self::map`].
    pub fn reduce<R: ExchangeData + Clone>(
        self,
        work: impl Fn(Chunk<S::Data>) -> R + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> Result<Option<R>, ClusterError> {
        self.try_reduce(|chunk| Ok::<_, String>(work(chunk)), combine)
    }

    /// All results combined into one; see [`Self::reduce`].
    ///
    /// # Errors
    ///
    /// As [`Self::try_map`].
    pub fn try_reduce<R: ExchangeData + Clone, E: fmt::Display>(
        self,
        work: impl Fn(Chunk<S::Data>) -> Result<R, E> + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> Result<Option<R>, ClusterError> {
        let join = |before: Option<R>, result| match before {
            Some(before) => combine(before, result),
            None => result,
        };
        let mut value = None;
        if self.cluster.executor.in_order() {
            self.deliver(work, |_, result| {
                value = Some(join(value.take(), result));
                Ok::<_, E>(())
            })?;
            return Ok(value);
        }
        let keep = |kept: &mut Option<R>, result| *kept = Some(join(kept.take(), result));
        let kept = job::run(self.cluster, self.source, work, Some(&keep), |_, _| Ok::<_, E>(()))?;
        Ok(kept.into_iter().reduce(combine))
    }

    /// Calls the function on every chunk.
    ///
    /// # Errors
    ///
    /// As [`Self::map`].
    pub fn for_each(self, work: impl Fn(Chunk<S::Data>) + Sync) -> Result<(), ClusterError> {
        self.try_for_each(|chunk| {
            work(chunk);
            Ok::<_, String>(())
        })
    }

    /// Calls the function on every chunk.
    ///
    /// # Errors
    ///
    /// As [`Self::try_map`].
    pub fn try_for_each<E: fmt::Display>(
        self,
        work: impl Fn(Chunk<S::Data>) -> Result<(), E> + Sync,
    ) -> Result<(), ClusterError> {
        self.deliver(work, |_, ()| Ok(()))
    }

    /// Hands results to the `take` of process 0, one at a time, while further chunks are worked on: in
    /// order, unless the cluster is unordered. If a chunk fails, in order everything before it has been
    /// taken.
    ///
    /// # Errors
    ///
    /// As [`Self::try_map`], and what `take` returns.
    pub fn deliver<R: ExchangeData + Clone, E: fmt::Display>(
        self,
        work: impl Fn(Chunk<S::Data>) -> Result<R, E> + Sync,
        take: impl FnMut(Place, R) -> Result<(), E> + Send,
    ) -> Result<(), ClusterError> {
        job::run(self.cluster, self.source, work, None, take).map(|_| ())
    }
}
