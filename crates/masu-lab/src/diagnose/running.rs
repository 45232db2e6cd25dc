//! The diagnosis of a process that runs already: the facts of a few seconds from `/proc` and samples, and the malloc's
//! own statistics if it is masu.
//!
//! Relies on looks, which neither stop the process nor slow it down, except while they read its mappings. Its system
//! calls are counted only if it may be attached to, which stops it at each call.

use std::ffi::OsStr;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::children::Children;
use super::facts::{CallFacts, Clock, Facts, Malloc, Memory, Waiting};
use super::malloc_facts::{self, Pages};
use super::snapshots::{Looks, Seen};
use super::{
    Diagnosis, build, findings_of, growth, judge, note_counting, others, restart, services,
    unsampled,
};
use crate::heap::{self, Profile};
use masu_run::calls::Owner;
use masu_run::calls::attach::{Attached, Counted};
use masu_run::calls::locks::malloc_in;
use masu_run::execute::tree::{Pid, rss_bytes, state_of, threads};
use masu_run::execute::{self, Curve, Look, Neighbors, Run};
use masu_run::prices::Service;
use masu_run::proc_files::{self, Scheduled, Stat, Switches};
use masu_run::process::{Observer, mappings};
use masu_run::quantity::seconds;
use masu_run::{Catalogue, Error, Machine, Places, Prices, Program, Stop, kernel};

/// The time in which a growing process must have written a heap profile.
const PROFILE_WITHIN: Duration = Duration::from_secs(2);

/// The time between two looks, if a look is cheap.
const USUAL: Duration = Duration::from_millis(10);

/// The time to the next look, as a multiple of the time that a look took.
const COST_FACTOR: u32 = 50;

/// The longest time between two looks.
const AT_LEAST_EVERY: Duration = Duration::from_millis(250);

/// The time for which a process is looked at, undisturbed, before it is attached to: this share of the time in which it
/// is then watched, and no more than the second. Less CPU time in it than the third, in seconds, shows no shares.
const BEFORE_SHARE: u32 = 5;
const BEFORE_MOST: Duration = Duration::from_secs(1);
const BEFORE_CPU_S: f64 = 0.1;

/// The way to watch a running process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The process is only looked at, and runs on undisturbed.
    None,
    /// The process is attached to, after a second at most: it is stopped at every system call while it is watched, so
    /// that calls are counted, and released at the end. It is also released if this process ends for any other reason.
    Attached,
}

/// Looks at the process `pid` for `patience` (less if it ends, or [`Stop`] asks to) and says why it is slow. An error
/// if there is no such process, if it belongs to another user, may not be attached to or ends before, if it is a
/// thread, or if a signal has stopped it.
pub fn diagnose_running(
    pid: u32,
    patience: Duration,
    hold: Hold,
    stop: &Stop,
) -> Result<Diagnosis, Error> {
    // Price measurements start children of this process.
    let _alone = execute::alone();
    let process = Pid::try_from(pid).map_err(|_| Error::Ended { pid })?;
    Counters::of(process).ok_or(Error::Ended { pid })?;
    // The kernel lists no threads in /proc, but opens the folder of one.
    let status = proc_files::text(format!("/proc/{pid}/status")).unwrap_or_default();
    if let Some(of) = proc_files::value(&status, "Tgid").filter(|of| *of != pid.to_string()) {
        let reason = format!("it is a thread of process {of}; give that number: -p {of}");
        return Err(Error::Process { pid, reason });
    }
    if is_stopped(process) {
        let reason = format!("a signal has stopped it; `kill -CONT {pid}` continues it");
        return Err(Error::Process { pid, reason });
    }
    let maps = mappings(pid, "maps")?;
    let command = proc_files::text(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    // Another malloc takes a new start, and only the file matters for that. It may lie in a container, or be replaced.
    let restarted = Program::find(OsStr::new(&format!("/proc/{pid}/exe")));
    let is_on_masu = Observer::new(pid).is_ok();
    let (mut looks, mut pages) = (Looks::default(), Pages::default());
    let (undisturbed, attached) = match hold {
        Hold::None => (None, None),
        Hold::Attached => {
            let undisturbed = Undisturbed::of(process, patience, stop).ok_or_else(|| {
                let reason = "it ended before it was attached to; `masu diagnose -- COMMAND` counts from the start";
                Error::Process { pid, reason: reason.to_owned() }
            })?;
            (Some(undisturbed), Some(Attached::to(pid)?))
        }
    };
    let (neighbors, own_before_s) = (Neighbors::look(), kernel::own_cpu_s());
    let began = Instant::now();
    let before = Counters::of(process).ok_or(Error::Ended { pid })?;
    let mut children = Children::of(process);
    let mut after = before;
    let mut has_ended = false;
    let mut curve = Vec::new();
    while began.elapsed() < patience && !stop.requested() {
        let look = Instant::now();
        looks.look(began.elapsed(), &[process]);
        children.look(began.elapsed());
        if is_on_masu {
            pages.look(began.elapsed(), &[process]);
        }
        match Counters::of(process) {
            Some(counters) => {
                after = counters;
                curve.push((began.elapsed().as_secs_f64(), counters.rss_bytes));
            }
            None => {
                has_ended = true;
                break;
            }
        }
        thread::sleep(until_next(look));
    }
    let wall_s = began.elapsed().as_secs_f64();
    let (interference, own_s) = (neighbors.interference(), kernel::own_cpu_s() - own_before_s);
    let counted = attached.map(Attached::finish).transpose()?;
    let mut seen = looks.finish();
    let children = children.finish(wall_s);
    let command: Vec<String> =
        command.trim_end_matches('\0').split('\0').map(str::to_owned).collect();
    let mut not_seen = Vec::new();
    if has_ended {
        let looked = seconds(wall_s);
        not_seen.push(format!("the rest of the time asked for: the process ended after {looked}"));
    }
    if is_stopped(process) {
        not_seen
            .push(format!("its work: a signal has stopped it; `kill -CONT {pid}` continues it"));
    }
    if let Some(done) = &children {
        not_seen.push(done.unseen());
        let own_s = after.user_s + after.sys_s - before.user_s - before.sys_s;
        if done.cpu_s > own_s {
            let idle_s = seen.threads.idle_s;
            seen.threads.idle_for.push((Waiting::Itself, idle_s));
        }
    }
    not_seen.push(match &restarted {
        Ok(program) => restart::untried(process, &command, program.refusal.as_deref()),
        Err(error) => format!("whether another malloc or a setting would gain: {error}"),
    });
    let calls = match hold {
        Hold::None => {
            "system calls, and with them storms of calls, thread churn and small writes: a process \
             that runs already is stopped to count them only with --attach; `masu diagnose -- COMMAND` \
             counts from the start"
        }
        Hold::Attached => "system calls of children that it had before, and what it did before",
    };
    not_seen.push(calls.to_owned());
    if !is_on_masu {
        not_seen.push(
            "what its malloc holds: a program under `masu run -- COMMAND` publishes that"
                .to_owned(),
        );
    }
    not_seen.extend(unsampled(&seen));
    let mut facts = gathered(before, after, &curve, wall_s, seen);
    // The children's work is the program's own, not that of others.
    let of_children_s = children.as_ref().map_or(0.0, |done| done.cpu_s);
    let run = Run {
        wall_s,
        user_s: facts.clock.user_s,
        sys_s: facts.clock.sys_s,
        queued_s: Some(facts.clock.queued_s),
        others_s: interference.others_s(facts.clock.own_cpu_s() + of_children_s),
        steal_s: interference.steal_s,
        load: interference.load,
        ..Run::default()
    };
    facts.others = others(&run, own_s, facts.cpus);
    facts.memory.growth = growth::of(&curve);
    let mut thinned = Curve::default();
    curve.iter().for_each(|(at_s, bytes)| thinned.add(Duration::from_secs_f64(*at_s), *bytes));
    facts.rss_over_time = thinned.points();
    facts.build = build::of(&program);
    let name = proc_files::text(format!("/proc/{pid}/comm")).unwrap_or_default();
    let known_as = program.with_file_name(name.trim_end());
    facts.samples = facts.samples.map(|samples| samples.calling(&program, &known_as));
    facts.malloc = Malloc {
        name: if is_on_masu { "masu".to_owned() } else { malloc_in(&maps) },
        refusal: match &restarted {
            Ok(program) => program.refusal.clone(),
            Err(error) => Some(error.to_string()),
        },
    };
    facts.inside = is_on_masu.then(|| pages.finish(wall_s));
    if let Some(inside) = facts.inside.as_mut().filter(|_| facts.memory.growth.is_some()) {
        // Only a process that takes profiles has one; any other refuses at once.
        let profile = heap::ask(pid, PROFILE_WITHIN).and_then(|file| Profile::read(&file));
        inside.held = profile.ok().and_then(|profile| malloc_facts::held(&[profile]));
    }
    if let Some(counted) = &counted {
        add(&mut facts, counted);
        facts.clock.kernel_share_before = undisturbed.as_ref().and_then(|it| it.kernel_share);
        facts.threads.lock_share_before = undisturbed.map(|it| it.lock_share);
        facts.prices = Prices::measure_some(&services(Some(&counted.calls), 0));
        note_counting(&mut facts);
    } else {
        let services = [Service::SystemCall, Service::PageFault, Service::PageReturn];
        facts.prices = Prices::measure_some(&services);
    }
    let catalogue = Catalogue::find(&Places::default());
    let mallocs = restarted.as_ref().ok().map(|program| (&catalogue, program));
    let findings = findings_of(&facts, mallocs);
    not_seen.extend(judge::waits_of_threads(&facts, &findings));
    Ok(Diagnosis::of(command, facts, findings, not_seen))
}

/// The work of a process before it was attached to, while nothing stopped it.
struct Undisturbed {
    /// The kernel's share of its CPU time; none if it took too little.
    kernel_share: Option<f64>,
    /// See [`Threads::lock_share_before`](super::facts::Threads).
    lock_share: f64,
}

impl Undisturbed {
    /// Looks at a process that is about to be watched for `patience`; none if it ends.
    fn of(process: Pid, patience: Duration, stop: &Stop) -> Option<Undisturbed> {
        let (began, before) = (Instant::now(), Counters::of(process)?);
        let mut looks = Looks::default();
        while began.elapsed() < (patience / BEFORE_SHARE).min(BEFORE_MOST) && !stop.requested() {
            let look = Instant::now();
            looks.look(began.elapsed(), &[process]);
            thread::sleep(until_next(look));
        }
        let after = Counters::of(process)?;
        let (user_s, sys_s) = (after.user_s - before.user_s, after.sys_s - before.sys_s);
        let cpu_s = user_s + sys_s;
        let threads = looks.finish().threads;
        let slept_s = threads.waited_for(Owner::Program) + threads.waited_for(Owner::CLibrary);
        Some(Undisturbed {
            kernel_share: (cpu_s >= BEFORE_CPU_S).then(|| sys_s / cpu_s),
            lock_share: slept_s / (slept_s + threads.cpu_s).max(1e-9),
        })
    }
}

/// The time to the next look after one that began at `look`.
fn until_next(look: Instant) -> Duration {
    (look.elapsed() * COST_FACTOR).clamp(USUAL, AT_LEAST_EVERY)
}

fn is_stopped(process: Pid) -> bool {
    let state = Stat::of(&format!("/proc/{process}")).and_then(|stat| stat.state());
    state == Some('T')
}

/// Adds the counts, and the work of children whose calls are among them.
fn add(facts: &mut Facts, counted: &Counted) {
    let Counted { calls, children } = counted;
    let Facts { clock, memory, .. } = facts;
    clock.user_s += children.user_s;
    clock.sys_s += children.sys_s;
    clock.own_sys_s = clock.sys_s;
    clock.stops = calls.stops;
    clock.voluntary_switches = Clock::switches_without(calls.stops, clock.voluntary_switches);
    memory.minor_faults += children.minor_faults;
    memory.major_faults += children.major_faults;
    let first_touches = calls.peaks_bytes / memory.os_page_bytes.max(1);
    let again = memory.refaults.unwrap_or(0) + children.minor_faults;
    memory.refaults = Some(again.saturating_sub(first_touches));
    facts.calls = Some(CallFacts::of(calls));
}

/// The kernel's counters for a process so far.
#[derive(Debug, Clone, Copy, Default)]
struct Counters {
    minor_faults: u64,
    major_faults: u64,
    user_s: f64,
    sys_s: f64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    /// Time that the threads waited for a CPU, in seconds.
    queued_s: f64,
    rss_bytes: u64,
    /// The most resident bytes that there ever were.
    peak_bytes: u64,
}

impl Counters {
    /// The counters; none for a process that has ended.
    fn of(process: Pid) -> Option<Counters> {
        state_of(process).filter(|state| !state.is_gone())?;
        let stat = Stat::of(&format!("/proc/{process}"))?;
        let number = |field| stat.field::<u64>(field);
        let ticks = kernel::ticks_a_second();
        let mut counters = Counters {
            minor_faults: number(10)?,
            major_faults: number(12)?,
            user_s: number(14)? as f64 / ticks,
            sys_s: number(15)? as f64 / ticks,
            rss_bytes: rss_bytes(process)?,
            peak_bytes: proc_files::text(format!("/proc/{process}/status"))
                .and_then(|status| proc_files::size(&status, "VmHWM"))
                .unwrap_or(0),
            ..Counters::default()
        };
        for thread in threads(process) {
            let folder = format!("/proc/{process}/task/{thread}");
            let Switches { voluntary, involuntary } = Switches::of(&folder).unwrap_or_default();
            let queued_ns = Scheduled::of(&folder).map_or(0, |scheduled| scheduled.queued_ns);
            counters.queued_s += Duration::from_nanos(queued_ns).as_secs_f64();
            counters.voluntary_switches += voluntary;
            counters.involuntary_switches += involuntary;
        }
        Some(counters)
    }
}

fn gathered(
    before: Counters,
    after: Counters,
    curve: &[(f64, u64)],
    wall_s: f64,
    seen: Seen,
) -> Facts {
    let os_page_bytes = kernel::os_page_bytes();
    let faults = after.minor_faults.saturating_sub(before.minor_faults);
    // The kernel's peak is that of the process's whole life: a new one was reached in this time, perhaps between looks.
    let new_peak = Some(after.peak_bytes).filter(|peak| *peak > before.peak_bytes);
    let seen_bytes = curve.iter().map(|(_, bytes)| *bytes).chain(new_peak);
    let peak_rss_bytes = seen_bytes.fold(before.rss_bytes, u64::max);
    // Memory that was given back by now was touched for the first time all the same.
    let grown = (peak_rss_bytes - before.rss_bytes) / os_page_bytes;
    Facts {
        clock: Clock {
            wall_s,
            user_s: (after.user_s - before.user_s).max(0.0),
            sys_s: (after.sys_s - before.sys_s).max(0.0),
            own_sys_s: (after.sys_s - before.sys_s).max(0.0),
            // Threads that ended took their waits along, so the sum may shrink.
            queued_s: (after.queued_s - before.queued_s).max(0.0),
            voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: after
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
            ..Clock::default()
        },
        memory: Memory {
            peak_rss_bytes,
            late_rss_bytes: malloc_facts::late_median(curve, wall_s).unwrap_or(after.rss_bytes),
            minor_faults: faults,
            major_faults: after.major_faults.saturating_sub(before.major_faults),
            refaults: Some(faults.saturating_sub(grown)),
            os_page_bytes,
            ..seen.memory
        },
        threads: seen.threads,
        code: seen.code,
        samples: seen.samples.ok(),
        cpus: Machine::here().cpus,
        ..Facts::default()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn this_process_is_looked_at_without_a_count_of_calls() {
        let patience = Duration::from_secs(2);
        let own = std::process::id();
        let diagnosis =
            diagnose_running(own, patience, Hold::None, &Stop::never()).expect("it is ours");
        assert!(diagnosis.facts.calls.is_none() && diagnosis.facts.threads.looks > 0);
        assert!(diagnosis.facts.memory.peak_rss_bytes > 1 << 16, "{:?}", diagnosis.facts);
        assert!(diagnosis.not_seen.iter().any(|one| one.starts_with("system calls")));
        assert!(!diagnosis.command.is_empty() && Path::new(&diagnosis.command[0]).exists());
    }

    #[test]
    fn memory_that_came_and_went_was_touched_once() {
        let page = kernel::os_page_bytes();
        let counters = |minor_faults, pages| Counters {
            minor_faults,
            rss_bytes: pages * page,
            ..Counters::default()
        };
        let curve = [(0.1, 100 * page), (0.5, 90_100 * page), (0.9, 200 * page)];
        let seen = Looks::default().finish();
        let after = counters(91_500, 200);
        let of = |peak_pages, seen| {
            let after = Counters { peak_bytes: peak_pages * page, ..after };
            let memory = gathered(counters(500, 100), after, &curve, 1.0, seen).memory;
            (memory.peak_rss_bytes / page, memory.refaults)
        };
        assert_eq!(of(0, seen), (90_100, Some(1_000)));
        // The peak lay between two looks.
        assert_eq!(of(90_600, Looks::default().finish()), (90_600, Some(500)));
    }

    #[test]
    fn a_process_that_is_stopped_is_distinguished_from_one_that_waits() {
        let _alone = execute::alone();
        let mut child = Command::new("sh").args(["-c", "kill -STOP $$"]).spawn().unwrap();
        let process = Pid::try_from(child.id()).unwrap();
        while !is_stopped(process) {
            assert_eq!(child.try_wait().unwrap(), None, "it ended by itself");
            thread::sleep(Duration::from_millis(1));
        }
        for hold in [Hold::None, Hold::Attached] {
            let error = diagnose_running(child.id(), Duration::ZERO, hold, &Stop::never());
            let remedy = format!("`kill -CONT {process}` continues it");
            assert!(error.unwrap_err().to_string().ends_with(&remedy), "{remedy}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_stopped(process));
    }

    #[test]
    fn a_program_whose_file_was_removed_may_have_another_malloc_as_before() {
        let _alone = execute::alone();
        let cat = Program::find(OsStr::new("cat")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("cat");
        fs::copy(&cat.binary, &copy).unwrap();
        let mut command = Command::new(&copy);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // `spawn` may return before the kernel has laid the program down. An answer shows that it has.
        child.stdin.as_mut().unwrap().write_all(b"!").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        fs::remove_file(&copy).unwrap();
        let diagnosis = diagnose_running(child.id(), Duration::ZERO, Hold::None, &Stop::never());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(diagnosis.unwrap().facts.malloc.refusal, cat.refusal);
    }

    #[test]
    fn a_process_that_hardly_wanted_a_cpu_did_not_wait_for_one() {
        let waited_share = |queued_s, user_s| {
            let run = Run { wall_s: 2.0, queued_s: Some(queued_s), user_s, ..Run::default() };
            others(&run, 0.0, 2).waited_share
        };
        assert_eq!((waited_share(1e-4, 0.0), waited_share(0.5, 0.5)), (0.0, 0.5));
    }

    #[test]
    fn a_process_that_is_none_is_named() {
        for hold in [Hold::None, Hold::Attached] {
            let error =
                diagnose_running(u32::MAX, Duration::ZERO, hold, &Stop::never()).unwrap_err();
            assert!(error.to_string().contains(&u32::MAX.to_string()), "{error}");
        }
        let thread = thread::spawn(|| {
            let own = fs::read_link("/proc/thread-self").unwrap();
            let number = own.file_name().unwrap().to_str().unwrap().parse().unwrap();
            diagnose_running(number, Duration::ZERO, Hold::None, &Stop::never())
        });
        let error = thread.join().unwrap().unwrap_err().to_string();
        assert!(error.ends_with(&format!("-p {}", std::process::id())), "{error}");
    }
}
