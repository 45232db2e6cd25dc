//! The facts seen of a program, before any judgement: numbers alone.
//!
//! Relies on nothing. The difficulty is the clock: a counted run takes longer than another, so costs are compared with
//! the time that the run would have taken without its stops.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::samples::Sampled;
use super::thresholds::{
    BUSY_SHARE, HUGE_BYTES, HUGE_PAGE, IDLE_SHARE, LITTLE_SHARE, OWN_BYTES, OWN_REACH,
    STARVED_SHARE,
};
use masu_run::calls::{CallKind, Calls, Lock, Moves, Owner, Sampling, SmallWrites};
use masu_run::prices::{Prices, Service};
use masu_run::program::elf::STATIC_GLIBC;
use masu_run::{Call, Ending, Scatter};

/// Everything that a judgement rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// How the run ended; none for a process that went on.
    pub ending: Option<String>,
    /// The program's failure; none if it did not fail, or was stopped.
    pub failure: Option<Failure>,
    /// The times of the run.
    pub clock: Clock,
    pub others: Others,
    pub memory: Memory,
    /// System calls; none if they were not counted.
    pub calls: Option<CallFacts>,
    pub threads: Threads,
    /// The programs that ran, by the CPU time they took, the most first.
    pub programs: Vec<ProgramTime>,
    /// The command's name, if the command is a program that starts others (a shell, cargo, npm).
    pub wrapper: Option<String>,
    /// The build of the program that took most CPU time, as far as its file shows.
    pub build: Build,
    /// The scatter of the program's code over mappings.
    pub code: Option<Scatter>,
    /// Samples of the program's CPU time; none if perf events are not available.
    pub samples: Option<Sampled>,
    pub malloc: Malloc,
    /// The facts that only masu sees, from further runs or from a process that runs on masu; none without either.
    pub inside: Option<Inside>,
    /// The prices of the kernel's services on this machine.
    pub prices: Prices,
    /// The CPUs that the program may use.
    pub cpus: usize,
    /// Resident bytes over time, `(seconds, bytes)`.
    pub rss_over_time: Vec<(f64, u64)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The end as a predicate: `returned 3`, `was ended by signal 11 (SIGSEGV)`.
    pub how: String,
    /// The exit code; none if the program was killed.
    pub code: Option<i32>,
    /// Whether the program was killed because it held more memory than its limit.
    pub is_over_limit: bool,
    /// The last lines that the program wrote to its standard error.
    pub last_lines: Vec<String>,
}

impl Failure {
    /// The most lines that are kept, and the most characters of each.
    const LINES: usize = 5;
    const CHARACTERS: usize = 200;

    /// The failure of a run with this ending and output; none if the run ended well, or somebody ended it.
    #[must_use]
    pub fn of(ending: &Ending, stderr: &str) -> Option<Failure> {
        let (code, is_over_limit) = match ending {
            Ending::Exited(0) | Ending::TimedOut | Ending::Stopped => return None,
            Ending::Exited(code) => (Some(*code), false),
            Ending::Signalled(_) => (None, false),
            Ending::OutOfMemory { .. } => (None, true),
        };
        let shown = |line: &str| -> String {
            let shown = line.chars().map(|c| if c.is_control() { ' ' } else { c });
            shown.take(Failure::CHARACTERS).collect()
        };
        let mut last_lines: Vec<String> =
            stderr.lines().rev().map(shown).filter(|line| !line.trim().is_empty()).collect();
        last_lines.truncate(Failure::LINES);
        last_lines.reverse();
        Some(Failure { how: ending.to_string(), code, is_over_limit, last_lines })
    }

    /// Whether the exit code may be the program's answer: solvers, and programs that search or compare, answer by it and
    /// write nothing to their standard error. A shell returns the codes from 126 on.
    pub(super) fn may_be_answer(&self) -> bool {
        self.last_lines.is_empty() && self.code.is_some_and(|code| (1..126).contains(&code))
    }
}

/// The times of a run, in seconds, and its stops and context switches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Clock {
    /// Wall-clock time, as measured.
    pub wall_s: f64,
    /// CPU time in the program's own code.
    pub user_s: f64,
    /// CPU time in the kernel for the program, stops for counting included.
    pub sys_s: f64,
    /// The kernel's time without stops for counting. If stops are much of it: the counted services at their prices.
    pub own_sys_s: f64,
    /// Wall-clock time that stops for counting took.
    pub counting_s: f64,
    /// The wall-clock time of the run in which calls were counted, if that was another one; otherwise zero.
    pub counted_run_s: f64,
    /// The kernel's share of the CPU time in a look before the process was attached to; none if there was no such look,
    /// or too little CPU time in it.
    pub kernel_share_before: Option<f64>,
    /// Time that the threads waited for a CPU while others had it, added up.
    pub queued_s: f64,
    /// The number of times that a thread was stopped.
    pub stops: u64,
    /// Context switches because a thread waited for something, without stops for counting; 0 where the kernel counts
    /// none.
    pub voluntary_switches: u64,
    /// Context switches because a thread's time slice was over.
    pub involuntary_switches: u64,
}

impl Clock {
    /// The voluntary switches among `all` that the kernel counted: each stop for counting is one of those.
    pub(super) fn switches_without(stops: u64, all: u64) -> u64 {
        if all == 0 { 0 } else { all.saturating_sub(stops).max(1) }
    }

    /// The wall-clock time without counting and without waits for a CPU that others had. Threads are stopped and wait
    /// side by side too, so the result is never less than the CPU time spread over all CPUs.
    #[must_use]
    pub fn own_wall_s(&self, cpus: usize) -> f64 {
        let least_s = self.least_s(cpus);
        (self.wall_s - self.counting_s - self.queued_s).max(least_s).min(self.wall_s)
    }

    /// The least wall-clock time that the program itself took.
    pub(super) fn least_s(&self, cpus: usize) -> f64 {
        (self.own_cpu_s() / cpus.max(1) as f64).max(self.wall_s / 100.0)
    }

    /// The CPU time without the part that counting added.
    pub(crate) fn own_cpu_s(&self) -> f64 {
        self.user_s + self.own_sys_s
    }

    /// The time that a cost in seconds is compared with: CPU time if several CPUs worked, else wall-clock time.
    pub(crate) fn whole_s(&self, cpus: usize) -> f64 {
        self.own_wall_s(cpus).max(self.own_cpu_s()).max(1e-9)
    }
}

/// The use of the machine by others during a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Others {
    /// The share that others used of the CPUs that the program may use; none if it is not known.
    pub share: Option<f64>,
    /// The share that the hypervisor gave to other machines.
    pub stolen_share: Option<f64>,
    /// The share of the time in which the program's threads wanted a CPU that they spent waiting for one.
    pub waited_share: f64,
    /// The one-minute load average when the run started.
    pub load: Option<f64>,
}

impl Others {
    /// The share of all CPUs that was not available.
    #[must_use]
    pub fn taken_share(&self) -> f64 {
        (self.share.unwrap_or(0.0) + self.stolen_share.unwrap_or(0.0)).min(1.0)
    }

    /// Whether others took so much that findings which rest on time are less sure.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.taken_share() >= BUSY_SHARE
    }

    /// Whether the program waited for a CPU that others had for at least as long as it had one.
    #[must_use]
    pub fn starves(&self) -> bool {
        self.is_busy() && self.waited_share >= STARVED_SHARE
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Memory {
    /// The peak of resident memory.
    pub peak_rss_bytes: u64,
    /// The median of resident memory in the second half of the run.
    pub late_rss_bytes: u64,
    /// Page faults without disk.
    pub minor_faults: u64,
    /// Page faults that read from disk.
    pub major_faults: u64,
    /// Page faults of memory that had been there before; none if the peaks of processes are not known.
    pub refaults: Option<u64>,
    pub os_page_bytes: u64,
    /// The most bytes that were swapped out.
    pub swapped_bytes: u64,
    /// The most bytes in huge pages.
    pub huge_bytes: u64,
    /// The share of the examined OS pages of huge pages that held nothing but zeros; none if no page was examined.
    pub huge_unused: Option<f64>,
    /// The growth of resident memory, if it goes on to the end.
    pub growth: Option<Growth>,
    /// glibc's heap at the last walk before the program was about to end.
    pub heap: Option<Heap>,
}

/// Resident memory that grows all the time, except in the first fifth of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Growth {
    /// The bytes by which the memory grew.
    pub bytes: u64,
    /// The time in which the memory grew, in seconds.
    pub over_s: f64,
}

/// A walk through glibc's first heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Heap {
    pub bytes: u64,
    pub walked_bytes: u64,
    /// Bytes of free blocks among the walked bytes.
    pub free_bytes: u64,
    /// The time of the walk, in seconds after the start of the run.
    pub at_s: f64,
}

impl Heap {
    /// Bytes of the heap that are free, if the rest is like the walked part.
    #[must_use]
    pub fn free(&self) -> f64 {
        self.free_bytes as f64 * self.bytes as f64 / (self.walked_bytes as f64).max(1.0)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CallFacts {
    /// The count of each system call; calls that were not made are left out.
    pub counts: BTreeMap<&'static str, u64>,
    /// The kinds of calls that took most time, including those that are not counted separately.
    pub kinds: Vec<CallKind>,
    /// The moves of memory between the program and the kernel.
    pub moves: Moves,
    pub small_writes: SmallWrites,
    /// The futex calls that asked to sleep.
    pub futex_waits: u64,
    /// Programs that would have had more rights than their user, but did not because they were traced.
    pub without_rights: Vec<String>,
    pub locks: Vec<Lock>,
    pub more_lock_waits: u64,
    /// Threads that were started, without the first of each process.
    pub threads_started: u64,
    /// Processes, the first among them.
    pub processes: u64,
    /// The sampling of calls; none if all calls were counted. With sampling the numbers are estimates.
    pub sampled: Option<Sampling>,
    /// Calls by which other processes could see the program; none if not every call was seen.
    pub outward: Option<u64>,
}

impl CallFacts {
    #[must_use]
    pub fn of(calls: &Calls) -> CallFacts {
        // The programs that were run are known without samples.
        let begun = calls.sampled.map_or(0, |_| calls.programs_begun);
        let count = |call: &Call| match call {
            Call::Execve => calls.total.of(*call).max(begun),
            call => calls.total.of(*call),
        };
        let counts = Call::ALL.iter().map(|call| (call.name(), count(call)));
        CallFacts {
            counts: counts.filter(|(_, count)| *count > 0).collect(),
            kinds: calls.kinds.clone(),
            moves: calls.total.moves,
            small_writes: calls.small_writes,
            futex_waits: calls.total.futex_waits,
            without_rights: calls
                .privileged
                .iter()
                .map(|(program, _)| program.display().to_string())
                .collect(),
            locks: calls.locks.clone(),
            more_lock_waits: calls.more_lock_waits,
            threads_started: calls.threads_begun.saturating_sub(calls.processes),
            processes: calls.processes,
            sampled: calls.sampled,
            outward: calls.outward,
        }
    }

    /// Waits for locks of this owner, among the locks that are kept apart.
    pub(crate) fn lock_waits(&self, owner: Owner) -> u64 {
        self.locks.iter().filter(|lock| lock.owner == owner).map(|lock| lock.waits).sum()
    }

    /// The calls that may have slept: all but those that wake a thread.
    pub(crate) fn all_but_wakes(&self) -> u64 {
        let of_kinds = self.kinds.iter().map(|kind| kind.calls).sum::<u64>();
        let all = self.counts.values().sum::<u64>().max(of_kinds);
        let futex = self.counts.get("futex").copied().unwrap_or(0);
        all - futex.saturating_sub(self.futex_waits).min(all)
    }
}

/// The work of the threads, and their waits. Seconds are times between looks, which are at least 10 ms apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Threads {
    pub looks: u64,
    /// Seconds from the first look to the last.
    pub looked_s: f64,
    /// The most threads that lived at once.
    pub most_at_once: usize,
    /// CPU time of all threads, including those that lived only between two looks.
    pub cpu_s: f64,
    pub busiest: Vec<ThreadTime>,
    /// Seconds in which one thread did almost all the work. Other processes that together did less than half of the
    /// work of its own process are left out.
    pub alone_s: f64,
    /// Seconds in which several threads worked at once, by the same rule.
    pub together_s: f64,
    /// CPU time of the parallel part, in which no thread did almost all the work, or a thread waited for a lock.
    pub parallel_cpu_s: f64,
    /// Seconds in which hardly any work was done.
    pub idle_s: f64,
    /// Seconds in which threads were stopped for counting, and none ran.
    pub stopped_s: f64,
    /// The reasons of sleep while hardly any work was done, each with its seconds.
    pub idle_for: Vec<(Waiting, f64)>,
    /// Seconds that threads slept until a lock was free, by the lock's owner, added up over the threads.
    pub lock_waited: Vec<(Owner, f64)>,
    /// The part of `lock_waited` in which hardly any work was done: the holder of the lock slept too.
    pub lock_waited_idle: Vec<(Owner, f64)>,
    /// The share of the time of threads at work in which they slept for locks other than the malloc's, in a look before
    /// the process was attached to; none if it was not.
    pub lock_share_before: Option<f64>,
    /// The most arenas of glibc, without the first, that a process was seen to have at once.
    pub arenas: usize,
}

impl Threads {
    /// Seconds that threads slept until a lock of this owner was free.
    pub(crate) fn waited_for(&self, owner: Owner) -> f64 {
        of_owner(&self.lock_waited, owner)
    }

    /// The same without the seconds in which hardly any work was done.
    pub(crate) fn waited_beside_work(&self, owner: Owner) -> f64 {
        self.waited_for(owner) - of_owner(&self.lock_waited_idle, owner)
    }
}

fn of_owner(waited: &[(Owner, f64)], owner: Owner) -> f64 {
    waited.iter().filter(|(whose, _)| *whose == owner).map(|(_, time)| time).sum()
}

/// The reason why an idle program waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Data, from a file, a pipe or a socket.
    Data,
    Lock,
    /// Requests, or any other event.
    Requests,
    /// A time to pass.
    Time,
    /// The program's own threads or children.
    Itself,
    Other,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ThreadTime {
    pub name: String,
    pub process: i32,
    pub is_first: bool,
    pub cpu_s: f64,
    /// Seconds in which the thread did almost all the work.
    pub alone_s: f64,
    /// The part of `alone_s` in which the other threads did nothing at all and no thread waited for a lock.
    pub serial_s: f64,
    /// Seconds in which the thread and others worked.
    pub together_s: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProgramTime {
    pub path: PathBuf,
    /// CPU time of the program's processes, without that of their children.
    pub cpu_s: f64,
    /// Stops for counting, noted only for the command's own programs.
    pub stops: u64,
    /// Whether this is the command's own program, or another wrapper that the command became.
    pub is_command: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Build {
    /// The examined file.
    pub path: PathBuf,
    /// The sign that the program was compiled without optimization; none if there is no sign.
    pub unoptimized: Option<String>,
    /// Whether the sign leaves no doubt.
    pub is_certain: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Malloc {
    /// The malloc's name in the catalogue; `unknown` if it is not known.
    pub name: String,
    /// The reason why no malloc can be preloaded in its place, if there is one.
    pub refusal: Option<String>,
}

impl Malloc {
    /// Whether the program is linked statically, so that it loads no malloc.
    pub(super) fn is_static(&self) -> bool {
        self.refusal.as_ref().is_some_and(|why| why.contains("static"))
    }

    /// Whether glibc is linked into the program, which reads its tunables then.
    pub(super) fn is_static_glibc(&self) -> bool {
        self.refusal.as_ref().is_some_and(|why| why.contains(STATIC_GLIBC))
    }
}

/// The results of further runs: on masu, whose statistics show how much the program holds, and on its counting build.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Inside {
    /// Requests for memory, and the CPU seconds of the run that counted them.
    pub requests: Option<(u64, f64)>,
    /// Blocks that threads fetched for themselves.
    pub fetched_blocks: u64,
    /// Blocks that threads freed beyond those that they had fetched: other threads had fetched them.
    pub remote_blocks: u64,
    /// The median of the bytes handed out in the second half of the run. None if the run was over too soon.
    pub live_late_bytes: Option<u64>,
    /// The median of the resident bytes in the second half of the run on masu. None if the run was over too soon.
    pub resident_late_bytes: Option<u64>,
    /// The functions that request most blocks, by a heap profile of the run on masu.
    pub sites: Vec<Site>,
    /// The function that requested most of the bytes that lived when the last profile was written.
    pub held: Option<Site>,
}

/// A function that requests memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Site {
    pub function: String,
    /// The place in the function's source, if it is known: `file.c:12`.
    pub place: Option<String>,
    /// The approximate share of all requested blocks, or of the bytes that lived.
    pub share: f64,
}

impl Facts {
    /// Whether the program did its work and ended: its times are worth something.
    pub(super) fn has_ended_well(&self) -> bool {
        self.ending.as_deref() == Some("returned 0")
            || self.failure.as_ref().is_some_and(Failure::may_be_answer)
    }

    /// The price of a service in seconds; zero if it is not known, so that nothing is blamed on the service.
    pub(crate) fn price_s(&self, service: Service) -> f64 {
        self.prices.of(service).unwrap_or(0.0) / 1e9
    }

    /// The cost of small writes, in seconds: writes to terminals have their own price, if it is known.
    pub(crate) fn small_writes_s(&self) -> f64 {
        let Some(calls) = &self.calls else { return 0.0 };
        let writes = &calls.small_writes;
        let price_s = self.price_s(Service::SmallWrite);
        let terminal_s = self.prices.of(Service::TerminalWrite).map_or(price_s, |ns| ns / 1e9);
        (writes.pipes + writes.files) as f64 * price_s + writes.terminals as f64 * terminal_s
    }

    /// The samples, if they show shares.
    #[must_use]
    pub fn sampled(&self) -> Option<&Sampled> {
        self.samples.as_ref().filter(|sampled| sampled.show_shares())
    }

    /// The bytes that the malloc requested, at most; none if calls were not counted. The calls of a static program all
    /// come from its own code, and any of them may be its malloc's.
    pub(crate) fn asked_by_malloc_bytes(&self) -> Option<u64> {
        let moves = &self.calls.as_ref()?.moves;
        let is_static = self.malloc.is_static();
        Some(if is_static { moves.asked_bytes } else { moves.asked_by_malloc_bytes() })
    }

    /// The share of the touched memory that the malloc requested, at most; none if calls were not counted.
    pub(crate) fn reach(&self) -> Option<f64> {
        let touched = self.memory.minor_faults * self.memory.os_page_bytes;
        Some(self.asked_by_malloc_bytes()? as f64 / (touched as f64).max(1.0))
    }

    /// Whether the malloc asked for much memory that was never touched, and that huge pages would hold. Samples of calls
    /// do not show it, nor do the calls of a malloc that makes memory of far more than it hands out, as mimalloc does.
    pub(crate) fn is_sparse(&self) -> bool {
        let are_counted = self.calls.as_ref().is_some_and(|calls| calls.sampled.is_none());
        if !are_counted || !matches!(self.malloc.name.as_str(), "glibc" | "masu") {
            return false;
        }
        let touched = self.memory.minor_faults * self.memory.os_page_bytes;
        let untouched = self.asked_by_malloc_bytes().unwrap_or(0).saturating_sub(touched);
        self.memory.huge_bytes == 0 && untouched >= HUGE_BYTES.max(touched)
    }

    /// Whether no other malloc can gain much: the program maps its memory itself, and samples hardly meet the malloc.
    pub(crate) fn is_beyond_mallocs(&self) -> bool {
        let malloc =
            self.sampled().map(|sampled| self.share(sampled.malloc_share * self.clock.user_s));
        self.memory.peak_rss_bytes >= OWN_BYTES
            && malloc.is_some_and(|share| share < LITTLE_SHARE)
            && self.reach().is_some_and(|reach| reach < OWN_REACH)
    }

    /// Whether little is left for another malloc: a small heap, and samples that hardly meet the malloc.
    pub(crate) fn has_little_heap(&self) -> bool {
        let are_counted = self.calls.as_ref().is_some_and(|calls| calls.sampled.is_none());
        let asked = self.asked_by_malloc_bytes().filter(|_| are_counted);
        asked.unwrap_or(self.memory.peak_rss_bytes) < HUGE_PAGE
            && self.sampled().is_some_and(|sampled| sampled.malloc_share < LITTLE_SHARE)
    }

    /// The part of the watched time that the program could use: it was neither stopped for counting nor, if others have
    /// the CPUs, waiting for one.
    pub(crate) fn had_s(&self) -> f64 {
        let threads = &self.threads;
        let at_work_s = (threads.looked_s - threads.stopped_s - threads.idle_s).max(0.0);
        let waited = if self.others.is_busy() { self.others.waited_share } else { 0.0 };
        threads.idle_s + at_work_s * (1.0 - waited)
    }

    /// True if nothing had anything to do for most of the time.
    pub(crate) fn is_idle(&self) -> bool {
        self.threads.idle_s > 0.0 && self.threads.idle_s >= IDLE_SHARE * self.had_s()
    }

    /// `cost_s` as a share of the whole run.
    #[must_use]
    pub fn share(&self, cost_s: f64) -> f64 {
        cost_s / self.clock.whole_s(self.cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_were_run_are_counted_where_calls_are_sampled() {
        let mut calls = Calls { programs_begun: 401, ..Calls::default() };
        assert_eq!(CallFacts::of(&calls).counts.get("execve"), None);
        calls.sampled = Some(Sampling::default());
        assert_eq!(CallFacts::of(&calls).counts["execve"], 401);
    }
}
