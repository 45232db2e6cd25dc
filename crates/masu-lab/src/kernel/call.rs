//! The system calls that are counted, by name.
//!
//! Relies on nothing. What number each has on this CPU is known next door, in `calls.rs`.

use serde::{Deserialize, Serialize};

/// A system call that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the system call of that name")]
#[non_exhaustive]
pub enum Call {
    Brk,
    Mmap,
    Munmap,
    Mremap,
    Madvise,
    ProcessMadvise,
    Mprotect,
    Futex,
    Clone,
    Clone3,
    Fork,
    Vfork,
    Execve,
    Execveat,
    Write,
    Pwrite64,
    Writev,
    Pwritev,
    Pwritev2,
    Sendto,
    Sendmsg,
    Sendmmsg,
    SchedYield,
}

impl Call {
    /// Every call that is counted.
    pub const ALL: [Call; 23] = [
        Call::Brk,
        Call::Mmap,
        Call::Munmap,
        Call::Mremap,
        Call::Madvise,
        Call::ProcessMadvise,
        Call::Mprotect,
        Call::Futex,
        Call::Clone,
        Call::Clone3,
        Call::Fork,
        Call::Vfork,
        Call::Execve,
        Call::Execveat,
        Call::Write,
        Call::Pwrite64,
        Call::Writev,
        Call::Pwritev,
        Call::Pwritev2,
        Call::Sendto,
        Call::Sendmsg,
        Call::Sendmmsg,
        Call::SchedYield,
    ];

    /// Its name as the kernel's manual has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Call::Brk => "brk",
            Call::Mmap => "mmap",
            Call::Munmap => "munmap",
            Call::Mremap => "mremap",
            Call::Madvise => "madvise",
            Call::ProcessMadvise => "process_madvise",
            Call::Mprotect => "mprotect",
            Call::Futex => "futex",
            Call::Clone => "clone",
            Call::Clone3 => "clone3",
            Call::Fork => "fork",
            Call::Vfork => "vfork",
            Call::Execve => "execve",
            Call::Execveat => "execveat",
            Call::Write => "write",
            Call::Pwrite64 => "pwrite64",
            Call::Writev => "writev",
            Call::Pwritev => "pwritev",
            Call::Pwritev2 => "pwritev2",
            Call::Sendto => "sendto",
            Call::Sendmsg => "sendmsg",
            Call::Sendmmsg => "sendmmsg",
            Call::SchedYield => "sched_yield",
        }
    }
}
