//! Looks at a running process tree: which threads work, which sleep and why, how much is swapped out or in huge pages.
//!
//! Relies on `/proc` alone, so that it sees the same of a program that it started and of one that runs already. A look
//! comes every 10 ms, or less often if a look is expensive. The work between two looks is known from the CPU clocks,
//! which miss nothing, and not from the threads' state at a look. Only the reason of a thread's sleep, and a stop by
//! its tracer, are met by chance; they count for the time since the last look.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use super::facts::{Heap, Memory, ProgramTime, ThreadTime, Threads, Waiting};
use super::heap_walk;
use super::samples::{Sampled, Samples};
use super::unused::Unused;
use masu_run::Scatter;
use masu_run::calls::Owner;
use masu_run::calls::locks::LockOwners;
use masu_run::execute::Look;
use masu_run::execute::tree::{Pid, swapped_bytes, threads};
use masu_run::kernel::sample::Switch;
use masu_run::kernel::{self, calls as door, calls::Sleep};
use masu_run::mapping::Mapping;
use masu_run::proc_files::{self, Scheduled, Stat};

/// A thread worked if its work took this share of the time between two looks.
const WORKED: f64 = 0.2;

/// A thread worked alone if it did this share of all work between two looks.
const ALONE: f64 = 0.85;

/// Less work than this share of the time between two looks is as good as none; one thread at full speed does 1.
const IDLE: f64 = 0.2;

/// The other processes together only help the busiest process if they do less than this share of its work. Then they
/// are ignored when its threads are found to work alone or together.
const HELPERS: f64 = 0.5;

/// Beside a thread that works alone, all others together do less than this share of the time because they have nothing
/// to do: threads that wait for a lock get it now and then, and do some work.
const STILL: f64 = 0.02;

/// The most sleeping threads that a look examines; more would take too long.
const ASLEEP_MAX: usize = 256;

/// The most threads that are reported.
const THREADS_MAX: usize = 64;

/// The first of the closer looks, which read all mappings of a process. Closer looks are expensive, so their numbers
/// are the powers of two and three times these: they become rarer.
const CLOSER_FROM: u64 = 4;

/// The share of a run, at its end, in which walks of the heap are ignored: programs free everything before they exit.
const ENDING: f64 = 0.15;

/// The state after the looks so far.
#[derive(Debug, Default)]
pub(super) struct Looks {
    last: Option<Duration>,
    first: Duration,
    looks: u64,
    threads: HashMap<Pid, ThreadSeen>,
    processes: HashMap<Pid, ProcessSeen>,
    /// CPU time by program, with that of the first process kept apart.
    programs: BTreeMap<(PathBuf, bool), f64>,
    root: Option<Pid>,
    tally: Threads,
    /// Whether hardly any work was done since the last look.
    is_idle: bool,
    /// The thread that did all the work since the last look.
    only: Option<Pid>,
    /// Whether one thread did almost all the work.
    by_one: bool,
    idle_for: BTreeMap<Waiting, f64>,
    lock_waited: BTreeMap<Owner, f64>,
    /// The part of `lock_waited` while hardly any work was done.
    lock_waited_idle: BTreeMap<Owner, f64>,
    memory: Memory,
    /// Walks through the heap of the largest process, in the order of time.
    heaps: Vec<Heap>,
    unused: Unused,
    code: Option<Scatter>,
    samples: Samples,
}

#[derive(Debug, Default)]
struct ThreadSeen {
    time: ThreadTime,
    /// CPU time until the last look, in seconds.
    clock_s: f64,
    /// Time that the thread had waited for a CPU until the last look, in seconds.
    queue_s: f64,
    /// The last look that saw the thread.
    look: u64,
    /// The thread's work since the look before, in seconds.
    did_s: f64,
    /// The thread's work and its wait for a CPU in that time: its work if it had been alone on the machine.
    wanted_s: f64,
    /// The thread's state: `R`, `S`, `t` for stopped by its tracer, and so on.
    state: char,
}

/// The work of threads since the look before, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    /// The work by the clocks of processes.
    done_s: f64,
    /// The work by the clocks of threads that still live.
    known_s: f64,
    /// The same with the threads' waits for a CPU in that time.
    wanted_s: f64,
}

impl Work {
    /// The work of each process.
    fn of_each<'a>(
        done: &[(Pid, f64)],
        threads: impl Iterator<Item = &'a ThreadSeen>,
    ) -> BTreeMap<Pid, Work> {
        let begun = |&(process, done_s)| (process, Work { done_s, ..Work::default() });
        let mut works: BTreeMap<Pid, Work> = done.iter().map(begun).collect();
        for thread in threads {
            let work = works.entry(thread.time.process).or_default();
            work.known_s += thread.did_s;
            work.wanted_s += thread.wanted_s;
        }
        works
    }

    fn plus(self, other: Work) -> Work {
        Work {
            done_s: self.done_s + other.done_s,
            known_s: self.known_s + other.known_s,
            wanted_s: self.wanted_s + other.wanted_s,
        }
    }

    /// The work of threads that came and went in between, which is known by their process's clock alone.
    fn unseen_s(self) -> f64 {
        (self.done_s - self.known_s).max(0.0)
    }

    fn whole_s(self) -> f64 {
        self.wanted_s + self.unseen_s()
    }
}

#[derive(Debug, Default)]
struct ProcessSeen {
    clock_s: f64,
    program: PathBuf,
    owners: Option<LockOwners>,
}

impl Look for Looks {
    fn look(&mut self, at: Duration, members: &[Pid]) {
        self.samples.look(members);
        let Some(last) = self.last.replace(at) else {
            self.first = at;
            self.root = members.first().copied();
            self.begin(members);
            return;
        };
        self.looks += 1;
        let since_s = at.saturating_sub(last).as_secs_f64();
        let done: Vec<(Pid, f64)> = members.iter().map(|pid| (*pid, self.process(*pid))).collect();
        let done_s: f64 = done.iter().map(|(_, did_s)| did_s).sum();
        let mut alive = 0;
        for &process in members {
            let all = threads(process);
            alive += all.len();
            for thread in all {
                self.thread(process, thread);
            }
        }
        self.tally.most_at_once = self.tally.most_at_once.max(alive);
        self.tally.cpu_s += done_s;
        self.account(since_s, &done);
        let wants_lock = self.sleepers(since_s);
        // CPU time is counted here, because stops for counting stretch wall-clock time while threads contend.
        if !self.is_idle && (wants_lock || !self.by_one) {
            self.tally.parallel_cpu_s += done_s;
        }
        let swapped: u64 = members.iter().map(|pid| swapped_bytes(*pid)).sum();
        self.memory.swapped_bytes = self.memory.swapped_bytes.max(swapped);
        if is_closer(self.looks) {
            self.closer(at, members);
        }
    }
}

impl Looks {
    /// The switch that turns samples of running threads off and on during the looks.
    pub(super) fn sampler(&self) -> Switch {
        self.samples.switch.clone()
    }

    /// Notes the work before the first look. It is not work of the watched time, but it counts for the programs.
    fn begin(&mut self, members: &[Pid]) {
        for &process in members {
            self.process(process);
            for thread in threads(process) {
                self.thread(process, thread);
            }
        }
        for thread in self.threads.values_mut() {
            thread.time.cpu_s = 0.0;
        }
    }

    /// Notes the CPU time of a process and its program; returns the process's work since the last look.
    fn process(&mut self, pid: Pid) -> f64 {
        let Some(clock) = kernel::cpu_time(pid) else { return 0.0 };
        let seen = self.processes.entry(pid).or_default();
        let did_s = (clock.as_secs_f64() - seen.clock_s).max(0.0);
        seen.clock_s = clock.as_secs_f64();
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        if program != seen.program {
            seen.program.clone_from(&program);
            seen.owners = None;
            // After `exec`, read the thread's name again.
            if let Some(first) = self.threads.get_mut(&pid) {
                first.time.name = name_of(&format!("/proc/{pid}"));
            }
        }
        let is_root = self.root == Some(pid);
        *self.programs.entry((program, is_root)).or_default() += did_s;
        did_s
    }

    fn thread(&mut self, process: Pid, thread: Pid) {
        let path = format!("/proc/{process}/task/{thread}");
        let Some(Scheduled { ran_ns, queued_ns }) = Scheduled::of(&path) else { return };
        let [clock_s, queue_s] =
            [ran_ns, queued_ns].map(|time| Duration::from_nanos(time).as_secs_f64());
        let look = self.looks;
        let seen = self.threads.entry(thread).or_default();
        if seen.time.process != process || clock_s < seen.clock_s {
            // The thread is new, or another one with the same number.
            let name = name_of(&path);
            let is_first = process == thread;
            let time = ThreadTime { name, process, is_first, ..ThreadTime::default() };
            *seen = ThreadSeen { time, ..ThreadSeen::default() };
        }
        seen.did_s = clock_s - seen.clock_s;
        seen.wanted_s = seen.did_s + (queue_s - seen.queue_s).max(0.0);
        seen.time.cpu_s += seen.did_s;
        (seen.clock_s, seen.queue_s) = (clock_s, queue_s);
        seen.look = look;
        seen.state = Stat::of(&path).and_then(|stat| stat.state()).unwrap_or('X');
    }

    /// Gives the time since the last look to one thread, to several threads, or to none. A wait for a CPU counts as
    /// work: other programs on the machine are not the program's concern. `done` is the work of each process; processes
    /// that help another are left out.
    fn account(&mut self, since_s: f64, done: &[(Pid, f64)]) {
        let look = self.looks;
        self.only = None;
        let mut at_work: Vec<(Pid, &mut ThreadSeen)> = self
            .threads
            .iter_mut()
            .filter(|(_, thread)| thread.look == look)
            .map(|(number, thread)| (*number, thread))
            .collect();
        // The kernel counts a wait for a CPU when it is over, all at once. So a ready thread that did nothing waited
        // all the time, and no thread waited for longer than that time. A thread that has waited for as long as it has
        // run so far is waiting again, and has work to do.
        for (_, thread) in &mut at_work {
            let waits_often = thread.queue_s > 0.0 && thread.queue_s >= thread.clock_s;
            let is_waiting = thread.state == 'R' && (thread.wanted_s == 0.0 || waits_often);
            thread.wanted_s = if is_waiting { since_s } else { thread.wanted_s.min(since_s) };
        }
        let has = |state| at_work.iter().any(|(_, thread)| thread.state == state);
        let is_stopped = has('t') && !has('R');
        let works = Work::of_each(done, at_work.iter().map(|(_, thread)| &**thread));
        let mut work = works.values().fold(Work::default(), |all, each| all.plus(*each));
        self.is_idle = !is_stopped && work.whole_s() < IDLE * since_s;
        let most =
            works.iter().max_by(|(_, one), (_, two)| one.whole_s().total_cmp(&two.whole_s()));
        if let Some((process, most)) = most
            && work.whole_s() - most.whole_s() < HELPERS * most.whole_s()
        {
            work = *most;
            at_work.retain(|(_, thread)| thread.time.process == *process);
        }
        let most_s = at_work.iter().map(|(_, thread)| thread.wanted_s).fold(0.0, f64::max);
        at_work.retain(|(_, thread)| thread.wanted_s >= WORKED * since_s);
        let unseen = work.unseen_s() >= WORKED * since_s;
        self.by_one = most_s >= ALONE * work.whole_s();
        if is_stopped {
            self.tally.stopped_s += since_s;
        } else if self.is_idle {
            self.tally.idle_s += since_s;
        } else if let [(number, alone)] = &mut at_work[..]
            && self.by_one
        {
            self.tally.alone_s += since_s;
            alone.time.alone_s += since_s;
            let others_s = work.whole_s() - alone.wanted_s;
            self.only = (others_s < STILL * since_s).then_some(*number);
        } else if at_work.len() + usize::from(unseen) >= 2 {
            self.tally.together_s += since_s;
            for (_, thread) in at_work {
                thread.time.together_s += since_s;
            }
        }
    }

    /// Notes why threads sleep: locks for each thread by itself, and one reason for all threads if hardly any work was
    /// done. Returns whether a thread waits for a lock.
    fn sleepers(&mut self, since_s: f64) -> bool {
        let look = self.looks;
        let mut met: Vec<Waiting> = Vec::new();
        let mut wants_lock = false;
        // A stopped thread may be on its way to sleep.
        let quiet = |seen: &ThreadSeen| seen.look == look && matches!(seen.state, 'S' | 'D' | 't');
        for (&thread, seen) in self.threads.iter().filter(|(_, seen)| quiet(seen)).take(ASLEEP_MAX)
        {
            let process = seen.time.process;
            let Some(sleep) = asleep(process, thread) else { continue };
            wants_lock |= matches!(sleep, Sleep::Lock(_));
            if seen.state == 't' {
                continue;
            }
            met.push(match sleep {
                Sleep::Lock(address) => {
                    let known = self.processes.entry(process).or_default();
                    let owners = known.owners.get_or_insert_with(|| LockOwners::of(process));
                    let owner = owners.owner(address);
                    *self.lock_waited.entry(owner).or_default() += since_s;
                    if self.is_idle {
                        *self.lock_waited_idle.entry(owner).or_default() += since_s;
                    }
                    Waiting::Lock
                }
                Sleep::Data => Waiting::Data,
                Sleep::Ready => Waiting::Requests,
                Sleep::Time => Waiting::Time,
                Sleep::Signal | Sleep::Child => Waiting::Itself,
                Sleep::Other => Waiting::Other,
            });
        }
        let only = self.only.filter(|_| !wants_lock);
        if let Some(only) = only.and_then(|number| self.threads.get_mut(&number)) {
            only.time.serial_s += since_s;
        }
        if self.is_idle {
            // A thread that waits for others of its program waits for their reason: the variants are in that order.
            let what = met.into_iter().min().unwrap_or(Waiting::Other);
            *self.idle_for.entry(what).or_default() += since_s;
        }
        wants_lock
    }

    /// Reads the mappings of the processes, and the memory of the largest one.
    fn closer(&mut self, at: Duration, members: &[Pid]) {
        let mut huge = 0;
        let mut largest: Option<(Pid, u64)> = None;
        for &process in members {
            let rollup =
                fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
            huge += proc_files::size(&rollup, "AnonHugePages").unwrap_or(0);
            let rss = proc_files::size(&rollup, "Rss").unwrap_or(0);
            if largest.is_none_or(|(_, most)| rss > most) {
                largest = Some((process, rss));
            }
        }
        self.memory.huge_bytes = self.memory.huge_bytes.max(huge);
        let Some((largest, _)) = largest else { return };
        if let Some(heap) = heap_walk::walk(largest) {
            self.heaps.push(Heap { at_s: at.as_secs_f64(), ..heap });
        }
        if huge > 0 {
            self.unused.look(largest);
        }
        let busiest = members.iter().max_by(|one, other| {
            let clock = |pid: &Pid| self.processes.get(pid).map_or(0.0, |seen| seen.clock_s);
            clock(one).total_cmp(&clock(other))
        });
        // Threads that wait for locks are in the busiest process, or in the largest one.
        let busiest = busiest.copied().unwrap_or(largest);
        self.tally.arenas = self.tally.arenas.max(arenas(busiest));
        let scatter = u32::try_from(busiest).ok().and_then(|pid| Scatter::of(pid).ok());
        let known = self.code.as_ref().map_or(0, |code| code.mappings);
        self.code = scatter.filter(|new| new.mappings >= known).or(self.code.take());
    }

    /// The facts from all looks.
    pub(super) fn finish(self) -> Seen {
        let mut busiest: Vec<ThreadTime> =
            self.threads.into_values().map(|seen| seen.time).collect();
        busiest.sort_by(|one, other| other.cpu_s.total_cmp(&one.cpu_s));
        busiest.truncate(THREADS_MAX);
        let mut idle_for: Vec<(Waiting, f64)> = self.idle_for.into_iter().collect();
        idle_for.sort_by_key(|(_, time)| Reverse(Duration::from_secs_f64(*time)));
        let mut programs: Vec<ProgramTime> = self
            .programs
            .into_iter()
            .filter(|((path, _), _)| !path.as_os_str().is_empty())
            .map(|((path, is_root), cpu_s)| ProgramTime {
                path,
                cpu_s,
                stops: 0,
                is_command: is_root,
            })
            .collect();
        programs.sort_by(|one, other| other.cpu_s.total_cmp(&one.cpu_s));
        let looked = self.last.unwrap_or_default().saturating_sub(self.first);
        let heap = before_the_end(self.heaps, self.first + looked.mul_f64(1.0 - ENDING));
        Seen {
            threads: Threads {
                looks: self.looks,
                looked_s: looked.as_secs_f64(),
                busiest,
                idle_for,
                lock_waited: self.lock_waited.into_iter().collect(),
                lock_waited_idle: self.lock_waited_idle.into_iter().collect(),
                ..self.tally
            },
            memory: Memory { heap, huge_unused: self.unused.share(), ..self.memory },
            programs,
            code: self.code,
            samples: self.samples.finish(),
        }
    }
}

/// The facts that looks saw.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) threads: Threads,
    /// Memory without the numbers that only the end of a run gives.
    pub(super) memory: Memory,
    /// The programs. Those of the first process are all marked as the command's own.
    pub(super) programs: Vec<ProgramTime>,
    pub(super) code: Option<Scatter>,
    /// The samples, or the reason why there are none.
    pub(super) samples: Result<Sampled, String>,
}

/// Whether the look with this number is a closer one.
fn is_closer(look: u64) -> bool {
    let third = look / 3;
    look >= CLOSER_FROM
        && (look.is_power_of_two() || (third * 3 == look && third.is_power_of_two()))
}

/// The last walk before `ending`.
fn before_the_end(heaps: Vec<Heap>, ending: Duration) -> Option<Heap> {
    heaps.into_iter().rfind(|heap| heap.at_s <= ending.as_secs_f64())
}

/// The reason of a thread's sleep; none for a thread that runs by now.
fn asleep(process: Pid, thread: Pid) -> Option<Sleep> {
    let line = fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall")).ok()?;
    door::sleeps_in(&line)
}

/// The name of a thread; `path` is its folder in `/proc`.
fn name_of(path: &str) -> String {
    proc_files::text(format!("{path}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// The number of glibc's arenas that a process has, without the first: writable memory of no file that begins at a
/// multiple of 64 MiB, as arenas do.
fn arenas(process: Pid) -> usize {
    let maps = proc_files::text(format!("/proc/{process}/maps")).unwrap_or_default();
    if !maps.contains("/libc.so") && !maps.contains("/libc-2.") {
        return 0;
    }
    let is_arena = |one: &Mapping| {
        one.access == "rw-p" && one.path.is_empty() && one.start.is_multiple_of(64 << 20)
    };
    Mapping::all(&maps).filter(is_arena).count()
}

#[cfg(test)]
mod tests;
