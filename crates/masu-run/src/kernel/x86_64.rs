//! The facts about x86-64 that tracing needs.

/// `int3`.
pub(crate) const BREAKPOINT: &[u8] = &[0xcc];

/// The distance from the breakpoint to the program counter after a hit.
pub(crate) const PASSED: u64 = 1;

/// `syscall`, and `int3` behind it.
pub(crate) const CALL_AND_BREAK: &[u8] = &[0x0f, 0x05, 0xcc];

/// The index of the program counter among the words of the general registers (`rip`).
pub(crate) const PROGRAM_COUNTER: usize = 16;

pub(crate) const STACK_POINTER: usize = 19;

/// The index of a function's return address: none, because it is on the stack here.
pub(crate) const LINK: Option<usize> = None;

/// The index of the number of the call that a program wants (`rax`).
pub(crate) const CALL_REQUEST: usize = 10;

/// The index of that number while a thread is stopped at the call (`orig_rax`).
pub(crate) const CALL_NUMBER: usize = 15;

/// The index of the call's result (`rax`).
pub(crate) const RESULT: usize = 10;

/// The indexes of a call's arguments: `rdi`, `rsi`, `rdx`, `r10`, `r8`, `r9`.
pub(crate) const ARGUMENTS: [usize; 6] = [14, 13, 12, 7, 9, 8];

/// The CPU that numbers of calls belong to (`AUDIT_ARCH_X86_64` of `<linux/audit.h>`).
pub(crate) const AUDIT: u32 = 0xc000_003e;

pub(crate) const REGISTERS: usize = 27;
