//! The door to the kernel for the witness: `ptrace`, `waitpid` and `kill`, one function a request.
//!
//! Relies on `libc`. A tracee belongs to the *thread* that forked it, and tests run on several threads; `__WNOTHREAD`
//! keeps each from taking the stops of the others.

use std::io;
use std::mem::offset_of;
use std::ptr;

/// A thread's number, as the kernel counts them; a process has that of its first thread.
pub(crate) type Tid = libc::pid_t;

/// Why a thread is reported.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It is gone; the status is that of `waitpid`.
    Ended(i32),
    /// It stopped and waits for [`go_on`]: with a `PTRACE_EVENT_…`, or (0) for a signal.
    At { event: i32, signal: i32 },
}

/// Makes the calling thread's parent its tracer; the next `exec` stops.
pub(crate) fn ask_to_be_traced() -> io::Result<()> {
    request(libc::PTRACE_TRACEME, 0, 0, 0).map(|_| ())
}

/// Reports forks, clones and `exec`s of the thread, traces its children, and kills all of them
/// should this process end first.
pub(crate) fn follow_children(tid: Tid) -> io::Result<()> {
    let options = libc::PTRACE_O_EXITKILL
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE;
    request(libc::PTRACE_SETOPTIONS, tid, 0, options.unsigned_abs().into()).map(|_| ())
}

/// Waits for the next event of a tracee of this thread; `None` when there are none left.
pub(crate) fn next_stop() -> io::Result<Option<(Tid, Stop)>> {
    let mut status = 0;
    // SAFETY: `status` is writable for the call; waiting touches no other memory.
    let tid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
    if tid < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ECHILD) => Ok(None),
            Some(libc::EINTR) => next_stop(),
            _ => Err(error),
        };
    }
    let stop = if libc::WIFSTOPPED(status) {
        Stop::At { event: status >> 16, signal: libc::WSTOPSIG(status) }
    } else {
        Stop::Ended(status)
    };
    Ok(Some((tid, stop)))
}

/// Lets a stopped thread run, with `signal` delivered (0: none).
pub(crate) fn go_on(tid: Tid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal.unsigned_abs().into()).map(|_| ())
}

/// The number that came with an event: of a fork, the child.
pub(crate) fn event_message(tid: Tid) -> io::Result<Tid> {
    let mut message: libc::c_ulong = 0;
    let to = ptr::from_mut(&mut message).expose_provenance();
    request(libc::PTRACE_GETEVENTMSG, tid, 0, to as u64)?;
    Tid::try_from(message).map_err(io::Error::other)
}

/// The word at an address of the thread's memory.
pub(crate) fn peek(tid: Tid, address: u64) -> io::Result<u64> {
    request(libc::PTRACE_PEEKTEXT, tid, address, 0)
}

/// Writes a word to the thread's memory, also where the thread itself may not.
pub(crate) fn poke(tid: Tid, address: u64, word: u64) -> io::Result<()> {
    request(libc::PTRACE_POKETEXT, tid, address, word).map(|_| ())
}

/// Where a stopped thread will go on.
pub(crate) fn instruction_pointer(tid: Tid) -> io::Result<u64> {
    request(libc::PTRACE_PEEKUSER, tid, RIP, 0)
}

/// Changes where a stopped thread will go on.
pub(crate) fn set_instruction_pointer(tid: Tid, address: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEUSER, tid, RIP, address).map(|_| ())
}

/// The registers come first in the kernel's `struct user`.
const RIP: u64 = offset_of!(libc::user_regs_struct, rip) as u64;

/// Kills one thread's process; one that is gone already is no error.
pub(crate) fn kill(tid: Tid) {
    // SAFETY: A signal to another process touches no memory of this one.
    unsafe { libc::kill(tid, libc::SIGKILL) };
}

/// Kills a process group.
pub(crate) fn kill_group(leader: Tid) {
    kill(-leader);
}

/// One `ptrace` request. Peeks return the word, all others 0.
fn request(request: libc::c_uint, tid: Tid, address: u64, data: u64) -> io::Result<u64> {
    // SAFETY: `errno` is this thread's own.
    unsafe { *libc::__errno_location() = 0 };
    // SAFETY: The requests of this file write no memory of this process but for
    // PTRACE_GETEVENTMSG, whose `data` is the address of a word that lives through the call.
    let value = unsafe { libc::ptrace(request, tid, address, data) };
    if value == -1 {
        let error = io::Error::last_os_error();
        // A word of all ones is a value too: only `errno` tells.
        if error.raw_os_error() != Some(0) {
            return Err(error);
        }
    }
    Ok(value.cast_unsigned())
}
