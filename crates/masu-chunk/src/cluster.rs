//! The executor's job on several machines: the same function on every chunk, the results sent to
//! the first process, on the engine of the `timely` crate.
//!
//! Relies on timely to move chunks and results, on TCP to notice a lost process, and in each process on the stream
//! engine for its workers. The first process deals (`dealer`): only it reads the data; every other
//! process reports its room and asks for more with each result. So chunks go to the process that is free, the number
//! under way is bounded, and every failure ends in one place, which tells all processes.

use std::fmt;
use std::io;
use std::io::Read;
use std::ops::Range;
use std::time::Duration;

use crate::executor::Executor;
use crate::job::RECORD_BYTES;
use crate::place::{Chunk, Place};
use crate::reader::{Blocks, Items, Records};

mod dealer;
mod job;
mod member;
mod sockets;
mod spread;

pub use spread::{Spread, SpreadBlocks, SpreadItems, SpreadNumbers, SpreadRecords, SpreadSlice};
/// A type that can be sent to another process: serde can serialize and deserialize it.
pub use timely::ExchangeData;

/// Processes that do jobs together. Each calls the same methods in the same order with the same
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

/// The reason why a job of a cluster ended early.
///
/// ```
/// # use masu_chunk::cluster::{Cluster, ClusterError};
/// # let alone = Cluster::new(vec!["127.0.0.1:0".into()], 0);
/// let failed = alone.range(0..10).try_map(|_| Err::<(), _>("no"));
/// match failed {
///     Err(ClusterError::Chunk { place, said }) => println!("{place}: {said}"),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug)]
pub enum ClusterError {
    /// A chunk failed, panicked or could not be read, in any process.
    Chunk {
        /// The place of the chunk.
        place: Place,
        /// The event in words: `failed: …`, `panicked: …`, or `cannot be read: …`.
        said: String,
    },
    /// The other processes could not all be reached.
    Connect {
        /// The address that this process was busy with.
        address: String,
        /// The reason.
        error: io::Error,
    },
    /// A process went away, or sent damaged data.
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
    ///
    /// ```
    /// use masu_chunk::cluster::Cluster;
    ///
    /// // In the first of two processes; the other one says 1.
    /// let cluster = Cluster::new(vec!["one:7000".into(), "two:7000".into()], 0);
    /// ```
    pub fn new(addresses: Vec<String>, process: usize) -> Self {
        let patience = Duration::from_secs(30);
        Self { addresses, process, executor: Executor::new().workers(1), patience }
    }

    /// Workers of this process; 0 means 1. Processes may have different numbers.
    ///
    /// ```
    /// # let cluster = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let cluster = cluster.workers(2);
    /// ```
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Self { executor: self.executor.workers(workers), ..self }
    }

    /// Items a chunk (bytes for a reader); 0 means 1. The default is [`Executor`]'s, all of one length. The first
    /// process's setting applies.
    ///
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let cluster = alone.chunk(3);
    /// assert_eq!(cluster.range(0..10).reduce(|chunk| chunk.into_inner().count(), |a, b| a + b)?, Some(10));
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
    #[must_use]
    pub fn chunk(self, items: usize) -> Self {
        Self { executor: self.executor.chunk(items), ..self }
    }

    /// The number of chunks that may be begun and not yet delivered; 0 means 1. The default is four
    /// for each worker of all processes. The first process's setting applies.
    ///
    /// ```
    /// # let cluster = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let cluster = cluster.window(8);
    /// ```
    #[must_use]
    pub fn window(self, chunks: usize) -> Self {
        Self { executor: self.executor.window(chunks), ..self }
    }

    /// Results come in the order in which they are made.
    ///
    /// ```
    /// # let cluster = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let cluster = cluster.unordered();
    /// ```
    #[must_use]
    pub fn unordered(self) -> Self {
        Self { executor: self.executor.unordered(), ..self }
    }

    /// The time to wait for the other processes; 30 seconds by default.
    ///
    /// ```
    /// # let cluster = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let cluster = cluster.patience(std::time::Duration::from_secs(5));
    /// ```
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Numbers: chunks are ranges of them. The numbers may be indexes into data that every process can reach.
    ///
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let sum = alone.range(0..100).reduce(|chunk| chunk.into_inner().sum::<u64>(), |a, b| a + b)?;
    /// assert_eq!(sum, Some(4950));
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
    pub fn range(&self, range: Range<u64>) -> ClusterJob<'_, SpreadNumbers> {
        ClusterJob { cluster: self, source: SpreadNumbers(range) }
    }

    /// A slice that every process has, the same in each: chunks are parts of it, no item is sent.
    ///
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let words = ["rice", "box"];
    /// let lengths = alone.clone().chunk(1).slice(&words).map(|chunk| chunk[0].len())?;
    /// assert_eq!(lengths, Some(vec![4, 3]));
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
    pub fn slice<'d, T: Sync>(&self, items: &'d [T]) -> ClusterJob<'_, SpreadSlice<'d, T>> {
        ClusterJob { cluster: self, source: SpreadSlice(items) }
    }

    /// An iterator of the first process, which may be endless: chunks are vectors. The iterators of
    /// other processes are not used.
    ///
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let many = alone.iter(1..=3).reduce(|chunk| chunk.len(), |a, b| a + b)?;
    /// assert_eq!(many, Some(3));
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
    pub fn iter<I>(&self, items: I) -> ClusterJob<'_, SpreadItems<I::IntoIter>>
    where
        I: IntoIterator,
        I::IntoIter: Send,
        I::Item: ExchangeData + Clone,
    {
        let items = Items::new(items.into_iter(), self.executor.items_of_iterator());
        ClusterJob { cluster: self, source: SpreadItems(items) }
    }

    /// A reader of the first process, cut anywhere: a chunk is the result of one `read`. The readers
    /// of other processes are not read.
    ///
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let bytes = alone.blocks(&b"some bytes"[..]).reduce(|chunk| chunk.len(), |a, b| a + b)?;
    /// assert_eq!(bytes, Some(10));
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
    pub fn blocks<R: Read + Send>(&self, reader: R) -> ClusterJob<'_, SpreadBlocks<R>> {
        let blocks = Blocks::new(reader, self.executor.bytes_of_block());
        ClusterJob { cluster: self, source: SpreadBlocks(blocks) }
    }

    /// A reader of the first process, cut after delimiters: chunks are whole records, of 16 MiB at most. The readers
    /// of other processes are not read.
    ///
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let text = &b"a\nb\n"[..];
    /// let lines = alone.records(text, b'\n').reduce(
    ///     |chunk| chunk.iter().filter(|&&byte| byte == b'\n').count(),
    ///     |a, b| a + b,
    /// )?;
    /// assert_eq!(lines, Some(2));
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
    pub fn records<R: Read + Send>(
        &self,
        reader: R,
        delimiter: u8,
    ) -> ClusterJob<'_, SpreadRecords<R>> {
        let size = self.executor.bytes_of_block();
        let records = Records::new(reader, delimiter, size, RECORD_BYTES);
        ClusterJob { cluster: self, source: SpreadRecords(records) }
    }
}

/// Data with a cluster, ready for a function, like [`crate::Job`] in one process.
///
/// The methods return results in process 0 and `None` in the others, at the end of the job. The
/// first process blocks in its reader or iterator like any other program; until it returns,
/// results and the notice of a lost process wait.
///
/// ```
/// # use masu_chunk::cluster::{Cluster, ClusterError};
/// # let alone = Cluster::new(vec!["127.0.0.1:0".into()], 0);
/// let job = alone.range(0..10);
/// job.for_each(|chunk| println!("{:?}", chunk.into_inner()))?;
/// # Ok::<(), ClusterError>(())
/// ```
pub struct ClusterJob<'e, S> {
    cluster: &'e Cluster,
    source: S,
}

impl<S: Spread> ClusterJob<'_, S> {
    /// The results of all chunks; in order, unless the cluster is unordered.
    ///
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let lengths = alone.chunk(5).range(0..10).map(|chunk| chunk.into_inner().count())?;
    /// assert_eq!(lengths, Some(vec![5, 5]));
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
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
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let failed = alone.range(0..10).try_map(|_| Err::<u8, _>("no"));
    /// assert!(failed.is_err());
    /// ```
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
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let most = alone.range(0..10).reduce(|chunk| chunk.into_inner().max(), |a, b| a.max(b))?;
    /// assert_eq!(most, Some(Some(9)));
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
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
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let sum = alone.range(0..4).try_reduce(|chunk| Ok::<_, String>(chunk.into_inner().sum::<u64>()), |a, b| a + b)?;
    /// assert_eq!(sum, Some(6));
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
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
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// alone.range(0..10).for_each(|chunk| println!("{:?}", chunk.into_inner()))?;
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
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
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let failed = alone.range(0..10).try_for_each(|_| Err("no"));
    /// assert!(failed.is_err());
    /// ```
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

    /// Passes results to the `take` of process 0, one at a time, while further chunks are worked on:
    /// in order, unless the cluster is unordered. If a chunk fails, in order everything before it has
    /// been taken.
    ///
    /// ```
    /// # let alone = masu_chunk::cluster::Cluster::new(vec!["127.0.0.1:0".into()], 0);
    /// let mut taken = Vec::new();
    /// alone.chunk(5).range(0..10).deliver(
    ///     |chunk| Ok::<_, String>(chunk.into_inner().sum::<u64>()),
    ///     |_, sum| {
    ///         taken.push(sum);
    ///         Ok(())
    ///     },
    /// )?;
    /// assert_eq!(taken, [10, 35]);
    /// # Ok::<(), masu_chunk::cluster::ClusterError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Self::try_map`], and the error that `take` returns.
    pub fn deliver<R: ExchangeData + Clone, E: fmt::Display>(
        self,
        work: impl Fn(Chunk<S::Data>) -> Result<R, E> + Sync,
        take: impl FnMut(Place, R) -> Result<(), E> + Send,
    ) -> Result<(), ClusterError> {
        job::run(self.cluster, self.source, work, None, take).map(|_| ())
    }
}
