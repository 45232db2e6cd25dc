//! A chunk of an owned vector: its items belong to the owner of the chunk.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr;

/// An invariant lifetime.
type Invariant<'c> = fn(&'c ()) -> &'c ();

/// Items of a vector, in its memory.
///
/// It derefs to a slice and iterates over the items by value; items that are not taken are dropped
/// with it.
pub struct Owned<'c, T> {
    items: *mut T,
    len: usize,
    _items: PhantomData<T>,
    _memory: PhantomData<Invariant<'c>>,
}

impl<T> Owned<'_, T> {
    /// # Safety
    ///
    /// - `items` are `len` items in one piece of memory that lives as long as the result.
    /// - They belong to the result alone.
    #[inline(always)]
    pub(crate) unsafe fn new(items: *mut T, len: usize) -> Self {
        Self { items, len, _items: PhantomData, _memory: PhantomData }
    }
}

// SAFETY: It owns items, as a vector does.
unsafe impl<T: Send> Send for Owned<'_, T> {}
// SAFETY: Shared, it gives shared references to items, as a vector does.
unsafe impl<T: Sync> Sync for Owned<'_, T> {}

impl<T> Deref for Owned<'_, T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: The items are there and belong to this.
        unsafe { std::slice::from_raw_parts(self.items, self.len) }
    }
}

impl<T> DerefMut for Owned<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: The items are there and belong to this, which is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.items, self.len) }
    }
}

impl<T> Iterator for Owned<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.len == 0 {
            return None;
        }
        // SAFETY: There is a first item, and the two lines below take it out of this.
        let item = unsafe { self.items.read() };
        // SAFETY: At most one past the end.
        self.items = unsafe { self.items.add(1) };
        self.len -= 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<T> ExactSizeIterator for Owned<'_, T> {}

impl<T> Drop for Owned<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() {
            // SAFETY: These items belong to this and are not used any more.
            unsafe { ptr::slice_from_raw_parts_mut(self.items, self.len).drop_in_place() };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Owned<'_, T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.iter()).finish()
    }
}
