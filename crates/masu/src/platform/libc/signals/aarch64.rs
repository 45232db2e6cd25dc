//! The parts of a fault handler that depend on aarch64: a call on another stack, and the kind of the access.

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
    // SAFETY: The caller's conditions; the callee preserves x20, so the stack pointer is restored.
    unsafe {
        asm!(
            "mov x20, sp",
            "mov sp, {top}",
            "blr {call}",
            "mov sp, x20",
            top = in(reg) top,
            call = in(reg) call,
            in("x0") argument,
            out("x20") _,
            clobber_abi("C"),
        );
    }
}

/// Whether the access that faulted was a write; `None` where the kernel does not say.
///
/// # Safety
///
/// - `context` is the context of a [`MemoryFault`](super::MemoryFault).
pub(crate) unsafe fn was_write(context: *const c_void) -> Option<bool> {
    /// Records follow the registers; one holds the syndrome: `struct esr_context` of the kernel's `asm/sigcontext.h`.
    const RECORDS_AT: usize = 176 + 288;
    const RECORDS_END: usize = RECORDS_AT + 4096;
    const SYNDROME: u32 = 0x4553_5201;
    const WRITE: u64 = 1 << 6;
    let mut at = RECORDS_AT;
    while at < RECORDS_END {
        // SAFETY: The caller's condition; records are contiguous, and a record without a kind ends them.
        let [kind, length] = unsafe { context.byte_add(at).cast::<[u32; 2]>().read() };
        if kind == SYNDROME {
            // SAFETY: As above.
            let syndrome = unsafe { context.byte_add(at + 8).cast::<u64>().read() };
            return Some(syndrome & WRITE != 0);
        }
        if kind == 0 || length == 0 {
            break;
        }
        at += length as usize;
    }
    None
}
