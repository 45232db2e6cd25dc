//! What was seen of a program, before anything is made of it: numbers alone.
//!
//! Relies on nothing. The hard idea is the clock: a run that is counted takes longer than another, so what its
//! time is held against is the time it would have taken without its stops.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::samples::Sampled;
use super::thresholds::{BUSY_SHARE, LITTLE_SHARE, OWN_BYTES, OWN_REACH, STARVED_SHARE};
use masu_run::calls::{CallKind, Calls, Lock, Moves, Owner, Sampling, SmallWrites};
use masu_run::prices::{Prices, Service};
use masu_run::{Call, Ending, Scatter};

/// Everything that a judgement rests on.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Facts {
    /// How the run ended; none for a process that went on.
    pub ending: Option<String>,
    /// How it failed; none where it did not, or was stopped.
    pub failure: Option<Failure>,
    /// Time.
    pub clock: Clock,
    /// What others on the machine did during the run.
    pub others: Others,
    /// Memory.
    pub memory: Memory,
    /// System calls; none where they were not counted.
    pub calls: Option<CallFacts>,
    /// Who worked and who waited.
    pub threads: Threads,
    /// The programs that ran, by the CPU time they took, the most first.
    pub programs: Vec<ProgramTime>,
    /// Whether the command itself is a program that starts others (a shell, cargo, npm), and which.
    pub wrapper: Option<String>,
    /// How the program that took most CPU time was compiled, as far as its file tells.
    pub build: Build,
    /// Where its code lies.
    pub code: Option<Scatter>,
    /// Where its CPU time goes; none where perf events are not to be had.
    pub samples: Option<Sampled>,
    /// The malloc that serves it.
    pub malloc: Malloc,
    /// What another run on masu showed; none where there was none.
    pub inside: Option<Inside>,
    /// What the kernel's services cost here.
    pub prices: Prices,
    /// CPUs that it may use.
    pub cpus: usize,
    /// Resident bytes as time went by, `(seconds, bytes)`.
    pub rss_over_time: Vec<(f64, u64)>,
}

/// How a program failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// As a predicate: `returned 3`, `was ended by signal 11 (SIGSEGV)`.
    pub how: String,
    /// What it returned; none where it was killed.
    pub code: Option<i32>,
    /// Whether it was killed because it held more memory than it may.
    pub is_over_limit: bool,
    /// The last lines that it wrote to its standard error.
    pub last_lines: Vec<String>,
}

impl Failure {
    /// So many lines are kept, of at most so many characters each.
    const LINES: usize = 5;
    const CHARACTERS: usize = 200;

    /// Of how a run ended and what it wrote; none where it ended well, or somebody ended it.
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
}

/// Seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Clock {
    /// Wall-clock time, as it was.
    pub wall_s: f64,
    /// CPU time in the program's own code.
    pub user_s: f64,
    /// CPU time in the kernel on its behalf, stops to be counted included.
    pub sys_s: f64,
    /// The same without stops to be counted. Where these are much of it, what was counted, at its price.
    pub own_sys_s: f64,
    /// What stops to be counted took of the wall-clock time.
    pub counting_s: f64,
    /// What its threads waited for a CPU while others had it, added up.
    pub queued_s: f64,
    /// Times that a thread was stopped.
    pub stops: u64,
    /// Context switches because the program waited for something.
    pub voluntary_switches: u64,
    /// Context switches because its time was up.
    pub involuntary_switches: u64,
}

impl Clock {
    /// The wall-clock time without what counting added, and what others on the machine did. Threads are stopped
    /// and wait side by side too, so that it is never less than its CPU time on all CPUs.
    #[must_use]
    pub fn own_wall_s(&self, cpus: usize) -> f64 {
        let least = (self.own_cpu_s() / cpus.max(1) as f64).max(self.wall_s / 100.0);
        (self.wall_s - self.counting_s - self.queued_s).max(least).min(self.wall_s)
    }

    /// The CPU time without what counting added.
    pub(crate) fn own_cpu_s(&self) -> f64 {
        self.user_s + self.own_sys_s
    }

    /// What a cost in seconds is held against: CPU time where several CPUs worked, else wall-clock time.
    pub(crate) fn whole_s(&self, cpus: usize) -> f64 {
        self.own_wall_s(cpus).max(self.own_cpu_s()).max(1e-9)
    }
}

/// What others on the machine did during a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Others {
    /// Of all CPUs that the program may use, the share that others used; none where it is not known.
    pub share: Option<f64>,
    /// The share that the hypervisor gave to other machines.
    pub stolen_share: Option<f64>,
    /// Of the time that the program's threads wanted a CPU, the share that they waited for one.
    pub waited_share: f64,
    /// The one-minute load average when it started.
    pub load: Option<f64>,
}

impl Others {
    /// Of all CPUs, the share that was not to be had.
    #[must_use]
    pub fn taken_share(&self) -> f64 {
        (self.share.unwrap_or(0.0) + self.stolen_share.unwrap_or(0.0)).min(1.0)
    }

    /// Whether so much was taken that what rests on time is less sure.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.taken_share() >= BUSY_SHARE
    }

    /// Whether the program waited for a CPU, which others had, as long as it had one.
    #[must_use]
    pub fn starves(&self) -> bool {
        self.is_busy() && self.waited_share >= STARVED_SHARE
    }
}

/// Bytes, and page faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Memory {
    /// The peak of resident memory.
    pub peak_rss_bytes: u64,
    /// Resident in the second half of the run: the median.
    pub late_rss_bytes: u64,
    /// Page faults without disk.
    pub minor_faults: u64,
    /// Page faults that read from disk.
    pub major_faults: u64,
    /// Page faults of memory that had been there before; none where peaks of processes are not known.
    pub refaults: Option<u64>,
    /// Bytes of an OS page.
    pub os_page_bytes: u64,
    /// The most that was swapped out.
    pub swapped_bytes: u64,
    /// The most in huge pages.
    pub huge_bytes: u64,
    /// Of OS pages in them that were looked at, this share held nothing but zeros; none where none was.
    pub huge_unused: Option<f64>,
    /// Its growth, where that goes on to the end.
    pub growth: Option<Growth>,
    /// glibc's heap, walked when last looked at before the program was about to end.
    pub heap: Option<Heap>,
}

/// Resident memory that grows all the time, but for the first fifth of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Growth {
    /// Bytes that came.
    pub bytes: u64,
    /// The time they took, in seconds.
    pub over_s: f64,
}

/// A walk through glibc's first heap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Heap {
    /// Bytes of the heap.
    pub bytes: u64,
    /// Bytes of it that were walked through.
    pub walked_bytes: u64,
    /// Of those, bytes in free blocks.
    pub free_bytes: u64,
    /// Seconds after the start of the run.
    pub at_s: f64,
}

impl Heap {
    /// Bytes of the heap that are free, if the rest is as what was walked through.
    #[must_use]
    pub fn free(&self) -> f64 {
        self.free_bytes as f64 * self.bytes as f64 / (self.walked_bytes as f64).max(1.0)
    }
}

/// System calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CallFacts {
    /// How often each was made; those that were not are left out.
    pub counts: BTreeMap<&'static str, u64>,
    /// The kinds of calls that took most, those that are not counted apart too.
    pub kinds: Vec<CallKind>,
    /// How memory came and went.
    pub moves: Moves,
    /// Small writes, by what they went to.
    pub small_writes: SmallWrites,
    /// Of the futex calls, those that asked to sleep.
    pub futex_waits: u64,
    /// Programs that would have had more rights than their user, and had not, since they were traced.
    pub without_rights: Vec<String>,
    /// The locks that were waited for most.
    pub locks: Vec<Lock>,
    /// Waits for other locks.
    pub more_lock_waits: u64,
    /// Threads that there were, the first of each process not among them.
    pub threads_started: u64,
    /// Processes that there were.
    pub processes: u64,
    /// From when on samples of calls were counted; none where all were. The numbers are estimates then.
    pub sampled: Option<Sampling>,
    /// Calls by which other processes could see the program; none where not every call was seen.
    pub outward: Option<u64>,
}

impl CallFacts {
    /// Of what was counted.
    #[must_use]
    pub fn of(calls: &Calls) -> CallFacts {
        // Which programs were run is known without samples.
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

    /// Waits for locks of this owner, as far as they are distinguished.
    pub(crate) fn lock_waits(&self, owner: Owner) -> u64 {
        self.locks.iter().filter(|lock| lock.owner == owner).map(|lock| lock.waits).sum()
    }

    /// All calls that may have slept: those that wake a thread do not.
    pub(crate) fn all_but_wakes(&self) -> u64 {
        let of_kinds = self.kinds.iter().map(|kind| kind.calls).sum::<u64>();
        let all = self.counts.values().sum::<u64>().max(of_kinds);
        let futex = self.counts.get("futex").copied().unwrap_or(0);
        all - futex.saturating_sub(self.futex_waits).min(all)
    }
}

/// Who worked, and who waited for what. Seconds are those of looks, which are at least 10 ms apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Threads {
    /// How often was looked.
    pub looks: u64,
    /// From the first look to the last.
    pub looked_s: f64,
    /// The most that there were at once.
    pub most_at_once: usize,
    /// CPU time of all of them, those between two looks included.
    pub cpu_s: f64,
    /// Those that took most CPU time.
    pub busiest: Vec<ThreadTime>,
    /// One thread did almost all that was done, but for processes that did less than half of what its own did.
    pub alone_s: f64,
    /// Several threads worked at once, likewise.
    pub together_s: f64,
    /// CPU time of the parallel part: no thread did almost all that was done, or another waited for a lock.
    pub parallel_cpu_s: f64,
    /// Hardly anything was done.
    pub idle_s: f64,
    /// Threads were stopped to be counted, and none ran.
    pub stopped_s: f64,
    /// What the threads slept in then, by the seconds.
    pub idle_for: Vec<(Waiting, f64)>,
    /// Seconds that threads slept until a lock is free, by whose it is, added up over the threads.
    pub lock_waited: Vec<(Owner, f64)>,
    /// Of those, the ones in which hardly anything was done: who had the lock slept too.
    pub lock_waited_idle: Vec<(Owner, f64)>,
    /// Arenas of glibc's, the first not among them, that were seen at once in a process.
    pub arenas: usize,
}

impl Threads {
    /// Seconds that threads slept until a lock of this owner is free.
    pub(crate) fn waited_for(&self, owner: Owner) -> f64 {
        of_owner(&self.lock_waited, owner)
    }

    /// The same, but for those in which hardly anything was done.
    pub(crate) fn waited_beside_work(&self, owner: Owner) -> f64 {
        self.waited_for(owner) - of_owner(&self.lock_waited_idle, owner)
    }
}

fn of_owner(waited: &[(Owner, f64)], owner: Owner) -> f64 {
    waited.iter().filter(|(whose, _)| *whose == owner).map(|(_, time)| time).sum()
}

/// What an idle program waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Data, from a file, a pipe or a socket.
    Data,
    /// A lock.
    Lock,
    /// Requests, or whatever else may come.
    Requests,
    /// A time to pass.
    Time,
    /// Its own threads or children.
    Itself,
    /// Something else.
    Other,
}

/// A thread's time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ThreadTime {
    /// Its name.
    pub name: String,
    /// Its process.
    pub process: i32,
    /// Whether it is the first of its process.
    pub is_first: bool,
    /// CPU time.
    pub cpu_s: f64,
    /// Seconds in which it did almost all that was done.
    pub alone_s: f64,
    /// Of those, the ones in which the others did nothing at all and none of them waited for a lock.
    pub serial_s: f64,
    /// Seconds in which it worked and others did too.
    pub together_s: f64,
}

/// A program's time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProgramTime {
    /// Its file.
    pub path: PathBuf,
    /// CPU time of its processes, without that of their children.
    pub cpu_s: f64,
    /// Of the command's own, times that it was stopped to be counted.
    pub stops: u64,
    /// Whether it is the command's own program, or another wrapper that it went on as.
    pub is_command: bool,
}

/// How a program was compiled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Build {
    /// The file that was looked into.
    pub path: PathBuf,
    /// What says that it was compiled without optimization; none where nothing does.
    pub unoptimized: Option<String>,
    /// Whether that leaves no doubt.
    pub is_certain: bool,
}

/// The malloc.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Malloc {
    /// Its name in the catalogue; `unknown` where it is not known.
    pub name: String,
    /// Why none can be preloaded in its place, if so.
    pub refusal: Option<String>,
}

impl Malloc {
    /// Whether the program is linked statically, so that it loads no malloc.
    pub(super) fn is_static(&self) -> bool {
        self.refusal.as_ref().is_some_and(|why| why.contains("static"))
    }
}

/// What further runs showed: on masu, whose statistics tell what the program holds, and on its counting build.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Inside {
    /// Requests for memory, and the CPU seconds of that run.
    pub requests: Option<(u64, f64)>,
    /// Blocks that threads fetched for themselves.
    pub fetched_blocks: u64,
    /// Blocks that threads freed beyond what they had fetched: others had.
    pub remote_blocks: u64,
    /// Bytes handed out in the second half of the run: the median. None where it was over too soon.
    pub live_late_bytes: Option<u64>,
    /// Resident in the second half of the run on masu: the median. None where it was over too soon.
    pub resident_late_bytes: Option<u64>,
    /// Who asks most often, as a heap profile of the run on masu has it.
    pub sites: Vec<Site>,
    /// Who asked for most of the bytes that lived when the last profile was written.
    pub held: Option<Site>,
}

/// A function that asks for memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Site {
    /// Its name.
    pub function: String,
    /// Where in its source, where that is known: `file.c:12`.
    pub place: Option<String>,
    /// Of all blocks that were asked for, or of the bytes that lived, about.
    pub share: f64,
}

impl Facts {
    /// The price of a service in seconds; nothing where it is not known, so that nothing is blamed on it.
    pub(crate) fn price_s(&self, service: Service) -> f64 {
        self.prices.of(service).unwrap_or(0.0) / 1e9
    }

    /// What small writes cost, in seconds: those to terminals at their own price, where it is known.
    pub(crate) fn small_writes_s(&self) -> f64 {
        let Some(calls) = &self.calls else { return 0.0 };
        let writes = &calls.small_writes;
        let price_s = self.price_s(Service::SmallWrite);
        let terminal_s = self.prices.of(Service::TerminalWrite).map_or(price_s, |ns| ns / 1e9);
        (writes.pipes + writes.files) as f64 * price_s + writes.terminals as f64 * terminal_s
    }

    /// Samples, where there are enough to tell shares by.
    #[must_use]
    pub fn sampled(&self) -> Option<&Sampled> {
        self.samples.as_ref().filter(|sampled| sampled.samples >= Sampled::ENOUGH)
    }

    /// Of the memory that was touched, the share that the malloc asked for, at most; none where calls were not counted.
    pub(crate) fn reach(&self) -> Option<f64> {
        let touched = self.memory.minor_faults * self.memory.os_page_bytes;
        let asked = self.calls.as_ref()?.moves.asked_by_malloc_bytes();
        Some(asked as f64 / (touched as f64).max(1.0))
    }

    /// Whether no other malloc can gain much: the program maps its memory itself, and samples hardly meet the malloc.
    pub(crate) fn is_beyond_mallocs(&self) -> bool {
        let malloc =
            self.sampled().map(|sampled| self.share(sampled.malloc_share * self.clock.user_s));
        self.memory.peak_rss_bytes >= OWN_BYTES
            && malloc.is_some_and(|share| share < LITTLE_SHARE)
            && self.reach().is_some_and(|reach| reach < OWN_REACH)
    }

    /// Of the time that was looked at, the part that the program could have had: neither stopped to be counted nor, where
    /// others have the CPUs, waiting for one.
    pub(crate) fn had_s(&self) -> f64 {
        let threads = &self.threads;
        let at_work_s = (threads.looked_s - threads.stopped_s - threads.idle_s).max(0.0);
        let waited = if self.others.is_busy() { self.others.waited_share } else { 0.0 };
        threads.idle_s + at_work_s * (1.0 - waited)
    }

    /// What `cost_s` is of the whole run.
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
