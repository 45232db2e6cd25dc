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
    own_line,
};
use crate::platform::fault::{self, Fault};
pub(crate) use crate::platform::kernel::no_lock_is_held;
pub(crate) use crate::platform::kernel::wait_briefly;
use crate::platform::kernel::{wait_while, wake_one};
pub(crate) use count::Count;
pub(crate) use lock::{Guard, Lock, this_holder};
pub(crate) use pair::Pair;
pub(crate) use raw_lock::RawLock;
pub(crate) use table::Table;

/// The action of `fork` on each lock, and a number that the action may change. Not a `dyn` trait, whose tables are
/// relocated at the start of every program.
pub(crate) struct Visitor {
    act: fn(&'static RawLock, &mut usize),
    number: usize,
}

impl Visitor {
    pub(crate) fn new(act: fn(&'static RawLock, &mut usize)) -> Visitor {
        Visitor { act, number: 0 }
    }

    pub(crate) fn see(&mut self, lock: &'static RawLock) {
        (self.act)(lock, &mut self.number);
    }

    pub(crate) fn number(&self) -> usize {
        self.number
    }
}

/// A visit of locks.
pub(crate) type Visit<'a> = &'a mut Visitor;

/// Ends the program: a lock is waited for that no thread will release.
#[inline(always)]
fn holder_is_lost() -> ! {
    fault::stop(Fault::HolderLost)
}
