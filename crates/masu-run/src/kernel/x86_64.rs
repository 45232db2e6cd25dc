//! The facts about x86-64 that tracing needs.

/// `int3`.
pub(crate) const BREAKPOINT: &[u8] = &[0xcc];

/// The distance from the breakpoint to the program counter after a hit.
pub(crate) const PASSED: u64 = 1;

/// The index of the program counter among the words of the general registers (`rip`).
pub(crate) const PROGRAM_COUNTER: usize = 16;

/// The index of a function's return address: none, because it is on the stack here.
pub(crate) const LINK: Option<usize> = None;

/// The CPU that numbers of calls belong to (`AUDIT_ARCH_X86_64` of `<linux/audit.h>`).
pub(crate) const AUDIT: u32 = 0xc000_003e;

pub(crate) const REGISTERS: usize = 27;
