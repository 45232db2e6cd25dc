//! Runs a program, intercepts its system calls of one kind, and refuses some of those from one file's code.
//!
//! Relies on seccomp's user notification (Linux 5.5 and later): an intercepted call waits until this process answers
//! it. The kernel reports the instruction of each call, which tells the allocator's calls from all others, in every
//! thread and every child.

use std::fs;
use std::io::{self, Read};
use std::mem::zeroed;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The refused uses of a call, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uses {
    /// Only this use.
    Only(u64),
    /// This use and all after it.
    From(u64),
}

impl Uses {
    fn contains(self, use_: u64) -> bool {
        match self {
            Uses::Only(n) => use_ == n,
            Uses::From(n) => use_ >= n,
        }
    }
}

/// The allocator's code.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) file: PathBuf,
    /// The code's ranges in the loaded file, if only a part belongs to it: offsets from the first byte.
    pub(crate) functions: Option<Vec<Range<u64>>>,
}

impl Code {
    fn contains(&self, offset: u64) -> bool {
        let among = |functions: &Vec<Range<u64>>| functions.iter().any(|one| one.contains(&offset));
        self.functions.as_ref().is_none_or(among)
    }
}

/// A refused call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) call: i64,
    pub(crate) error: i32,
    pub(crate) uses: Uses,
}

/// The end of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Whether the program was killed after the time limit.
    pub(crate) expired: bool,
    /// The number of times that the allocator's code made the call.
    pub(crate) uses: u64,
    pub(crate) refused: u64,
    /// The program's output, both streams.
    pub(crate) printed: String,
}

/// A longer run hangs; on a busy machine a second may become half a minute.
const LIMIT: Duration = Duration::from_secs(300);

/// The descriptor of the inherited listener, high enough not to disturb the program.
const LISTENER: RawFd = 900;

/// Runs `command`, and refuses the calls of `fault` from `code`.
pub(crate) fn run(mut command: Command, code: &Code, fault: Fault) -> io::Result<Ended> {
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // SAFETY: Between fork and exec only system calls are made.
    unsafe { command.pre_exec(move || install(fault.call)) };
    let mut child = command.spawn()?;
    let process = descriptor(libc::SYS_pidfd_open, [child.id().into(), 0, 0])?;
    let fetch = [process.as_raw_fd().into(), LISTENER.into(), 0];
    let listener = descriptor(libc::SYS_pidfd_getfd, fetch)?;
    let mut supervisor = Supervisor { code, mapped: None, fault, uses: 0, refused: 0 };
    let expired = !supervisor.answer_until_it_ends(&listener, &process);
    if expired {
        // SAFETY: The group is the child's own, and it is not reaped yet.
        unsafe { libc::kill(-i32::try_from(child.id()).expect("a process number"), libc::SIGKILL) };
    }
    // This fails the calls of threads that still wait.
    drop(listener);
    let Supervisor { uses, refused, .. } = supervisor;
    let (status, printed) = end(&mut child)?;
    Ok(Ended { status, expired, uses, refused, printed })
}

fn end(child: &mut Child) -> io::Result<(ExitStatus, String)> {
    let mut printed = Vec::new();
    child.stdout.take().expect("it is piped").read_to_end(&mut printed)?;
    child.stderr.take().expect("it is piped").read_to_end(&mut printed)?;
    Ok((child.wait()?, String::from_utf8_lossy(&printed).into_owned()))
}

/// Makes every call of this kind wait for the listener's answer.
fn install(call: i64) -> io::Result<()> {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let number = u32::try_from(call).expect("system calls have small numbers");
    let mut steps = [
        step(LOAD_NUMBER, 0, 0, 0),
        step(EQUAL, 0, 1, number),
        step(RETURN, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: steps.as_mut_ptr() };
    // SAFETY: The call only changes the rights of later programs.
    checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
    let (mode, flag) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // SAFETY: The kernel only reads the program.
    let listener = unsafe { libc::syscall(libc::SYS_seccomp, mode, flag, &raw const program) };
    let listener = i32::try_from(checked(listener)?).expect("descriptors are small");
    // SAFETY: Duplicating changes no memory; the copy stays open through exec.
    checked(unsafe { libc::dup2(listener, LISTENER) }.into()).map(drop)
}

fn checked(result: i64) -> io::Result<i64> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A call that gives a new descriptor.
fn descriptor(call: i64, arguments: [i64; 3]) -> io::Result<OwnedFd> {
    let [a, b, c] = arguments;
    // SAFETY: Both calls that come here take numbers only.
    let new = checked(unsafe { libc::syscall(call, a, b, c) })?;
    // SAFETY: The descriptor was made just now and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(RawFd::try_from(new).expect("descriptors are small")) })
}

struct Supervisor<'a> {
    code: &'a Code,
    /// The mapping of the code's file, once the code made a call. A child has the same mapping.
    mapped: Option<Range<u64>>,
    fault: Fault,
    uses: u64,
    refused: u64,
}

impl Supervisor<'_> {
    /// Answers all calls until the process ends; returns whether the process ended in time.
    fn answer_until_it_ends(&mut self, listener: &OwnedFd, process: &OwnedFd) -> bool {
        let start = Instant::now();
        let poll_of =
            |fd: &OwnedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        while let Some(left) = LIMIT.checked_sub(start.elapsed()) {
            let mut polled = [poll_of(listener), poll_of(process)];
            let timeout = i32::try_from(left.as_millis()).expect("the limit is short");
            // SAFETY: The kernel writes into the two structures.
            unsafe { libc::poll(polled.as_mut_ptr(), 2, timeout) };
            if polled[0].revents & libc::POLLIN != 0 {
                self.answer(listener);
            } else if polled[1].revents != 0 {
                return true;
            }
        }
        false
    }

    /// Answers a waiting call. It fails only if the caller is gone.
    fn answer(&mut self, listener: &OwnedFd) {
        // _IOWR('!', 0, struct seccomp_notif) and _IOWR('!', 1, struct seccomp_notif_resp).
        const RECEIVE: libc::Ioctl = 0xc050_2100;
        const SEND: libc::Ioctl = 0xc018_2101;
        // SAFETY: Zeros are a value of both structures.
        let (mut asked, mut answer): (libc::seccomp_notif, libc::seccomp_notif_resp) =
            unsafe { (zeroed(), zeroed()) };
        // SAFETY: The kernel writes into the structure, which is as long as the number says.
        if unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE, &raw mut asked) } != 0 {
            return;
        }
        answer.id = asked.id;
        if self.refuses(&asked) {
            answer.error = -self.fault.error;
        } else {
            answer.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        }
        // SAFETY: The kernel only reads the structure.
        unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw mut answer) };
    }

    fn refuses(&mut self, asked: &libc::seccomp_notif) -> bool {
        let address = asked.data.instruction_pointer;
        if self.mapped.is_none() {
            let mapped = mapped_at(asked.pid, &self.code.file);
            self.mapped = mapped.filter(|mapped| mapped.contains(&address));
        }
        let mapped = self.mapped.as_ref().filter(|mapped| mapped.contains(&address));
        if !mapped.is_some_and(|mapped| self.code.contains(address - mapped.start)) {
            return false;
        }
        self.uses += 1;
        let refuses = self.fault.uses.contains(self.uses);
        self.refused += u64::from(refuses);
        refuses
    }
}

/// The addresses of a file in a process, from its first byte to its last.
fn mapped_at(process: u32, file: &Path) -> Option<Range<u64>> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let name = file.to_str()?;
    let mut parts = maps.lines().filter(|line| line.ends_with(name)).filter_map(|line| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let address = |word| u64::from_str_radix(word, 16).ok();
        Some(address(start)?..address(end)?)
    });
    let first = parts.next()?;
    Some(first.start..parts.next_back().map_or(first.end, |last| last.end))
}
