//! The work of a running process's children: a server's master waits while its workers work.
//!
//! Relies on the CPU clocks of processes. Only the process itself is examined closely. Its children are named, so that
//! no reader takes an idle master for an idle server.

use std::collections::BTreeMap;
use std::time::Duration;

use masu_run::execute::tree::{Pid, name_with_pid, with_descendants};
use masu_run::kernel;
use masu_run::quantity::seconds;

/// The least time between two looks: finding all descendants takes a while.
const EVERY: Duration = Duration::from_millis(200);

/// Children that worked for less than this share of the time are not mentioned.
const LITTLE: f64 = 0.01;

/// The CPU clocks of all descendants of a process.
#[derive(Debug)]
pub(super) struct Children {
    process: Pid,
    next: Duration,
    /// The CPU clock of each child at its first and at its last look, in seconds.
    clocks: BTreeMap<Pid, (f64, f64)>,
}

impl Children {
    /// The children of `process`, which may have worked before.
    pub(super) fn of(process: Pid) -> Children {
        let mut children = Children { process, next: Duration::ZERO, clocks: BTreeMap::new() };
        children.note(true);
        children
    }

    /// Reads the clocks, unless they were read recently.
    pub(super) fn look(&mut self, at: Duration) {
        if at >= self.next {
            self.note(false);
            self.next = at + EVERY;
        }
    }

    fn note(&mut self, is_first: bool) {
        for child in with_descendants(vec![self.process]).into_iter().skip(1) {
            let Some(clock) = kernel::cpu_time(child) else { continue };
            let now = clock.as_secs_f64();
            // A child that came later did all of its work in the watched time.
            let begun = (if is_first { now } else { 0.0 }, now);
            self.clocks.entry(child).or_insert(begun).1 = now;
        }
    }

    /// The children's work within `wall_s`; none if it is next to nothing.
    pub(super) fn finish(mut self, wall_s: f64) -> Option<Done> {
        self.note(false);
        let mut done: Vec<(Pid, f64)> =
            self.clocks.into_iter().map(|(pid, (before, after))| (pid, after - before)).collect();
        done.retain(|(_, did_s)| *did_s > 0.0);
        done.sort_by(|one, other| other.1.total_cmp(&one.1));
        let cpu_s = done.iter().map(|(_, did_s)| did_s).sum();
        let (busiest, busiest_s) = *done.first()?;
        let busiest_is = name_with_pid(busiest);
        (cpu_s >= LITTLE * wall_s).then_some(Done {
            count: done.len(),
            cpu_s,
            busiest,
            busiest_is,
            busiest_s,
        })
    }
}

/// The work of a process's children.
#[derive(Debug)]
pub(super) struct Done {
    /// The number of children that worked.
    count: usize,
    /// The CPU time of all children.
    pub(super) cpu_s: f64,
    busiest: Pid,
    /// The name and number of the busiest child.
    busiest_is: String,
    busiest_s: f64,
}

impl Done {
    /// The sentence about the children, for the list of things that a diagnosis did not see.
    pub(super) fn unseen(&self) -> String {
        let Done { count, cpu_s, busiest, busiest_is, busiest_s } = self;
        let whose = match count {
            1 => "its child does".to_owned(),
            count => format!("its children do, {count} of which worked"),
        };
        format!(
            "what {whose}: {} of CPU time, {} of it by {busiest_is}; this looks at that one: \
             `masu diagnose -p {busiest}`",
            seconds(*cpu_s),
            seconds(*busiest_s)
        )
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::thread;
    use std::time::Instant;

    use super::*;
    use masu_run::execute::alone;

    #[test]
    fn a_child_that_works_while_its_parent_waits_is_named() {
        let _alone = alone();
        let mut parent =
            Command::new("sh").args(["-c", "while :; do :; done & wait"]).spawn().unwrap();
        let process = Pid::try_from(parent.id()).unwrap();
        let mut children = Children::of(process);
        let began = Instant::now();
        let did = |children: &Children| children.clocks.values().any(|(from, to)| to - from > 0.02);
        while !did(&children) {
            assert!(began.elapsed() < Duration::from_secs(600), "in vain: {children:?}");
            children.note(false);
            thread::sleep(Duration::from_millis(5));
        }
        let idle = Children::of(process).finish(1e9);
        let done = children.finish(1.0);
        let done = done.inspect(|done| kernel::kill(done.busiest));
        parent.kill().unwrap();
        parent.wait().unwrap();
        let said = done.expect("it worked").unseen();
        assert!(idle.is_none(), "{idle:?}");
        assert!(said.starts_with("what its child does: ") && said.contains("sh ("), "{said}");
        assert!(said.contains("`masu diagnose -p "), "{said}");
    }
}
