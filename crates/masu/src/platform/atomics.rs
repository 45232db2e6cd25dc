//! The atomics door: every atomic type, every ordering and every cell of this crate comes from here, so that a model checker
//! can stand behind it. The models have loom's in the place of this file (`tests/models/atomics.rs`).
//!
//! Relies on nothing but the language. All but the doors take them from [`crate::platform::sync`], beside the locks.

pub(crate) use core::cell::{Cell, UnsafeCell};
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
};
