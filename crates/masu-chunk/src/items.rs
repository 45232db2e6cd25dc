//! Single items: two sources side by side, and a function of each item whose results are one vector.
//!
//! Relies on the engine for chunks. The hard part is the cleanup after a failure: a chunk's results lie in the vector
//! before the job has ended, and those that nobody gets are dropped here, each once.

use std::mem::{self, MaybeUninit};
use std::ops::Range;

use crate::executor::Executor;
use crate::indexed::{self, Indexed};
use crate::place::Chunk;
use crate::source::{At, Fold, Numbers, Slice, SliceMut, Slots, Vector, With};

/// Data with items that a function can get one at a time.
///
/// # Safety
///
/// `each` of a part yields as many items as its range has.
pub unsafe trait Each: Indexed {
    /// An item, as a function gets it.
    type Item;

    /// The items of a part, in order.
    fn each<'c>(data: Self::Data<'c>) -> impl Iterator<Item = Self::Item>;
}

// SAFETY: A slice has an item a place, as have all of the following.
unsafe impl<'a, T: Sync> Each for Slice<'a, T> {
    type Item = &'a T;

    #[inline(always)]
    fn each<'c>(data: Self::Data<'c>) -> impl Iterator<Item = &'a T> {
        data.iter()
    }
}

// SAFETY: As above.
unsafe impl<'a, T: Send> Each for SliceMut<'a, T> {
    type Item = &'a mut T;

    #[inline(always)]
    fn each<'c>(data: Self::Data<'c>) -> impl Iterator<Item = &'a mut T> {
        data.iter_mut()
    }
}

// SAFETY: As above.
unsafe impl<T: Send> Each for Vector<T> {
    type Item = T;

    #[inline(always)]
    fn each<'c>(data: Self::Data<'c>) -> impl Iterator<Item = T> {
        data
    }
}

// SAFETY: As above.
unsafe impl Each for Numbers {
    type Item = u64;

    #[inline(always)]
    fn each<'c>(data: Self::Data<'c>) -> impl Iterator<Item = u64> {
        data
    }
}

/// Two sources side by side, as long as the shorter: [`Job::zip`](crate::Job::zip) makes it.
///
/// ```
/// use masu_chunk::{At, Executor, Job, Slice, Zip};
///
/// fn dot(job: Job<'_, At<Zip<Slice<'_, f32>, Slice<'_, f32>>>>) -> Option<f32> {
///     Some(job.map_items(|(a, b)| a * b).ok()?.value.iter().sum())
/// }
/// let executor = Executor::new();
/// assert_eq!(dot(executor.slice(&[1.0, 2.0]).zip(executor.slice(&[3.0, 4.0]))), Some(11.0));
/// ```
pub struct Zip<A, B> {
    left: A,
    right: B,
    items: u64,
}

impl<A: Indexed, B: Indexed> Zip<A, B> {
    pub(crate) fn new(left: A, right: B) -> Self {
        let items = left.items().min(right.items());
        // SAFETY: Nobody got these items, nor will: no part reaches beyond `items`.
        unsafe {
            left.discard(items..left.items());
            right.discard(items..right.items());
        }
        Self { left, right, items }
    }
}

// SAFETY: Both sources allow it.
unsafe impl<A: Indexed, B: Indexed> Indexed for Zip<A, B> {
    type Data<'c> = (A::Data<'c>, B::Data<'c>);

    fn items(&self) -> u64 {
        self.items
    }

    #[inline(always)]
    unsafe fn part<'c>(&self, range: Range<u64>) -> Self::Data<'c> {
        // SAFETY: The caller promises the same of both.
        unsafe { (self.left.part(range.clone()), self.right.part(range)) }
    }

    unsafe fn discard(&self, range: Range<u64>) {
        // SAFETY: As above.
        unsafe {
            self.left.discard(range.clone());
            self.right.discard(range);
        }
    }
}

// SAFETY: Both yield an item a place.
unsafe impl<A: Each, B: Each> Each for Zip<A, B> {
    type Item = (A::Item, B::Item);

    #[inline(always)]
    fn each<'c>(data: Self::Data<'c>) -> impl Iterator<Item = Self::Item> {
        A::each(data.0).zip(B::each(data.1))
    }
}

/// The results of `work` of each item, in order.
pub(crate) fn collect<S: Each, R: Send, E: Send>(
    at: &At<S>,
    executor: &Executor<'_>,
    work: impl Fn(S::Item) -> Result<R, E> + Sync,
) -> With<Vec<R>, E> {
    // No vector has room for more results than there are addresses.
    let items = usize::try_from(at.source.items()).unwrap_or(usize::MAX);
    let mut results: Vec<R> = Vec::with_capacity(items);
    let slots = Slots::new(&mut results);
    let cut = at.cut(executor);
    let fill = |chunk: Chunk<S::Data<'_>>| {
        let Range { start, end } = chunk.place().items;
        // SAFETY: There is a slot for each item, and this chunk alone has these items.
        let slots = unsafe { slots.of(start..end) };
        let mut written = Written { slots, count: 0 };
        for item in S::each(chunk.into_inner()) {
            written.put(work(item)?);
        }
        mem::forget(written);
        Ok(())
    };
    let ran = indexed::run(executor, cut, fill, &Fold(&|(), ()| ()));
    match ran.ended {
        Ok(statistics) => {
            // SAFETY: Every chunk was begun and none failed, so every slot was written.
            unsafe { results.set_len(items) };
            Ok((results, statistics))
        }
        Err(failure) => {
            cut.discard_rest(&ran.begun);
            let is_whole = |chunk: &u64| ran.failed.binary_search(chunk).is_err();
            for chunk in ran.begun.into_iter().flatten().filter(is_whole) {
                // SAFETY: All slots of this chunk were written, and are dropped here only.
                unsafe { drop_all(slots.of(cut.of(&(chunk..chunk + 1)))) };
            }
            Err(failure)
        }
    }
}

/// The written slots of a chunk that has not ended; dropped if it fails.
struct Written<'s, R> {
    slots: &'s mut [MaybeUninit<R>],
    count: usize,
}

impl<R> Written<'_, R> {
    #[inline(always)]
    fn put(&mut self, result: R) {
        // SAFETY: There is a slot for each item, and the items are as many (`Each`).
        unsafe { self.slots.get_unchecked_mut(self.count) }.write(result);
        self.count += 1;
    }
}

impl<R> Drop for Written<'_, R> {
    fn drop(&mut self) {
        // SAFETY: The first slots were written, and are dropped here only.
        unsafe { drop_all(&mut self.slots[..self.count]) };
    }
}

/// Drops all of them, also if one panics in that.
///
/// # Safety
///
/// All were written, and are not used any more.
unsafe fn drop_all<R>(slots: &mut [MaybeUninit<R>]) {
    // SAFETY: The caller promises it.
    unsafe { (&raw mut *slots as *mut [R]).drop_in_place() };
}
