//! The kernel's services, each behind a safe function so that it can be timed, and tests of whether the kernel allows
//! tracing and counting.
//!
//! The program break belongs to this process's malloc, so it is moved in a child that does nothing else.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::process::Resource;
use rustix::thread::{CpuSet, futex};
use rustix::time::ClockId;

use super::sample::{self, Attributes};
use super::{Status, checked, nanoseconds, os_page_bytes, time, wait_for, wait4};

/// Makes the cheapest system call that the C library does not answer by itself.
pub(crate) fn system_call() {
    let _ = rustix::process::getppid();
}

/// Page faults without disk that the calling thread has had.
pub(crate) fn faults_of_thread() -> u64 {
    // SAFETY: All-zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: The pointer is to a local of the right type that lives through the call.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_minflt).unwrap_or(0)
}

/// New memory that nobody has touched, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    /// OS pages, even where the kernel gives huge pages to every program.
    Small,
    /// Huge pages, where the kernel allows.
    Huge,
}

impl Mapping {
    /// Maps `bytes`, readable and writable.
    pub(crate) fn new(bytes: usize) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: A new mapping at an address of the kernel's choice takes nothing from anyone.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::Other)?;
        Ok(Mapping { start, bytes })
    }

    /// Asks for pages of this kind where nothing is touched yet.
    pub(crate) fn ask_for(&self, pages: Pages) -> io::Result<()> {
        let advice = match pages {
            Pages::Small => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: The range is this mapping's own; the advice changes no content.
        let result = unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes, advice) };
        checked(result).map(drop)
    }

    /// Writes to the byte at `offset`, which must lie within.
    pub(crate) fn touch(&self, offset: usize) {
        assert!(offset < self.bytes, "{offset} lies behind the mapping's {} bytes", self.bytes);
        // SAFETY: The byte lies in the mapping, as was just checked, and nobody else knows of it.
        unsafe { self.start.add(offset).write_volatile(1) };
    }

    /// The first offset from which the address is a multiple of `bytes`, a power of two.
    pub(crate) fn aligned_offset(&self, bytes: usize) -> usize {
        self.start.as_ptr().addr().wrapping_neg() & (bytes - 1)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: The mapping is ours, and nothing points into it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Sleeps while `word` is `value`, at most for `patience`; may return earlier for no reason.
pub(crate) fn sleep_while(word: &AtomicU32, value: u32, patience: Duration) {
    let _ = futex::wait(word, futex::Flags::PRIVATE, value, Some(&time(patience)));
}

/// Wakes one thread that sleeps on `word`; true if there was one.
pub(crate) fn wake_one(word: &AtomicU32) -> bool {
    futex::wake(word, futex::Flags::PRIVATE, 1) == Ok(1)
}

/// Keeps the calling thread on the CPU with this number.
pub(crate) fn stay_on(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

/// The first CPU other than `cpu` that the calling thread may run on.
pub(crate) fn another_cpu(cpu: usize) -> Option<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    (0..CpuSet::MAX_CPU).find(|other| *other != cpu && allowed.is_set(*other))
}

pub(crate) fn current_cpu() -> usize {
    rustix::thread::sched_getcpu()
}

/// Moves the program break of a child up by one OS page and back, `batches` times `pairs` times, and returns
/// the nanoseconds of each batch.
pub(crate) fn move_break_in_child(batches: u32, pairs: u32) -> io::Result<Vec<u64>> {
    let (mut reader, writer) = io::pipe()?;
    let page = usize::try_from(os_page_bytes()).map_err(io::Error::other)?;
    // SAFETY: The child calls only async-signal-safe functions and never returns from here.
    let pid = checked(unsafe { libc::fork() })?;
    if pid == 0 {
        // SAFETY: The process with a use for the break is the parent; this process has one thread and ends without
        // asking for memory.
        let begin = unsafe { libc::syscall(libc::SYS_brk, 0_usize) };
        let higher = begin.wrapping_add(page.cast_signed() as libc::c_long);
        for _ in 0..batches {
            let before = Clock::Cpu.nanoseconds();
            let mut refused = false;
            for _ in 0..pairs {
                // SAFETY: As above. The page is never touched.
                refused |= unsafe { libc::syscall(libc::SYS_brk, higher) } != higher;
                // SAFETY: As above: back to where it was.
                unsafe { libc::syscall(libc::SYS_brk, begin) };
            }
            if refused {
                break;
            }
            let took = (Clock::Cpu.nanoseconds() - before).to_ne_bytes();
            // SAFETY: The buffer is as long as it says.
            unsafe { libc::write(writer.as_raw_fd(), took.as_ptr().cast(), took.len()) };
        }
        // SAFETY: Nothing is left to be done.
        unsafe { libc::_exit(0) };
    }
    drop(writer);
    let mut times_bytes = Vec::new();
    let read = reader.read_to_end(&mut times_bytes);
    wait_for(pid)?;
    read?;
    let took: Vec<u64> =
        times_bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
    if took.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::ENOMEM));
    }
    Ok(took)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Wall,
    /// The CPU time that the process has used.
    Cpu,
}

impl Clock {
    /// Async-signal-safe.
    fn nanoseconds(self) -> u64 {
        nanoseconds(match self {
            Clock::Wall => ClockId::Monotonic,
            Clock::Cpu => ClockId::ProcessCPUTime,
        })
    }
}

pub(crate) fn thread_cpu_nanoseconds() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// Has a child make this many calls at which its filter stops it for this process, its tracer, to look, as when calls
/// are counted. Returns the nanoseconds by `clock` of each batch of `calls`.
pub(crate) fn counted_calls_in_child(
    batches: u32,
    calls: u32,
    clock: Clock,
) -> io::Result<Vec<u64>> {
    let (mut reader, writer) = io::pipe()?;
    let mut filter = super::calls::filter();
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len() / size_of::<libc::sock_filter>())
            .map_err(io::Error::other)?,
        filter: filter.as_mut_ptr().cast(),
    };
    // SAFETY: The child calls only async-signal-safe functions and never returns from here.
    let pid = checked(unsafe { libc::fork() })?;
    if pid == 0 {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: The requests take numbers; the program is as long as it says and was copied with the memory.
        unsafe {
            let traced = libc::ptrace(libc::PTRACE_TRACEME, 0, none, none) != -1
                && libc::raise(libc::SIGSTOP) == 0
                && libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    0,
                    &raw const program,
                ) == 0;
            if !traced {
                libc::_exit(*libc::__errno_location());
            }
        }
        for _ in 0..batches {
            let before = clock.nanoseconds();
            for _ in 0..calls {
                // SAFETY: Advice on no bytes changes nothing.
                unsafe { libc::syscall(libc::SYS_madvise, 0_usize, 0_usize, 0_usize) };
            }
            let took = (clock.nanoseconds() - before).to_ne_bytes();
            // SAFETY: The buffer is as long as it says.
            unsafe { libc::write(writer.as_raw_fd(), took.as_ptr().cast(), took.len()) };
        }
        // SAFETY: Nothing is left to be done.
        unsafe { libc::_exit(0) };
    }
    drop(writer);
    let ended = answer_stops(pid);
    let mut times_bytes = Vec::new();
    reader.read_to_end(&mut times_bytes)?;
    ended?.as_tried()?;
    Ok(times_bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect())
}

/// The time of a counting stop, in seconds: an estimate from few stops. Zeros where nothing may be counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StopPrice {
    /// The program's CPU time.
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
}

pub(crate) fn stop_price() -> StopPrice {
    const BATCHES: u32 = 9;
    const CALLS: u32 = 100;
    let median_s = |clock| {
        let Ok(mut took) = counted_calls_in_child(BATCHES, CALLS, clock) else { return 0.0 };
        took.sort_unstable();
        let median = took.get(took.len() / 2);
        median.map_or(0.0, |nanoseconds| *nanoseconds as f64 / f64::from(CALLS) / 1e9)
    };
    StopPrice { cpu_s: median_s(Clock::Cpu), wall_s: median_s(Clock::Wall) }
}

/// Lets a child of ours go on at each of its stops, until it has ended.
fn answer_stops(pid: libc::pid_t) -> io::Result<Status> {
    let mut is_followed = false;
    loop {
        let (_, status, _) = wait4(pid, libc::__WALL)?;
        if !libc::WIFSTOPPED(status) {
            return Ok(Status::of(status));
        }
        if is_followed {
            // The counting process does this too.
            let _ = super::calls::stopped_at(pid)?;
        } else if let Err(error) = super::trace::follow(pid, super::trace::CallStops::Filtered) {
            super::kill(pid);
            wait_for(pid)?;
            return Err(error);
        }
        is_followed = true;
        super::trace::go_on(pid, 0);
    }
}

/// Tests whether the system lets a process trace its child.
///
/// # Errors
///
/// The kernel's reason to refuse.
pub fn try_tracing() -> io::Result<()> {
    // SAFETY: The child calls only async-signal-safe functions and never returns from here.
    let pid = checked(unsafe { libc::fork() })?;
    if pid == 0 {
        let none = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: The request ignores all else, and nothing of this process is left afterwards.
        unsafe {
            let result = libc::ptrace(libc::PTRACE_TRACEME, 0, none, none);
            libc::_exit(if result == -1 { *libc::__errno_location() } else { 0 });
        }
    }
    wait_for(pid)?.0.as_tried()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// The CPU clock, which the kernel keeps by itself.
    Clock,
    /// Cycles, which only the CPU counts.
    Cycles,
}

/// Tests whether the system lets this user count events of a process of its own, as far as its own code goes.
///
/// # Errors
///
/// The kernel's reason to refuse, or that it has no such counter.
pub fn try_counting(counter: Counter) -> io::Result<()> {
    /// `PERF_TYPE_HARDWARE` and `PERF_TYPE_SOFTWARE`, of which cycles and the CPU clock are the first.
    const HARDWARE: u32 = 0;
    const SOFTWARE: u32 = 1;
    let kind = if counter == Counter::Clock { SOFTWARE } else { HARDWARE };
    let (own, any_cpu) = (0, -1);
    sample::open(&Attributes::counting(kind), own, any_cpu).map(drop)
}

/// The most bytes of addresses that this process may have (`ulimit -v`); none where it is unlimited.
pub fn address_space_limit() -> Option<u64> {
    rustix::process::getrlimit(Resource::As).current
}
