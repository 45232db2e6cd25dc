//! Kinds of data that can be cut into chunks (slices, vectors, ranges, iterators, readers), and the
//! three ways to use the results of each.
//!
//! Relies on the two engines. The hard part is the cleanup after a failure: items of a vector that no function got, and
//! results that nobody gets, are dropped here, each once.

use std::marker::PhantomData;
use std::mem::{self, MaybeUninit};
use std::ops::Range;
use std::{io, ptr};

use crate::executor::Executor;
use crate::failure::Failure;
use crate::indexed::{self, Cut, Gather, Indexed};
use crate::owned::Owned;
use crate::place::{Chunk, Place};
use crate::statistics::Statistics;
use crate::stream::{self, Pull};

/// A value with the statistics of its job.
pub(crate) type With<V, E> = Result<(V, Statistics), Failure<E>>;

/// Data that a job goes through. Only the sources that [`Executor`]'s methods make implement this trait.
pub trait Source: Sized + sealed::Sealed {
    /// The data of a chunk, as a function gets it.
    type Data<'c>;

    /// Whether results must all be kept to combine them in order.
    #[doc(hidden)]
    const KEEPS_ALL: bool;

    #[doc(hidden)]
    fn collect<R: Send, E: Send>(
        self,
        executor: &Executor<'_>,
        work: impl for<'c> Fn(Chunk<Self::Data<'c>>) -> Result<R, E> + Sync,
    ) -> With<Vec<R>, E>;

    #[doc(hidden)]
    fn combine<R: Send, E: Send>(
        self,
        executor: &Executor<'_>,
        work: impl for<'c> Fn(Chunk<Self::Data<'c>>) -> Result<R, E> + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> With<Option<R>, E>;

    #[doc(hidden)]
    fn deliver<R: Send, E: Send>(
        self,
        executor: &Executor<'_>,
        work: impl for<'c> Fn(Chunk<Self::Data<'c>>) -> Result<R, E> + Sync,
        take: impl FnMut(Place, R) -> Result<(), E> + Send,
    ) -> Result<Statistics, Failure<E>>;
}

mod sealed {
    pub trait Sealed {}
    impl<S> Sealed for super::At<S> {}
    impl<P> Sealed for super::Stream<P> {}
}

/// Data whose chunks can be reached at once, with the size of an item.
pub struct At<S> {
    pub(crate) source: S,
    pub(crate) item_bytes: usize,
}

/// Data that comes one chunk after another.
pub struct Stream<P>(pub(crate) P);

impl<S: Indexed> At<S> {
    pub(crate) fn cut<'a>(&'a self, executor: &Executor<'_>) -> Cut<'a, S> {
        let size = executor.chunk_of(self.source.items(), self.item_bytes);
        if executor.sets_chunk() {
            Cut::even(&self.source, size)
        } else {
            Cut::tapered(&self.source, size)
        }
    }
}

impl<S: Indexed> Source for At<S>
where
    for<'c> S::Data<'c>: Send,
{
    type Data<'c> = S::Data<'c>;

    const KEEPS_ALL: bool = true;

    fn collect<R: Send, E: Send>(
        self,
        executor: &Executor<'_>,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
    ) -> With<Vec<R>, E> {
        if !executor.in_order() {
            let put = |mut all: Vec<R>, mut one: Vec<R>| {
                all.append(&mut one);
                all
            };
            let grown = indexed_locals(&self, executor, work, Grow, put);
            return grown.map(|(all, statistics)| (all.unwrap_or_default(), statistics));
        }
        let cut = self.cut(executor);
        // No vector has room for more results than there are addresses.
        let chunks = usize::try_from(cut.chunks).unwrap_or(usize::MAX);
        let mut results: Vec<R> = Vec::with_capacity(chunks);
        let slots = Slots::new(&mut results);
        let ran = indexed::run(executor, cut, work, &slots);
        match ran.ended {
            Ok(statistics) => {
                // SAFETY: Every chunk was begun and none failed, so every slot was written.
                unsafe { results.set_len(chunks) };
                Ok((results, statistics))
            }
            Err(failure) => {
                cut.discard_rest(&ran.begun);
                let has_result = |index: &u64| ran.failed.binary_search(index).is_err();
                if mem::needs_drop::<R>() {
                    for index in ran.begun.into_iter().flatten().filter(has_result) {
                        // SAFETY: This chunk's result was written, and is dropped here only.
                        unsafe { slots.0.add(index as usize).cast::<R>().drop_in_place() };
                    }
                }
                Err(failure)
            }
        }
    }

    fn combine<R: Send, E: Send>(
        self,
        executor: &Executor<'_>,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> With<Option<R>, E> {
        indexed_locals(&self, executor, work, Fold(&combine), &combine)
    }

    fn deliver<R: Send, E: Send>(
        self,
        executor: &Executor<'_>,
        work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
        take: impl FnMut(Place, R) -> Result<(), E> + Send,
    ) -> Result<Statistics, Failure<E>> {
        let cut = self.cut(executor);
        let parts = Parts { cut, next: 0 };
        stream::deliver(executor, parts, work, take)
    }
}

/// Runs a job whose workers gather their results themselves.
fn indexed_locals<S: Indexed, R: Send, E: Send, V: Send>(
    at: &At<S>,
    executor: &Executor<'_>,
    work: impl for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
    gather: impl Gather<R, Local = Option<V>>,
    join: impl Fn(V, V) -> V,
) -> With<Option<V>, E> {
    let cut = at.cut(executor);
    let ran = indexed::run(executor, cut, work, &gather);
    match ran.ended {
        Ok(statistics) => Ok((ran.locals.into_iter().flatten().reduce(join), statistics)),
        Err(failure) => {
            cut.discard_rest(&ran.begun);
            Err(failure)
        }
    }
}

/// Results by chunk number, or by item number.
pub(crate) struct Slots<R>(*mut MaybeUninit<R>);

// SAFETY: Each slot is written by one thread, which sends the result to it.
unsafe impl<R: Send> Sync for Slots<R> {}

impl<R> Slots<R> {
    /// The room in `results`.
    pub(crate) fn new(results: &mut Vec<R>) -> Self {
        Self(results.spare_capacity_mut().as_mut_ptr())
    }

    /// # Safety
    ///
    /// There are such slots, and nobody else uses them as long as the result.
    #[inline(always)]
    pub(crate) unsafe fn of<'s>(&self, range: Range<u64>) -> &'s mut [MaybeUninit<R>] {
        let len = (range.end - range.start) as usize;
        // SAFETY: The caller promises it.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start as usize), len) }
    }
}

// SAFETY: Different indexes are different slots.
unsafe impl<R: Send> Gather<R> for Slots<R> {
    type Local = ();

    fn local(&self) {}

    #[inline(always)]
    unsafe fn put(&self, (): &mut (), index: usize, result: R) {
        // SAFETY: There is a slot for each chunk, and this one is put once.
        unsafe { self.0.add(index).write(MaybeUninit::new(result)) };
    }
}

/// Results combined as they come.
pub(crate) struct Fold<'a, C>(pub(crate) &'a C);

// SAFETY: A worker touches its own value alone.
unsafe impl<R: Send, C: Fn(R, R) -> R + Sync> Gather<R> for Fold<'_, C> {
    type Local = Option<R>;

    fn local(&self) -> Option<R> {
        None
    }

    #[inline(always)]
    unsafe fn put(&self, local: &mut Option<R>, _index: usize, result: R) {
        *local = Some(match local.take() {
            Some(before) => (self.0)(before, result),
            None => result,
        });
    }
}

/// Results in a vector of each worker's own.
struct Grow;

// SAFETY: A worker touches its own vector alone.
unsafe impl<R: Send> Gather<R> for Grow {
    type Local = Option<Vec<R>>;

    fn local(&self) -> Option<Vec<R>> {
        Some(Vec::new())
    }

    #[inline(always)]
    unsafe fn put(&self, local: &mut Option<Vec<R>>, _index: usize, result: R) {
        if let Some(results) = local {
            results.push(result);
        }
    }
}

impl<P: Pull> Source for Stream<P> {
    type Data<'c> = P::Data;

    const KEEPS_ALL: bool = false;

    fn collect<R: Send, E: Send>(
        self,
        executor: &Executor<'_>,
        work: impl for<'c> Fn(Chunk<P::Data>) -> Result<R, E> + Sync,
    ) -> With<Vec<R>, E> {
        let mut results = Vec::new();
        let statistics = stream::deliver(executor, self.0, work, |_, result| {
            results.push(result);
            Ok(())
        })?;
        Ok((results, statistics))
    }

    fn combine<R: Send, E: Send>(
        self,
        executor: &Executor<'_>,
        work: impl for<'c> Fn(Chunk<P::Data>) -> Result<R, E> + Sync,
        combine: impl Fn(R, R) -> R + Sync,
    ) -> With<Option<R>, E> {
        let mut value = None;
        let statistics = stream::deliver(executor, self.0, work, |_, result| {
            value = Some(match value.take() {
                Some(before) => combine(before, result),
                None => result,
            });
            Ok(())
        })?;
        Ok((value, statistics))
    }

    fn deliver<R: Send, E: Send>(
        self,
        executor: &Executor<'_>,
        work: impl for<'c> Fn(Chunk<P::Data>) -> Result<R, E> + Sync,
        take: impl FnMut(Place, R) -> Result<(), E> + Send,
    ) -> Result<Statistics, Failure<E>> {
        stream::deliver(executor, self.0, work, take)
    }
}

/// Indexed data as a stream of chunks. The rest is discarded at the end.
struct Parts<'a, S: Indexed> {
    cut: Cut<'a, S>,
    /// The next chunk.
    next: u64,
}

impl<'a, S: Indexed> Pull for Parts<'a, S>
where
    for<'c> S::Data<'c>: Send,
{
    type Data = S::Data<'a>;

    fn pull(&mut self) -> io::Result<Option<(S::Data<'a>, u64)>> {
        if self.next == self.cut.chunks {
            return Ok(None);
        }
        let items = self.cut.of(&(self.next..self.next + 1));
        self.next += 1;
        let count = items.end - items.start;
        // SAFETY: `next` only grows, so no item is handed out twice, and the data is borrowed for
        // `'a` and touched by nobody else.
        Ok(Some((unsafe { self.cut.source.part(items) }, count)))
    }

    fn total(&self) -> Option<u64> {
        Some(self.cut.items)
    }
}

impl<S: Indexed> Drop for Parts<'_, S> {
    fn drop(&mut self) {
        self.cut.discard_rest(std::slice::from_ref(&(0..self.next)));
    }
}

/// A borrowed slice.
pub struct Slice<'a, T>(pub(crate) &'a [T]);

// SAFETY: Parts are shared references.
unsafe impl<'a, T: Sync> Indexed for Slice<'a, T> {
    type Data<'c> = &'a [T];

    fn items(&self) -> u64 {
        self.0.len() as u64
    }

    #[inline(always)]
    unsafe fn part<'c>(&self, range: Range<u64>) -> Self::Data<'c> {
        // SAFETY: The range lies within the items.
        unsafe { self.0.get_unchecked(range.start as usize..range.end as usize) }
    }
}

/// A slice whose chunks may be changed.
pub struct SliceMut<'a, T> {
    items: *mut T,
    len: usize,
    _borrowed: PhantomData<&'a mut [T]>,
}

impl<'a, T> SliceMut<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { items: slice.as_mut_ptr(), len: slice.len(), _borrowed: PhantomData }
    }
}

// SAFETY: Threads get parts that do not overlap, and so may be sent items.
unsafe impl<T: Send> Sync for SliceMut<'_, T> {}

// SAFETY: Ranges that do not overlap are different items.
unsafe impl<'a, T: Send> Indexed for SliceMut<'a, T> {
    type Data<'c> = &'a mut [T];

    fn items(&self) -> u64 {
        self.len as u64
    }

    #[inline(always)]
    unsafe fn part<'c>(&self, range: Range<u64>) -> Self::Data<'c> {
        let len = (range.end - range.start) as usize;
        // SAFETY: The range lies within the items.
        let first = unsafe { self.items.add(range.start as usize) };
        // SAFETY: The items are borrowed for `'a`, and no other part has one of them.
        unsafe { std::slice::from_raw_parts_mut(first, len) }
    }
}

/// An owned vector.
pub struct Vector<T> {
    /// Its length is 0: the items belong to their receiver.
    memory: Vec<T>,
    items: *mut T,
    len: usize,
}

impl<T> Vector<T> {
    pub(crate) fn new(mut vector: Vec<T>) -> Self {
        let len = vector.len();
        // SAFETY: 0 is never too long; the items are dropped by those who get them, or discarded.
        unsafe { vector.set_len(0) };
        Self { items: vector.as_mut_ptr(), memory: vector, len }
    }
}

// SAFETY: Threads get items that nobody else gets.
unsafe impl<T: Send> Sync for Vector<T> {}

// SAFETY: Ranges that do not overlap are different items.
unsafe impl<T: Send> Indexed for Vector<T> {
    type Data<'c> = Owned<'c, T>;

    fn items(&self) -> u64 {
        debug_assert!(self.memory.is_empty());
        self.len as u64
    }

    #[inline(always)]
    unsafe fn part<'c>(&self, range: Range<u64>) -> Owned<'c, T> {
        let len = (range.end - range.start) as usize;
        // SAFETY: The range lies within the items.
        let first = unsafe { self.items.add(range.start as usize) };
        // SAFETY: These items are handed over here and nowhere else, and the memory lives for `'c`.
        unsafe { Owned::new(first, len) }
    }

    unsafe fn discard(&self, range: Range<u64>) {
        let len = (range.end - range.start) as usize;
        // SAFETY: The range lies within the items.
        let first = unsafe { self.items.add(range.start as usize) };
        // SAFETY: Nobody got these items, nor will.
        unsafe { ptr::slice_from_raw_parts_mut(first, len).drop_in_place() };
    }
}

/// Numbers.
pub struct Numbers(pub(crate) Range<u64>);

// SAFETY: Parts are numbers.
unsafe impl Indexed for Numbers {
    type Data<'c> = Range<u64>;

    fn items(&self) -> u64 {
        self.0.end.saturating_sub(self.0.start)
    }

    #[inline(always)]
    unsafe fn part<'c>(&self, range: Range<u64>) -> Self::Data<'c> {
        self.0.start + range.start..self.0.start + range.end
    }
}
