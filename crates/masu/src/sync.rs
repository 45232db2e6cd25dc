//! The atomics door: every atomic type, every ordering, every lock and every cell of this crate comes from
//! here, so that a model checker can stand behind it (`tests/loom.rs` and `tests/models` do).
//!
//! Relies on the kernel door for sleeping. The one hard idea, a lock that sleeps in the kernel
//! without losing a wake-up, is in `sync/raw_lock.rs`.

#[cfg_attr(all(test, loom), path = "../tests/models/atomics.rs")]
pub(crate) mod atomics;
mod count;
#[cfg(debug_assertions)]
mod held;
mod lock;
mod pair;
mod raw_lock;
mod table;

use core::hint::spin_loop;

use crate::kernel::{wait_while, wake_one};
pub(crate) use atomics::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Cell, Ordering, UnsafeCell, fence,
};
pub(crate) use count::Count;
pub(crate) use lock::{Guard, Lock, has_interrupted, no_lock_is_held, this_holder};
pub(crate) use pair::Pair;
pub(crate) use table::Table;
