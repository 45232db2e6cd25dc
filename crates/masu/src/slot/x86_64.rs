//! The thread slot on x86-64: "ELF Handling For Thread-Local Storage" (U. Drepper, 2013), section
//! 4.4.6, initial-exec.

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
            concat!("mov {value}, qword ptr [rip + masu_slot_", suffix!(), "@GOTTPOFF]"),
            "mov {value}, qword ptr fs:[{value}]",
            value = out(reg) value,
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
            concat!("mov {offset}, qword ptr [rip + masu_slot_", suffix!(), "@GOTTPOFF]"),
            "mov qword ptr fs:[{offset}], {stacks}",
            offset = out(reg) _,
            stacks = in(reg) stacks,
            options(nostack, preserves_flags),
        );
    }
}
