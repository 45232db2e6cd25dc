//! The thread slot: one word a thread that holds the address of its thread cache's stacks.
//!
//! Relies on ELF thread-local storage, initial-exec model. Stable Rust has no attribute for that
//! model, and `thread_local!` in a shared library costs a call a read, so the variable is defined
//! in assembly and its *value* is read with two instructions. The hard idea: the slot starts out
//! as the address of static stacks that are empty and full at once, so no read ever has to test
//! for null; whoever finds nothing there ends in a slow path, which makes a real cache.

#[cfg(target_arch = "aarch64")]
#[path = "slot/aarch64.rs"]
mod arch;
#[cfg(target_arch = "x86_64")]
#[path = "slot/x86_64.rs"]
mod arch;

use core::arch::global_asm;

use crate::cache::{EMPTY, Stacks};

// COUPLING: the name carries the crate's version, so that two versions in one program each have
// their slot.
global_asm!(
    ".pushsection .tdata.masu_slot_0_1, \"awT\", @progbits",
    ".globl masu_slot_0_1",
    ".hidden masu_slot_0_1",
    ".type masu_slot_0_1, @object",
    ".size masu_slot_0_1, 8",
    ".p2align 3",
    "masu_slot_0_1: .quad {empty}",
    ".popsection",
    empty = sym EMPTY,
);

/// This thread's stacks.
///
/// Reads may be merged, also across [`set`]: whoever has just set the slot goes on with the
/// reference it set.
#[inline(always)]
pub(crate) fn get() -> &'static Stacks {
    // SAFETY: The slot holds the address of stacks from the thread's first moment, and they are
    // never unmapped.
    unsafe { &*arch::read() }
}

/// Makes `stacks` this thread's.
pub(crate) fn set(stacks: &'static Stacks) {
    // SAFETY: Only this thread reads its slot.
    unsafe { arch::write(stacks) };
}
