//! Counts the calls of a process that runs already: all its threads are seized and stopped at every system call,
//! for as long as is wanted.
//!
//! It relies on the counter of counted runs and on the kernel door. The hard part is to take hold of all threads while
//! they start others: a seized thread is made to stop at once, so that each turn through them leaves fewer that could.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::kinds::Kinds;
use super::{Calls, Counter, Pid};
use crate::Error;
use crate::error::Doing;
use crate::execute::tree;
use crate::kernel::attach::{self as door, Begun, Bell, Boundary, Rope, Unstoppable};
use crate::kernel::trace::{self, Change};
use crate::kernel::{Status, Usage};
use crate::proc_files::{self, value};

/// A process whose calls are counted until this is finished or dropped, or the process ends.
#[derive(Debug)]
pub struct Attached {
    process: u32,
    /// Ends the counting when it is dropped: the counting thread hears the bell.
    rope: Option<Rope>,
    counting: Option<JoinHandle<io::Result<Counted>>>,
    thread: Pid,
    _unstoppable: Unstoppable,
}

/// The result of counting while a process was attached to.
#[derive(Debug, Default)]
pub struct Counted {
    pub calls: Calls,
    /// The kernel's figures for processes that the process started in that time and that ended, with those they waited
    /// for.
    pub children: Usage,
}

impl Attached {
    /// Takes hold of all threads of a process. If it is a child of this process, nobody may wait for it in that time. A
    /// process that may not be traced is [`Error::Process`], with the reason and a remedy.
    pub fn to(process: u32) -> Result<Attached, Error> {
        let root = Pid::try_from(process).map_err(|_| Error::Ended { pid: process })?;
        let unstoppable = Unstoppable::now();
        let (seized_sender, hears) = mpsc::channel();
        let counting = thread::Builder::new()
            .name("counting".to_owned())
            .spawn(move || count(root, &seized_sender))
            .doing(|| "starting the thread that counts")?;
        match hears.recv() {
            Ok(seized) => {
                let (rope, thread) = seized?;
                let (rope, counting) = (Some(rope), Some(counting));
                Ok(Attached { process, rope, counting, thread, _unstoppable: unstoppable })
            }
            // The counting thread had no bell.
            Err(_) => {
                let ended = counting.join().expect("the counting thread does not panic");
                ended.doing(|| format!("attaching to process {process}"))?;
                Err(Error::Ended { pid: process })
            }
        }
    }

    /// Lets the process go and returns the counts.
    pub fn finish(mut self) -> Result<Counted, Error> {
        let process = self.process;
        let counted = self.let_go().expect("it is finished once");
        counted.doing(|| format!("counting the calls of process {process}"))
    }

    /// Ends the counting thread; the process is free when this returns.
    fn let_go(&mut self) -> Option<io::Result<Counted>> {
        drop(self.rope.take());
        let counted = self.counting.take()?.join().expect("the counting thread does not panic");
        // A thread may exist for a short time before the kernel has released the threads that it traces.
        while Path::new(&format!("/proc/self/task/{}", self.thread)).exists() {
            thread::sleep(Duration::from_micros(100));
        }
        Some(counted)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.let_go();
    }
}

/// The counting thread. The threads that it traces are free when it has ended.
fn count(process: Pid, seized_sender: &Sender<Result<(Rope, Pid), Error>>) -> io::Result<Counted> {
    let (bell, rope) = Bell::hang()?;
    let mut follower = Follower { process, ..Follower::default() };
    let seized = follower.seize();
    let is_seized = seized.is_ok();
    // The caller waits for this.
    let _ = seized_sender.send(seized.map(|()| (rope, door::own_thread())));
    let followed = if is_seized { follower.follow(bell.pid) } else { Ok(()) };
    bell.take_down();
    followed.map(|()| {
        let calls = Calls { kinds: follower.kinds.finish(), ..follower.counter.finish() };
        Counted { children: follower.children_used, calls }
    })
}

#[derive(Debug, Default)]
struct Follower {
    process: Pid,
    counter: Counter,
    kinds: Kinds,
    /// Threads that are traced and have not ended.
    live: HashSet<Pid>,
    /// Processes that the process itself started.
    children: HashSet<Pid>,
    children_used: Usage,
}

impl Follower {
    fn seize(&mut self) -> Result<(), Error> {
        let pid = self.process.cast_unsigned();
        loop {
            let mut is_done = true;
            for thread in tree::threads(self.process) {
                if self.live.contains(&thread) {
                    continue;
                }
                match door::seize(thread) {
                    Ok(()) => {
                        is_done = false;
                        // A thread that ends in that time is noticed when its end is waited for.
                        let _ = door::interrupt(thread);
                    }
                    Err(error) => match Standing::of(self.process, thread) {
                        // The kernel seized it when another one started it.
                        Some(Standing { tracer, .. }) if tracer == door::own_thread() => {}
                        Some(standing) if !standing.is_gone => {
                            let reason = refused(self.process, &standing, &error);
                            return Err(Error::Process { pid, reason });
                        }
                        _ => continue,
                    },
                }
                self.live.insert(thread);
                self.counter.meet(thread);
            }
            if is_done {
                return if self.live.is_empty() { Err(Error::Ended { pid }) } else { Ok(()) };
            }
        }
    }

    fn follow(&mut self, bell: Pid) -> io::Result<()> {
        while let Some((pid, change)) = trace::next_change()? {
            if let Change::Ended(status, usage) = change {
                self.end(pid, status, &usage);
                if pid == bell || self.live.is_empty() {
                    break;
                }
                continue;
            }
            self.meet(pid);
            let mut signal = 0;
            match change {
                Change::Boundary => self.boundary(pid)?,
                Change::Exec => {
                    // The thread that runs the program takes the first one's number and reports no end.
                    let before = trace::event_message(pid)?;
                    if before != pid {
                        self.live.remove(&before);
                    }
                    self.counter.begin(pid);
                }
                Change::Halted(by) if door::stops_processes(by) => {
                    door::leave_stopped(pid);
                    continue;
                }
                Change::Signal(delivered) => signal = delivered,
                _ => {}
            }
            door::go_on_to_call(pid, signal);
        }
        Ok(())
    }

    fn boundary(&mut self, pid: Pid) -> io::Result<()> {
        self.counter.stopped(pid);
        match door::boundary(pid) {
            Ok(Boundary::Begins(Begun { number, counted, .. })) => {
                if let Some(stopped) = counted {
                    self.counter.called(pid, stopped);
                }
                if let Some(number) = number {
                    self.kinds.begins(pid, number);
                }
            }
            Ok(Boundary::Other) => self.kinds.ends(pid),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return Err(error),
            // The thread is being killed.
            Err(_) => {}
        }
        Ok(())
    }

    /// Notes a thread or process that the kernel seized when another one started it. Its own first stop reports it,
    /// because the starter's stop may come after its end.
    fn meet(&mut self, pid: Pid) {
        if !self.live.insert(pid) {
            return;
        }
        self.counter.meet(pid);
        let is_process = self.counter.process_of(pid) == Some(pid);
        if is_process && tree::state_of(pid).is_some_and(|state| state.parent == self.process) {
            self.children.insert(pid);
        }
    }

    fn end(&mut self, pid: Pid, status: Status, usage: &Usage) {
        self.live.remove(&pid);
        self.counter.end(pid, status, usage);
        if self.children.remove(&pid) {
            self.children_used = self.children_used.plus(*usage);
        }
    }
}

/// The state in `/proc` of a thread that cannot be seized.
#[derive(Debug)]
struct Standing {
    /// True if the thread is about to vanish.
    is_gone: bool,
    /// The thread that traces it; zero where none does.
    tracer: Pid,
}

impl Standing {
    /// None if the thread is gone.
    fn of(process: Pid, thread: Pid) -> Option<Standing> {
        let status = proc_files::text(format!("/proc/{process}/task/{thread}/status"))?;
        Some(Standing::read(&status))
    }

    fn read(status: &str) -> Standing {
        let state = value(status, "State").unwrap_or_default();
        let tracer = value(status, "TracerPid").and_then(|number| number.parse().ok());
        Standing { is_gone: state.starts_with(['Z', 'X']), tracer: tracer.unwrap_or(0) }
    }
}

/// The reason why a process cannot be attached to, and a remedy.
fn refused(process: Pid, standing: &Standing, error: &io::Error) -> String {
    if u32::try_from(process) == Ok(std::process::id()) {
        return "a process cannot attach to itself".to_owned();
    }
    if standing.tracer != 0 {
        return format!(
            "{} traces it already, and one can only; end that first",
            tree::name_with_pid(standing.tracer)
        );
    }
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match forbidden_by(scope.trim()) {
        Some(said) => format!("it may not be attached to: {said}"),
        None => format!(
            "it may not be attached to ({error}): it is another user's, or keeps others out because it \
             had more rights, or a sandbox forbids ptrace; run masu as its user or as root, outside the \
             sandbox"
        ),
    }
}

/// The rule by which Yama's setting refuses a caller (Documentation/admin-guide/LSM/Yama.rst).
fn forbidden_by(scope: &str) -> Option<&'static str> {
    match scope {
        "1" => Some(
            "kernel.yama.ptrace_scope is 1, so only who started a process may; run masu as root, set it \
             to 0 with sysctl, or have masu start the program: masu diagnose -- COMMAND",
        ),
        "2" => Some(
            "kernel.yama.ptrace_scope is 2, so only root may; run masu as root, or have masu start the \
             program: masu diagnose -- COMMAND",
        ),
        "3" => Some("kernel.yama.ptrace_scope is 3, so nobody may until the machine starts again"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
