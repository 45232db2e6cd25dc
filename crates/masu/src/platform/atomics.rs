//! The atomics door: all atomic types, orderings and cells of this crate come from here. The models under loom replace this
//! file (`tests/models/atomics.rs`).
//!
//! Relies on the language alone. Modules other than the doors import them from [`crate::platform::sync`].

pub(crate) use core::cell::{Cell, UnsafeCell};
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
};
