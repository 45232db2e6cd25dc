//! The work of a running process's children: a server's master waits while its workers work.
//!
//! Relies on the CPU clocks of processes, and on the kernel's sum for children that the process waited for: they may
//! live for less than the time between two looks. Only the process itself is examined closely. Its children are named,
//! so that no reader takes an idle master for an idle server.

use std::collections::BTreeMap;
use std::time::Duration;

use masu_run::execute::tree::{Pid, name_with_pid, with_descendants};
use masu_run::kernel;
use masu_run::proc_files::Stat;
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
    /// CPU seconds of the children that the process had waited for before.
    ended_before_s: f64,
}

impl Children {
    /// The children of `process`, which may have worked before.
    pub(super) fn of(process: Pid) -> Children {
        let (next, ended_before_s) = (Duration::ZERO, ended_s(process).unwrap_or(0.0));
        let mut children = Children { process, next, clocks: BTreeMap::new(), ended_before_s };
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
        let (mut did_s, mut of_gone_s, mut before_s) = (0.0, 0.0, 0.0);
        let (mut count, mut busiest) = (0, None);
        for (pid, (before, after)) in self.clocks {
            if kernel::cpu_time(pid).is_none() {
                of_gone_s += after - before;
                before_s += before;
                continue;
            }
            did_s += after - before;
            count += usize::from(after > before);
            if after - before > busiest.map_or(0.0, |(_, most_s)| most_s) {
                busiest = Some((pid, after - before));
            }
        }
        // The sum has all that an ended child ever did.
        let ended_s = ended_s(self.process).map_or(0.0, |all| all - self.ended_before_s - before_s);
        let ended_s = ended_s.max(of_gone_s);
        let busiest = busiest.filter(|(_, most_s)| *most_s >= ended_s);
        let busiest = busiest.map(|(pid, did_s)| (pid, name_with_pid(pid), did_s));
        let done = Done { count, cpu_s: did_s + ended_s, ended_s, busiest };
        (done.cpu_s >= LITTLE * wall_s).then_some(done)
    }
}

/// CPU seconds of the children that a process has waited for, with theirs; none if it is gone.
fn ended_s(process: Pid) -> Option<f64> {
    let stat = Stat::of(&format!("/proc/{process}"))?;
    Some((stat.field::<u64>(16)? + stat.field::<u64>(17)?) as f64 / kernel::ticks_a_second())
}

/// The work of a process's children.
#[derive(Debug)]
pub(super) struct Done {
    /// The number of children that worked and live.
    count: usize,
    /// The CPU time of all children.
    pub(super) cpu_s: f64,
    /// The part of it of children that ended.
    ended_s: f64,
    /// The child that lives and worked most, its name and its CPU time; none if those that ended did more.
    busiest: Option<(Pid, String, f64)>,
}

impl Done {
    /// The sentence about the children, for the list of things that a diagnosis did not see.
    pub(super) fn unseen(&self) -> String {
        let Done { count, cpu_s, ended_s, busiest } = self;
        let cpu = seconds(*cpu_s);
        let Some((pid, name, did_s)) = busiest else {
            return format!(
                "what its children do: {cpu} of CPU time, {} of it by children that ended; \
                 `masu diagnose -- COMMAND` looks at them too",
                seconds(*ended_s)
            );
        };
        let whose = match count {
            1 => "its child does".to_owned(),
            count => format!("its children do, {count} of which worked"),
        };
        format!(
            "what {whose}: {cpu} of CPU time, {} of it by {name}; this looks at that one: \
             `masu diagnose -p {pid}`",
            seconds(*did_s)
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
        let busiest = done.as_ref().and_then(|done| done.busiest.as_ref());
        busiest.inspect(|(pid, ..)| kernel::kill(*pid));
        parent.kill().unwrap();
        parent.wait().unwrap();
        let said = done.expect("it worked").unseen();
        assert!(idle.is_none(), "{idle:?}");
        assert!(said.starts_with("what its child does: ") && said.contains("sh ("), "{said}");
        assert!(said.contains("`masu diagnose -p "), "{said}");
    }

    #[test]
    fn children_that_come_and_go_have_worked() {
        let _alone = alone();
        let script = "while :; do (i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done); done";
        let mut parent = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let process = Pid::try_from(parent.id()).unwrap();
        // None of them is looked at.
        let children = Children::of(process);
        let began = Instant::now();
        while ended_s(process).is_none_or(|now| now < children.ended_before_s + 0.2) {
            assert!(began.elapsed() < Duration::from_secs(600), "in vain: {children:?}");
            thread::sleep(Duration::from_millis(5));
        }
        let done = children.finish(1.0).expect("they worked");
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert!(done.cpu_s > 0.15 && done.busiest.is_none(), "{done:?}");
        assert!(done.unseen().contains("children that ended"), "{done:?}");
    }
}
