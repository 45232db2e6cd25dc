//! The thread slot on x86-64: "ELF Handling For Thread-Local Storage" (U. Drepper, 2013), section
//! 4.4.6, initial-exec.

use core::arch::asm;

use super::{CacheHead, Stacks, suffix};

/// Reads the variable whose name begins so.
macro_rules! read {
    ($name:literal) => {{
        let value;
        // SAFETY: The linker fills in the variable's offset from the thread pointer; the read has no side effect.
        unsafe {
            asm!(
                concat!("mov {value}, qword ptr [rip + ", $name, suffix!(), "@GOTTPOFF]"),
                "mov {value}, qword ptr fs:[{value}]",
                value = out(reg) value,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        value
    }};
}

/// Writes it.
macro_rules! write {
    ($name:literal, $value:expr) => {
        // SAFETY: As in `read`; the word belongs to this thread.
        unsafe {
            asm!(
                concat!("mov {offset}, qword ptr [rip + ", $name, suffix!(), "@GOTTPOFF]"),
                "mov qword ptr fs:[{offset}], {value}",
                offset = out(reg) _,
                value = in(reg) $value,
                options(nostack, preserves_flags),
            );
        }
    };
}

/// The slot's value.
///
/// # Safety
///
/// - None; it is unsafe only for being assembly.
#[inline(always)]
pub(super) unsafe fn read() -> *const Stacks {
    read!("masu_slot_")
}

/// The second word's value.
///
/// # Safety
///
/// - As [`read`].
#[inline(always)]
pub(super) unsafe fn read_hidden() -> *const CacheHead {
    read!("masu_hidden_")
}

/// Sets the slot.
///
/// # Safety
///
/// - `stacks` stay mapped while any thread may read the slot.
pub(super) unsafe fn write(stacks: *const Stacks) {
    write!("masu_slot_", stacks);
}

/// Sets the second word.
///
/// # Safety
///
/// - As [`write`].
pub(super) unsafe fn write_hidden(own: *const CacheHead) {
    write!("masu_hidden_", own);
}
