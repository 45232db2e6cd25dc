//! The facts about aarch64 that tracing needs.

/// `brk #0`, little-endian.
pub(crate) const BREAKPOINT: &[u8] = &[0x00, 0x00, 0x20, 0xd4];

/// The distance from the breakpoint to the program counter after a hit: the counter stays on the breakpoint.
pub(crate) const PASSED: u64 = 0;

/// The index of the program counter among the words of the general registers, after `x0`–`x30` and `sp`.
pub(crate) const PROGRAM_COUNTER: usize = 32;

/// The index of a function's return address (`x30`).
pub(crate) const LINK: Option<usize> = Some(30);

/// The CPU that numbers of calls belong to (`AUDIT_ARCH_AARCH64` of `<linux/audit.h>`).
pub(crate) const AUDIT: u32 = 0xc000_00b7;

pub(crate) const REGISTERS: usize = 34;
