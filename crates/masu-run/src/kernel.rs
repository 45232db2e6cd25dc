//! The lab's one door to the kernel: every `unsafe` block of the crate is in this file and its folder, each behind a
//! safe function that names its action.
#![expect(unsafe_code, reason = "this is the door; the rest of the crate has none")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{self, Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use rustix::time::{ClockId, Timespec};

use memory::{Mapping, Pages};

pub(crate) mod attach;
pub(crate) mod call;
pub(crate) mod call_meter;
pub mod calls;
pub(crate) mod low_rss;
pub(crate) mod memory;
pub(crate) mod names;
pub mod prices;
pub mod sample;
pub(crate) mod side_effects;
pub(crate) mod terminal;
pub(crate) mod trace;

/// Turns a system call's −1 into the error it stands for.
fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Starts a child of this process that calls `act` and ends with the number that `act` returns.
///
/// # Safety
///
/// - `act` calls only async-signal-safe functions.
unsafe fn in_child(act: impl FnOnce() -> libc::c_int) -> io::Result<libc::pid_t> {
    // SAFETY: The child calls only async-signal-safe functions (the condition) and never returns from here.
    let pid = checked(unsafe { libc::fork() })?;
    if pid == 0 {
        let code = act();
        // SAFETY: Nothing is left to be done.
        unsafe { libc::_exit(code) };
    }
    Ok(pid)
}

/// The ending by which a child tells the result of a try; see [`Status::as_tried`].
fn as_ending(tried: io::Result<()>) -> libc::c_int {
    tried.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EPERM))
}

pub fn effective_ids() -> (u32, u32) {
    (process::geteuid().as_raw(), process::getegid().as_raw())
}

/// True if the file carries capabilities the kernel would grant on exec.
pub(crate) fn has_capabilities(path: &Path) -> bool {
    let mut nothing: [u8; 0] = [];
    rustix::fs::getxattr(path, c"security.capability", &mut nothing).is_ok_and(|bytes| bytes > 0)
}

/// Opens a file of any kind without waiting, and makes no terminal this process's own.
pub(crate) const OPEN_AT_ONCE: i32 = libc::O_NONBLOCK | libc::O_NOCTTY;

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes share.
pub(crate) fn monotonic_nanoseconds() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Async-signal-safe.
fn nanoseconds(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = rustix::time::clock_gettime(clock);
    let number = |part: i64| u64::try_from(part).unwrap_or_default();
    number(tv_sec).saturating_mul(1_000_000_000).saturating_add(number(tv_nsec))
}

static STOP: AtomicBool = AtomicBool::new(false);

/// The first of the signals.
static STOP_SIGNAL: AtomicI32 = AtomicI32::new(0);

/// Its time.
static STOPPED_NS: AtomicU64 = AtomicU64::new(0);

/// Installs handlers for SIGINT, SIGTERM and SIGHUP that raise the returned flag. A signal that
/// comes [later](is_again) ends the process as if there were no handler. SIGHUP stays ignored where it was when this
/// process began: `nohup` asks for that.
pub(crate) fn catch_stop_signals() -> io::Result<&'static AtomicBool> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: All-zero is a valid `sigaction`: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: The action is a local that the kernel writes to.
        checked(unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) })?;
        if signal == libc::SIGHUP && action.sa_sigaction == libc::SIG_IGN {
            continue;
        }
        // SAFETY: As above.
        action = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_stop_signal as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: The action is initialized, its handler is async-signal-safe.
        checked(unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) })?;
    }
    Ok(&STOP)
}

extern "C" fn on_stop_signal(signal: libc::c_int) {
    let now_ns = nanoseconds(ClockId::Monotonic);
    // ORDERING: Relaxed: the flag and the time guard no other data.
    let first = STOPPED_NS.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_ok() {
        STOP_SIGNAL.store(signal, Ordering::Relaxed);
    }
    STOP.store(true, Ordering::Relaxed);
    if is_again(first.err().unwrap_or(now_ns), now_ns) {
        // SAFETY: `signal` and `raise` are async-signal-safe; the default action ends the process.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}

/// The signal that asked to stop, where a child must be sent it: a terminal sends SIGINT to all itself.
pub(crate) fn signal_for_child() -> Option<Signal> {
    // ORDERING: Relaxed: the number guards no other data.
    Signal::from_named_raw(STOP_SIGNAL.load(Ordering::Relaxed)).filter(|it| *it != Signal::INT)
}

/// True if a signal at `now_ns` is a second request, after the one at `first_ns` that asked to stop. `timeout` and
/// others send the same signal to a process and then to its group: that is one request.
fn is_again(first_ns: u64, now_ns: u64) -> bool {
    const ONE_REQUEST_NS: u64 = 500_000_000;
    now_ns.saturating_sub(first_ns) >= ONE_REQUEST_NS
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Exited(i32),
    Signalled(i32),
}

impl Status {
    pub(crate) fn of(status: libc::c_int) -> Status {
        if libc::WIFSIGNALED(status) {
            Status::Signalled(libc::WTERMSIG(status))
        } else {
            Status::Exited(libc::WEXITSTATUS(status))
        }
    }

    /// The result of a try in a child process, which returned zero or an error number.
    fn as_tried(self) -> io::Result<()> {
        match self {
            Status::Exited(0) => Ok(()),
            Status::Exited(errno) => Err(io::Error::from_raw_os_error(errno)),
            // The child was ended by a sandbox that kills callers.
            Status::Signalled(_) => Err(io::Error::from_raw_os_error(libc::EPERM)),
        }
    }
}

/// Signals with their names; their numbers are the same on every CPU this is built for.
const SIGNALS: [(i32, &str); 16] = [
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
    (libc::SIGSYS, "SIGSYS"),
];

pub(crate) fn signal_name(signal: i32) -> Option<&'static str> {
    SIGNALS.iter().find(|(number, _)| *number == signal).map(|(_, name)| *name)
}

/// True if a program that this signal ended has crashed, and was not asked to end.
pub fn is_crash(signal: i32) -> bool {
    use libc::{SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
    [SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS].contains(&signal)
}

/// The kernel's figures for a process and the children it waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    pub user_s: f64,
    pub sys_s: f64,
    pub(crate) max_rss_bytes: u64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
}

impl Usage {
    /// Both together; the peaks are not added, for they were not reached at the same time.
    pub(crate) fn plus(self, other: Usage) -> Usage {
        Usage {
            user_s: self.user_s + other.user_s,
            sys_s: self.sys_s + other.sys_s,
            max_rss_bytes: self.max_rss_bytes.max(other.max_rss_bytes),
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Usage {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
        Usage {
            user_s: seconds(usage.ru_utime),
            sys_s: seconds(usage.ru_stime),
            max_rss_bytes: count(usage.ru_maxrss) * 1024,
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
        }
    }
}

/// `wait4`, again when a signal interrupted it. Zero as pid means that nothing has changed.
fn wait4(pid: libc::pid_t, flags: libc::c_int) -> io::Result<(libc::pid_t, libc::c_int, Usage)> {
    let mut status = 0;
    // SAFETY: All-zero is a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: Both pointers are to locals of the right type that live through the call.
        let result = checked(unsafe { libc::wait4(pid, &raw mut status, flags, &raw mut usage) });
        match result {
            Ok(pid) => return Ok((pid, status, Usage::from(usage))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn wait_for(pid: libc::pid_t) -> io::Result<(Status, Usage)> {
    let (_, status, usage) = wait4(pid, libc::__WALL)?;
    Ok((Status::of(status), usage))
}

/// Reaps `pid` if it is a child of ours that has ended.
pub fn reap(pid: libc::pid_t) -> Option<Usage> {
    let (reaped, _, usage) = wait4(pid, libc::__WALL | libc::WNOHANG).ok()?;
    (reaped == pid).then_some(usage)
}

/// Kills `pid`; that it may be gone already is no error.
pub fn kill(pid: libc::pid_t) {
    send(pid, Signal::KILL);
}

/// Asks `pid` to end; that it may be gone already is no error.
pub fn terminate(pid: libc::pid_t) {
    send(pid, Signal::TERM);
}

pub(crate) fn send(pid: libc::pid_t, signal: Signal) {
    let _ = Pid::from_raw(pid).map(|pid| process::kill_process(pid, signal));
}

/// Kills every process of a group that a child of ours, not waited for yet, leads.
pub fn kill_group(leader: libc::pid_t) {
    let _ = Pid::from_raw(leader).map(|leader| process::kill_process_group(leader, Signal::KILL));
}

/// Reaps the processes of the group that `leader` led that are children of ours and have ended.
pub fn reap_group(leader: libc::pid_t) {
    while wait4(-leader, libc::__WALL | libc::WNOHANG).is_ok_and(|(reaped, ..)| reaped > 0) {}
}

/// CPU time of all threads of `pid`, ended ones included; none if there is no such process.
pub fn cpu_time(pid: libc::pid_t) -> Option<Duration> {
    let mut clock = 0;
    // SAFETY: The pointer is to a local of the right type that lives through the call.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } != 0 {
        return None;
    }
    // SAFETY: All-zero is a valid `timespec`.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: As above; a clock that is gone by now is an error and nothing worse.
    checked(unsafe { libc::clock_gettime(clock, &raw mut time) }).ok()?;
    let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, nanoseconds))
}

/// Seconds of CPU time of all threads of this process.
pub fn own_cpu_s() -> f64 {
    nanoseconds(ClockId::ProcessCPUTime) as f64 / 1e9
}

/// The ending of `pid`, a child of ours; the child stays to be reaped, so that its number stays its own.
pub fn ended(pid: libc::pid_t) -> Option<Status> {
    let flags = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = process::waitid(WaitId::Pid(Pid::from_raw(pid)?), flags).ok()??;
    let signalled = || status.terminating_signal().map(Status::Signalled);
    status.exit_status().map(Status::Exited).or_else(signalled)
}

/// Makes orphaned descendants children of this process instead of init's, and has the kernel keep the endings of
/// children: this process's parent may have it ignore them, and then nothing is kept.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: The default takes no function of this process.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    Ok(process::set_child_subreaper(Some(process::getpid()))?)
}

/// The error of [`start_apart`] where the system allows no tracing. The real reason is always `EPERM`, which `exec` has
/// too; nothing else that happens when a program starts has this error.
pub(crate) const NOT_TRACED: i32 = libc::ESRCH;

/// Makes `command` start in a session of its own, without a terminal and with the priority of this process's session.
/// It is killed when the thread that started it ends and, before other programs, when memory runs out. `traced` also
/// makes that thread its tracer.
///
/// Because of the hook, the standard library starts it by `fork` and not by `posix_spawn`. That is wanted: the peak RSS
/// that the kernel reports for a program is never less than that of the process before `exec`; after a `vfork` that is
/// all of our peak, after a `fork` only our private pages of the moment.
pub fn start_apart(command: &mut Command, traced: bool) {
    let own = std::fs::read_to_string(SESSION_PRIORITY.to_str().unwrap_or_default());
    let priority = session_priority(&own.unwrap_or_default());
    let hook = move || {
        // SAFETY: Called between `fork` and `exec`; all are plain system calls that take
        // numbers or ignored pointers, and are async-signal-safe.
        unsafe {
            checked(libc::setsid())?;
            if let Some(priority) = &priority {
                write_to(SESSION_PRIORITY, priority.as_bytes());
            }
            checked(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0))?;
            // Random addresses, also where this process was started without; a refusal leaves them as they were.
            let persona = libc::personality(0xffff_ffff);
            if persona != -1 && persona & libc::ADDR_NO_RANDOMIZE != 0 {
                libc::personality((persona & !libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
            }
            go_first();
        }
        if traced {
            trace::trace_me().map_err(|_| io::Error::from_raw_os_error(NOT_TRACED))?;
        }
        Ok(())
    };
    // SAFETY: The hook allocates nothing, takes no lock and calls only async-signal-safe functions.
    unsafe { command.pre_exec(hook) };
}

/// Makes this process, with all it starts, the first that the kernel ends if memory runs out in spite of every limit:
/// the measured program rather than the lab or the neighbors. A refusal leaves things as they were. All it calls is
/// async-signal-safe.
fn go_first() {
    write_to(c"/proc/self/oom_score_adj", b"1000");
}

/// The file with the priority of this process's session among others, where the kernel schedules by session.
const SESSION_PRIORITY: &CStr = c"/proc/self/autogroup";

/// The priority that a new session must be given, from the line `/autogroup-14607 nice 5`; none where a new session has
/// it anyway.
fn session_priority(line: &str) -> Option<String> {
    let nice = line.trim_end().rsplit_once(" nice ")?.1;
    (nice.parse::<i32>().ok()? != 0).then(|| nice.to_owned())
}

/// Writes to a file of the kernel's; a refusal leaves things as they were. All it calls is async-signal-safe.
fn write_to(path: &CStr, bytes: &[u8]) {
    // SAFETY: The path ends in NUL.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_WRONLY) };
    if file != -1 {
        // SAFETY: The buffer is as long as it says.
        unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
        // SAFETY: The descriptor was just opened and no one else knows it.
        unsafe { libc::close(file) };
    }
}

/// A descriptor that becomes readable when the process `pid` ends.
pub(crate) fn open_process(pid: libc::pid_t) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    Ok(process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Waits until one of `descriptors` can be read (or was closed at its other end) or `patience` has run out. Returns
/// which can be read. A signal that comes between is no error.
pub fn wait_readable<const N: usize>(
    descriptors: [Option<BorrowedFd<'_>>; N],
    patience: Duration,
) -> io::Result<[bool; N]> {
    let there = descriptors.iter().flatten();
    let mut polled: Vec<PollFd<'_>> = there.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    match rustix::event::poll(&mut polled, Some(&time(patience))) {
        Err(Errno::INTR) => return Ok([false; N]),
        Err(error) => return Err(error.into()),
        Ok(_) => {}
    }
    let mut polled = polled.iter();
    Ok(descriptors.map(|fd| fd.and(polled.next()).is_some_and(|fd| !fd.revents().is_empty())))
}

/// `duration` for the kernel, cut to the longest time that the kernel takes.
fn time(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 })
}

/// True if two processes have the same memory, as a child of `vfork` or `posix_spawn` has that of its parent until it
/// calls `exec`. False where the kernel does not say.
pub(crate) fn shares_memory(one: libc::pid_t, other: libc::pid_t) -> bool {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: The call takes numbers only.
    unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0 }
}

/// Lets reads from a pipe return at once, and gives the pipe a megabyte where the system allows:
/// the program then rarely waits for us to read.
pub(crate) fn make_roomy_and_nonblocking(pipe: BorrowedFd<'_>) -> io::Result<()> {
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
    make_nonblocking(pipe)
}

fn make_nonblocking(file: BorrowedFd<'_>) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    Ok(rustix::fs::fcntl_setfl(file, flags | OFlags::NONBLOCK)?)
}

/// Gives back the memory that this process has freed, so that its children start from less: the rest is copied for
/// them, and is a floor under the peak RSS that the kernel reports where `low_rss` cannot lower it. musl does so by
/// itself.
pub(crate) fn release_freed_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: The call only returns free memory; it may be made at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Has a process of its own write to `bytes` of new memory and end, and waits for it.
pub(crate) fn touch_in_child(bytes: usize) -> io::Result<()> {
    let page = usize::try_from(os_page_bytes()).map_err(io::Error::other)?;
    let act = || {
        // If there is less room than expected, this process must be the first to pay for it.
        go_first();
        if let Ok(memory) = Mapping::new(bytes) {
            // If the kernel refuses, the writes take longer.
            let _ = memory.ask_for(Pages::Huge);
            (0..bytes).step_by(page).for_each(|offset| memory.touch(offset));
        }
        0
    };
    // SAFETY: All of this is system calls and writes to new memory.
    let pid = unsafe { in_child(act) }?;
    wait_for(pid).map(drop)
}

pub fn os_page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// Ticks a second, the unit of the CPU times in `/proc`.
pub fn ticks_a_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_session_is_given_the_priority_of_this_one_where_that_is_not_its_own() {
        assert_eq!(session_priority("/autogroup-14607 nice 5\n").as_deref(), Some("5"));
        assert_eq!(session_priority("/autogroup-7 nice -3\n").as_deref(), Some("-3"));
        assert_eq!(session_priority("/autogroup-7 nice 0\n"), None);
        assert_eq!(session_priority(""), None);
    }

    #[test]
    fn a_program_gets_random_addresses_from_a_thread_without_them() {
        let _alone = crate::execute::alone();
        // SAFETY: The call takes and returns numbers only, and holds for this thread.
        unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        let mut command = Command::new("grep");
        command.args(["-q", "00000000", "/proc/self/personality"]);
        start_apart(&mut command, false);
        // 2: the kernel does not let the file be read.
        assert_ne!(command.status().expect("it starts").code(), Some(1));
    }

    #[test]
    fn a_hang_up_that_is_ignored_stays_ignored() {
        // SAFETY: To ignore a signal, and to take its default, runs no code of this process's.
        let set = |signal, to| unsafe { libc::signal(signal, to) };
        let before = set(libc::SIGHUP, libc::SIG_IGN);
        catch_stop_signals().unwrap();
        let [hang_up, interrupt, _] =
            [libc::SIGHUP, libc::SIGINT, libc::SIGTERM].map(|signal| set(signal, libc::SIG_DFL));
        set(libc::SIGHUP, before);
        assert_eq!(hang_up, libc::SIG_IGN);
        assert_ne!(interrupt, libc::SIG_DFL);
    }

    #[test]
    fn the_same_request_twice_at_once_is_one() {
        assert!(!is_again(7, 7) && !is_again(7, 400_000_000) && !is_again(7, 3));
        assert!(is_again(7, 600_000_000));
    }
}
