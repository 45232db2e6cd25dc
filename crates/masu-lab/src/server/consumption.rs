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
    total: Sums,
    threads: HashMap<Pid, Thread>,
}

/// Sums over processes, their ended children included: CPU seconds, ticks in their own code and in the kernel, page
/// faults without disk and with it.
type Sums = [f64; 5];

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
            for (sum, own) in all.total.iter_mut().zip(sums(pid).unwrap_or_default()) {
                *sum += own;
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
        // A process that nobody waited for takes its use with it, which must not make a difference negative.
        let used = |index: usize| (self.total[index] - earlier.total[index]).max(0.0);
        let [cpu_s, user, sys, minor, major] = [0, 1, 2, 3, 4].map(used);
        // Within less than a tick the division is not known.
        let user_share = if user + sys > 0.0 { user / (user + sys) } else { 1.0 };
        let mut used = Used {
            user_s: cpu_s * user_share,
            sys_s: cpu_s * (1.0 - user_share),
            minor_faults: minor as u64,
            major_faults: major as u64,
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
    family.members().into_iter().filter_map(sums).map(|[cpu_s, ..]| cpu_s).sum()
}

fn sums(pid: Pid) -> Option<Sums> {
    let stat = Stat::of(&format!("/proc/{pid}"))?;
    let pair =
        |number| Some((stat.field::<u64>(number)? as f64, stat.field::<u64>(number + 1)? as f64));
    let ((user, sys), (children_user, children_sys)) = (pair(14)?, pair(16)?);
    let ((minor, children_minor), (major, children_major)) = (pair(10)?, pair(12)?);
    let ticks_a_second = kernel::ticks_a_second();
    let own_s =
        kernel::cpu_time(pid).map_or((user + sys) / ticks_a_second, |time| time.as_secs_f64());
    let cpu_s = own_s + (children_user + children_sys) / ticks_a_second;
    let (user, sys) = (user + children_user, sys + children_sys);
    Some([cpu_s, user, sys, minor + children_minor, major + children_major])
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
