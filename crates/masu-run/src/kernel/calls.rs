//! The system calls that are counted: their numbers, and the meaning of their arguments.

use std::sync::LazyLock;

use syscalls::Sysno;

use super::call::Call;

/// The calls that exist on this CPU, each with its number.
fn numbers() -> &'static [(Call, i64)] {
    static NUMBERS: LazyLock<Vec<(Call, i64)>> = LazyLock::new(|| {
        let number = |call: Call| Some((call, i64::from(call.name().parse::<Sysno>().ok()?.id())));
        Call::ALL.into_iter().filter_map(number).collect()
    });
    &NUMBERS
}

/// A counted call that a thread has stopped at, with its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopped {
    pub(crate) call: Call,
    pub(crate) arguments: [u64; 6],
    pub(crate) from: CalledFrom,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CalledFrom {
    pub(crate) instruction: u64,
    pub(crate) stack: u64,
    /// The return address of the function, on a CPU that keeps it in a register.
    pub(crate) link: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FutexRequest {
    Wait,
    Wake,
    Other,
}

/// The request in the second argument of `futex`.
pub(crate) fn futex_request(operation: u64) -> FutexRequest {
    let flags = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
    let command = i32::try_from(operation & 0xffff).unwrap_or(-1) & !flags;
    match command {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET | libc::FUTEX_LOCK_PI => FutexRequest::Wait,
        libc::FUTEX_WAKE
        | libc::FUTEX_WAKE_BITSET
        | libc::FUTEX_WAKE_OP
        | libc::FUTEX_UNLOCK_PI => FutexRequest::Wake,
        _ => FutexRequest::Other,
    }
}

/// True if the expected value of a `futex` call's word shows a lock that one thread holds and others want: 2 in glibc's
/// locks and in those of Rust's standard library, a set sign bit in musl's. A thread that parks itself has all ones.
pub(crate) fn is_contended_lock(operation: u64, value: u64) -> bool {
    let value = value & u64::from(u32::MAX);
    let waits = futex_request(operation) == FutexRequest::Wait;
    waits && (value == 2 || (value >= 1 << 31 && value != u64::from(u32::MAX)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryRequest {
    /// The program break moves to this address.
    Break(u64),
    /// This many bytes of new memory of no file.
    Map(u64),
    /// This many bytes of addresses for something else: a file, or a thread's stack.
    MapOther(u64),
    /// This many bytes of addresses for a thread's stack, all of which but a guard become memory next.
    ReserveStack(u64),
    /// This many bytes of addresses are given back.
    Unmap(u64),
    /// The contents of this many bytes are given back; the bytes then read as zeros.
    Purge(u64),
    /// Contents that the kernel may take when it needs memory.
    Offer,
    /// This many bytes of reserved addresses become memory.
    Grow(u64),
    /// A mapping of the first size gets the second.
    Resize(u64, u64),
    Other,
}

impl MemoryRequest {
    /// True for a request about memory that a program may also ask for itself.
    pub(crate) fn is_of_mappings(self) -> bool {
        !matches!(
            self,
            MemoryRequest::Break(_)
                | MemoryRequest::MapOther(_)
                | MemoryRequest::ReserveStack(_)
                | MemoryRequest::Other
        )
    }
}

pub(crate) fn maps_code(stopped: &Stopped) -> bool {
    let access = match stopped.call {
        Call::Mmap | Call::Mprotect => stopped.arguments[2],
        _ => return false,
    };
    access & u64::from(libc::PROT_EXEC.cast_unsigned()) != 0
}

/// True if a call gives back the contents of many ranges, to which its second argument leads.
pub(crate) fn purges_many(stopped: &Stopped) -> bool {
    let advice = i32::try_from(stopped.arguments[3]);
    stopped.call == Call::ProcessMadvise && advice == Ok(libc::MADV_DONTNEED)
}

pub(crate) fn memory_request(stopped: &Stopped) -> MemoryRequest {
    let Stopped { call, arguments, .. } = *stopped;
    let has = |argument: u64, flag: libc::c_int| argument & u64::from(flag.cast_unsigned()) != 0;
    match call {
        // Zero asks where the break is.
        Call::Brk if arguments[0] != 0 => MemoryRequest::Break(arguments[0]),
        Call::Mmap => {
            let is_memory = has(arguments[3], libc::MAP_ANONYMOUS);
            let is_stack = is_memory && has(arguments[3], libc::MAP_STACK);
            let may_write = has(arguments[2], libc::PROT_WRITE);
            if is_stack && !may_write {
                MemoryRequest::ReserveStack(arguments[1])
            } else if is_stack || !is_memory {
                MemoryRequest::MapOther(arguments[1])
            } else if may_write {
                MemoryRequest::Map(arguments[1])
            } else {
                // These addresses are only reserved.
                MemoryRequest::Other
            }
        }
        Call::Mremap => MemoryRequest::Resize(arguments[1], arguments[2]),
        Call::Munmap => MemoryRequest::Unmap(arguments[1]),
        Call::Madvise => match i32::try_from(arguments[2]) {
            Ok(libc::MADV_DONTNEED) => MemoryRequest::Purge(arguments[1]),
            Ok(libc::MADV_FREE) => MemoryRequest::Offer,
            _ => MemoryRequest::Other,
        },
        Call::Mprotect if has(arguments[2], libc::PROT_WRITE) => MemoryRequest::Grow(arguments[1]),
        _ => MemoryRequest::Other,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sleep {
    /// A lock that another thread holds, whose word is at this address.
    Lock(u64),
    /// Work from another thread.
    Signal,
    /// Data, from a file, a pipe or a socket, or room for data.
    Data,
    /// One of several descriptors that is ready.
    Ready,
    Time,
    Child,
    Other,
}

const SLEEPS: &[(libc::c_long, Sleep)] = &[
    (libc::SYS_read, Sleep::Data),
    (libc::SYS_pread64, Sleep::Data),
    (libc::SYS_readv, Sleep::Data),
    (libc::SYS_preadv, Sleep::Data),
    (libc::SYS_write, Sleep::Data),
    (libc::SYS_pwrite64, Sleep::Data),
    (libc::SYS_writev, Sleep::Data),
    (libc::SYS_recvfrom, Sleep::Data),
    (libc::SYS_recvmsg, Sleep::Data),
    (libc::SYS_sendto, Sleep::Data),
    (libc::SYS_sendmsg, Sleep::Data),
    (libc::SYS_fsync, Sleep::Data),
    (libc::SYS_fdatasync, Sleep::Data),
    (libc::SYS_sendfile, Sleep::Data),
    (libc::SYS_splice, Sleep::Data),
    (libc::SYS_accept, Sleep::Ready),
    (libc::SYS_accept4, Sleep::Ready),
    (libc::SYS_connect, Sleep::Data),
    (libc::SYS_ppoll, Sleep::Ready),
    (libc::SYS_pselect6, Sleep::Ready),
    (libc::SYS_epoll_pwait, Sleep::Ready),
    (libc::SYS_epoll_pwait2, Sleep::Ready),
    (libc::SYS_nanosleep, Sleep::Time),
    (libc::SYS_clock_nanosleep, Sleep::Time),
    (libc::SYS_wait4, Sleep::Child),
    (libc::SYS_waitid, Sleep::Child),
    (libc::SYS_rt_sigtimedwait, Sleep::Other),
    // A sleep that was interrupted, and goes on.
    (libc::SYS_restart_syscall, Sleep::Other),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_poll, Sleep::Ready),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_select, Sleep::Ready),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_epoll_wait, Sleep::Ready),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_pause, Sleep::Other),
];

fn known_sleep(number: i64) -> Option<Sleep> {
    SLEEPS.iter().find(|(known, _)| *known == number).map(|(_, sleep)| *sleep)
}

/// True for a call in which a thread may sleep for as long as others please: its time says nothing of the kernel's
/// work.
pub(crate) fn waits_for_others(number: i64) -> bool {
    number == libc::SYS_futex || known_sleep(number).is_some_and(|sleep| sleep != Sleep::Data)
}

/// The sleep that the line of `/proc/PID/task/TID/syscall` shows; none for a thread that runs, or is not in a call.
pub fn sleeps_in(line: &str) -> Option<Sleep> {
    let mut words = line.split_ascii_whitespace();
    let number: libc::c_long = words.next()?.parse().ok().filter(|number| *number >= 0)?;
    let mut argument = || {
        let word = words.next().and_then(|word| word.strip_prefix("0x"));
        word.and_then(|digits| u64::from_str_radix(digits, 16).ok())
    };
    if number == libc::SYS_futex {
        let (address, operation, value) = (argument()?, argument()?, argument()?);
        let is_lock = is_contended_lock(operation, value);
        return Some(if is_lock { Sleep::Lock(address) } else { Sleep::Signal });
    }
    Some(known_sleep(number).unwrap_or(Sleep::Other))
}

pub(super) fn known(number: i64) -> Option<Call> {
    numbers().iter().find(|(_, known)| *known == number).map(|(call, _)| *call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_this_cpu_has_its_number() {
        for call in Call::ALL {
            let is_here = numbers().iter().any(|(known, _)| *known == call);
            let is_new = !matches!(call, Call::Fork | Call::Vfork);
            assert_eq!(is_here, is_new || cfg!(target_arch = "x86_64"), "{call:?}");
        }
        assert_eq!(known(libc::SYS_process_madvise), Some(Call::ProcessMadvise));
    }

    #[test]
    fn waits_and_wakes_are_distinguished_whatever_their_flags() {
        for flags in [0, libc::FUTEX_PRIVATE_FLAG, libc::FUTEX_CLOCK_REALTIME] {
            let request =
                |command: i32| futex_request(u64::from((command | flags).cast_unsigned()));
            assert_eq!(request(libc::FUTEX_WAIT_BITSET), FutexRequest::Wait);
            assert_eq!(request(libc::FUTEX_WAKE), FutexRequest::Wake);
            assert_eq!(request(libc::FUTEX_REQUEUE), FutexRequest::Other);
        }
    }

    #[test]
    fn a_lock_that_is_held_is_distinguished_from_a_thread_that_waits_for_work() {
        let wait = u64::from((libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG).cast_unsigned());
        let wake = u64::from(libc::FUTEX_WAKE.cast_unsigned());
        assert!(is_contended_lock(wait, 2) && is_contended_lock(wait, 0x8000_0001));
        for value in [0, 1, 3, u64::from(u32::MAX)] {
            assert!(!is_contended_lock(wait, value), "{value}");
        }
        assert!(!is_contended_lock(wake, 2));
    }

    #[test]
    fn what_a_thread_sleeps_in_is_read_from_its_line() {
        let futex = libc::SYS_futex;
        let lock = format!("{futex} 0x7f00dead0030 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f00");
        assert_eq!(sleeps_in(&lock), Some(Sleep::Lock(0x7f00_dead_0030)));
        let signal = format!("{futex} 0x7f00dead0030 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7f00");
        assert_eq!(sleeps_in(&signal), Some(Sleep::Signal));
        let read = format!("{} 0x0 0x7ffe 0x1000 0x0 0x0 0x0 0x7ffe 0x7f00", libc::SYS_read);
        assert_eq!(sleeps_in(&read), Some(Sleep::Data));
        assert_eq!(sleeps_in("running\n"), None);
        assert_eq!(sleeps_in("-1 0x7ffe 0x7f00\n"), None);
        assert_eq!(sleeps_in("99999 0x0"), Some(Sleep::Other));
    }

    #[test]
    fn the_arguments_of_a_call_show_its_effect_on_memory() {
        let from = CalledFrom::default();
        let request = |call, arguments| memory_request(&Stopped { call, arguments, from });
        assert_eq!(request(Call::Brk, [0, 0, 0, 0, 0, 0]), MemoryRequest::Other);
        assert_eq!(request(Call::Brk, [4096, 0, 0, 0, 0, 0]), MemoryRequest::Break(4096));
        let (writable, anonymous) = (3, 0x22);
        assert_eq!(
            request(Call::Mmap, [0, 4096, writable, anonymous, u64::MAX, 0]),
            MemoryRequest::Map(4096)
        );
        // The requests for a file, and for addresses that are only reserved.
        let file = request(Call::Mmap, [0, 4096, writable, 2, 3, 0]);
        assert_eq!(file, MemoryRequest::MapOther(4096));
        assert_eq!(request(Call::Mmap, [0, 4096, 0, anonymous, 0, 0]), MemoryRequest::Other);
        let stack = |access| request(Call::Mmap, [0, 4096, access, anonymous | 0x2_0000, 0, 0]);
        assert_eq!(stack(0), MemoryRequest::ReserveStack(4096));
        assert_eq!(stack(writable), MemoryRequest::MapOther(4096));
        let grown = request(Call::Mremap, [0, 4096, 8192, 1, 0, 0]);
        assert_eq!(grown, MemoryRequest::Resize(4096, 8192));
        assert_eq!(request(Call::Munmap, [0, 8192, 0, 0, 0, 0]), MemoryRequest::Unmap(8192));
        assert_eq!(request(Call::Madvise, [0, 8192, 4, 0, 0, 0]), MemoryRequest::Purge(8192));
        assert_eq!(request(Call::Madvise, [0, 8192, 14, 0, 0, 0]), MemoryRequest::Other);
    }
}
