//! A counted run: how often a process tree asks the kernel for memory, waits for locks, starts threads, and
//! writes.
//!
//! It relies on the same tracer that sees which malloc serves a program. Such a run is slower than another, so it is
//! none of the timed ones; [`prices`](crate::prices) has the cost of a stop. Nothing is kept of a thread that has
//! ended: a program may start a million.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;

use serde::Serialize;

use crate::execute::{Conditions, Look, Unseen};
use crate::kernel::calls::{self as door, FutexRequest, MemoryRequest, Stopped};
use crate::kernel::sample::Switch;
use crate::kernel::{self, Status, Usage};
use crate::proc_files;
use crate::program::privileges;
use crate::quantity;
use crate::trace::run_witnessed;
use crate::{Error, Run, Stop, Variant, Workload};

pub mod attach;
mod bounded;
mod callers;
mod duty;
mod kinds;
pub mod locks;
mod moves;
mod targets;
mod windows;
mod writes;

pub use crate::kernel::call::Call;
pub use kinds::CallKind;
pub use locks::{Lock, Owner};
pub use moves::{Moves, OwnMoves};
pub use targets::SmallWrites;

use bounded::{Bounded, Shared};
use callers::Callers;
use locks::Locks;
use moves::Books;
use targets::Targets;

type Pid = i32;

/// The number of times each call was made, be it with success or not, and the amounts asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    calls: [u64; Call::ALL.len()],
    /// Futex calls that asked to sleep.
    pub futex_waits: u64,
    pub futex_wakes: u64,
    /// Memory asked for and given back.
    pub moves: Moves,
}

impl Counts {
    pub fn of(&self, call: Call) -> u64 {
        self.calls[call as usize]
    }

    pub fn of_any(&self, calls: &[Call]) -> u64 {
        calls.iter().map(|call| self.of(*call)).sum()
    }

    fn add(&mut self, other: &Counts, times: u64) {
        for (own, more) in self.calls.iter_mut().zip(other.calls) {
            *own += times * more;
        }
        self.futex_waits += times * other.futex_waits;
        self.futex_wakes += times * other.futex_wakes;
        self.moves.add(&other.moves, times);
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calls {
    pub total: Counts,
    /// The number of processes, the first among them.
    pub processes: u64,
    /// The number of threads, the first of each process among them.
    pub threads_begun: u64,
    /// The number of times that a process ran a program, the command's own among them. All of them count, also where
    /// samples of calls are counted.
    pub programs_begun: u64,
    /// Programs that were run, each file once, in the order of their first run.
    pub programs: Vec<PathBuf>,
    /// Programs among them that would have had more rights than their user, and ran without: the reason for each.
    pub privileged: Vec<(PathBuf, String)>,
    /// The locks that were waited for most, the most first.
    pub locks: Vec<Lock>,
    pub more_lock_waits: u64,
    /// Small writes, by the kind of their target.
    pub small_writes: SmallWrites,
    /// The kinds of calls that took most, of all that there are; empty where only some kinds were watched.
    pub kinds: Vec<CallKind>,
    /// The number of times that a thread was stopped to be counted: the run took that much longer.
    pub stops: u64,
    /// The first process's part of these stops, by the programs that it ran, one after the other.
    pub first_stops: Vec<(PathBuf, u64)>,
    /// The peaks of all processes' resident memory, added up, in bytes: page faults beyond these are of memory
    /// that had been there before. Where a process waited for children, the largest of theirs may stand for its own.
    pub peaks_bytes: u64,
    /// The time from which samples of calls were counted, because counting all takes too long; none where all were
    /// counted.
    pub sampled: Option<Sampling>,
    /// Calls by which other processes could see the program: files opened to be written to, names made or removed,
    /// locks, sockets. None where some calls were not seen.
    pub outward: Option<u64>,
    /// True if the program asked to trace a process of its own, which the kernel refuses for a process that is traced
    /// already.
    pub traces: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sampling {
    /// Seconds after the start.
    pub from_s: f64,
    /// The share of the CPU time since then in which calls were counted.
    pub share: f64,
    /// The least number of calls that the run may have made: equal to the most where the kernel counted those that were
    /// not seen.
    pub calls_least: f64,
    /// See [`Sampling::calls_least`].
    pub calls_most: f64,
    /// CPU seconds in the kernel while calls were not counted: without any stop.
    pub unseen_sys_s: f64,
    /// Seconds of wall-clock time in which no thread had to stop at its calls.
    pub paused_s: f64,
}

impl Sampling {
    /// The accuracy of the numbers of calls, in words.
    pub fn listing(&self) -> String {
        let (least, most) = (self.calls_least, self.calls_most);
        if least == most {
            return format!(
                "the kernel counted all {}, and how many there are of a kind is an estimate",
                quantity::count(least)
            );
        }
        format!(
            "all of them are {} to {}, and numbers of a kind are as uncertain (as root, the kernel counts them)",
            quantity::count(least),
            quantity::count(most)
        )
    }
}

/// Runs `workload` once under `variant` and counts its calls and those of everything it starts. The run's
/// times are those of a traced program, which stops at the start and at the end of each call.
///
/// A tracer that is not root takes away the rights that the programs of the tree would have beyond this process's, so
/// programs such as sudo fail in it: they are named in [`Calls::privileged`]. 32-bit programs are not counted. Should
/// this process end, the tree is killed. [`Error::NotTraced`] where tracing is not permitted; the kernel must be Linux
/// 5.3 or later.
pub fn count(
    workload: &Workload,
    variant: &Variant,
    conditions: &Conditions,
    stop: &Stop,
) -> Result<(Run, Calls), Error> {
    let shared = Shared::default();
    let mut bounded = Bounded::new(&shared, None, Switch::default());
    let run = run_witnessed(workload, variant, conditions, stop, &mut bounded, &mut Unseen)?;
    Ok((run, bounded.finish()))
}

/// [`count`], while `look` looks at the processes now and then, and within a bound: a program that makes very many
/// calls has samples of them counted, after [`Calls::sampled`], and then the numbers are estimates. While samples of
/// calls are counted, `sampler` is off.
pub fn count_watched(
    workload: &Workload,
    variant: &Variant,
    conditions: &Conditions,
    stop: &Stop,
    look: &mut dyn Look,
    sampler: Switch,
) -> Result<(Run, Calls), Error> {
    let shared = Shared::default();
    let price = kernel::prices::stop_price();
    std::thread::scope(|scope| {
        // Dropped at the end of this block, by a panic too: else the clock would go on for ever.
        let (_running, over) = mpsc::channel();
        let shared = &shared;
        scope.spawn(move || shared.keep_time(&over));
        let mut bounded = Bounded::new(shared, Some(price), sampler);
        let run = run_witnessed(workload, variant, conditions, stop, &mut bounded, look)?;
        Ok((run, bounded.finish()))
    })
}

#[derive(Debug, Default)]
struct Counter {
    calls: Calls,
    /// The first process.
    first: Option<Pid>,
    /// The live threads, each with its process.
    live: HashMap<Pid, Pid>,
    books: Books,
    callers: Callers,
    locks: Locks,
    targets: Targets,
}

/// The result of one call, or of several of a thread.
#[derive(Debug, Default)]
struct Tally {
    counts: Counts,
    small_writes: SmallWrites,
    /// Waits for locks, by their addresses.
    locks: HashMap<u64, u64>,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.counts.add(&other.counts, 1);
        self.small_writes.add(&other.small_writes, 1);
        for (address, waits) in &other.locks {
            *self.locks.entry(*address).or_default() += waits;
        }
    }
}

impl Counter {
    fn begin(&mut self, pid: Pid) {
        // A thread that is not the first of its process takes the first one's number when it runs a program.
        self.meet(pid);
        self.calls.programs_begun += 1;
        self.books.begin(pid);
        self.callers.forget(pid);
        self.locks.forget(pid);
        let Ok(program) = fs::read_link(format!("/proc/{pid}/exe")) else { return };
        if self.first == Some(pid) {
            self.calls.first_stops.push((program.clone(), 0));
        }
        if self.calls.programs.contains(&program) {
            return;
        }
        // A tracer that is root takes no rights away. Where one does, the kernel still marks the program as one with
        // more rights (AT_SECURE).
        if let Some(reason) = privileges(&program).filter(|_| kernel::effective_ids().0 != 0) {
            // The reason's second half speaks of preloads.
            let reason = reason.split(',').next().unwrap_or_default().to_owned();
            self.calls.privileged.push((program.clone(), reason));
        }
        self.calls.programs.push(program);
    }

    fn end(&mut self, pid: Pid, _status: Status, usage: &Usage) {
        if self.process_of(pid) == Some(pid) {
            self.calls.peaks_bytes += usage.max_rss_bytes;
            self.books.forget(pid);
            self.callers.forget(pid);
            self.locks.forget(pid);
        }
        self.live.remove(&pid);
    }

    /// Notes that a thread is about to make a call. Returns the call's tally, which is counted.
    fn called(&mut self, pid: Pid, stopped: Stopped) -> Tally {
        let Stopped { call, arguments, from } = stopped;
        self.meet(pid);
        let mut tally = Tally::default();
        let Some(process) = self.process_of(pid) else { return tally };
        let counts = &mut tally.counts;
        counts.calls[call as usize] = 1;
        match call {
            Call::Futex => match door::futex_request(arguments[1]) {
                FutexRequest::Wait => {
                    counts.futex_waits = 1;
                    if door::is_contended_lock(arguments[1], arguments[2]) {
                        tally.locks.insert(arguments[0], 1);
                    }
                }
                FutexRequest::Wake => counts.futex_wakes = 1,
                FutexRequest::Other => {}
            },
            _ => match writes::requested(pid, call, arguments) {
                Some(bytes) => {
                    tally.small_writes = self.targets.note(process, call, arguments[0], bytes);
                }
                None => {
                    let request = if door::purges_many(&stopped) {
                        MemoryRequest::Purge(writes::gathered(pid, arguments).unwrap_or_default())
                    } else {
                        door::memory_request(&stopped)
                    };
                    let is_own = request.is_of_mappings() && self.callers.are_own(process, &from);
                    if door::maps_code(&stopped) {
                        self.callers.forget(process);
                    }
                    counts.moves = self.books.note(process, request, is_own);
                }
            },
        }
        self.add(pid, &tally, 1);
        tally
    }

    /// Adds the tally of a thread's calls this many times.
    fn add(&mut self, pid: Pid, tally: &Tally, times: u64) {
        let Some(process) = self.process_of(pid) else { return };
        self.calls.total.add(&tally.counts, times);
        self.calls.small_writes.add(&tally.small_writes, times);
        for (address, waits) in &tally.locks {
            self.locks.note(process, pid, *address, times * waits);
        }
    }

    fn stopped(&mut self, pid: Pid) {
        self.calls.stops += 1;
        if self.first.is_some()
            && self.process_of(pid) == self.first
            && let Some((_, stops)) = self.calls.first_stops.last_mut()
        {
            *stops += 1;
        }
    }

    fn process_of(&self, pid: Pid) -> Option<Pid> {
        self.live.get(&pid).copied()
    }

    /// Notes a thread from which stops may come from now on.
    fn meet(&mut self, pid: Pid) {
        if self.live.contains_key(&pid) {
            return;
        }
        let status = proc_files::text(format!("/proc/{pid}/status")).unwrap_or_default();
        let process = proc_files::value(&status, "Tgid")
            .and_then(|number| number.parse().ok())
            .unwrap_or(pid);
        self.first = self.first.or(Some(process));
        self.live.insert(pid, process);
        self.calls.threads_begun += 1;
        self.calls.processes += u64::from(process == pid);
    }

    fn note(&mut self, pid: Pid, call: Call) {
        self.meet(pid);
        self.calls.total.calls[call as usize] += 1;
    }

    fn finish(mut self) -> Calls {
        (self.calls.locks, self.calls.more_lock_waits) = self.locks.finish();
        self.calls
    }
}
