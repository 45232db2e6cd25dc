//! Following every thread of a traced tree.
//!
//! A new thread may stop before its starter's stop tells which process it belongs to, and waits until then.

use std::collections::HashSet;
use std::io;

use super::Pid;
use crate::kernel::attach::go_on_to_call;
use crate::kernel::trace::{self as ptrace, Change};
use crate::kernel::{Status, Usage};

pub(crate) use crate::kernel::trace::CallStops;

/// The receiver of the actions of a tree's threads. Each thread is stopped while it is reported.
pub(crate) trait Witness {
    /// `root` stands before its first instruction, and no thread follows it yet. Returns the calls at which threads are
    /// to stop.
    fn prepare(&mut self, _root: Pid) -> io::Result<CallStops> {
        Ok(CallStops::None)
    }

    /// `pid` is about to run a new program.
    fn begin(&mut self, pid: Pid);

    /// `pid` started the thread or process `new`.
    fn start(&mut self, pid: Pid, new: Pid);

    /// `pid` met a trap; false if it is none of the witness's own.
    fn trap(&mut self, _pid: Pid) -> bool {
        false
    }

    /// `pid` goes on; true if it is to stop where its next call begins or ends.
    fn stops_at_calls(&mut self, _pid: Pid) -> bool {
        false
    }

    fn boundary(&mut self, _pid: Pid) {}

    /// `pid` met a signal to stop; true if the witness had it sent, and it is to be taken away.
    fn takes_away(&mut self, _pid: Pid) -> bool {
        false
    }

    /// `pid` is about to end. A thread that is killed may be gone without this.
    fn leaves(&mut self, _pid: Pid) {}

    /// `pid` is gone; the first thread of a process goes last, and `usage` is then that of the process and the
    /// children it waited for.
    fn end(&mut self, pid: Pid, status: Status, usage: &Usage);
}

/// Follows the tree of `root` until its last thread is gone; returns the root's ending and its usage.
pub(super) fn follow(root: Pid, witness: &mut impl Witness) -> io::Result<(Status, Usage)> {
    let mut follower = Follower { root, ..Follower::default() };
    let mut root_end = None;
    while let Some((pid, change)) = ptrace::next_change()? {
        let signal = match change {
            Change::Ended(status, usage) => {
                witness.end(pid, status, &usage);
                follower.forget(pid);
                if pid == root {
                    root_end = Some((status, usage));
                }
                if root_end.is_some() && follower.live.is_empty() {
                    break;
                }
                continue;
            }
            Change::Started(new) => {
                if follower.live.contains(&pid) {
                    follower.live.insert(new);
                    witness.start(pid, new);
                }
                if follower.early.remove(&new) {
                    follower.go_on(new, 0, witness);
                } else {
                    follower.newborn.insert(new);
                }
                0
            }
            Change::Exec => {
                // A thread that is not the first of its process takes the first one's number and reports no end.
                let before = ptrace::event_message(pid).unwrap_or(pid);
                if before != pid {
                    follower.forget(before);
                }
                follower.live.insert(pid);
                witness.begin(pid);
                0
            }
            Change::Signal(signal) => match follower.on_signal(pid, signal, witness)? {
                Some(signal) => signal,
                None => continue,
            },
            Change::Boundary => {
                witness.boundary(pid);
                0
            }
            Change::Leaving => {
                witness.leaves(pid);
                // The thread is not to be caught any more.
                ptrace::go_on(pid, 0);
                continue;
            }
            Change::Halted(_) | Change::Other => 0,
        };
        follower.go_on(pid, signal, witness);
    }
    root_end.ok_or_else(|| io::Error::other("the program vanished while it was traced"))
}

#[derive(Default)]
struct Follower {
    root: Pid,
    calls: CallStops,
    /// True if the root's first stop was seen.
    is_rooted: bool,
    /// Threads that run, and whose process is known.
    live: HashSet<Pid>,
    /// New threads whose first stop is still to come.
    newborn: HashSet<Pid>,
    /// New threads that stopped before their starter's stop named their process.
    early: HashSet<Pid>,
}

impl Follower {
    /// Lets a stopped thread go on, to its next call where the witness wants that.
    fn go_on(&self, pid: Pid, signal: i32, witness: &mut impl Witness) {
        if self.calls == CallStops::Each && witness.stops_at_calls(pid) {
            go_on_to_call(pid, signal);
        } else {
            ptrace::go_on(pid, signal);
        }
    }

    fn forget(&mut self, pid: Pid) {
        self.live.remove(&pid);
        self.newborn.remove(&pid);
        self.early.remove(&pid);
    }

    /// The signal with which a thread that has met `signal` goes on, zero for none; none if it has to wait.
    fn on_signal(
        &mut self,
        pid: Pid,
        signal: i32,
        witness: &mut impl Witness,
    ) -> io::Result<Option<i32>> {
        if !self.is_rooted && pid == self.root {
            // This is the stop after the very first `exec`; no options were set yet that would mark it.
            self.is_rooted = true;
            self.calls = witness.prepare(pid)?;
            ptrace::follow(pid, self.calls)?;
            self.live.insert(pid);
            witness.begin(pid);
            return Ok(Some(0));
        }
        if signal == ptrace::STOP && self.newborn.remove(&pid) {
            return Ok(Some(0));
        }
        if !self.live.contains(&pid) {
            self.early.insert(pid);
            return Ok(None);
        }
        let is_ours = signal == ptrace::TRAP && witness.trap(pid)
            || signal == ptrace::STOP && witness.takes_away(pid);
        Ok(Some(if is_ours { 0 } else { signal }))
    }
}
