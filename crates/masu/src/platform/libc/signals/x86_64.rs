//! The parts of a fault handler that depend on x86-64: a call on another stack, and the kind of the access.

use core::arch::asm;
use core::ffi::c_void;

/// Calls `call` with `argument` on the stack whose end is `top`.
///
/// # Safety
///
/// - That stack has room for `call`, and `top` is aligned to 16 bytes.
/// - `call` does not unwind, and may be called with this argument.
pub(crate) unsafe fn call_on(
    top: *mut u8,
    call: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
) {
    // SAFETY: The caller's conditions; the callee preserves r12, so the stack pointer is restored.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {call}",
            "mov rsp, r12",
            top = in(reg) top,
            call = in(reg) call,
            in("rdi") argument,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// Whether the access that faulted was a write; `None` where the CPU does not say.
///
/// # Safety
///
/// - `context` is the context of a [`MemoryFault`](super::MemoryFault).
pub(crate) unsafe fn was_write(context: *const c_void) -> Option<bool> {
    /// The page fault's error code is register 19 of `gregset_t`, counted from 0.
    const ERROR_AT: usize = 40 + 19 * size_of::<usize>();
    const WRITE: usize = 2;
    // SAFETY: The caller's condition.
    let error: usize = unsafe { context.byte_add(ERROR_AT).cast::<usize>().read() };
    Some(error & WRITE != 0)
}
