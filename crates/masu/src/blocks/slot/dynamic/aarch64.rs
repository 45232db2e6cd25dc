//! The thread slot on aarch64 in libraries that are loaded late: "ELF for the Arm 64-bit Architecture" (IHI 0056),
//! thread-local storage by descriptors.
//!
//! Relies on the dynamic linker's function behind the descriptor, which may allocate with the program's malloc when a thread
//! first calls it. Linkers know this sequence: in a program they turn it into the other model's.

use core::arch::asm;

use super::{CacheHead, Stacks, suffix};

/// The address of this thread's variable whose name begins so.
macro_rules! place {
    ($name:literal) => {{
        let place;
        // SAFETY: The linker and the dynamic linker know the variable; the call returns its offset from the thread
        // pointer.
        unsafe {
            asm!(
                concat!("adrp x0, :tlsdesc:", $name, suffix!()),
                concat!("ldr x1, [x0, :tlsdesc_lo12:", $name, suffix!(), "]"),
                concat!("add x0, x0, :tlsdesc_lo12:", $name, suffix!()),
                concat!(".tlsdesccall ", $name, suffix!()),
                "blr x1",
                "mrs x1, tpidr_el0",
                "add x0, x0, x1",
                out("x0") place,
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
