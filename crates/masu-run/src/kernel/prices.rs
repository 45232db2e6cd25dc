//! The kernel's services, each behind a safe function so that it can be timed, and tests of whether the kernel allows
//! tracing and counting.
//!
//! The program break belongs to this process's malloc, so it is moved in a child that does nothing else.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::process::{Resource, Signal};
use rustix::thread::{CpuSet, futex};
use rustix::time::ClockId;

use super::attach::{boundary, go_on_to_call};
use super::sample::{self, Attributes};
use super::{Status, as_ending, in_child, nanoseconds, os_page_bytes, time, wait_for, wait4};

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

/// A test whether the calling thread may run on a CPU.
pub(crate) fn allowed_cpus() -> Option<impl Fn(usize) -> bool> {
    let allowed = rustix::thread::sched_getaffinity(None).ok()?;
    Some(move |cpu| cpu < CpuSet::MAX_CPU && allowed.is_set(cpu))
}

/// The first CPU other than `cpu` that the calling thread may run on.
pub(crate) fn another_cpu(cpu: usize) -> Option<usize> {
    let is_allowed = allowed_cpus()?;
    (0..CpuSet::MAX_CPU).find(|other| *other != cpu && is_allowed(*other))
}

pub(crate) fn current_cpu() -> usize {
    rustix::thread::sched_getcpu()
}

/// Moves the program break of a child up by one OS page and back, `batches` times `pairs` times, and returns
/// the nanoseconds of each batch.
pub(crate) fn move_break_in_child(batches: u32, pairs: u32) -> io::Result<Vec<u64>> {
    let (reader, writer) = io::pipe()?;
    let page = usize::try_from(os_page_bytes()).map_err(io::Error::other)?;
    let act = || {
        // SAFETY: The process with a use for the break is the parent; this process has one thread and ends without
        // asking for memory.
        let begin = unsafe { libc::syscall(libc::SYS_brk, 0_usize) };
        let higher = begin.wrapping_add(page.cast_signed() as libc::c_long);
        report(&writer, batches, Clock::Cpu, || {
            (0..pairs).fold(true, |is_granted, _| {
                // SAFETY: As above. The page is never touched.
                let moved = unsafe { libc::syscall(libc::SYS_brk, higher) };
                // SAFETY: As above: back to where it was.
                unsafe { libc::syscall(libc::SYS_brk, begin) };
                is_granted && moved == higher
            })
        });
        0
    };
    // SAFETY: All of this is system calls.
    let pid = unsafe { in_child(act) }?;
    drop(writer);
    wait_for(pid)?;
    let took = reported(reader)?;
    if took.is_empty() { Err(io::Error::from_raw_os_error(libc::ENOMEM)) } else { Ok(took) }
}

/// Writes the nanoseconds of each of these batches into `pipe`, until one of them fails. Async-signal-safe if `batch`
/// is; the pipe must have room.
fn report(mut pipe: &PipeWriter, batches: u32, clock: Clock, mut batch: impl FnMut() -> bool) {
    for _ in 0..batches {
        let before = clock.nanoseconds();
        if !batch() {
            return;
        }
        let _ = pipe.write_all(&(clock.nanoseconds() - before).to_ne_bytes());
    }
}

fn reported(mut pipe: PipeReader) -> io::Result<Vec<u64>> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes)?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect())
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

/// Has a child stop this often for this process, its tracer, to look, as when calls are counted: at the beginning and
/// at the end of a call. Returns the nanoseconds by `clock` of each batch of `stops`, an even number. The kernel may
/// refuse tracing, or be too old to tell at which call a thread has stopped.
pub(crate) fn counting_stops_in_child(
    batches: u32,
    stops: u32,
    clock: Clock,
) -> io::Result<Vec<u64>> {
    let (reader, writer) = io::pipe()?;
    let act = || {
        let prepared = super::trace::trace_me().and_then(|()| {
            Ok(rustix::process::kill_process(rustix::process::getpid(), Signal::STOP)?)
        });
        if prepared.is_ok() {
            report(&writer, batches, clock, || {
                for _ in 0..stops / 2 {
                    // SAFETY: Advice on no bytes changes nothing.
                    unsafe { libc::syscall(libc::SYS_madvise, 0_usize, 0_usize, 0_usize) };
                }
                true
            });
        }
        as_ending(prepared)
    };
    // SAFETY: All of this is system calls.
    let pid = unsafe { in_child(act) }?;
    drop(writer);
    answer_stops(pid)?.as_tried()?;
    reported(reader)
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
    const STOPS: u32 = 100;
    let median_s = |clock| {
        let Ok(mut took) = counting_stops_in_child(BATCHES, STOPS, clock) else { return 0.0 };
        took.sort_unstable();
        let median = took.get(took.len() / 2);
        median.map_or(0.0, |nanoseconds| *nanoseconds as f64 / f64::from(STOPS) / 1e9)
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
        let followed = match is_followed {
            true => Ok(()),
            false => super::trace::follow(pid, super::trace::CallStops::Each),
        };
        // The counting process looks at each stop, too.
        if let Err(error) = followed.and_then(|()| boundary(pid)) {
            super::kill(pid);
            wait_for(pid)?;
            return Err(error);
        }
        is_followed = true;
        go_on_to_call(pid, 0);
    }
}

/// Tests whether the system lets a process count its child's calls.
pub fn try_counting_calls() -> io::Result<()> {
    counting_stops_in_child(1, 2, Clock::Wall).map(drop)
}

/// Tests whether the system lets a process trace its child.
pub fn try_tracing() -> io::Result<()> {
    // SAFETY: This is one system call, and nothing of the child is left afterwards.
    let pid = unsafe { in_child(|| as_ending(super::trace::trace_me())) }?;
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
