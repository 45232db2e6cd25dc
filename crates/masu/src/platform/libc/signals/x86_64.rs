//! What a handler needs of x86-64: another stack, and which kind of access faulted.

use core::arch::asm;
use core::ffi::c_void;

/// Calls `call` with `argument` on the stack that ends at `top`.
///
/// # Safety
///
/// - So much of it is free as `call` needs, and `top` is aligned to 16 bytes.
/// - `call` does not unwind, and may be called with this argument.
pub(crate) unsafe fn call_on(
    top: *mut u8,
    call: unsafe extern "C" fn(*mut c_void),
    argument: *mut c_void,
) {
    // SAFETY: The caller's conditions; the function keeps r12, so the stack is put back.
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
/// - `context` is of a [`MemoryFault`](super::MemoryFault).
pub(crate) unsafe fn was_write(context: *const c_void) -> Option<bool> {
    /// The page fault's error code, the 20th register of `gregset_t`, and its bit.
    const ERROR_AT: usize = 40 + 19 * size_of::<usize>();
    const WRITE: usize = 2;
    // SAFETY: The caller's condition.
    let error: usize = unsafe { context.byte_add(ERROR_AT).cast::<usize>().read() };
    Some(error & WRITE != 0)
}
