//! The facts about aarch64 that tracing needs.

/// `brk #0`, little-endian.
pub(crate) const BREAKPOINT: &[u8] = &[0x00, 0x00, 0x20, 0xd4];

/// The distance from the breakpoint to the program counter after a hit: the counter stays on the breakpoint.
pub(crate) const PASSED: u64 = 0;

/// `svc #0`, and `brk #0` behind it.
pub(crate) const CALL_AND_BREAK: &[u8] = &[0x01, 0x00, 0x00, 0xd4, 0x00, 0x00, 0x20, 0xd4];

/// The index of the program counter among the words of the general registers, after `x0`–`x30` and `sp`.
pub(crate) const PROGRAM_COUNTER: usize = 32;

pub(crate) const STACK_POINTER: usize = 31;

/// The index of a function's return address (`x30`).
pub(crate) const LINK: Option<usize> = Some(30);

/// The index of the number of the call that a program wants (`x8`).
pub(crate) const CALL_REQUEST: usize = 8;

/// The index of that number while a thread is stopped at the call: the same.
pub(crate) const CALL_NUMBER: usize = 8;

/// The index of the call's result (`x0`).
pub(crate) const RESULT: usize = 0;

/// The indexes of a call's arguments: `x0`–`x5`.
pub(crate) const ARGUMENTS: [usize; 6] = [0, 1, 2, 3, 4, 5];

/// The CPU that numbers of calls belong to (`AUDIT_ARCH_AARCH64` of `<linux/audit.h>`).
pub(crate) const AUDIT: u32 = 0xc000_00b7;

pub(crate) const REGISTERS: usize = 34;
