//! The address of a stack where it does not matter how many registers it takes.

use crate::platform::sync::{AtomicUsize, Ordering};

/// The pointer.
#[inline(always)]
pub(super) fn in_one<T>(pointer: *const T) -> *const T {
    pointer
}

/// Moves `pointer` on by the bytes that are written in place `index` of a table of words, `TABLE` bytes behind it.
///
/// # Safety
///
/// - The table is there, and has such a place.
#[inline(always)]
pub(super) unsafe fn moved_by_table<T, const TABLE: usize>(
    pointer: *const T,
    index: usize,
) -> *const T {
    let table = pointer.wrapping_byte_add(TABLE).cast::<AtomicUsize>();
    // SAFETY: The caller's condition.
    let place = unsafe { &*table.add(index) };
    // ORDERING: Relaxed: no other memory depends on the number.
    pointer.wrapping_byte_add(place.load(Ordering::Relaxed))
}
