//! The processes of one server among those of several.
//!
//! Daemons whose parent has gone become our children, whichever server they belong to. The *session* distinguishes
//! them: each server starts in a session of its own, and a daemon that opens another is seen doing so while its server
//! is the only one that starts.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use masu_run::execute::tree::{Held, Pid, Tree, is_alive, kill_all, state_of, with_descendants};
use masu_run::kernel;

const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The time in which a killed process may end; a process stuck in the kernel ends when the kernel lets it.
const KILLED_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Family {
    pub(super) root: Pid,
    /// Children of this process that belong to others.
    before: Vec<Pid>,
    sessions: Mutex<BTreeSet<Pid>>,
}

impl Family {
    /// The family of `root`, which leads a session; `before` are the children this process had earlier.
    pub(super) fn new(root: Pid, before: Vec<Pid>) -> Family {
        Family { root, before, sessions: Mutex::new(BTreeSet::from([root])) }
    }

    /// Takes in orphans that belong to no other family; the caller calls it while no other server is starting.
    pub(super) fn claim(&self, others: &[&Family]) {
        let here = std::process::id().cast_signed();
        let own_session = state_of(here).map(|state| state.session);
        for pid in Tree::children_here() {
            let Some(state) = state_of(pid) else { continue };
            let known = |family: &&&Family| family.has(state.session);
            // Our own session has the commands that check whether the server is ready.
            if pid != self.root
                && !self.before.contains(&pid)
                && Some(state.session) != own_session
                && !others.iter().any(|family| known(&family))
            {
                self.lock().insert(state.session);
            }
        }
    }

    /// The processes now, zombies included: the root first, parents before children.
    pub(super) fn members(&self) -> Vec<Pid> {
        let mut members = vec![self.root];
        let is_ours = |pid| state_of(pid).is_some_and(|state| self.has(state.session));
        let orphans = Tree::children_here().into_iter();
        members.extend(
            orphans.filter(|&pid| pid != self.root && !self.before.contains(&pid) && is_ours(pid)),
        );
        let members = with_descendants(members);
        // A descendant that opened a session keeps it when its parent goes.
        let sessions = members.iter().filter_map(|&pid| Some(state_of(pid)?.session));
        let sessions: Vec<Pid> = sessions.collect();
        self.lock().extend(sessions);
        members
    }

    pub(super) fn alive(&self) -> Vec<Pid> {
        self.members().into_iter().filter(|&pid| is_alive(pid)).collect()
    }

    pub(super) fn held(&self) -> Held {
        Held::of(&self.members())
    }

    /// Asks the server to end: its first process, or if that is gone, all remaining processes.
    pub(super) fn terminate(&self) {
        let alive = self.alive();
        if alive.contains(&self.root) {
            kernel::terminate(self.root);
        } else {
            alive.into_iter().for_each(kernel::terminate);
        }
    }

    /// Waits until no process runs, until `deadline` at most; returns whether none does.
    pub(super) fn wait(&self, deadline: Instant) -> bool {
        loop {
            if self.alive().is_empty() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Kills every process and waits until none runs, for a second at most. Zombies stay.
    pub(super) fn kill(&self) {
        kill_all(|| self.members());
    }

    /// Reaps all killed processes, for a second at most: a process can be reaped when its last thread has ended.
    pub(super) fn bury(&self) {
        let deadline = Instant::now() + KILLED_WITHIN;
        loop {
            let members = self.members();
            for &pid in &members {
                // Reaping fails for the children of others; they become our children when their parents are gone.
                kernel::reap(pid);
            }
            let is_there = |pid: &Pid| state_of(*pid).is_some();
            if !members.iter().any(is_there) || Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn has(&self, session: Pid) -> bool {
        self.lock().contains(&session)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<Pid>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
