//! What tracing needs to know of x86-64.

/// `int3`.
pub(crate) const BREAKPOINT: &[u8] = &[0xcc];

/// How far the program counter lies behind the breakpoint when it was hit.
pub(crate) const PASSED: u64 = 1;

/// `syscall`, and `int3` behind it.
pub(crate) const CALL_AND_BREAK: &[u8] = &[0x0f, 0x05, 0xcc];

/// Where the program counter stands among the words of the general registers (`rip`).
pub(crate) const PROGRAM_COUNTER: usize = 16;

pub(crate) const STACK_POINTER: usize = 19;

/// Where a function keeps where it returns to, on the stack here.
pub(crate) const LINK: Option<usize> = None;

/// Where a program puts the number of the call it wants (`rax`).
pub(crate) const CALL_REQUEST: usize = 10;

/// Where the number stands while a thread is stopped at the call (`orig_rax`).
pub(crate) const CALL_NUMBER: usize = 15;

/// Where the call leaves its result (`rax`).
pub(crate) const RESULT: usize = 10;

/// Where the arguments of a call stand: `rdi`, `rsi`, `rdx`, `r10`, `r8`, `r9`.
pub(crate) const ARGUMENTS: [usize; 6] = [14, 13, 12, 7, 9, 8];

/// The CPU that numbers of calls belong to (`AUDIT_ARCH_X86_64` of `<linux/audit.h>`).
pub(crate) const AUDIT: u32 = 0xc000_003e;

pub(crate) const REGISTERS: usize = 27;
