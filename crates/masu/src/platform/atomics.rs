//! The atomics door: all atomic types, orderings and cells of this crate come from here. The models under loom replace this
//! file (`tests/models/atomics.rs`).
//!
//! Relies on the language alone. Modules other than the doors import them from [`crate::platform::sync`].

pub(crate) use core::cell::{Cell, UnsafeCell};
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
};

/// Takes the cache line of a number from other cores, for a thread that is about to read it and then to change it. A plain
/// read would only share the line, and the change would ask for it a second time.
///
/// # Safety
///
/// - No other thread reads or changes the number until this function returns.
#[inline(always)]
pub(crate) unsafe fn own_line<T>(number: &Cell<T>) {
    const { assert!(size_of::<T>() >= size_of::<u32>()) };
    // SAFETY: A number's first bytes, aligned; no other thread uses it now (the caller's condition).
    let part = unsafe { AtomicU32::from_ptr(number.as_ptr().cast()) };
    // ORDERING: Relaxed: only one thread uses it now. The compiler makes a plain load of an addition of 0.
    let value = part.fetch_add(1, Ordering::Relaxed);
    // ORDERING: As above.
    part.store(value, Ordering::Relaxed);
}
