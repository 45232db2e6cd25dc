//! The tracing calls: the changes that a tracer waits for, and its actions on a stopped thread.
//!
//! A thread's registers and its tracer belong together: all calls here are for the one thread that
//! started the traced program.

use std::io;

use super::{Status, Usage, checked, wait4};

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
pub(super) mod machine;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
pub(super) mod machine;

pub(crate) use machine::{BREAKPOINT, PASSED};
use machine::{PROGRAM_COUNTER, REGISTERS};

/// The signal of a stop where a thread begins or ends a system call: the usual one with a bit more.
const CALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// The event of a thread that was seized: it has stopped for its tracer, or with its whole process
/// (`PTRACE_EVENT_STOP` of `<linux/ptrace.h>`).
const HALT: i32 = 128;

/// The signal a new traced thread stops with.
pub(crate) const STOP: i32 = libc::SIGSTOP;

/// The signal of a breakpoint, and of the stop after the very first `exec`.
pub(crate) const TRAP: i32 = libc::SIGTRAP;

#[derive(Debug)]
pub(crate) enum Change {
    Ended(Status, Usage),
    /// The thread started this thread or process, which is traced too.
    Started(libc::pid_t),
    Exec,
    /// The thread begins or ends a system call, and is stopped at each.
    Boundary,
    Halted(i32),
    Signal(i32),
    /// The thread is about to end.
    Leaving,
    /// A change that needs no answer but to go on.
    Other,
}

/// Waits for the next thing to happen to a thread traced or started by the calling thread; none
/// when there is no such thread left.
pub(crate) fn next_change() -> io::Result<Option<(libc::pid_t, Change)>> {
    let (pid, status, usage) = match wait4(-1, libc::__WALL | libc::__WNOTHREAD) {
        Ok(change) => change,
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !libc::WIFSTOPPED(status) {
        return Ok(Some((pid, Change::Ended(Status::of(status), usage))));
    }
    let change = match status >> 16 {
        0 if libc::WSTOPSIG(status) == CALL_STOP => Change::Boundary,
        0 => Change::Signal(libc::WSTOPSIG(status)),
        HALT => Change::Halted(libc::WSTOPSIG(status)),
        libc::PTRACE_EVENT_EXEC => Change::Exec,
        libc::PTRACE_EVENT_EXIT => Change::Leaving,
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            match event_message(pid) {
                Ok(new) => Change::Started(new),
                Err(_) => Change::Other,
            }
        }
        _ => Change::Other,
    };
    Ok(Some((pid, change)))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CallStops {
    #[default]
    None,
    /// At the beginning and the end of each, while they are made to go on so, and where a thread ends.
    Each,
}

/// Asks for reports of new threads, processes and programs, and of `calls`, and has all of them killed if the tracer
/// ends.
pub(crate) fn follow(pid: libc::pid_t, calls: CallStops) -> io::Result<()> {
    let of_calls = match calls {
        CallStops::None => 0,
        CallStops::Each => libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACEEXIT,
    };
    let options = of_calls
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    ask(libc::PTRACE_SETOPTIONS as libc::c_uint, pid, options as usize)
}

/// Lets a stopped thread go on, with `signal` delivered unless it is zero. It is no error if the thread is gone
/// already.
pub(crate) fn go_on(pid: libc::pid_t, signal: i32) {
    let _ = ask(libc::PTRACE_CONT as libc::c_uint, pid, signal as usize);
}

/// Makes the calling thread one that its parent traces. Async-signal-safe.
pub(super) fn trace_me() -> io::Result<()> {
    ask(libc::PTRACE_TRACEME as libc::c_uint, 0, 0)
}

/// A tracing request that takes a number and no address.
pub(super) fn ask(request: libc::c_uint, thread: libc::pid_t, number: usize) -> io::Result<()> {
    let number = std::ptr::without_provenance_mut::<libc::c_void>(number);
    // SAFETY: The requests of these files take a number in place of the last pointer and ignore the other.
    unsafe { request_with(request, thread, 0, number) }
}

/// A tracing request, with what the kernel takes as its address and its data.
///
/// # Safety
///
/// - `data` is as the request wants it: a number, or a pointer to as many bytes as the kernel writes.
pub(super) unsafe fn request_with(
    request: libc::c_uint,
    thread: libc::pid_t,
    address: usize,
    data: *mut libc::c_void,
) -> io::Result<()> {
    let address = std::ptr::without_provenance_mut::<libc::c_void>(address);
    // SAFETY: The data are as wanted (the condition), and the address is a number.
    let result = unsafe { libc::ptrace(request as _, thread, address, data) };
    checked(if result == -1 { -1 } else { 0 }).map(drop)
}

/// The thread that a stopped thread has just started; for a thread that runs a new program, the number that it had
/// before.
pub(crate) fn event_message(pid: libc::pid_t) -> io::Result<libc::pid_t> {
    let mut message: libc::c_ulong = 0;
    let request = libc::PTRACE_GETEVENTMSG as libc::c_uint;
    // SAFETY: The kernel writes one `unsigned long` to the pointer, which is to a local of that
    // type.
    unsafe { request_with(request, pid, 0, (&raw mut message).cast()) }?;
    libc::pid_t::try_from(message).map_err(io::Error::other)
}

pub(super) type Registers = [u64; REGISTERS];

pub(crate) fn program_counter(pid: libc::pid_t) -> io::Result<u64> {
    Ok(read_registers(pid)?[PROGRAM_COUNTER])
}

/// Makes a stopped thread go on at `address`.
pub(crate) fn set_program_counter(pid: libc::pid_t, address: u64) -> io::Result<()> {
    let mut registers = read_registers(pid)?;
    registers[PROGRAM_COUNTER] = address;
    write_registers(pid, &mut registers)
}

pub(super) fn read_registers(pid: libc::pid_t) -> io::Result<Registers> {
    let mut registers = [0; REGISTERS];
    transfer(libc::PTRACE_GETREGSET as libc::c_uint, pid, &mut registers)?;
    Ok(registers)
}

fn write_registers(pid: libc::pid_t, registers: &mut Registers) -> io::Result<()> {
    transfer(libc::PTRACE_SETREGSET as libc::c_uint, pid, registers)
}

fn transfer(request: libc::c_uint, pid: libc::pid_t, registers: &mut Registers) -> io::Result<()> {
    /// The number of the general registers among the register sets (`NT_PRSTATUS`).
    const GENERAL: usize = 1;
    let mut area =
        libc::iovec { iov_base: registers.as_mut_ptr().cast(), iov_len: size_of_val(registers) };
    // SAFETY: The area is as long as it says, and the array it points to lives through the call.
    unsafe { request_with(request, pid, GENERAL, (&raw mut area).cast()) }
}
