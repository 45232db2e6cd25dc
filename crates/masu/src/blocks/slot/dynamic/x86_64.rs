//! The thread slot on x86-64 in libraries that are loaded late: "ELF Handling For Thread-Local Storage" (U. Drepper, 2013),
//! section 4.4.1, general dynamic.
//!
//! Relies on the C library's `__tls_get_addr`, which may allocate with the program's malloc when a thread first calls it.
//! Linkers know this sequence: in a program they turn it into the two instructions of the other model.

use core::arch::asm;

use super::{CacheHead, Stacks, suffix};

/// The address of this thread's variable whose name begins so.
macro_rules! place {
    ($name:literal) => {{
        let place;
        // SAFETY: The linker and the dynamic linker know the variable; the call returns the address of this thread's, and
        // clobbers what any function may.
        unsafe {
            asm!(
                ".byte 0x66",
                concat!("lea rdi, [rip + ", $name, suffix!(), "@TLSGD]"),
                ".byte 0x66, 0x66, 0x48",
                "call __tls_get_addr@PLT",
                out("rax") place,
                clobber_abi("C"),
            );
        }
        place
    }};
}

/// The slot of this thread.
#[inline(always)]
fn slot() -> *mut *const Stacks {
    place!("masu_slot_")
}

/// The second word of this thread.
#[inline(always)]
fn behind() -> *mut *const CacheHead {
    place!("masu_hidden_")
}

/// The slot's value.
///
/// # Safety
///
/// - None; it is unsafe only for being assembly.
#[inline(always)]
pub(super) unsafe fn read() -> *const Stacks {
    // SAFETY: The slot is this thread's and lives as long as it does.
    unsafe { slot().read() }
}

/// The second word's value.
///
/// # Safety
///
/// - As [`read`].
#[inline(always)]
pub(super) unsafe fn read_hidden() -> *const CacheHead {
    // SAFETY: As in `read`.
    unsafe { behind().read() }
}

/// Sets the slot.
///
/// # Safety
///
/// - `stacks` stay mapped while any thread may read the slot.
pub(super) unsafe fn write(stacks: *const Stacks) {
    // SAFETY: As in `read`.
    unsafe { slot().write(stacks) };
}

/// Sets the second word.
///
/// # Safety
///
/// - As [`write`].
pub(super) unsafe fn write_hidden(value: *const CacheHead) {
    // SAFETY: As in `read`.
    unsafe { behind().write(value) };
}
