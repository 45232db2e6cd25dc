//! Atomics and cells: the language's own. The models have loom's in the place of this file (`tests/models/atomics.rs`).

pub(crate) use core::cell::{Cell, UnsafeCell};
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
};
