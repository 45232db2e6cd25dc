//! One run: a program is started, its output drained and hashed, its resources measured, its
//! process tree ended.
//!
//! The pieces: the kernel door starts and reaps, `watch` waits while it drains the output and guards the limits, `tree`
//! looks at the processes. The fields of [`Run`] say what each figure means and what it cannot show.

use std::cell::Cell;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::Doing;
use crate::kernel::{self, Status, Usage, low_rss};
use crate::{Error, Stop, Variant, Workload, launch, machine};

mod fresh;
pub mod last_error;
mod neighbors;
mod offset;
mod pace;
mod rss_curve;
mod side_by_side;
pub mod tree;
mod watch;

pub use fresh::Fresh;
pub use neighbors::Neighbors;
pub use offset::Offsets;
pub use offset::variables as offset_variables;
pub use rss_curve::Curve;
pub use side_by_side::execute_beside;
pub use tree::Tree;
pub use watch::{Drain, Look, Started, Unseen, Watched};

/// The result of one run of a workload under one variant; for a server, of one burst of load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// The case's index in the suite.
    pub case: usize,
    /// The variant's index in the case.
    pub variant: usize,
    /// The round this run belongs to, counted from zero; a warm-up has none.
    pub round: Option<usize>,
    pub ending: Ending,
    /// Wall-clock seconds from just before the program was started to when it was seen to end.
    pub wall_s: f64,
    /// CPU seconds in the program's own code, children it waited for included.
    pub user_s: f64,
    /// CPU seconds in the kernel on its behalf, children it waited for included.
    pub sys_s: f64,
    /// Peak resident bytes: the larger of the largest single process (exact) and the largest
    /// sampled sum over the process tree (pages shared between processes count in each). It cannot
    /// be less than `rss_floor_bytes`.
    pub peak_rss_bytes: u64,
    /// The most resident bytes that the program's process can have had before it became the program: that process is
    /// a copy of this one, and could not do without this part of it. A program that needs less hides behind the
    /// floor. None if the floor was not noted.
    pub rss_floor_bytes: Option<u64>,
    /// Page faults served without reading from disk.
    pub minor_faults: u64,
    /// Page faults that read from disk.
    pub major_faults: u64,
    /// Context switches because the program waited for something.
    pub voluntary_switches: u64,
    /// Context switches because its time was up.
    pub involuntary_switches: u64,
    /// Seconds its threads were ready but had no CPU, as far as sampling saw them.
    pub queued_s: Option<f64>,
    /// True if the run lost so much CPU time to others that its times say more about them. Threads of one program that
    /// wait for each other are no reason.
    pub starved: bool,
    /// True if the run was starved and another run took its place; then it does not count.
    pub replaced: bool,
    /// Seconds the hypervisor took from this machine's CPUs in that time, over those the run may use.
    pub steal_s: Option<f64>,
    /// CPU seconds that processes outside the run used in that time (this one is among them), over
    /// the CPUs the run may use; known to about a hundredth of a second a CPU.
    pub others_s: Option<f64>,
    /// The one-minute load average at the start.
    pub load: Option<f64>,
    /// Bytes that were added to the environment to move the stack. See [`Offsets`].
    pub offset_bytes: u32,
    /// Resident bytes of the tree as time went by, `(seconds since the start, bytes)`, thinned out:
    /// at most 100 points, each the largest since the one before.
    pub rss_over_time: Vec<(f64, u64)>,
    /// The load's figures, where the run is a burst on a server.
    pub burst: Option<Burst>,
    pub stdout: Output,
    pub stderr: Output,
    /// Processes that were still there when the program ended, and were killed.
    pub left_behind: Vec<String>,
}

/// The result of one burst of load on a server.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Burst {
    /// Requests answered, errors not counted; none where the load command does not tell.
    pub requests: Option<u64>,
    /// Requests that failed or were answered with an error.
    pub errors: u64,
    pub throughput: Option<f64>,
    /// Seconds from when a request was due to its whole answer, at these shares of the requests.
    pub latency_s: Option<Latencies>,
    /// Requests a second that were asked for while latencies were measured, where the throughput comes from another
    /// half of the burst.
    pub latency_rate: Option<f64>,
    /// Calls for memory a request, counted in a run apart from the timed ones.
    pub allocations_a_request: Option<f64>,
}

/// Latencies in seconds below which a share of the requests lay.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Latencies {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    Exited(i32),
    Signalled(i32),
    /// The program ran longer than [`Limits::time`] and was killed.
    TimedOut,
    /// The tree grew over [`Limits::memory_bytes`] and was killed.
    OutOfMemory {
        /// The process that held most, with its pid and its bytes.
        process: String,
        /// The bytes of the tree in memory and swapped out when it was killed.
        bytes: u64,
    },
    /// [`Stop`] was requested and the program was killed.
    Stopped,
}

impl Default for Ending {
    fn default() -> Ending {
        Ending::Exited(0)
    }
}

impl From<Status> for Ending {
    fn from(status: Status) -> Ending {
        match status {
            Status::Exited(code) => Ending::Exited(code),
            Status::Signalled(signal) => Ending::Signalled(signal),
        }
    }
}

impl fmt::Display for Ending {
    /// The ending as a predicate: `returned 0`, `ran out of time`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(code) => write!(f, "returned {code}"),
            Ending::Signalled(signal) => {
                write!(f, "was ended by signal {signal}")?;
                kernel::signal_name(*signal).map_or(Ok(()), |name| write!(f, " ({name})"))
            }
            Ending::TimedOut => f.write_str("ran out of time and was killed"),
            Ending::OutOfMemory { process, bytes } => write!(
                f,
                "was killed over the memory limit, with {} MiB in use, most of it in {process}",
                bytes >> 20
            ),
            Ending::Stopped => f.write_str("was stopped"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Output {
    pub bytes: u64,
    /// The 128-bit XXH3 of all bytes, in hexadecimal.
    pub hash: String,
    /// The last bytes as text (at most `Output::TAIL_BYTES`); only kept for standard error.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub tail: String,
}

impl Output {
    /// The number of bytes that are kept of the end of standard error.
    pub const TAIL_BYTES: usize = 2048;

    /// The numbers of lines and of letters that messages repeat of a program's words.
    const LINES_SAID: usize = 3;
    const LETTERS_SAID: usize = 300;

    /// The first lines that a program wrote, in one: the first complaint is the one that counts. If only the end was
    /// kept, the last lines; empty if nothing was written.
    pub fn said(&self) -> String {
        let lines = self.tail.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> = if self.bytes > Output::TAIL_BYTES as u64 {
            let all: Vec<&str> = lines.collect();
            all[all.len().saturating_sub(Output::LINES_SAID)..].to_vec()
        } else {
            lines.take(Output::LINES_SAID).collect()
        };
        lines.join(" / ").chars().take(Output::LETTERS_SAID).collect()
    }
}

/// The limits at which a run is killed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time; none for no limit.
    pub time: Option<Duration>,
    /// Bytes of the whole process tree in memory and swapped out; none for three quarters of the
    /// memory that is available when the run starts.
    pub memory_bytes: Option<u64>,
}

/// The conditions of a run, besides its program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    pub limits: Limits,
    /// Bytes that are added to the environment to move the stack; see [`Offsets`].
    pub offset_bytes: u32,
    /// The folder the run starts in; none for that of this process.
    pub folder: Option<PathBuf>,
    /// True if standard output is a terminal, as when a user runs the program by hand. Otherwise it is a pipe.
    pub terminal: bool,
}

impl From<Limits> for Conditions {
    fn from(limits: Limits) -> Conditions {
        Conditions { limits, ..Conditions::default() }
    }
}

/// Runs `workload` once under `variant` and measures it. Runs of one process wait for each other:
/// two at once would disturb each other. Every process that becomes a child of this process
/// in that time counts as left behind by the run and is killed, so start nothing else then.
pub fn execute(
    workload: &Workload,
    variant: &Variant,
    conditions: &Conditions,
    stop: &Stop,
) -> Result<Run, Error> {
    execute_watched(workload, variant, conditions, stop, &mut Unseen)
}

/// [`execute`](execute()), while `look` looks at the processes now and then.
pub fn execute_watched(
    workload: &Workload,
    variant: &Variant,
    conditions: &Conditions,
    stop: &Stop,
    look: &mut dyn Look,
) -> Result<Run, Error> {
    let _alone = alone();
    let (started, tree) = start(workload, variant, conditions, false)?;
    watch_to_end(started, &tree, stop, look)
}

/// Watches a program until it and all that it started have ended.
fn watch_to_end(
    mut started: Started,
    tree: &Tree,
    stop: &Stop,
    look: &mut dyn Look,
) -> Result<Run, Error> {
    let watched = started.watch(tree, stop, look);
    if watched.is_err() {
        // Nothing ends the program any more, and it may run for ever.
        tree.kill();
    }
    let (status, usage) = kernel::wait_for(tree.root).doing(|| "waiting for the program")?;
    Ok(assemble(watched?, status, usage.plus(tree.reap())))
}

thread_local! {
    /// True if this thread holds the turn, or acts for the thread that does.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// The turn to run something: its holder is alone. A thread that has it already gets it again.
#[derive(Debug)]
pub struct Alone {
    /// None if the thread had the turn already.
    lock: Option<MutexGuard<'static, ()>>,
}

/// Waits for the turn. A holder that panicked left nothing that matters here.
pub fn alone() -> Alone {
    static TURN: Mutex<()> = Mutex::new(());
    if HAS_TURN.replace(true) {
        return Alone { lock: None };
    }
    Alone { lock: Some(TURN.lock().unwrap_or_else(PoisonError::into_inner)) }
}

impl Alone {
    /// Lets the calling thread, which must end before the turn does, act for the thread that has it.
    pub fn lend(&self) {
        HAS_TURN.set(true);
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        if self.lock.is_some() {
            HAS_TURN.set(false);
        }
    }
}

/// Starts the program in a session of its own, its standard output and error in pipes or the former in a terminal.
pub(crate) fn start(
    workload: &Workload,
    variant: &Variant,
    conditions: &Conditions,
    traced: bool,
) -> Result<(Started, Tree), Error> {
    let mut conditions = conditions.clone();
    let memory_bytes = &mut conditions.limits.memory_bytes;
    *memory_bytes = memory_bytes.or_else(default_memory_limit);
    kernel::become_subreaper().doing(|| "asking to inherit orphaned processes")?;
    let mut command = launch::command(workload, variant, conditions.folder.as_deref());
    command.stdin(workload.input.open()?).stdout(Stdio::piped()).stderr(Stdio::piped());
    let terminal = conditions.terminal.then(kernel::terminal::terminal).transpose();
    let shown = terminal.doing(|| "making a terminal")?.map(|(shown, own)| {
        command.stdout(own);
        shown
    });
    command.envs(offset::variables(workload, variant, conditions.offset_bytes));
    kernel::start_apart(&mut command, traced);
    let refused = |source| launch::refused(workload, source);
    let pending_report = low_rss::prepare(&mut command, &workload.arguments[0]).map_err(refused)?;
    let before = Tree::children_here();
    kernel::release_freed_memory();
    let neighbors = Neighbors::look();
    let began = Instant::now();
    let (mut child, rss_floor_bytes) =
        low_rss::spawn(&mut command, pending_report).map_err(refused)?;
    let root = child.id().cast_signed();
    let stdout = shown.map(Into::into).or(child.stdout.take().map(Into::into));
    let pipes = (stdout, child.stderr.take());
    let (Some(stdout), Some(stderr)) = pipes else { unreachable!("both were asked for") };
    let tree = Tree::new(root, before);
    let started = || {
        Ok(Started {
            began,
            neighbors,
            conditions,
            is_traced: traced,
            rss_floor_bytes,
            process: kernel::open_process(root).doing(|| "watching the program")?,
            stdout: Drain::new(stdout, 0)?,
            stderr: Drain::new(stderr.into(), Output::TAIL_BYTES)?,
        })
    };
    match started() {
        Ok(started) => Ok((started, tree)),
        Err(error) => {
            tree.end();
            Err(error)
        }
    }
}

/// Three quarters of the memory that is available now: a runaway then leaves room for everyone else.
pub fn default_memory_limit() -> Option<u64> {
    machine::memory_available().map(|bytes| bytes / 4 * 3)
}

pub(crate) fn assemble(watched: Watched, status: Status, usage: Usage) -> Run {
    let cpu_s = usage.user_s + usage.sys_s;
    let Watched { run, threads, interference, cut } = watched;
    Run {
        ending: cut.unwrap_or_else(|| status.into()),
        user_s: usage.user_s,
        sys_s: usage.sys_s,
        peak_rss_bytes: run.peak_rss_bytes.max(usage.max_rss_bytes),
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
        starved: interference.starved(run.wall_s, cpu_s, run.queued_s, threads),
        others_s: interference.others_s(cpu_s),
        ..run
    }
}

#[cfg(test)]
mod tests;
