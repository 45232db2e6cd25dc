//! Attaching to a running process: its threads are seized, stopped at each system call, and let go.
//!
//! When the tracing thread ends, for any reason, the kernel lets all traced threads go on. So nothing is undone by
//! hand. A child wakes the tracing thread: its end is reported like the others' stops.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;

use super::calls::{CalledFrom, Stopped, known};
use super::side_effects::{Outward, outward};
use super::trace::{ask, machine, read_registers, request_with};
use super::{in_child, kill, wait_for};

/// The kind of stop of a thread that is stopped at every call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Boundary {
    Begins(Begun),
    /// The end of a call, or a stop elsewhere.
    Other,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun {
    /// The call's number on this CPU; none for a call by another CPU's numbers.
    pub(crate) number: Option<i64>,
    pub(crate) counted: Option<Stopped>,
    /// The call's effect that others can see.
    pub(crate) outward: Outward,
}

/// Makes a running thread this thread's to trace, together with everything that it starts from now on. The thread goes
/// on running.
pub(crate) fn seize(thread: libc::pid_t) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC;
    ask(libc::PTRACE_SEIZE as libc::c_uint, thread, options as usize)
}

/// Has a seized thread stop soon.
pub(crate) fn interrupt(thread: libc::pid_t) -> io::Result<()> {
    ask(libc::PTRACE_INTERRUPT as libc::c_uint, thread, 0)
}

/// Lets a stopped thread go on to where its next call begins or ends, with `signal` delivered unless it is zero.
/// A thread that is gone already is no error.
pub(crate) fn go_on_to_call(thread: libc::pid_t, signal: i32) {
    let _ = ask(libc::PTRACE_SYSCALL as libc::c_uint, thread, signal as usize);
}

/// Leaves a thread stopped whose whole process was stopped, by a terminal or `kill -STOP`, until it is to go on.
pub(crate) fn leave_stopped(thread: libc::pid_t) {
    let _ = ask(libc::PTRACE_LISTEN as libc::c_uint, thread, 0);
}

/// Sends a traced thread the signal that makes it stop for its tracer. That it may be gone already is no error.
pub(crate) fn halt(process: libc::pid_t, thread: libc::pid_t) {
    // SAFETY: The call takes numbers only.
    unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGSTOP) };
}

pub(crate) fn stops_processes(signal: i32) -> bool {
    [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal)
}

/// The kernel's report of a stop at a call: the start of `struct ptrace_syscall_info` (ptrace(2)).
#[repr(C)]
#[derive(Default)]
struct CallInfo {
    what: u8,
    flags: u8,
    reserved: u16,
    cpu: u32,
    instruction: u64,
    stack: u64,
    number: u64,
    arguments: [u64; 6],
}

/// The position in a call of a thread that has stopped at the call.
pub(crate) fn boundary(thread: libc::pid_t) -> io::Result<Boundary> {
    /// `PTRACE_GET_SYSCALL_INFO`, and its value for a call that begins.
    const GET_CALL_INFO: u32 = 0x420e;
    const BEGINS: u8 = 1;
    let mut info = CallInfo::default();
    let bytes = size_of::<CallInfo>();
    // SAFETY: The kernel writes at most the given number of bytes, to a local that is as long.
    let outcome = unsafe { request_with(GET_CALL_INFO, thread, bytes, (&raw mut info).cast()) };
    outcome.map_err(|error| match error.raw_os_error() {
        Some(libc::EIO) => io::Error::new(
            io::ErrorKind::Unsupported,
            "the kernel does not tell at which call a thread has stopped; Linux 5.3 and newer do",
        ),
        _ => error,
    })?;
    if info.what != BEGINS {
        return Ok(Boundary::Other);
    }
    let is_native = info.cpu == machine::AUDIT;
    let call = known(info.number.cast_signed()).filter(|_| is_native);
    let outward = match is_native {
        true => outward(info.number.cast_signed(), &info.arguments),
        // The meaning of another CPU's numbers is not known.
        false => Outward::Surely,
    };
    let counted = call.map(|call| {
        let link = machine::LINK.and_then(|place| Some(read_registers(thread).ok()?[place]));
        let from = CalledFrom { instruction: info.instruction, stack: info.stack, link };
        Stopped { call, arguments: info.arguments, from }
    });
    let number = is_native.then_some(info.number.cast_signed());
    Ok(Boundary::Begins(Begun { number, counted, outward }))
}

/// A child that ends when its rope is pulled, or gone with the process that holds it.
#[derive(Debug)]
pub(crate) struct Bell {
    pub(crate) pid: libc::pid_t,
}

#[derive(Debug)]
pub(crate) struct Rope(io::PipeWriter);

impl Drop for Rope {
    fn drop(&mut self) {
        // It is not enough to close the pipe if a child of this process has a copy. A bell that is gone needs none.
        let _ = self.0.write(&[0]);
    }
}

impl Bell {
    /// Hangs a bell that the calling thread hears among all other events that it waits for.
    pub(crate) fn hang() -> io::Result<(Bell, Rope)> {
        let (reader, writer) = io::pipe()?;
        let act = || {
            // SAFETY: The descriptor is this process's copy, which would keep the pipe from ending.
            unsafe { libc::close(writer.as_raw_fd()) };
            // Whatever ends the read but a signal rings the bell.
            let _ = (&reader).read_exact(&mut [0]);
            0
        };
        // SAFETY: All of this is system calls.
        let pid = unsafe { in_child(act) }?;
        Ok((Bell { pid }, Rope(writer)))
    }

    /// Takes the bell down if it has not rung.
    pub(crate) fn take_down(&self) {
        kill(self.pid);
        // A thread that has heard the bell already has nothing to wait for.
        let _ = wait_for(self.pid);
    }
}

pub(crate) fn own_thread() -> libc::pid_t {
    rustix::thread::gettid().as_raw_pid()
}

/// Keeps Ctrl-Z from stopping this process while it exists: the traced threads would stay stopped with it.
#[derive(Debug)]
pub(crate) struct Unstoppable(libc::sighandler_t);

impl Unstoppable {
    pub(crate) fn now() -> Unstoppable {
        // SAFETY: To ignore the signal runs no code of this process's.
        Unstoppable(unsafe { libc::signal(libc::SIGTSTP, libc::SIG_IGN) })
    }
}

impl Drop for Unstoppable {
    fn drop(&mut self) {
        // SAFETY: The handler is the one that was there before.
        unsafe { libc::signal(libc::SIGTSTP, self.0) };
    }
}
