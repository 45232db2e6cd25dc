//! The neighbors of a run: the share of the machine that others used during the run, and a test of whether the run's
//! times say more about them.
//!
//! `/proc/stat` counts in ticks of 10 ms, here for the CPUs that the run may use. A thread that is ready but has no
//! CPU may wait for a neighbor, or for another thread of its own program. So a wait counts only as far as somebody
//! else was seen to use the CPUs.

use std::fs;

use crate::kernel;
use crate::proc_files::CpuTicks;

/// The share of its time that a run may lose to neighbors: of the time its threads wanted a CPU, or
/// of the whole where that is longer.
const STARVED_SHARE: f64 = 0.1;

/// The machine's counters when a run began.
#[derive(Debug)]
pub struct Neighbors {
    before: Option<Times>,
    load: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Interference {
    /// CPU seconds used by everyone, the run included, on the CPUs it may use.
    pub(crate) busy_s: Option<f64>,
    /// Seconds the hypervisor gave those CPUs to other machines.
    pub steal_s: Option<f64>,
    /// The one-minute load average when the run began.
    pub load: Option<f64>,
    /// The number of CPUs that the run may use.
    pub cpus: usize,
}

/// Seconds since the machine started, summed over some CPUs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Times {
    busy_s: f64,
    steal_s: f64,
    cpus: usize,
}

impl Neighbors {
    pub fn look() -> Neighbors {
        Neighbors { before: Times::now(), load: load() }
    }

    /// Reads the counters again when the run has ended.
    pub fn interference(&self) -> Interference {
        let both = self.before.zip(Times::now());
        let difference = |of: fn(Times) -> f64| both.map(|(from, to)| (of(to) - of(from)).max(0.0));
        Interference {
            busy_s: difference(|times| times.busy_s),
            steal_s: difference(|times| times.steal_s),
            load: self.load,
            cpus: self.before.map_or(1, |times| times.cpus),
        }
    }
}

impl Interference {
    /// CPU seconds that others used, this process among them; the run itself used `own_s`.
    pub fn others_s(&self, own_s: f64) -> Option<f64> {
        self.busy_s.map(|busy_s| (busy_s - own_s).max(0.0))
    }

    /// True if a run that used `own_s` CPU seconds, waited `queued_s` for a CPU and had at most `threads` at once lost
    /// so much to others that it says little about the program.
    ///
    /// The loss is the wait for a CPU, as far as others used the CPUs in that time, and the run's share of the time
    /// that the hypervisor took. A doubt of one tick a CPU is granted to the others, because a short run may fall
    /// between two ticks; not if the run had more threads than CPUs, because those wait for each other. A run that
    /// mostly sleeps or reads is not longer by more than it lost, so its loss is measured against all of its `wall_s`.
    pub(crate) fn starved(
        &self,
        wall_s: f64,
        own_s: f64,
        queued_s: Option<f64>,
        threads: usize,
    ) -> bool {
        let queued_s = queued_s.unwrap_or(0.0);
        let steal_s = self.steal_s.unwrap_or(0.0);
        let others_s = self.others_s(own_s);
        let waits_for_itself = threads > self.cpus;
        let ticks_s = self.cpus as f64 / kernel::ticks_a_second();
        let doubt_s = if waits_for_itself { 0.0 } else { ticks_s };
        // If the kernel does not report the CPU time of others, a wait counts against them.
        let used_s = others_s.map_or(f64::INFINITY, |others_s| others_s + doubt_s);
        let stolen_s = steal_s * own_s / (own_s + others_s.unwrap_or(0.0)).max(f64::MIN_POSITIVE);
        let lost_s = queued_s.min(used_s + steal_s - stolen_s) + stolen_s;
        lost_s > STARVED_SHARE * (lost_s + own_s).max(wall_s)
    }
}

impl Times {
    fn now() -> Option<Times> {
        Times::of(&CpuTicks::of_all(), kernel::prices::allowed_cpus()?)
    }

    /// Adds up the times of the allowed CPUs; none if there is no such CPU.
    fn of(cpus: &[CpuTicks], is_allowed: impl Fn(usize) -> bool) -> Option<Times> {
        let mut times = Times { busy_s: 0.0, steal_s: 0.0, cpus: 0 };
        for cpu in cpus.iter().filter(|cpu| is_allowed(cpu.number)) {
            times.busy_s += (cpu.user + cpu.system) as f64 / kernel::ticks_a_second();
            times.steal_s += cpu.stolen as f64 / kernel::ticks_a_second();
            times.cpus += 1;
        }
        (times.cpus > 0).then_some(times)
    }
}

fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interference(busy_s: f64, steal_s: f64) -> Interference {
        Interference { busy_s: Some(busy_s), steal_s: Some(steal_s), load: None, cpus: 2 }
    }

    #[test]
    fn only_the_cpus_that_may_be_used_are_added_up() {
        let tick_s = 1.0 / kernel::ticks_a_second();
        let stat = "cpu 9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 4 1000 1000 8 16 32 0 0\n\
                    cpu1 1 1 1 1 1 1 1 1 0 0\ncpu10 5 5 5 5 5 5 5 5 0 0\nintr 7 7 7\n";
        let cpus = CpuTicks::read(stat);
        let times = Times::of(&cpus, |cpu| [0, 1, 7].contains(&cpu)).unwrap();
        assert_eq!(times.cpus, 2);
        assert!((times.busy_s - 36.0 * tick_s).abs() < 1e-9, "{times:?}");
        assert!((times.steal_s - 33.0 * tick_s).abs() < 1e-9, "{times:?}");
        assert_eq!(Times::of(&cpus, |cpu| cpu == 3), None);
    }

    #[test]
    fn this_machine_tells_what_it_does() {
        let neighbors = Neighbors::look();
        let interference = neighbors.interference();
        assert!(interference.cpus >= 1 && interference.load.is_some(), "{interference:?}");
        assert!(
            interference.busy_s.is_some() && interference.steal_s.is_some(),
            "{interference:?}"
        );
    }

    #[test]
    fn a_run_starves_where_others_took_what_it_waited_for() {
        // The seconds of others and of the hypervisor, then the run's wall-clock time, CPU time and wait, its threads.
        for (what, [busy_s, steal_s], [wall_s, cpu_s], queued_s, threads, expected) in [
            ("another program had half of the CPU", [4.0, 0.0], [2.0, 1.0], Some(1.0), 1, true),
            // Eight threads on two CPUs: each waits three quarters of the time.
            ("its threads wait for each other", [2.0, 0.0], [1.0, 2.0], Some(6.0), 8, false),
            ("others had a quarter of the CPUs too", [2.0, 0.0], [1.0, 1.5], Some(6.0), 8, true),
            ("others were on a free CPU", [2.0, 0.0], [1.001, 1.0], Some(0.001), 1, false),
            ("it sleeps, and waits a fifth", [0.05, 0.0], [0.05, 0.001], Some(0.0002), 1, false),
            ("it waits for a tenth of its time", [0.05, 0.0], [0.05, 0.001], Some(0.006), 1, true),
            ("less than a tick, two threads", [0.0, 0.0], [0.004, 0.002], Some(0.002), 2, true),
            ("less than a tick, three threads", [0.0, 0.0], [0.004, 0.002], Some(0.002), 3, false),
            ("the hypervisor took half a second", [1.0, 0.5], [1.5, 1.0], Some(0.0), 1, true),
            ("the hypervisor did, no wait is known", [1.0, 0.5], [1.5, 1.0], None, 1, true),
            ("the neighbors lost most of it", [10.0, 0.5], [1.5, 1.0], Some(0.0), 1, false),
        ] {
            let starved = interference(busy_s, steal_s).starved(wall_s, cpu_s, queued_s, threads);
            assert_eq!(starved, expected, "{what}");
        }
        let silent = Interference { busy_s: None, ..interference(0.0, 0.0) };
        assert!(silent.starved(2.0, 1.0, Some(1.0), 1), "the kernel does not report others");
    }
}
