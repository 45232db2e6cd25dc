//! The resources that a running server has used so far; the difference of two readings is a burst's use.
//!
//! CPU time comes to the nanosecond from each process's clock; its division into user and system, and the use of
//! ended children, come in hundredths of a second from `/proc`. Context switches and waits are counted for each
//! thread; a thread that came and went within a burst is missing.

use std::collections::HashMap;

use super::process_groups::Family;
use masu_run::execute::tree::{Pid, threads};
use masu_run::kernel;
use masu_run::proc_files::{Scheduled, Stat, Switches};

#[derive(Debug, Default)]
pub(super) struct Consumption {
    total: Processes,
    threads: HashMap<Pid, Thread>,
}

/// Sums over processes, their ended children included.
#[derive(Debug, Default, Clone, Copy)]
struct Processes {
    cpu_s: f64,
    user_ticks: u64,
    sys_ticks: u64,
    minor_faults: u64,
    major_faults: u64,
}

#[derive(Debug, Default, Clone, Copy)]
struct Thread {
    switches: Switches,
    queued_ns: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Used {
    pub(super) user_s: f64,
    pub(super) sys_s: f64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
    /// None where the kernel does not report it.
    pub(super) queued_s: Option<f64>,
}

impl Consumption {
    pub(super) fn of(family: &Family) -> Consumption {
        let mut all = Consumption::default();
        for pid in family.members() {
            if let Some(process) = Processes::of(pid) {
                all.total = all.total.plus(process);
            }
            for thread in threads(pid) {
                if let Some(figures) = Thread::of(pid, thread) {
                    all.threads.insert(thread, figures);
                }
            }
        }
        all
    }

    pub(super) fn since(&self, earlier: &Consumption) -> Used {
        let total = self.total.minus(earlier.total);
        let (user, sys) = (total.user_ticks as f64, total.sys_ticks as f64);
        // Within less than a tick the division is not known.
        let user_share = if user + sys > 0.0 { user / (user + sys) } else { 1.0 };
        let mut used = Used {
            user_s: total.cpu_s * user_share,
            sys_s: total.cpu_s * (1.0 - user_share),
            minor_faults: total.minor_faults,
            major_faults: total.major_faults,
            ..Used::default()
        };
        let mut queued_ns = 0;
        for (thread, now) in &self.threads {
            let then = earlier.threads.get(thread).copied().unwrap_or_default();
            let (switches, before) = (now.switches, then.switches);
            used.voluntary_switches += switches.voluntary.saturating_sub(before.voluntary);
            used.involuntary_switches += switches.involuntary.saturating_sub(before.involuntary);
            queued_ns += now.queued_ns.saturating_sub(then.queued_ns);
        }
        used.queued_s = (!self.threads.is_empty()).then(|| queued_ns as f64 / 1e9);
        used
    }
}

/// CPU seconds that the processes of `family` have used so far.
pub(super) fn cpu_s(family: &Family) -> f64 {
    let members = family.members().into_iter();
    members.filter_map(Processes::of).map(|process| process.cpu_s).sum()
}

impl Processes {
    fn of(pid: Pid) -> Option<Processes> {
        let stat = Stat::of(&format!("/proc/{pid}"))?;
        let field = |number| stat.field::<u64>(number);
        let (user, sys) = (field(14)?, field(15)?);
        let (children_user, children_sys) = (field(16)?, field(17)?);
        let ticks_a_second = kernel::ticks_a_second();
        let own_s = match kernel::cpu_time(pid) {
            Some(time) => time.as_secs_f64(),
            None => (user + sys) as f64 / ticks_a_second,
        };
        Some(Processes {
            cpu_s: own_s + (children_user + children_sys) as f64 / ticks_a_second,
            user_ticks: user + children_user,
            sys_ticks: sys + children_sys,
            minor_faults: field(10)? + field(11)?,
            major_faults: field(12)? + field(13)?,
        })
    }

    fn plus(self, other: Processes) -> Processes {
        Processes {
            cpu_s: self.cpu_s + other.cpu_s,
            user_ticks: self.user_ticks + other.user_ticks,
            sys_ticks: self.sys_ticks + other.sys_ticks,
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
        }
    }

    /// The difference; a process that nobody waited for takes its use with it, which must not make a sum negative.
    fn minus(self, other: Processes) -> Processes {
        Processes {
            cpu_s: (self.cpu_s - other.cpu_s).max(0.0),
            user_ticks: self.user_ticks.saturating_sub(other.user_ticks),
            sys_ticks: self.sys_ticks.saturating_sub(other.sys_ticks),
            minor_faults: self.minor_faults.saturating_sub(other.minor_faults),
            major_faults: self.major_faults.saturating_sub(other.major_faults),
        }
    }
}

impl Thread {
    fn of(pid: Pid, thread: Pid) -> Option<Thread> {
        let folder = format!("/proc/{pid}/task/{thread}");
        let switches = Switches::of(&folder)?;
        let queued_ns = Scheduled::of(&folder).map_or(0, |scheduled| scheduled.queued_ns);
        Some(Thread { switches, queued_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_more_and_more() {
        // This process as a family; it has no children to speak of.
        let family = Family::new(std::process::id().cast_signed(), Vec::new());
        let before = Consumption::of(&family);
        let mut pages = vec![0_u8; 64 << 20];
        pages.iter_mut().step_by(4096).for_each(|byte| *byte = byte.wrapping_add(1));
        let used = Consumption::of(&family).since(&before);
        std::hint::black_box(&pages);
        assert!(used.user_s + used.sys_s > 0.0, "{used:?}");
        assert!(used.minor_faults > 0 && used.queued_s.is_some(), "{used:?}");
        assert_eq!(before.since(&Consumption::of(&family)).minor_faults, 0);
    }
}
