//! Following every thread of a traced tree, whatever is looked for in it.
//!
//! It relies on the tracing calls of the kernel door. The hard part is the order of news: a new thread may stop
//! before its starter's stop tells whose it is, and waits until then.

use std::collections::HashSet;
use std::io;

use super::Pid;
use crate::kernel::trace::{self as ptrace, Change};
use crate::kernel::{Status, Usage};

/// The receiver of what the threads of a tree do. Each is stopped while it is reported.
pub(crate) trait Witness {
    /// `root` stands before its first instruction, and no one follows it yet. Returns whether it is to stop at
    /// the calls that a filter wants traced.
    fn prepare(&mut self, _root: Pid) -> io::Result<bool> {
        Ok(false)
    }

    /// `pid` is about to run a new program.
    fn begin(&mut self, pid: Pid);

    /// `pid` started the thread or process `new`.
    fn start(&mut self, pid: Pid, new: Pid);

    /// `pid` met a trap; false if it is none of the witness's own.
    fn trap(&mut self, _pid: Pid) -> bool {
        false
    }

    /// `pid` is about to make a call that a filter wants traced.
    fn call(&mut self, _pid: Pid) {}

    /// `pid` is gone; the first thread of a process goes last, and `usage` is then that of the process and the
    /// children it waited for.
    fn end(&mut self, pid: Pid, usage: &Usage);
}

/// Follows the tree of `root` until its last thread is gone; returns how the root ended and what it used.
pub(super) fn follow(root: Pid, witness: &mut impl Witness) -> io::Result<(Status, Usage)> {
    let mut follower = Follower { root, ..Follower::default() };
    let mut root_end = None;
    while let Some((pid, change)) = ptrace::next_change()? {
        match change {
            Change::Ended(status, usage) => {
                witness.end(pid, &usage);
                follower.forget(pid);
                if pid == root {
                    root_end = Some((status, usage));
                }
                if root_end.is_some() && follower.live.is_empty() {
                    break;
                }
            }
            Change::Started(new) => {
                if follower.live.contains(&pid) {
                    follower.live.insert(new);
                    witness.start(pid, new);
                }
                if follower.early.remove(&new) {
                    ptrace::go_on(new, 0);
                } else {
                    follower.newborn.insert(new);
                }
                ptrace::go_on(pid, 0);
            }
            Change::Exec => {
                follower.live.insert(pid);
                witness.begin(pid);
                ptrace::go_on(pid, 0);
            }
            Change::Call => {
                witness.call(pid);
                ptrace::go_on(pid, 0);
            }
            Change::Signal(signal) => follower.on_signal(pid, signal, witness)?,
            Change::Boundary | Change::Halted(_) | Change::Other => ptrace::go_on(pid, 0),
        }
    }
    root_end.ok_or_else(|| io::Error::other("the program vanished while it was traced"))
}

/// Who is followed.
#[derive(Default)]
struct Follower {
    root: Pid,
    /// Whether the root's first stop was seen.
    is_rooted: bool,
    /// Threads that run, and whose they are is known.
    live: HashSet<Pid>,
    /// New threads whose first stop is still to come.
    newborn: HashSet<Pid>,
    /// New threads that stopped before their starter's stop said whose they are.
    early: HashSet<Pid>,
}

impl Follower {
    fn forget(&mut self, pid: Pid) {
        self.live.remove(&pid);
        self.newborn.remove(&pid);
        self.early.remove(&pid);
    }

    fn on_signal(&mut self, pid: Pid, signal: i32, witness: &mut impl Witness) -> io::Result<()> {
        if !self.is_rooted && pid == self.root {
            // The stop after the very first `exec`; no options were set yet to tell it by.
            self.is_rooted = true;
            let calls = witness.prepare(pid)?;
            ptrace::follow(pid, calls)?;
            self.live.insert(pid);
            witness.begin(pid);
            ptrace::go_on(pid, 0);
        } else if signal == ptrace::STOP && self.newborn.remove(&pid) {
            ptrace::go_on(pid, 0);
        } else if !self.live.contains(&pid) {
            self.early.insert(pid);
        } else if signal == ptrace::TRAP && witness.trap(pid) {
            ptrace::go_on(pid, 0);
        } else {
            ptrace::go_on(pid, signal);
        }
        Ok(())
    }
}
