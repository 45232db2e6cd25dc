//! What tracing needs to know of aarch64.

/// `brk #0`, little-endian.
pub(crate) const BREAKPOINT: &[u8] = &[0x00, 0x00, 0x20, 0xd4];

/// How far the program counter lies behind the breakpoint when it was hit: it stays on it.
pub(crate) const PASSED: u64 = 0;

/// Where the program counter stands among the words of the general registers, after `x0`–`x30`
/// and `sp`.
pub(super) const PROGRAM_COUNTER: usize = 32;

/// Words of general registers (`user_pt_regs`).
pub(super) const REGISTERS: usize = 34;
