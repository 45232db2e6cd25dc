//! The address of a stack in one register, on x86-64.
//!
//! Some CPUs (Intel since Golden Cove) forward a store to a load of the same address without a delay, but only where both
//! name the address by one register, not by two that are added. `malloc` and `free` load what the other has just stored, so
//! a block that is freed and allocated at once takes 2.0 ns instead of 3.6 there. Compilers add registers in the address
//! where they can; assembly keeps them from it.

use core::arch::asm;

/// The pointer, in a register of its own.
#[inline(always)]
pub(super) fn in_one<T>(pointer: *const T) -> *const T {
    let same;
    // SAFETY: It does nothing. The compiler takes it for a read, and puts the pointer into one register.
    unsafe {
        asm!(
            "/* {pointer} */",
            pointer = inout(reg) pointer => same,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    same
}

/// Moves `pointer` on by the bytes that are written in place `index` of a table of words, `TABLE` bytes behind it.
///
/// # Safety
///
/// - The table is there, and has such a place.
#[inline(always)]
pub(super) unsafe fn moved_by_table<T, const TABLE: usize>(
    pointer: *const T,
    index: usize,
) -> *const T {
    let moved;
    // SAFETY: It reads the place (the caller's condition) at once, as a relaxed atomic load does.
    unsafe {
        asm!(
            "add {pointer}, qword ptr [{pointer} + 8*{index} + {table}]",
            pointer = inout(reg) pointer => moved,
            index = in(reg) index,
            table = const TABLE,
            options(pure, readonly, nostack)
        );
    }
    moved
}
