//! Stopping early: one flag that a signal or a caller raises.
//!
//! A signal handler only sets the flag; the waits of the lab wake up every few milliseconds to see it.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::Error;
use crate::error::Doing;
use crate::kernel;

/// A request to stop; clones share it.
#[derive(Debug, Clone)]
pub struct Stop(Flag);

#[derive(Debug, Clone)]
enum Flag {
    /// Raised by [`Stop::request`].
    Own(Arc<AtomicBool>),
    /// Raised by the handler of SIGINT and SIGTERM too.
    Signals(&'static AtomicBool),
}

impl Stop {
    /// A flag that only [`request`](Self::request) raises.
    pub fn never() -> Stop {
        Stop(Flag::Own(Arc::new(AtomicBool::new(false))))
    }

    /// A flag raised by SIGINT (Ctrl-C), SIGTERM and SIGHUP, whose handlers this installs for the
    /// whole process. A second signal ends the process at once, half a second after the first or
    /// later: `timeout` sends each twice. SIGHUP stays ignored where it is, as under `nohup`.
    pub fn on_signals() -> Result<Stop, Error> {
        let flag = kernel::catch_stop_signals().doing(|| "installing the handler for Ctrl-C")?;
        Ok(Stop(Flag::Signals(flag)))
    }

    pub fn request(&self) {
        // ORDERING: Relaxed: the flag guards no other data; its reader only stops earlier.
        self.flag().store(true, Ordering::Relaxed);
    }

    pub fn requested(&self) -> bool {
        // ORDERING: Relaxed: see `request`.
        self.flag().load(Ordering::Relaxed)
    }

    /// Waits for the end of `child`, the leader of a process group; none where a stop ended the group. After an error
    /// nothing of the group is left either.
    pub fn wait_for(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        self.wait_while(child, || {})
    }

    /// As [`Stop::wait_for`]; calls `work` again and again until then.
    pub(crate) fn wait_while(
        &self,
        child: &mut Child,
        mut work: impl FnMut(),
    ) -> io::Result<Option<ExitStatus>> {
        let mut pause = Duration::from_micros(200);
        let outcome = loop {
            work();
            match child.try_wait() {
                Ok(None) if !self.requested() => {}
                Ok(Some(status)) => return Ok(Some(status)),
                other => break other,
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        // A build that is killed alone leaves its compilers at work.
        kernel::kill_group(child.id().cast_signed());
        // Whatever fails here, nothing more can be done about the child.
        let _ = child.wait();
        outcome
    }

    fn flag(&self) -> &AtomicBool {
        match &self.0 {
            Flag::Own(flag) => flag,
            Flag::Signals(flag) => flag,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    /// Waits for a shell whose child goes on for long, once `ready` holds of the shell's process; returns the outcome, and
    /// the child's entry in `/proc`.
    fn waited(
        stop: &Stop,
        script: &str,
        ready: impl Fn(i32) -> bool,
    ) -> (io::Result<Option<ExitStatus>>, String) {
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]).env("FILE", &*file).process_group(0);
        let mut child = shell.spawn().unwrap();
        let pid = || fs::read_to_string(&file).unwrap();
        while !pid().ends_with('\n') || !ready(child.id().cast_signed()) {
            thread::sleep(Duration::from_millis(1));
        }
        (stop.wait_for(&mut child), format!("/proc/{}/exe", pid().trim()))
    }

    #[test]
    fn nothing_of_the_group_is_left_after_a_stop_or_a_failure_to_wait() {
        let _alone = crate::execute::alone();
        let stop = Stop::never();
        stop.request();
        let stopped = waited(&stop, "sleep 1000 & echo $! > $FILE; wait", |_| true);
        assert_eq!(stopped.0.unwrap(), None);
        // Where the shell was reaped already, the kernel has no child to wait for.
        let reaped = waited(&Stop::never(), "sleep 1000 & echo $! > $FILE", |shell| {
            kernel::reap_group(shell);
            kernel::ended(shell).is_none() && !fs::exists(format!("/proc/{shell}")).unwrap()
        });
        reaped.0.unwrap_err();
        for process in [stopped.1, reaped.1] {
            while fs::exists(&process).unwrap_or(true) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
