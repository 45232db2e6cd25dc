//! The thread slot on aarch64: "ELF for the Arm 64-bit Architecture" (IHI 0056), static and
//! initial-exec thread-local storage.

use core::arch::asm;

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
            "adrp {offset}, :gottprel:masu_slot_0_1",
            "ldr {offset}, [{offset}, :gottprel_lo12:masu_slot_0_1]",
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
            "adrp {offset}, :gottprel:masu_slot_0_1",
            "ldr {offset}, [{offset}, :gottprel_lo12:masu_slot_0_1]",
            "mrs {base}, tpidr_el0",
            "str {stacks}, [{base}, {offset}]",
            base = out(reg) _,
            offset = out(reg) _,
            stacks = in(reg) stacks,
            options(nostack, preserves_flags),
        );
    }
}
