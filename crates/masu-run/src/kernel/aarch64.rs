//! What tracing needs to know of aarch64.

/// `brk #0`, little-endian.
pub(crate) const BREAKPOINT: &[u8] = &[0x00, 0x00, 0x20, 0xd4];

/// How far the program counter lies behind the breakpoint when it was hit: it stays on it.
pub(crate) const PASSED: u64 = 0;

/// `svc #0`, and `brk #0` behind it.
pub(crate) const CALL_AND_BREAK: &[u8] = &[0x01, 0x00, 0x00, 0xd4, 0x00, 0x00, 0x20, 0xd4];

/// Where the program counter stands among the words of the general registers, after `x0`–`x30` and `sp`.
pub(crate) const PROGRAM_COUNTER: usize = 32;

pub(crate) const STACK_POINTER: usize = 31;

/// Where a function keeps where it returns to (`x30`).
pub(crate) const LINK: Option<usize> = Some(30);

/// Where a program puts the number of the call it wants (`x8`).
pub(crate) const CALL_REQUEST: usize = 8;

/// Where the number stands while a thread is stopped at the call: in the same place.
pub(crate) const CALL_NUMBER: usize = 8;

/// Where the call leaves its result (`x0`).
pub(crate) const RESULT: usize = 0;

/// Where the arguments of a call stand: `x0`–`x5`.
pub(crate) const ARGUMENTS: [usize; 6] = [0, 1, 2, 3, 4, 5];

/// The CPU that numbers of calls belong to (`AUDIT_ARCH_AARCH64` of `<linux/audit.h>`).
pub(crate) const AUDIT: u32 = 0xc000_00b7;

pub(crate) const REGISTERS: usize = 34;
