//! How wide the CPU's vectors are: what long copies and fills ask.
//!
//! Relies on the CPU's own word for it, and on the kernel's for whether it keeps such registers. Nobody is called at a program's
//! start for this: the first code that copies may be the C library's, or relocates the program.

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};

use crate::platform::sync::{AtomicU8, Ordering};

/// What is known of the width: 0 for nothing yet, [`NARROW`], or [`WIDE`].
pub(super) static WIDTH: AtomicU8 = AtomicU8::new(0);
/// Vectors of 16 bytes.
pub(super) const NARROW: u8 = 1;
/// Vectors of 32 bytes too.
pub(super) const WIDE: u8 = 2;

/// Finds the width out. It copies nothing long itself.
pub(super) extern "C" fn find() {
    // ORDERING: Relaxed: a thread that does not see it finds the same.
    WIDTH.store(if is_wide() { WIDE } else { NARROW }, Ordering::Relaxed);
}

/// Whether the CPU has AVX2, and the kernel keeps its registers when threads take turns.
fn is_wide() -> bool {
    /// Of leaf 1, register `ecx`: the kernel says what it keeps.
    const OSXSAVE: u32 = 1 << 27;
    /// Of leaf 7, register `ebx`.
    const AVX2: u32 = 1 << 5;
    /// Of what the kernel keeps: registers of 16 bytes, and what makes them 32.
    const KEPT: u32 = 0b110;
    __cpuid(0).eax >= 7
        && __cpuid(1).ecx & OSXSAVE != 0
        && __cpuid_count(7, 0).ebx & AVX2 != 0
        && kept() & KEPT == KEPT
}

/// Which registers the kernel keeps, as bits. Only where it says so: elsewhere there is no such instruction.
fn kept() -> u32 {
    let low: u32;
    // SAFETY: Reads a register, and `is_wide` asks before whether there is one.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") low, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    low
}
