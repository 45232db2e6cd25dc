//! A fork finds every lock of this library free, so that the child can use its copy of the library.
//!
//! Relies on the handlers that the C library calls around `fork`. The thread that forks takes all locks before, in the
//! order in which they are taken elsewhere, and releases them afterwards, in the parent and in the child. It waits for
//! each lock at most a second: where a signal handler forks, the interrupted code may hold a lock.

use std::any::Any;
use std::cell::Cell;
use std::sync::Once;
use std::time::Duration;

use super::Shared;
use crate::debugger;
use crate::exit::{self, Home};
use crate::perf;
use crate::process;
use crate::storage;
use crate::sync::{Arc, try_hold};

/// The locks that a thread holds while it forks; they are released before the arenas go.
struct Held {
    _locks: Vec<Box<dyn Any>>,
    arenas: Vec<Arc<dyn Home>>,
}

thread_local! {
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
}

/// Registers the handlers with the C library, once a process.
pub(super) fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| process::at_fork(before, after_in_parent, after_in_child));
}

extern "C" fn before() {
    let Some((list, arenas)) = wait(exit::try_hold) else { return };
    let mut locks = vec![list];
    for arena in &arenas {
        // SAFETY: `Held` keeps the arena longer.
        locks.push(unsafe { arena.hold() });
    }
    locks.push(Box::new(wait(storage::try_hold)));
    locks.push(Box::new(wait(debugger::try_hold)));
    locks.push(Box::new(wait(perf::try_hold)));
    // A thread whose thread-local variables are gone forks as if there were no handlers.
    let _ = HELD.try_with(|held| held.set(Some(Held { _locks: locks, arenas })));
}

extern "C" fn after_in_parent() {
    let _ = HELD.try_with(Cell::take);
}

extern "C" fn after_in_child() {
    let held = HELD.try_with(Cell::take).ok().flatten();
    // Another thread may have been about to drop an arena. The child keeps the arena: its end takes a lock of the
    // unwinder, which a third thread may have held at the fork.
    held.into_iter().for_each(|held| std::mem::forget(held.arenas));
}

/// The result of `attempt`, which is tried for a second at most.
fn wait<T>(attempt: impl Fn() -> Option<T>) -> Option<T> {
    for _ in 0..1000 {
        let got = attempt();
        if got.is_some() {
            return got;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

impl Shared {
    /// # Safety
    ///
    /// - The returned value is dropped before the arena.
    pub(super) unsafe fn hold_all(&self) -> Box<dyn Any> {
        // SAFETY: The caller's condition.
        let kept: &'static Shared = unsafe { &*std::ptr::from_ref(self) };
        let state = wait(|| try_hold(&kept.state));
        Box::new((state, wait(|| kept.readers.try_hold())))
    }
}
