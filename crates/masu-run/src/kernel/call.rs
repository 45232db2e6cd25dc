//! The system calls that are counted, by name.
//!
//! Relies on nothing. `calls.rs`, next door, has the number of each call on this CPU.

use serde::{Deserialize, Serialize};

use crate::named;

named! {
    /// A system call that is counted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[expect(missing_docs, reason = "each is the system call of that name")]
    #[non_exhaustive]
    pub enum Call {
        Brk = "brk",
        Mmap = "mmap",
        Munmap = "munmap",
        Mremap = "mremap",
        Madvise = "madvise",
        ProcessMadvise = "process_madvise",
        Mprotect = "mprotect",
        Futex = "futex",
        Clone = "clone",
        Clone3 = "clone3",
        Fork = "fork",
        Vfork = "vfork",
        Execve = "execve",
        Execveat = "execveat",
        Write = "write",
        Pwrite64 = "pwrite64",
        Writev = "writev",
        Pwritev = "pwritev",
        Pwritev2 = "pwritev2",
        Sendto = "sendto",
        Sendmsg = "sendmsg",
        Sendmmsg = "sendmmsg",
        SchedYield = "sched_yield",
    }
}
