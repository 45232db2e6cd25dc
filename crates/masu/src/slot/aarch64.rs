//! The thread slot on aarch64: "ELF for the Arm 64-bit Architecture" (IHI 0056), static and
//! initial-exec thread-local storage.

use core::arch::asm;

use super::suffix;
use crate::cache::Stacks;

/// The slot's value.
///
/// # Safety
///
/// - None; it is unsafe only for being assembly.
#[inline(always)]
pub(super) unsafe fn read() -> *const Stacks {
    let value: *const Stacks;
    // SAFETY: The linker fills in the variable's offset from the thread pointer; the read has no
    // side effect.
    unsafe {
        asm!(
            concat!("adrp {offset}, :gottprel:masu_slot_", suffix!(), ""),
            concat!("ldr {offset}, [{offset}, :gottprel_lo12:masu_slot_", suffix!(), "]"),
            "mrs {value}, tpidr_el0",
            "ldr {value}, [{value}, {offset}]",
            value = out(reg) value,
            offset = out(reg) _,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    value
}

/// Sets the slot.
///
/// # Safety
///
/// - `stacks` stay mapped while any thread may read the slot.
pub(super) unsafe fn write(stacks: *const Stacks) {
    // SAFETY: As in `read`; the word belongs to this thread.
    unsafe {
        asm!(
            concat!("adrp {offset}, :gottprel:masu_slot_", suffix!(), ""),
            concat!("ldr {offset}, [{offset}, :gottprel_lo12:masu_slot_", suffix!(), "]"),
            "mrs {base}, tpidr_el0",
            "str {stacks}, [{base}, {offset}]",
            base = out(reg) _,
            offset = out(reg) _,
            stacks = in(reg) stacks,
            options(nostack, preserves_flags),
        );
    }
}
