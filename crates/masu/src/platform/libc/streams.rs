//! The lock of all of stdio's streams, which `fork` takes after the handlers have run.
//!
//! It relies on glibc, which exports what its own `fork` calls; the lock may be taken twice by one thread. The
//! hard idea is the order: a thread that flushes all streams holds this lock while it waits for a stream whose
//! holder waits for memory. So it comes before the allocator's locks, as it does in glibc's own malloc.

use core::mem;

use super::arch::weak_function;

type Call = unsafe extern "C" fn();

fn call(address: usize) {
    // SAFETY: The address is 0 (no such function) or that of a function of glibc's that takes nothing.
    let call: Option<Call> = unsafe { mem::transmute(address) };
    if let Some(call) = call {
        // SAFETY: As `fork` itself calls it.
        unsafe { call() };
    }
}

/// Takes the lock before a `fork`.
pub(crate) fn hold_streams() {
    call(weak_function!("_IO_list_lock"));
}

/// Gives it back in the parent.
pub(crate) fn let_go_streams() {
    call(weak_function!("_IO_list_unlock"));
}

/// Makes it nobody's in the child, as `fork` has done already where the program has threads.
pub(crate) fn forget_streams() {
    call(weak_function!("_IO_list_resetlock"));
}
