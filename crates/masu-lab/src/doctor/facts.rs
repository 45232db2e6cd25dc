//! The permissions and limits of a machine, each with a remedy.
//!
//! Observation and judgement are apart: [`Seen`] holds the kernel's answers and the results of tries, and the
//! judgement is a function of it alone, so that tests can give it any machine.

use std::io;

use serde::Serialize;

use crate::report::{bytes, count};
use masu_run::kernel::prices::{self as door, Counter};
use masu_run::{Catalogue, execute, kernel, machine};

/// Linux's own `vm.max_map_count`; many mallocs and JITs are built to live with it.
const MAPPINGS_USUAL: u64 = 65_530;

/// With less available memory than this, ordinary comparisons (compilers, servers) run into the limit.
const LITTLE_MEMORY: u64 = 1 << 30;

/// With fewer available threads than this, programs that start a thread for each task are refused some.
const FEW_THREADS: u64 = 1024;

/// Mallocs and runtimes reserve far more addresses than they use; with fewer than this, some are refused.
const FEW_ADDRESSES: u64 = 64 << 30;

/// Whether something should be done about a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The fact is as it should be.
    Fine,
    /// The fact limits the programs here, or masu's view of them.
    Limits,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    pub name: &'static str,
    pub value: String,
    pub standing: Standing,
    /// The action to take, and its reason; none where nothing has to be done.
    pub remedy: Option<String>,
}

#[derive(Debug, Default)]
struct Seen {
    mallocs: Vec<String>,
    huge_pages: Option<String>,
    overcommit: Option<String>,
    /// The error that refused counting by the CPU clock, or by cycles.
    clock_refused: Option<io::Error>,
    cycles_refused: Option<io::Error>,
    paranoid: Option<String>,
    tracing_refused: Option<io::Error>,
    yama: Option<String>,
    cpus: usize,
    cpus_online: Option<String>,
    cpu_quota: Option<f64>,
    governor: Option<String>,
    memory_bytes: Option<u64>,
    memory_room: Option<u64>,
    thread_room: Option<u64>,
    swap_bytes: Option<u64>,
    swap_free: Option<u64>,
    mappings: Option<u64>,
    address_space: Option<u64>,
    os_page_bytes: u64,
    host_takes_free_memory: bool,
}

pub(super) fn here(catalogue: &Catalogue) -> Vec<Fact> {
    // A run in progress would take the children of these tries for its own.
    let _alone = execute::alone();
    Seen::look(catalogue).judge()
}

impl Seen {
    fn look(catalogue: &Catalogue) -> Seen {
        let line = machine::line;
        let mallocs = catalogue.allocators.iter().map(|one| match &one.version {
            Some(version) => format!("{} {version}", one.name),
            None => one.name.clone(),
        });
        let mut mallocs: Vec<String> = mallocs.collect();
        // The catalogue has a masu for each C library.
        mallocs.dedup();
        Seen {
            mallocs,
            huge_pages: machine::chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
            overcommit: line("/proc/sys/vm/overcommit_memory"),
            clock_refused: door::try_counting(Counter::Clock).err(),
            cycles_refused: door::try_counting(Counter::Cycles).err(),
            paranoid: line("/proc/sys/kernel/perf_event_paranoid"),
            tracing_refused: door::try_tracing().err(),
            yama: line("/proc/sys/kernel/yama/ptrace_scope"),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpus_online: line("/sys/devices/system/cpu/online"),
            cpu_quota: machine::cpu_quota(),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            memory_bytes: machine::memory("MemTotal"),
            memory_room: machine::memory_room(),
            thread_room: machine::thread_room(),
            swap_bytes: machine::memory("SwapTotal"),
            swap_free: machine::memory("SwapFree"),
            mappings: line("/proc/sys/vm/max_map_count").and_then(|text| text.parse().ok()),
            address_space: door::address_space_limit(),
            os_page_bytes: kernel::os_page_bytes(),
            host_takes_free_memory: machine::host_takes_free_memory(),
        }
    }

    fn judge(&self) -> Vec<Fact> {
        let facts = [
            Some(self.mallocs()),
            Some(self.huge_pages()),
            Some(self.overcommit()),
            Some(self.cpus()),
            self.governor(),
            Some(self.memory()),
            self.swap(),
            self.mappings(),
            self.addresses(),
            self.threads(),
            Some(self.counting()),
            Some(self.tracing()),
        ];
        facts.into_iter().flatten().collect()
    }

    fn mallocs(&self) -> Fact {
        let remedy = "few to compare with: `masu list` names the packages that bring others";
        enough("mallocs", self.mallocs.join(", "), self.mallocs.len() > 2, remedy)
    }

    fn huge_pages(&self) -> Fact {
        let page = format!("OS pages of {}", readable(self.os_page_bytes));
        match self.huge_pages.as_deref() {
            Some("never") => limits(
                "huge pages",
                format!("never; {page}"),
                "large heaps fault and miss the TLB for every OS page; as root: \
                 echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
            ),
            Some("madvise") => fine("huge pages", format!("for those that ask (madvise); {page}")),
            Some("always") => fine("huge pages", format!("for everybody (always); {page}")),
            Some(other) => fine("huge pages", format!("{other}; {page}")),
            None => limits(
                "huge pages",
                format!("not in this kernel; {page}"),
                "what mallocs gain by huge pages cannot be seen here; a kernel with \
                 CONFIG_TRANSPARENT_HUGEPAGE has them",
            ),
        }
    }

    fn overcommit(&self) -> Fact {
        match self.overcommit.as_deref() {
            Some("2") => limits(
                "overcommit",
                "strict (2)".to_owned(),
                "memory counts when it is mapped, so mallocs and runtimes that map ahead may be \
                 refused it; as root: sysctl vm.overcommit_memory=0",
            ),
            Some("1") => fine("overcommit", "always granted (1)".to_owned()),
            Some("0") => fine("overcommit", "granted within reason (0)".to_owned()),
            other => fine("overcommit", other.unwrap_or("unknown").to_owned()),
        }
    }

    fn cpus(&self) -> Fact {
        let online = self.cpus_online.as_deref().unwrap_or("unknown");
        let value = format!("{} for this process; online: {online}", self.cpus);
        match self.cpu_quota {
            Some(quota) if quota < self.cpus as f64 => limits(
                "CPUs",
                format!("{value}; a quota of {quota:.1}"),
                "programs that start a thread for each CPU are stopped when the quota is used up, \
                 and their times jump; raise the container's CPU limit, or lower the threads",
            ),
            _ => fine("CPUs", value),
        }
    }

    fn governor(&self) -> Option<Fact> {
        let governor = self.governor.as_deref()?;
        let remedy =
            "times depend on what ran before; as root: cpupower frequency-set -g performance";
        Some(enough("frequency", governor.to_owned(), governor == "performance", remedy))
    }

    fn memory(&self) -> Fact {
        let mut value = self.memory_bytes.map_or("unknown".to_owned(), readable);
        if let Some(room) = self.memory_room.filter(|room| Some(*room) < self.memory_bytes) {
            value = format!("{value}, of which control groups leave {}", readable(room));
            if room < LITTLE_MEMORY {
                let remedy = "programs over it are killed; raise the container's memory limit";
                return limits("memory", value, remedy);
            }
        }
        if self.host_takes_free_memory {
            return limits(
                "memory",
                format!("{value}; the host takes back what is free (balloon)"),
                "fresh memory is slow for some seconds after the host took it; masu touches memory \
                 before each run, other tools do not",
            );
        }
        fine("memory", value)
    }

    fn swap(&self) -> Option<Fact> {
        let total = self.swap_bytes?;
        let used = total.saturating_sub(self.swap_free?);
        Some(match (total, used) {
            (0, _) => fine("swap", "none".to_owned()),
            (_, 0) => fine("swap", format!("{}, unused", readable(total))),
            _ => limits(
                "swap",
                format!("{} of {} in use", readable(used), readable(total)),
                "what was swapped out comes back from the disk, within somebody's run; end what \
                 takes the memory, then as root: swapoff -a && swapon -a",
            ),
        })
    }

    fn mappings(&self) -> Option<Fact> {
        let most = self.mappings?;
        let value = format!("at most {} a process", count(most as f64));
        let remedy =
            "mallocs and JITs that map much are refused; as root: sysctl vm.max_map_count=65530";
        Some(enough("mappings", value, most >= MAPPINGS_USUAL, remedy))
    }

    fn addresses(&self) -> Option<Fact> {
        let most = self.address_space?;
        let value = format!("at most {} a process (ulimit -v)", readable(most));
        let remedy =
            "mallocs and runtimes that reserve addresses ahead are refused: ulimit -v unlimited";
        Some(enough("addresses", value, most >= FEW_ADDRESSES, remedy))
    }

    fn threads(&self) -> Option<Fact> {
        let room = self.thread_room?;
        let value = format!("{} more in this control group", count(room as f64));
        let remedy = "programs with many threads fail; raise the container's pids limit";
        Some(enough("threads", value, room >= FEW_THREADS, remedy))
    }

    fn counting(&self) -> Fact {
        let paranoid = self.paranoid.as_deref().unwrap_or("unknown");
        match (&self.clock_refused, &self.cycles_refused) {
            (None, None) => fine("perf events", "CPU clock and hardware counters".to_owned()),
            (None, Some(_)) => fine(
                "perf events",
                "CPU clock; no hardware counters, which masu does without".to_owned(),
            ),
            (Some(refused), _) => limits(
                "perf events",
                format!("none: {refused} (perf_event_paranoid {paranoid})"),
                "profilers cannot sample; as root: sysctl kernel.perf_event_paranoid=2, in a \
                 container --cap-add PERFMON",
            ),
        }
    }

    fn tracing(&self) -> Fact {
        match (&self.tracing_refused, self.yama.as_deref()) {
            (Some(refused), _) => limits(
                "tracing",
                format!("forbidden: {refused}"),
                "masu cannot prove which malloc serves a program; in a container \
                 --cap-add SYS_PTRACE, or a seccomp profile that has ptrace",
            ),
            (None, Some("1" | "2")) => {
                fine("tracing", "programs that masu starts, not running ones".to_owned())
            }
            (None, _) => fine("tracing", "allowed".to_owned()),
        }
    }
}

fn fine(name: &'static str, value: String) -> Fact {
    Fact { name, value, standing: Standing::Fine, remedy: None }
}

fn limits(name: &'static str, value: String, remedy: &str) -> Fact {
    Fact { name, value, standing: Standing::Limits, remedy: Some(remedy.to_owned()) }
}

fn enough(name: &'static str, value: String, is_enough: bool, remedy: &str) -> Fact {
    if is_enough { fine(name, value) } else { limits(name, value, remedy) }
}

fn readable(size: u64) -> String {
    bytes(size as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which all is well.
    fn good() -> Seen {
        let text = |text: &str| Some(text.to_owned());
        Seen {
            mallocs: ["glibc 2.36", "masu 0.1.0", "jemalloc 5.3.0"].map(str::to_owned).to_vec(),
            huge_pages: text("madvise"),
            overcommit: text("0"),
            paranoid: text("2"),
            yama: text("1"),
            cpus: 2,
            cpus_online: text("0-1"),
            cpu_quota: Some(2.0),
            governor: text("performance"),
            memory_bytes: Some(8 << 30),
            memory_room: Some(4 << 30),
            thread_room: Some(4000),
            swap_bytes: Some(1 << 30),
            swap_free: Some(1 << 30),
            mappings: Some(MAPPINGS_USUAL),
            os_page_bytes: 4096,
            ..Seen::default()
        }
    }

    fn limiting(seen: &Seen) -> Vec<&'static str> {
        let facts = seen.judge();
        let limiting = facts.iter().filter(|fact| fact.standing == Standing::Limits);
        limiting.map(|fact| fact.name).collect()
    }

    #[test]
    fn a_good_machine_limits_nothing() {
        assert_eq!(limiting(&good()), [""; 0]);
        assert_eq!(good().judge().len(), 11, "{:?}", good().judge());
    }

    #[test]
    fn each_limit_is_named_alone_and_has_a_remedy() {
        let text = |text: &str| Some(text.to_owned());
        let refused = || Some(io::Error::from(io::ErrorKind::PermissionDenied));
        let cases = [
            ("mallocs", Seen { mallocs: vec!["glibc".to_owned()], ..good() }),
            ("huge pages", Seen { huge_pages: text("never"), ..good() }),
            ("huge pages", Seen { huge_pages: None, ..good() }),
            ("overcommit", Seen { overcommit: text("2"), ..good() }),
            ("CPUs", Seen { cpu_quota: Some(1.5), ..good() }),
            ("frequency", Seen { governor: text("powersave"), ..good() }),
            ("memory", Seen { memory_room: Some(100 << 20), ..good() }),
            ("memory", Seen { host_takes_free_memory: true, ..good() }),
            ("swap", Seen { swap_free: Some(0), ..good() }),
            ("mappings", Seen { mappings: Some(1000), ..good() }),
            ("addresses", Seen { address_space: Some(1 << 30), ..good() }),
            ("threads", Seen { thread_room: Some(10), ..good() }),
            ("perf events", Seen { clock_refused: refused(), ..good() }),
            ("tracing", Seen { tracing_refused: refused(), ..good() }),
        ];
        for (name, seen) in cases {
            assert_eq!(limiting(&seen), [name]);
            let facts = seen.judge();
            let fact = facts.iter().find(|fact| fact.standing == Standing::Limits).unwrap();
            assert!(fact.remedy.as_ref().is_some_and(|remedy| remedy.len() > 20), "{fact:?}");
        }
    }

    #[test]
    fn hardware_counters_are_no_need() {
        let refused = Some(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(limiting(&Seen { cycles_refused: refused, ..good() }), [""; 0]);
    }

    #[test]
    fn this_machine_is_looked_at() {
        let facts = here(&Catalogue::default());
        assert!(facts.iter().any(|fact| fact.name == "memory" && fact.value.contains("iB")));
        assert!(
            facts
                .iter()
                .all(|fact| fact.name.len() <= 14 && !fact.value.is_empty()
                    || fact.name == "mallocs")
        );
    }
}
