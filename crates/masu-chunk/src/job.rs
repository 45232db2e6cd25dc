//! A job: data with an executor, ready for a function.

use std::convert::Infallible;
use std::io::Read;
use std::ops::Range;

use crate::executor::Executor;
use crate::failure::Failure;
use crate::indexed::Indexed;
use crate::items::{self, Each, Zip};
use crate::place::{Chunk, Place};
use crate::reader::{Blocks, Items, Records};
use crate::source::{At, Numbers, Slice, SliceMut, Source, Stream, Vector};
use crate::statistics::Statistics;

/// The default limit of a record, in bytes.
pub(crate) const RECORD_BYTES: usize = 16 << 20;

impl Executor<'_> {
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

    /// A reader cut anywhere: a chunk is the result of one `read`, so that nothing waits for more.
    pub fn blocks<R: Read + Send>(&self, reader: R) -> Job<'_, Stream<Blocks<R>>> {
        let blocks = Blocks::new(reader, self.bytes_of_block());
        Job { executor: self, source: Stream(blocks) }
    }

    /// A reader cut after delimiters: chunks are whole records, of about the chunk size together.
    /// A record of more than 16 MiB is an error, so that memory stays bounded;
    /// [`Self::records_up_to`] sets another limit.
    pub fn records<R: Read + Send>(&self, reader: R, delimiter: u8) -> Job<'_, Stream<Records<R>>> {
        self.records_up_to(reader, delimiter, RECORD_BYTES)
    }

    /// [`Self::records`] with records of up to so many bytes.
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
}

/// The result of a job that ended well.
#[derive(Clone, Debug)]
pub struct Finished<V> {
    /// The value.
    pub value: V,
    /// The work of each worker.
    pub statistics: Statistics,
}

/// Data with an executor, ready for a function.
///
/// The plain methods take functions that cannot fail; those with `try_` take functions that return
/// a `Result`. A panic is caught in both and becomes a [`Failure`] with the chunk's place.
#[must_use = "a job does nothing until it gets a function, and a vector's items are dropped in it alone"]
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

    /// Passes results to `take` one at a time, while further chunks are worked on: in order, unless
    /// the executor is unordered. At most a window of them waits. If a chunk fails, in order everything
    /// before it has been taken.
    ///
    /// # Errors
    ///
    /// As [`Self::try_map`], and the error that `take` returns.
    pub fn deliver<R: Send, E: Send>(
        self,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
        take: impl FnMut(Place, R) -> Result<(), E> + Send,
    ) -> Result<Statistics, Failure<E>> {
        self.source.deliver(self.executor, work, take)
    }
}

impl<'e, S: Indexed> Job<'e, At<S>> {
    /// This data and another's side by side, as long as the shorter: a chunk is a pair of parts. The executor is this
    /// one's.
    ///
    /// ```
    /// use masu_chunk::Executor;
    ///
    /// let (a, mut b) = (vec![1, 2, 3], vec![10, 20, 30]);
    /// let executor = Executor::new();
    /// executor.slice(&a).zip(executor.slice_mut(&mut b)).for_each(|chunk| {
    ///     let (a, b) = chunk.into_inner();
    ///     for (a, b) in a.iter().zip(b) {
    ///         *b += a;
    ///     }
    /// })?;
    /// assert_eq!(b, [11, 22, 33]);
    /// # Ok::<(), masu_chunk::Failure<std::convert::Infallible>>(())
    /// ```
    pub fn zip<T: Indexed>(self, other: Job<'_, At<T>>) -> Job<'e, At<Zip<S, T>>> {
        let (left, right) = (self.source, other.source);
        let item_bytes = left.item_bytes + right.item_bytes;
        let source = At { source: Zip::new(left.source, right.source), item_bytes };
        Job { executor: self.executor, source }
    }
}

impl<S: Each> Job<'_, At<S>> {
    /// The function's result of each item, in order, in one vector.
    ///
    /// ```
    /// use masu_chunk::Executor;
    ///
    /// let squares = Executor::new().range(0..1000).map_items(|number| number * number)?.value;
    /// assert_eq!(squares[999], 998_001);
    /// let (a, b) = ([1.0, 2.0], [3.0, 4.0]);
    /// let executor = Executor::new();
    /// let products = executor.slice(&a).zip(executor.slice(&b)).map_items(|(a, b)| a * b)?.value;
    /// assert_eq!(products, [3.0, 8.0]);
    /// # Ok::<(), masu_chunk::Failure<std::convert::Infallible>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The first chunk with an item at which the function panicked, or that the job was cancelled.
    pub fn map_items<R: Send>(
        self,
        work: impl Fn(S::Item) -> R + Sync,
    ) -> Result<Finished<Vec<R>>, Failure<Infallible>> {
        self.try_map_items(|item| Ok(work(item)))
    }

    /// The function's result of each item, in order, in one vector; see [`Self::map_items`].
    ///
    /// ```
    /// use masu_chunk::Executor;
    ///
    /// let words = ["1", "2", "three"];
    /// let failed = Executor::new().slice(&words).try_map_items(|word| word.parse::<u8>());
    /// assert!(failed.unwrap_err().to_string().contains("invalid digit"));
    /// ```
    ///
    /// # Errors
    ///
    /// The first chunk with an item at which the function failed or panicked, or that the job was cancelled.
    pub fn try_map_items<R: Send, E: Send>(
        self,
        work: impl Fn(S::Item) -> Result<R, E> + Sync,
    ) -> Result<Finished<Vec<R>>, Failure<E>> {
        let (value, statistics) = items::collect(&self.source, self.executor, work)?;
        Ok(Finished { value, statistics })
    }
}
