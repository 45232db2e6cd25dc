//! A handler of memory faults that runs before the program's own.
//!
//! Relies on `sigaction(2)` of the C library, which supplies the return from a handler. The hard idea is to change
//! nothing for faults that have nothing to do with masu: the handler keeps the alternate stack, mask and restarts of
//! the action before it, and calls the program's handler with its own arguments. Where the program had none, it
//! restores that action and returns to the instruction, so that the program ends at its own fault.

#[cfg_attr(target_arch = "aarch64", path = "signals/aarch64.rs")]
#[cfg_attr(target_arch = "x86_64", path = "signals/x86_64.rs")]
mod arch;

use core::ffi::{c_int, c_long, c_ulong, c_void};
use core::ptr;

use crate::platform::atomics::UnsafeCell;
pub(crate) use arch::{call_on, was_write};

unsafe extern "C" {
    fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
    safe fn raise(signal: c_int) -> c_int;
}

const SIGSEGV: c_int = 11;
const WITH_INFORMATION: c_int = 4;
const ON_ALTERNATE_STACK: c_int = 0x0800_0000;
const ONCE: c_int = c_int::MIN;

/// A handler that takes `siginfo_t`.
type Handler = unsafe extern "C" fn(c_int, *const Information, *const c_void);
type PlainHandler = unsafe extern "C" fn(c_int);

/// `struct sigaction`, as glibc and musl have it on 64-bit CPUs.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    mask: [c_ulong; 16],
    flags: c_int,
    restorer: usize,
}

/// The part of `siginfo_t` that is used.
#[repr(C)]
pub(crate) struct Information {
    signal: c_int,
    errno: c_int,
    code: c_int,
    address: usize,
    _rest: [c_long; 12],
}

impl Information {
    /// The address of a fault; `None` for a signal that was sent.
    fn address(&self) -> Option<usize> {
        const NOT_MAPPED_OR_NOT_ALLOWED: [c_int; 2] = [1, 2];
        NOT_MAPPED_OR_NOT_ALLOWED.contains(&self.code).then_some(self.address)
    }

    /// Whether the signal was sent, so that no instruction repeats it.
    fn was_sent(&self) -> bool {
        self.code <= 0
    }
}

/// A fault of memory.
pub(crate) struct MemoryFault {
    /// The address that was read or written.
    pub(crate) address: usize,
    /// The interrupted context, a `ucontext_t`.
    pub(crate) context: *const c_void,
}

/// Called at each memory fault.
type Hook = fn(&MemoryFault);

struct Before {
    action: UnsafeCell<Action>,
    hook: UnsafeCell<Hook>,
}

// SAFETY: Written once, before the handler that reads it is installed.
unsafe impl Sync for Before {}

const NOTHING: Action = Action { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };

/// The action before masu's, and masu's function.
static BEFORE: Before = Before { action: UnsafeCell::new(NOTHING), hook: UnsafeCell::new(|_| {}) };

/// Calls `hook` at each memory fault from now on, before the program's present handler. A handler that the program installs
/// later replaces it. Called once in a process's life.
pub(crate) fn on_fault(hook: Hook) {
    let mut before = NOTHING;
    // SAFETY: It only writes the current action into `before`.
    if unsafe { sigaction(SIGSEGV, ptr::null(), &raw mut before) } != 0 {
        return;
    }
    let has_handler = before.handler > IGNORED;
    let kept = if has_handler { before.flags & !ONCE } else { ON_ALTERNATE_STACK };
    let flags = kept | WITH_INFORMATION;
    let handler = handle as Handler as usize;
    let new = Action { handler, mask: before.mask, flags, restorer: 0 };
    // SAFETY: No handler reads it yet, and this is the only call.
    unsafe { BEFORE.action.get().write(before) };
    // SAFETY: As above.
    unsafe { BEFORE.hook.get().write(hook) };
    // SAFETY: The action is a handler of the right kind, which stays valid.
    let _ = unsafe { sigaction(SIGSEGV, &raw const new, ptr::null_mut()) };
}

/// `SIG_IGN`; `SIG_DFL` is below it.
const IGNORED: usize = 1;

/// # Safety
///
/// - Called by the kernel as a signal handler.
unsafe extern "C" fn handle(
    signal: c_int,
    information: *const Information,
    context: *const c_void,
) {
    // SAFETY: Written before this handler was installed.
    let (before, hook) = unsafe { (*BEFORE.action.get(), *BEFORE.hook.get()) };
    // SAFETY: The kernel passes a valid structure.
    let (address, was_sent) = unsafe { ((*information).address(), (*information).was_sent()) };
    if let Some(address) = address {
        hook(&MemoryFault { address, context });
    }
    if before.handler == IGNORED && was_sent {
        return;
    }
    if before.handler <= IGNORED || before.flags & ONCE != 0 {
        let action = if before.handler <= IGNORED { before } else { NOTHING };
        // SAFETY: The program's action for the signal, or the default.
        let _ = unsafe { sigaction(signal, &raw const action, ptr::null_mut()) };
    }
    if before.handler <= IGNORED {
        // Unless the signal was sent, the instruction faults again when this returns.
        if was_sent {
            let _ = raise(signal);
        }
        return;
    }
    let place = before.handler;
    if before.flags & WITH_INFORMATION != 0 {
        // SAFETY: The program set it as a handler of this kind.
        let handler: Handler = unsafe { core::mem::transmute(place) };
        // SAFETY: The arguments are those the kernel passed.
        unsafe { handler(signal, information, context) };
    } else {
        // SAFETY: As above, of the other kind.
        let handler: PlainHandler = unsafe { core::mem::transmute(place) };
        // SAFETY: As above.
        unsafe { handler(signal) };
    }
}
