//! What tracing needs to know of x86-64.

/// `int3`.
pub(crate) const BREAKPOINT: &[u8] = &[0xcc];

/// How far the program counter lies behind the breakpoint when it was hit.
pub(crate) const PASSED: u64 = 1;

/// Where the program counter stands among the words of the general registers (`rip`).
pub(super) const PROGRAM_COUNTER: usize = 16;

/// Words of general registers (`user_regs_struct`).
pub(super) const REGISTERS: usize = 27;
