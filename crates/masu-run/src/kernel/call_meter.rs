//! The number of a thread's system calls, counted by the kernel while nobody stops the thread.
//!
//! Relies on perf events of the tracepoint that every call meets. Only tracefs has the tracepoint's number, and only
//! root may read it; if it is not mounted, it is mounted for this process alone, without a place among the files.

use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use super::sample::{self, Attributes};

/// The tracepoint that every call meets where it begins, behind the stop for a tracer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tracepoint(u64);

impl Tracepoint {
    /// Asks the kernel for the tracepoint's number.
    pub(crate) fn of_calls() -> io::Result<Tracepoint> {
        const FILE: &str = "events/raw_syscalls/sys_enter/id";
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let usual = format!("/sys/kernel/tracing/{FILE}");
        let file = rustix::fs::openat(CWD, usual, flags, Mode::empty()).or_else(|_| {
            let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_create(&context)?;
            let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY;
            let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
            rustix::fs::openat(mount, FILE, flags, Mode::empty())
        })?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text)?;
        text.trim().parse().map(Tracepoint).map_err(io::Error::other)
    }
}

/// Counts the calls of one thread from its start on.
#[derive(Debug)]
pub(crate) struct CallMeter(File);

impl CallMeter {
    pub(crate) fn start(tracepoint: &Tracepoint, thread: libc::pid_t) -> io::Result<CallMeter> {
        let any_cpu = -1;
        let event = sample::open(&Attributes::tracing(tracepoint.0), thread, any_cpu)?;
        Ok(CallMeter(event.into()))
    }

    /// The number of calls so far, without one at whose start the thread is stopped.
    pub(crate) fn calls(&self) -> Option<u64> {
        let mut calls = [0; 8];
        (&self.0).read_exact(&mut calls).ok()?;
        Some(u64::from_ne_bytes(calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_this_thread_are_counted_one_by_one() {
        let meter = Tracepoint::of_calls().and_then(|calls| CallMeter::start(&calls, 0));
        let Ok(meter) = meter else { return eprintln!("skipped: this user may not count calls") };
        let of = |calls: u32| {
            let before = meter.calls().unwrap();
            (0..calls).for_each(|_| crate::kernel::prices::system_call());
            meter.calls().unwrap() - before
        };
        let none = of(0);
        assert_eq!(of(1_000) - none, 1_000);
    }
}
