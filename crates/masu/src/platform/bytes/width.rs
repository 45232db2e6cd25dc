//! The width of the CPU's vectors, for long copies and fills.
//!
//! Relies on `cpuid`, and on `xgetbv` to know whether the kernel saves the registers. No constructor does this: the
//! first code that copies may be the C library's, or relocate the program.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};

use crate::platform::sync::{AtomicU8, Ordering};

/// 0 for not known, [`NARROW`] or [`WIDE`].
pub(super) static WIDTH: AtomicU8 = AtomicU8::new(0);
/// Vectors of 16 bytes.
pub(super) const NARROW: u8 = 1;
/// Vectors of 32 bytes too.
pub(super) const WIDE: u8 = 2;

/// Finds the width. Must not make long copies itself.
pub(super) extern "C" fn find() {
    // ORDERING: Relaxed: a thread that does not see the value finds the same one.
    WIDTH.store(if is_wide() { WIDE } else { NARROW }, Ordering::Relaxed);
}

/// Whether the CPU has AVX2, and the kernel saves its registers at a context switch.
fn is_wide() -> bool {
    /// Leaf 1, `ecx`: `xgetbv` says which registers the kernel saves.
    const OSXSAVE: u32 = 1 << 27;
    /// Leaf 7, `ebx`.
    const AVX2: u32 = 1 << 5;
    /// The bits of vectors of 16 bytes and of their upper halves. Both must be among the registers that the kernel
    /// saves.
    const KEPT: u32 = 0b110;
    __cpuid(0).eax >= 7
        && __cpuid(1).ecx & OSXSAVE != 0
        && __cpuid_count(7, 0).ebx & AVX2 != 0
        && kept() & KEPT == KEPT
}

/// The registers that the kernel saves, as bits. Only with `OSXSAVE`: without it the instruction does not exist.
fn kept() -> u32 {
    let low: u32;
    // SAFETY: The instruction reads a register, and `is_wide` has checked that it exists.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    low
}
