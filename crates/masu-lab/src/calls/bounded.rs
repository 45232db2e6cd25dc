//! Counting that costs a program no more than a bound: all calls at first, then samples of them.
//!
//! It relies on [`Duty`] for when, and on the kernel's stops at every call, which unlike a filter can be left out again.
//! The hard part is to begin a window while no thread stops by itself: threads that are at work are made to stop by a
//! signal that their tracer takes away. A thread that sleeps in a call which a signal would end is left alone: it makes
//! no calls.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::duty::{Duty, PAUSE_S, Progress};
use super::kinds::Kinds;
use super::{Call, Calls, Counter, Pid, Sampling};
use crate::execute::books::{Scheduled, Stat};
use crate::kernel::attach::{self, Begun, Boundary};
use crate::kernel::calls::{self as door, Sleep};
use crate::kernel::outward::{Outward, is_harmless};
use crate::kernel::{self, Usage};
use crate::trace::{CallStops, Witness};

/// The time between two looks at whether a window is due.
const TICK: Duration = Duration::from_millis(10);

/// So many processes are asked how far they have come.
const ASKED_MAX: usize = 256;

/// Every so many stops the tracer looks how long it waited for a CPU.
const ASKED_EVERY: u64 = 32;

/// Who is to be stopped for the next window, and when.
#[derive(Debug, Default)]
struct Wanted {
    due: Option<Instant>,
    threads: Vec<(Pid, Pid)>,
    /// Threads that were sent the signal.
    halted: HashSet<Pid>,
}

/// What the tracer and the clock beside it share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    wanted: Mutex<Wanted>,
    is_done: AtomicBool,
}

impl Shared {
    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run is over.
    pub(super) fn finish(&self) {
        // ORDERING: Relaxed; nothing is handed over with it.
        self.is_done.store(true, Ordering::Relaxed);
    }

    /// Stops threads when a window is due, until the run is over.
    pub(super) fn keep_time(&self) {
        // ORDERING: As above.
        while !self.is_done.load(Ordering::Relaxed) {
            thread::sleep(TICK);
            let mut wanted = self.wanted();
            if wanted.due.is_none_or(|due| Instant::now() < due) {
                continue;
            }
            let Wanted { due, threads, halted } = &mut *wanted;
            for &(process, thread) in threads.iter().filter(|(process, id)| may_halt(*process, *id))
            {
                halted.insert(thread);
                attach::halt(process, thread);
            }
            // Where none was at work they are looked at again.
            *due = Some(Instant::now() + 2 * TICK);
        }
    }
}

/// Whether a signal that is taken away changes nothing for a thread: it runs, or sleeps in a call that goes on.
fn may_halt(process: Pid, thread: Pid) -> bool {
    let folder = format!("/proc/{process}/task/{thread}");
    match Stat::of(&folder).and_then(|stat| stat.state()) {
        Some('R') => true,
        Some('S') => {
            let line = fs::read_to_string(format!("{folder}/syscall")).unwrap_or_default();
            matches!(door::sleeps_in(&line), Some(Sleep::Lock(_) | Sleep::Signal | Sleep::Child))
        }
        _ => false,
    }
}

/// Counts within the bound.
#[derive(Debug)]
pub(super) struct Bounded<'a> {
    pub(super) counter: Counter,
    kinds: Kinds,
    pub(super) duty: Duty,
    shared: &'a Shared,
    began: Instant,
    /// What this thread had waited for a CPU before.
    waited_before_s: f64,
    /// How far processes had come when they were last asked.
    known: HashMap<Pid, Progress>,
    ended: Progress,
    /// Calls by which others could see it.
    outward: u64,
    /// Whether every call was seen, unless they were sampled.
    sees_all: bool,
}

impl<'a> Bounded<'a> {
    pub(super) fn new(shared: &'a Shared, stop_cpu_s: f64) -> Bounded<'a> {
        Bounded {
            counter: Counter::default(),
            kinds: Kinds::default(),
            duty: Duty::new(stop_cpu_s),
            shared,
            began: Instant::now(),
            waited_before_s: waited_s(),
            known: HashMap::new(),
            ended: Progress::default(),
            outward: 0,
            sees_all: false,
        }
    }

    /// What was counted.
    pub(super) fn finish(self) -> Calls {
        let sampled = self.duty.samples_from_s().map(|from_s| {
            let share = self.duty.share();
            Sampling { from_s, share }
        });
        let saw_all = self.sees_all && sampled.is_none();
        let mut calls = self.counter.finish();
        // Besides its calls, a thread stops where it begins, and its starter there too.
        calls.stops += 2 * calls.threads_begun;
        calls.kinds = self.kinds.finish();
        calls.sampled = sampled;
        calls.outward = saw_all.then_some(self.outward);
        calls
    }

    /// Goes over to the next phase if it is time.
    fn turn(&mut self) {
        let now_s = self.began.elapsed().as_secs_f64();
        if self.duty.samples_from_s().is_none() && self.duty.stops().is_multiple_of(ASKED_EVERY) {
            self.duty.waited(waited_s() - self.waited_before_s);
        }
        if !self.duty.is_over(now_s) {
            return;
        }
        let progress = self.progress();
        self.duty.turn(now_s, progress);
        self.counter.weight = self.duty.weight();
        let mut wanted = self.shared.wanted();
        wanted.due = None;
        if self.duty.is_open() {
            // What happened in between is not known.
            self.counter.books.lose_track();
            self.kinds.lose_track();
            // A thread that sleeps now is stopped where it works again: it may be the one that does the work.
            wanted.due = Some(Instant::now());
        } else {
            wanted.due = Some(Instant::now() + Duration::from_secs_f64(PAUSE_S));
            let live = self.counter.live.iter();
            wanted.threads = live.map(|(id, (_, thread))| (thread.process, *id)).collect();
        }
    }

    /// A thread stops at its calls in this window: it need not be halted.
    fn stops_at_calls_now(&self, pid: Pid) {
        self.shared.wanted().threads.retain(|(_, thread)| *thread != pid);
    }

    /// How far the tree has come.
    fn progress(&mut self) -> Progress {
        let processes: HashSet<Pid> =
            self.counter.live.values().map(|(_, thread)| thread.process).collect();
        for process in processes.into_iter().take(ASKED_MAX) {
            if let Some(progress) = progress_of(process) {
                self.known.insert(process, progress);
            }
        }
        self.known.values().fold(self.ended, |sum, one| plus(sum, *one))
    }
}

fn is_seen(thread: Pid, outward: Outward) -> bool {
    match outward {
        Outward::No => false,
        Outward::Opens(path) => !is_harmless(thread, path),
        Outward::Surely => true,
    }
}

/// What this thread has waited for a CPU, in seconds.
fn waited_s() -> f64 {
    let own = Scheduled::of("/proc/thread-self");
    own.map_or(0.0, |own| Duration::from_nanos(own.queued_ns).as_secs_f64())
}

fn plus(one: Progress, other: Progress) -> Progress {
    Progress {
        cpu_s: one.cpu_s + other.cpu_s,
        transfers: one.transfers + other.transfers,
        faults: one.faults + other.faults,
    }
}

fn progress_of(process: Pid) -> Option<Progress> {
    let stat = Stat::of(&format!("/proc/{process}"))?;
    let io = fs::read_to_string(format!("/proc/{process}/io")).unwrap_or_default();
    let number = |name: &str| -> u64 {
        let line = io.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
    };
    Some(Progress {
        cpu_s: kernel::cpu_time(process)?.as_secs_f64(),
        transfers: number("syscr:") + number("syscw:"),
        faults: stat.field(10)?,
    })
}

impl Witness for Bounded<'_> {
    fn prepare(&mut self, root: Pid) -> io::Result<CallStops> {
        if attach::tells_of_calls(root) {
            self.counter.meet(root);
            self.counter.note(root, Call::Execve);
            self.began = Instant::now();
            self.sees_all = true;
            return Ok(CallStops::Each);
        }
        self.counter.prepare(root)
    }

    fn begin(&mut self, pid: Pid) {
        self.counter.begin(pid);
        if !self.duty.is_open() || self.duty.samples_from_s().is_some() {
            self.counter.books.lose_track();
        }
    }

    fn start(&mut self, pid: Pid, new: Pid) {
        self.counter.start(pid, new);
        self.turn();
    }

    fn call(&mut self, pid: Pid) {
        self.counter.call(pid);
    }

    fn stops_at_calls(&self) -> bool {
        self.duty.is_open()
    }

    fn boundary(&mut self, pid: Pid) {
        self.counter.calls.stops += 1;
        let boundary = attach::boundary(pid);
        let begins = matches!(boundary, Ok(Boundary::Begins(_)));
        if self.duty.is_open() {
            self.stops_at_calls_now(pid);
            self.duty.note(begins);
            if let Ok(Boundary::Begins(Begun { number, counted, outward })) = boundary {
                self.outward += u64::from(is_seen(pid, outward));
                if let Some(stopped) = counted {
                    self.counter.called(pid, stopped);
                }
                if let Some(number) = number {
                    self.kinds.begins(pid, number, self.counter.weight);
                }
            } else {
                self.kinds.ends(pid);
            }
        }
        self.turn();
    }

    fn takes_away(&mut self, pid: Pid) -> bool {
        let is_ours = self.shared.wanted().halted.remove(&pid);
        if is_ours {
            self.counter.calls.stops += 1;
            self.turn();
            if self.duty.is_open() {
                self.stops_at_calls_now(pid);
            }
        }
        is_ours
    }

    fn end(&mut self, pid: Pid, usage: &Usage) {
        if let Some(progress) = self.known.remove(&pid) {
            self.ended = plus(self.ended, progress);
        }
        self.counter.end(pid, usage);
        self.turn();
    }
}
