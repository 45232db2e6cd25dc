//! Counting that costs a program no more than a bound: all calls at first, then samples of them.
//!
//! It relies on [`Duty`] for the times, and on the kernel's stops at every call, which can be left out again. [`Windows`]
//! estimates the calls that a window stands for, for each thread by itself. The hard part is to begin a window while no
//! thread stops by itself: a signal that the tracer takes away stops the threads that are at work. A thread that sleeps in a
//! call which a signal would end is left alone: it makes no calls.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::duty::Duty;
use super::kinds::Kinds;
use super::windows::{Progress, Shares, Windows};
use super::{Call, Calls, Counter, Pid, Sampling, Tally};
use crate::kernel::attach::{self, Begun, Boundary};
use crate::kernel::call_meter::{CallMeter, Tracepoint};
use crate::kernel::calls::{self as door, Sleep};
use crate::kernel::prices::StopPrice;
use crate::kernel::sample::Switch;
use crate::kernel::side_effects::{Outward, is_harmless};
use crate::kernel::{self, Status, Usage};
use crate::proc_files::{Scheduled, Stat, Switches, value};
use crate::trace::{CallStops, Witness};

/// The time between two checks whether a window is due.
const TICK: Duration = Duration::from_millis(2);

/// The tracer checks after this many stops how long it waited for a CPU.
const ASKED_EVERY: u64 = 32;

/// The threads to stop for the next window, and when.
#[derive(Debug, Default)]
struct Wanted {
    due: Option<Instant>,
    threads: HashMap<Pid, Pid>,
    /// Threads that were sent the signal.
    halted: HashSet<Pid>,
}

/// The state that the tracer and the clock beside it share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    wanted: Mutex<Wanted>,
}

impl Shared {
    fn wanted(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops threads when a window is due, until the other end of `over` is dropped with the run.
    pub(super) fn keep_time(&self, over: &Receiver<()>) {
        while over.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            let mut wanted = self.wanted();
            if wanted.due.is_none_or(|due| Instant::now() < due) {
                continue;
            }
            let Wanted { due, threads, halted } = &mut *wanted;
            for (&thread, &process) in
                threads.iter().filter(|(id, process)| may_halt(**process, **id))
            {
                halted.insert(thread);
                attach::halt(process, thread);
            }
            // If no thread was at work, they are checked again.
            *due = Some(Instant::now() + 10 * TICK);
        }
    }
}

/// True if a signal that is taken away changes nothing for a thread: it runs, or sleeps in a call that goes on.
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

/// A thread, and the calls of its last windows.
#[derive(Debug)]
struct Thread {
    windows: Windows,
    /// Counts its calls, where the kernel may.
    meter: Option<CallMeter>,
    seen: Seen,
    /// The calls of the window before, where they stand beside this one's.
    before: Seen,
}

#[derive(Debug, Default)]
struct Seen {
    tally: Tally,
    kinds: HashMap<i64, u64>,
}

impl Thread {
    fn new(is_followed: bool, meter: Option<CallMeter>) -> Thread {
        let since = Progress { calls: meter.is_some().then_some(0), ..Progress::default() };
        let windows = Windows::new(is_followed, since);
        Thread { windows, meter, seen: Seen::default(), before: Seen::default() }
    }

    fn progress(&self, process: Pid, thread: Pid) -> Progress {
        let calls = self.meter.as_ref().and_then(CallMeter::calls);
        Progress { calls, ..progress_of(process, thread) }
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
    /// The time that this thread had waited for a CPU before.
    waited_before_s: f64,
    threads: HashMap<Pid, Thread>,
    shares: Shares,
    /// The tracepoint that counts calls while no thread stops at them, where the kernel lets this user; opened when
    /// samples begin.
    tracepoint: Option<io::Result<Tracepoint>>,
    sampler: Switch,
    /// Calls by which others could see the program.
    outward: u64,
    /// True if the program traces processes itself.
    traces: bool,
}

impl<'a> Bounded<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        price: Option<StopPrice>,
        sampler: Switch,
    ) -> Bounded<'a> {
        Bounded {
            counter: Counter::default(),
            kinds: Kinds::default(),
            duty: price.map_or_else(Duty::unbounded, |price| Duty::new(price.wall_s)),
            shared,
            began: Instant::now(),
            waited_before_s: waited_s(),
            threads: HashMap::new(),
            shares: Shares::new(price.unwrap_or_default().cpu_s),
            tracepoint: None,
            sampler,
            outward: 0,
            traces: false,
        }
    }

    pub(super) fn finish(self) -> Calls {
        let unseen = self.shares.unseen;
        let seen = self.kinds.calls() as f64 - unseen.calls;
        let sampled = self.duty.samples_from_s.map(|from_s| Sampling {
            from_s,
            share: self.shares.seen(),
            calls_least: seen + unseen.least,
            calls_most: seen + unseen.most,
            unseen_sys_s: self.shares.unseen_sys_s,
            paused_s: self.duty.paused_s(self.began.elapsed().as_secs_f64()),
        });
        let mut calls = self.counter.finish();
        // Besides its calls, a thread stops at its start, and its starter stops there too.
        calls.stops += 2 * calls.threads_begun;
        calls.kinds = self.kinds.finish();
        calls.sampled = sampled;
        calls.outward = sampled.is_none().then_some(self.outward);
        calls.traces = self.traces;
        calls
    }

    fn turn(&mut self) {
        let now_s = self.began.elapsed().as_secs_f64();
        if self.duty.samples_from_s.is_none() && self.duty.stops.is_multiple_of(ASKED_EVERY) {
            self.duty.waited_s = waited_s() - self.waited_before_s;
        }
        if !self.duty.turn(now_s) {
            return;
        }
        if self.tracepoint.is_none() {
            self.tracepoint = Some(Tracepoint::of_calls());
        }
        // A stop of a sampled thread takes several times as long, so the sampler is off in a window.
        self.sampler.turn(!self.duty.is_open());
        let mut wanted = self.shared.wanted();
        if self.duty.is_open() {
            // A thread that sleeps now is stopped once it works again: it may be the thread that does the work.
            wanted.due = Some(Instant::now());
        } else {
            wanted.due = Some(Instant::now() + Duration::from_secs_f64(self.duty.pause_s()));
            wanted.threads = self.counter.live.clone();
        }
    }

    /// A thread goes on: it is caught or let go if that is due.
    fn catch_or_let_go(&mut self, pid: Pid) {
        let is_open = self.duty.is_open();
        let meter = || CallMeter::start(self.tracepoint.as_ref()?.as_ref().ok()?, pid).ok();
        let thread = self.threads.entry(pid).or_insert_with(|| Thread::new(is_open, meter()));
        if thread.windows.is_followed == is_open {
            return;
        }
        if thread.meter.is_none() {
            thread.meter = meter();
        }
        let now = thread.progress(self.counter.process_of(pid).unwrap_or(pid), pid);
        if is_open {
            thread.windows.catch(now, &mut self.shares);
            self.shared.wanted().threads.remove(&pid);
        } else {
            let times = thread.windows.let_go(now, &mut self.shares);
            self.stands_for(pid, times);
            // The thread's calls from now on are not seen.
            self.kinds.lose_track(pid);
            self.counter.books.lose_track(self.counter.process_of(pid).unwrap_or(pid));
        }
    }

    /// The calls of a thread's last windows stand for this many times as many calls that were not seen.
    fn stands_for(&mut self, pid: Pid, times: u64) {
        let Some(thread) = self.threads.get(&pid).filter(|_| times > 0) else { return };
        for seen in [&thread.seen, &thread.before] {
            self.counter.add(pid, &seen.tally, times);
            for (number, calls) in &seen.kinds {
                self.kinds.add(*number, times * calls);
            }
        }
    }

    /// Notes that a thread has stopped at the start of a call.
    fn begins(&mut self, pid: Pid, begun: Begun, in_window: bool) {
        let Begun { number, counted, outward } = begun;
        self.outward += u64::from(is_seen(pid, outward));
        self.traces |= outward == Outward::Traces;
        let tally = counted.map(|stopped| self.counter.called(pid, stopped));
        if let Some(number) = number {
            self.kinds.begins(pid, number);
        }
        // The call at which the thread is let go belongs to no window: its start ends the window.
        let Some(thread) = self.threads.get_mut(&pid).filter(|_| in_window) else { return };
        if let Some(stands_on) = thread.windows.begins_again() {
            let last = std::mem::take(&mut thread.seen);
            thread.before = if stands_on { last } else { Seen::default() };
        }
        if let Some(tally) = tally {
            thread.seen.tally.add(&tally);
        }
        if let Some(number) = number {
            *thread.seen.kinds.entry(number).or_default() += 1;
        }
    }
}

fn is_seen(thread: Pid, outward: Outward) -> bool {
    match outward {
        Outward::No => false,
        Outward::Opens(path) => !is_harmless(thread, path),
        Outward::Surely | Outward::Traces => true,
    }
}

fn waited_s() -> f64 {
    let own = Scheduled::of("/proc/thread-self");
    own.map_or(0.0, |own| Duration::from_nanos(own.queued_ns).as_secs_f64())
}

/// The progress of a thread; a figure that the kernel does not count is none or zero.
fn progress_of(process: Pid, thread: Pid) -> Progress {
    let folder = format!("/proc/{process}/task/{thread}");
    let io = fs::read_to_string(format!("{folder}/io")).unwrap_or_default();
    let number =
        |name| -> u64 { value(&io, name).and_then(|it| it.parse().ok()).unwrap_or_default() };
    let stat = Stat::of(&folder);
    let number_of = |field| stat.as_ref().and_then(|stat| stat.field(field)).unwrap_or(0_u64);
    let ran_ns = Scheduled::of(&folder).map_or(0, |scheduled| scheduled.ran_ns);
    Progress {
        cpu_s: Duration::from_nanos(ran_ns).as_secs_f64(),
        calls: None,
        transfers: number("syscr") + number("syscw"),
        sys_s: number_of(15) as f64 / kernel::ticks_a_second(),
        faults: number_of(10),
        sleeps: Switches::of(&folder).unwrap_or_default().voluntary,
    }
}

impl Witness for Bounded<'_> {
    fn prepare(&mut self, root: Pid) -> io::Result<CallStops> {
        // The root is stopped elsewhere than at a call, which is no error where the kernel tells of calls at all.
        attach::boundary(root)?;
        self.counter.note(root, Call::Execve);
        self.began = Instant::now();
        Ok(CallStops::Each)
    }

    fn begin(&mut self, pid: Pid) {
        self.counter.begin(pid);
        if !self.duty.is_open() {
            self.counter.books.lose_track(pid);
        }
    }

    fn start(&mut self, _pid: Pid, new: Pid) {
        self.counter.meet(new);
        if self.counter.live.len() > 1 {
            self.duty.has_several_threads = true;
        }
        if self.duty.samples_from_s.is_some() {
            let process = self.counter.process_of(new).unwrap_or(new);
            self.shared.wanted().threads.insert(new, process);
        }
        self.turn();
    }

    fn stops_at_calls(&mut self, pid: Pid) -> bool {
        self.catch_or_let_go(pid);
        self.duty.is_open()
    }

    fn boundary(&mut self, pid: Pid) {
        self.counter.stopped(pid);
        self.duty.stops += 1;
        self.turn();
        let boundary = attach::boundary(pid);
        let thread = self.threads.entry(pid).or_insert_with(|| Thread::new(true, None));
        let (was_followed, is_open) = (thread.windows.is_followed, self.duty.is_open());
        if was_followed {
            thread.windows.note(matches!(boundary, Ok(Boundary::Begins(_))), is_open);
        }
        match boundary {
            Ok(Boundary::Begins(begun)) if was_followed => self.begins(pid, begun, is_open),
            _ => self.kinds.ends(pid),
        }
    }

    fn takes_away(&mut self, pid: Pid) -> bool {
        let is_ours = self.shared.wanted().halted.remove(&pid);
        if is_ours {
            self.counter.stopped(pid);
            self.duty.stops += 1;
            self.turn();
        }
        is_ours
    }

    fn leaves(&mut self, pid: Pid) {
        let process = self.counter.process_of(pid).unwrap_or(pid);
        let Some(thread) = self.threads.get_mut(&pid) else { return };
        if self.duty.samples_from_s.is_some() {
            let now = thread.progress(process, pid);
            let times = thread.windows.end(now, &mut self.shares);
            self.stands_for(pid, times);
        }
        self.threads.remove(&pid);
    }

    fn end(&mut self, pid: Pid, status: Status, usage: &Usage) {
        self.threads.remove(&pid);
        self.shared.wanted().threads.remove(&pid);
        self.counter.end(pid, status, usage);
        self.turn();
    }
}
