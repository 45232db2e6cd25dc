//! Every atomic, ordering and lock of this crate comes from here, so that loom can test
//! the protocol of quiescent states (`tests/loom.rs`).

pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, Weak};
