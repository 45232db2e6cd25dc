//! Synchronization: the lock, and data that is read without one. Also exports the atomics (`tests/loom.rs` and
//! `tests/models` replace them with loom's).
//!
//! Relies on the kernel door for sleeping, and on the atomics door. The one hard idea, a lock that sleeps in the kernel
//! without losing a wake-up, is in `platform/sync/raw_lock.rs`.

mod count;
mod lock;
mod pair;
mod raw_lock;
mod table;

use core::hint::spin_loop;

pub(crate) use crate::platform::atomics::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Cell, Ordering, UnsafeCell, fence,
};
pub(crate) use crate::platform::kernel::no_lock_is_held;
use crate::platform::kernel::{wait_while, wake_one};
pub(crate) use count::Count;
pub(crate) use lock::{Guard, Lock, has_interrupted, this_holder};
pub(crate) use pair::Pair;
pub(crate) use table::Table;
