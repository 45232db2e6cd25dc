//! The lock of stdio's list of streams, which glibc's `fork` takes after the handlers have run.
//!
//! Relies on glibc, which exports the functions that its own `fork` calls; the lock is recursive. The hard idea is the
//! order: a thread that flushes all streams holds this lock while it waits for a stream whose holder waits for memory. So
//! this lock comes before the allocator's, as in glibc's own malloc.

use core::mem;

use super::weak::weak_function;

type Call = unsafe extern "C" fn();

fn call(address: usize) {
    // SAFETY: The address is 0 (no such function) or a function of glibc's without arguments.
    let call: Option<Call> = unsafe { mem::transmute(address) };
    if let Some(call) = call {
        // SAFETY: `fork` itself calls it so.
        unsafe { call() };
    }
}

/// Takes the lock, before a `fork`.
pub(crate) fn hold_streams() {
    call(weak_function!("_IO_list_lock"));
}

/// Releases the lock, in the parent.
pub(crate) fn let_go_streams() {
    call(weak_function!("_IO_list_unlock"));
}

/// Resets the lock, in the child; `fork` has done so already where the program has threads.
pub(crate) fn forget_streams() {
    call(weak_function!("_IO_list_resetlock"));
}
