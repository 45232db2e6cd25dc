//! The diagnosis of a program: why it is slow, from one run that is counted.
//!
//! The steps:
//!
//! 1. [`calls`](mod@masu_run::calls) counts the program's system calls, while `snapshots` reads the state of its
//!    threads and its memory from `/proc`.
//! 2. [`prices`](masu_run::prices) measures the price of each of the kernel's services on this machine.
//! 3. [`facts`] holds all these numbers. [`judge`](judge()) draws the findings from them, by the numbers in
//!    `thresholds.rs` and nothing else.
//!
//! The difficulty is time: a counted run is slower than another. So no cost is taken from the run's clock: a cost is a
//! count times a price, and it is compared with the run's time without the tracer's stops. Where the stops took much of
//! the run, a short program runs once more, uncounted, and all but the counts is that run's.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Proof;
use masu_run::calls::{Calls, Owner, count_watched};
use masu_run::execute::{self, Conditions, Look, Run, execute_watched};
use masu_run::prices::Service;
use masu_run::program::elf::{is_malloc_library, malloc_of};
use masu_run::quantity::{percent, seconds};
use masu_run::{
    Catalogue, Ending, Error, Libc, Limits, Prices, Program, Spec, Stop, Variant, Workload,
};
use masu_run::{kernel, machine};

mod build;
mod children;
mod counting;
pub mod facts;
pub mod finding;
mod growth;
mod heap_walk;
mod judge;
mod malloc_code;
mod malloc_facts;
mod repeats;
mod restart;
mod running;
pub mod samples;
mod snapshots;
mod thresholds;
pub mod trial;
mod unused;
mod wrapper;

pub use facts::Facts;
pub use finding::{Confidence, Finding, Id, Kind, Remedy, RemedyKind};
pub use judge::judge;
pub use malloc_facts::Means;
pub use running::{Hold, diagnose_running};
pub use samples::Stack;

use counting::note_counting;
use facts::{CallFacts, Clock, Failure, Malloc, Memory, Others};
use malloc_facts::late_median;
use snapshots::{Looks, Seen};
use thresholds::{
    CHURNED_THREADS, CPU_MIN_S, LOCK_WAITS, LONG_S, LOOKS_MIN, REFAULTS, SMALL_WRITES,
};

/// The findings about a program, and the facts that they rest on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// `masu-diagnosis`.
    pub schema: &'static str,
    /// The version of the schema. It grows when a reader of the JSON would have to change.
    pub version: u32,
    /// The command, or the process's arguments.
    pub command: Vec<String>,
    /// The variant that the program ran under, and the variables that it changed.
    pub variant: String,
    pub changed: Vec<String>,
    pub findings: Vec<Finding>,
    /// The things that could not be seen, each with its reason.
    pub not_seen: Vec<String>,
    /// The result of running the remedies; none if no proof was requested, or there was nothing to run.
    pub proof: Option<Proof>,
    /// The result of runs with other mallocs and settings; none if a cause was found, or nothing was tried.
    pub trial: Option<Proof>,
    pub facts: Facts,
}

impl Diagnosis {
    /// The diagnosis of a program that runs on its own malloc, before a proof or a trial.
    pub(crate) fn of(
        command: Vec<String>,
        facts: Facts,
        findings: Vec<Finding>,
        not_seen: Vec<String>,
    ) -> Diagnosis {
        Diagnosis {
            schema: "masu-diagnosis",
            version: 1,
            command,
            variant: "system".to_owned(),
            changed: Vec::new(),
            findings,
            not_seen,
            proof: None,
            trial: None,
            facts,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Options {
    pub limits: Limits,
    /// The means to look inside the malloc, by further runs; none for a single run.
    pub inside: Option<Means>,
    /// Whether the program writes to a terminal, as if a user ran it by hand. Otherwise it writes to a pipe.
    pub terminal: bool,
    /// Whether to run it once and no more, even if counting slowed it down much.
    pub once: bool,
}

/// A step that a diagnosis is about to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The program runs and is counted.
    Run,
    /// The program runs once more, uncounted, because it traces programs itself.
    Uncounted,
    /// The program runs once more, uncounted, because counting slowed it down much.
    Undisturbed,
    /// Further runs look inside the malloc.
    Inside,
    Prices,
}

/// Runs `workload` under `variant`, counts its work, and says why it is slow. `tell` is called before each step.
///
/// A short program that counting slowed down much runs a second time, uncounted, except with [`Options::once`]. The
/// program's output is read and not shown. Its processes have the rights that they have in
/// [`calls::count`](masu_run::calls::count()). A run that [`Stop`] ends is judged by the part that was seen. If the
/// system permits no tracing, system calls are not counted, and [`Diagnosis::not_seen`] says so.
pub fn diagnose(
    workload: &Workload,
    variant: &Variant,
    catalogue: &Catalogue,
    options: &Options,
    stop: &Stop,
    tell: &mut dyn FnMut(Step),
) -> Result<Diagnosis, Error> {
    // Checks and price measurements start children of their own, besides the runs.
    let _alone = execute::alone();
    tell(Step::Run);
    let conditions =
        Conditions { terminal: options.terminal, ..Conditions::from(options.limits.clone()) };
    let mut not_seen = Vec::new();
    let mut before_s = kernel::own_cpu_s();
    let refusal = refusal();
    let (mut run, mut calls, mut seen) =
        watch(workload, variant, &conditions, stop, refusal.is_none())?;
    if let Some(reason) = refusal {
        not_seen.push(format!("system calls: {reason}; `masu doctor` says what to do"));
    }
    if calls.as_ref().is_some_and(|calls| calls.traces) {
        let is_to_run_again = run.ending != Ending::Exited(0) && !stop.requested();
        not_seen.push(of_a_tracer(is_to_run_again).to_owned());
        if is_to_run_again {
            tell(Step::Uncounted);
            before_s = kernel::own_cpu_s();
            (run, calls, seen) = watch(workload, variant, &conditions, stop, false)?;
        }
    }
    not_seen.extend(unsampled(&seen));
    if !run.left_behind.is_empty() {
        not_seen.push(format!(
            "what {} did, which it left running when it ended, and which masu ended then: diagnose a server in the \
             foreground, or where it runs (-p PID)",
            run.left_behind.join(", ")
        ));
    }
    let mut facts = gathered(workload, variant, &run, calls.as_ref(), seen);
    facts.others = others(&run, kernel::own_cpu_s() - before_s, facts.cpus);
    if let Some(means) = &options.inside
        && !stop.requested()
    {
        tell(Step::Inside);
        let may_look = (&conditions, stop);
        facts.inside = malloc_facts::look(workload, means, may_look, &run, &mut not_seen)?;
    }
    tell(Step::Prices);
    facts.prices = Prices::measure_some(&services(calls.as_ref(), facts.memory.minor_faults));
    note_counting(&mut facts);
    if !options.once && counting::is_much(&facts) && !stop.requested() {
        tell(Step::Undisturbed);
        before_s = kernel::own_cpu_s();
        let again = watch(workload, variant, &conditions, stop, false);
        if let Ok((plain, _, seen)) = again
            && !stop.requested()
        {
            match repeats::other_run(&run, &plain) {
                Some(reason) => not_seen.push(format!("its times without counting: {reason}")),
                None => {
                    // No thread was stopped in this run.
                    let unstopped = |calls| Calls { stops: 0, first_stops: Vec::new(), ..calls };
                    let calls = calls.clone().map(unstopped);
                    let seen = gathered(workload, variant, &plain, calls.as_ref(), seen);
                    facts.replace_by_uncounted(seen);
                    facts.others = others(&plain, kernel::own_cpu_s() - before_s, facts.cpus);
                }
            }
        }
    }
    let findings = findings_of(&facts, Some((catalogue, &workload.program)));
    not_seen.extend(unseen(&facts, calls.as_ref(), options, &findings));
    let words = workload.arguments.iter().map(|word| word.to_string_lossy().into_owned());
    Ok(Diagnosis {
        variant: variant.label.clone(),
        changed: variant.translation(),
        ..Diagnosis::of(words.collect(), facts, findings, not_seen)
    })
}

/// Runs the program, and counts its calls if `counts` is set.
fn watch(
    workload: &Workload,
    variant: &Variant,
    conditions: &Conditions,
    stop: &Stop,
    counts: bool,
) -> Result<(Run, Option<Calls>, Seen), Error> {
    let mut looks = Looks::default();
    let (run, calls) = if counts {
        let sampler = looks.sampler();
        let counted = count_watched(workload, variant, conditions, stop, &mut looks, sampler);
        // A process that is killed before its first instruction cannot be traced.
        let early = |error| if stop.requested() { Error::Stopped } else { error };
        let (run, calls) = counted.map_err(early)?;
        (run, Some(calls))
    } else {
        let looks = &mut looks as &mut dyn Look;
        (execute_watched(workload, variant, conditions, stop, looks)?, None)
    };
    Ok((run, calls, looks.finish()))
}

/// The sentence about a program that itself traces others, as debuggers do: no process can be traced twice.
fn of_a_tracer(runs_again: bool) -> &'static str {
    if runs_again {
        "system calls: it traces programs itself, as strace and debuggers do, and nothing can be traced twice. It \
         failed while its calls were counted, so it ran once more without that"
    } else {
        "what it traces: it traces programs itself, as strace and debuggers do, and while its calls are counted \
         nothing can be traced twice"
    }
}

/// The use of the machine by others during a run. This process is none of them: the `own_s` that it took to count and to
/// look are left out.
fn others(run: &Run, own_s: f64, cpus: usize) -> Others {
    let whole_s = run.wall_s * cpus.max(1) as f64;
    let share = |time_s: f64| (time_s / whole_s.max(1e-9)).clamp(0.0, 1.0);
    let queued_s = run.queued_s.unwrap_or(0.0);
    let wanted_s = queued_s + run.user_s + run.sys_s;
    Others {
        share: run.others_s.map(|others_s| share(others_s - own_s)),
        stolen_share: run.steal_s.map(share),
        // A program that wanted a CPU for a moment did not wait for one.
        waited_share: if wanted_s < CPU_MIN_S { 0.0 } else { queued_s / wanted_s },
        load: run.load,
    }
}

/// The reason why system calls cannot be counted, if there is one.
fn refusal() -> Option<String> {
    let refused = kernel::prices::try_counting_calls().err()?;
    Some(format!("no tracing: {refused}"))
}

/// The sentence about missing samples of CPU time, if any are missing.
fn unsampled(seen: &Seen) -> Option<String> {
    match &seen.samples {
        Err(reason) => Some(format!(
            "where the CPU time goes: no perf events ({reason}); `masu doctor` says what to do"
        )),
        Ok(sampled) if sampled.threads_left_out > 0 => Some(format!(
            "where the CPU time of {} threads goes: too many to sample",
            sampled.threads_left_out
        )),
        Ok(_) => None,
    }
}

/// The facts of a run.
fn gathered(
    workload: &Workload,
    variant: &Variant,
    run: &Run,
    calls: Option<&Calls>,
    seen: Seen,
) -> Facts {
    let os_page_bytes = kernel::os_page_bytes();
    let refaults =
        calls.map(|calls| run.minor_faults.saturating_sub(calls.peaks_bytes / os_page_bytes));
    let Seen { threads, memory, mut programs, code, samples } = seen;
    let own = std::fs::canonicalize(&workload.program.binary).unwrap_or_default();
    wrapper::mark(&mut programs, &own);
    for (path, stops) in calls.map_or(&[][..], |calls| &calls.first_stops) {
        let own = programs.iter_mut().find(|program| program.is_command && program.path == *path);
        own.into_iter().for_each(|program| program.stops += stops);
    }
    let wrapper = wrapper::name(&workload.program);
    let main = programs.iter().find(|program| wrapper.is_none() || !program.is_command);
    let samples = samples.ok().map(|samples| samples.calling(&own, &workload.program.path));
    let stops = calls.map_or(0, |calls| calls.stops);
    let main: PathBuf = main.or(programs.first()).map_or(own, |program| program.path.clone());
    Facts {
        ending: Some(run.ending.to_string()),
        failure: Failure::of(&run.ending, &run.stderr.tail),
        clock: Clock {
            wall_s: run.wall_s,
            user_s: run.user_s,
            sys_s: run.sys_s,
            own_sys_s: run.sys_s,
            queued_s: run.queued_s.unwrap_or(0.0),
            stops,
            voluntary_switches: Clock::switches_without(stops, run.voluntary_switches),
            involuntary_switches: run.involuntary_switches,
            ..Clock::default()
        },
        memory: Memory {
            peak_rss_bytes: run.peak_rss_bytes,
            late_rss_bytes: late_median(&run.rss_over_time, run.wall_s)
                .unwrap_or(run.peak_rss_bytes),
            minor_faults: run.minor_faults,
            major_faults: run.major_faults,
            refaults,
            growth: growth::of(&run.rss_over_time),
            os_page_bytes,
            ..memory
        },
        calls: calls.map(CallFacts::of),
        threads,
        build: build::of(&main),
        programs,
        wrapper,
        code,
        samples,
        malloc: malloc(&workload.program, variant),
        cpus: machine::Machine::here().cpus,
        rss_over_time: run.rss_over_time.clone(),
        ..Facts::default()
    }
}

fn malloc(program: &Program, variant: &Variant) -> Malloc {
    let preloaded = std::env::var_os("LD_PRELOAD").and_then(|list| {
        let list = list.to_string_lossy().into_owned();
        let names = list.split([':', ' ']).filter_map(|path| Path::new(path).file_name()?.to_str());
        names.filter(|name| is_malloc_library(name)).map(str::to_owned).next()
    });
    let name = if variant.library.is_some() {
        variant.allocator.clone()
    } else if let Some(linked) = preloaded.as_ref().or(program.linked_malloc.as_ref()) {
        malloc_of(linked)
    } else {
        let own = match program.libc {
            Libc::Glibc => "glibc",
            Libc::Musl => "musl",
            Libc::Static => "unknown",
        };
        own.to_owned()
    };
    Malloc { name, refusal: program.refusal.clone() }
}

/// The services whose prices a judgement of these calls and of so many page faults needs.
fn services(calls: Option<&Calls>, faults: u64) -> Vec<Service> {
    let Some(calls) = calls else { return Vec::new() };
    let mut services = vec![
        Service::SystemCall,
        Service::PageFault,
        Service::PageReturn,
        Service::BreakPair,
        Service::MapPair,
        Service::CountedCall,
        Service::CountedCallCpu,
    ];
    if faults >= REFAULTS {
        services.push(Service::HugePageFault);
    }
    let locks: u64 = calls.locks.iter().map(|lock| lock.waits).sum();
    if locks >= LOCK_WAITS {
        services.extend([Service::ContextSwitch, Service::FutexWake]);
    }
    if calls.threads_begun >= CHURNED_THREADS {
        services.push(Service::Thread);
    }
    if calls.small_writes.buffered() >= SMALL_WRITES {
        services.push(Service::SmallWrite);
    }
    if calls.small_writes.terminals >= SMALL_WRITES {
        services.push(Service::TerminalWrite);
    }
    services
}

/// The sentences about things that could not be seen.
fn unseen(
    facts: &Facts,
    calls: Option<&Calls>,
    options: &Options,
    findings: &[Finding],
) -> Vec<String> {
    let mut unseen = Vec::new();
    if let Some(sampled) = calls.and_then(|calls| calls.sampled) {
        unseen.push(format!(
            "every system call: to count each takes too long. After {} only samples of them were counted, in {} of \
             its CPU time; {}",
            seconds(sampled.from_s),
            percent(sampled.share),
            sampled.listing()
        ));
    }
    for (program, reason) in calls.map_or(&[][..], |calls| &calls.privileged) {
        unseen.push(format!(
            "{} as it is: {reason}, and a traced program gets no more rights than you have",
            program.display()
        ));
    }
    unseen.extend(judge::waits_of_threads(facts, findings));
    unseen.extend(judge::may_leak(facts));
    // A program of one thread that computes has no phases and no waits. The page says of a program that it is over at
    // once.
    let is_one = |calls: &CallFacts| calls.threads_started == 0 && calls.processes <= 1;
    let computes = findings.iter().any(|one| one.id == Id::CpuBound);
    let is_known = computes && facts.calls.as_ref().is_some_and(is_one);
    let is_over_at_once = facts.clock.own_cpu_s() < CPU_MIN_S && facts.clock.wall_s < LONG_S;
    if facts.threads.looks < LOOKS_MIN && !is_known && !is_over_at_once {
        let wall = seconds(facts.clock.wall_s);
        unseen
            .push(format!("phases and waits of threads: the looks at them in {wall} were too few"));
    }
    for unpriced in &facts.prices.unknown {
        unseen.push(format!("the price of a {}: {}", unpriced.service.name(), unpriced.reason));
    }
    let waits = facts.calls.as_ref().map_or(0, |calls| calls.lock_waits(Owner::Malloc));
    if options.inside.is_none() && facts.malloc.refusal.is_none() && waits >= LOCK_WAITS {
        unseen.push(
            "which threads free the blocks of others: --inside counts that, in two more runs of the command".to_owned(),
        );
    }
    unseen
}

/// The findings, their settings translated for the program if possible.
fn findings_of(facts: &Facts, known: Option<(&Catalogue, &Program)>) -> Vec<Finding> {
    let mut findings = judge(facts);
    let Some((catalogue, program)) = known else { return findings };
    let remedies = findings.iter_mut().flat_map(|finding| &mut finding.remedies);
    for remedy in remedies.filter(|remedy| remedy.kind == RemedyKind::Setting) {
        let Some(variant) = &remedy.variant else { continue };
        let spec = variant.parse::<Spec>().ok();
        let resolved = spec.and_then(|spec| catalogue.resolve(&spec, program).ok());
        // A preload needs a path of this machine, and `masu run` finds that path itself.
        let resolved = resolved.filter(|variant| variant.library.is_none());
        remedy.paste = resolved.map(|variant| variant.translation().join(" "));
    }
    findings
}

#[must_use]
pub fn was_stopped(diagnosis: &Diagnosis) -> bool {
    diagnosis.facts.ending.as_deref() == Some(Ending::Stopped.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::judge::tests::reading::facts;
    use super::*;

    #[test]
    fn a_long_run_with_few_looks_is_not_called_short() {
        let facts = facts(
            "ending returned 0
             calls =
             clock = wall_s 60, user_s 60
             threads = looks 3",
        );
        let unseen = unseen(&facts, None, &Options::default(), &[]);
        let said = "phases and waits of threads: the looks at them in 60.00 s were too few";
        assert!(unseen.iter().any(|one| one == said), "{unseen:?}");
    }

    #[test]
    fn phases_and_waits_are_named_where_there_may_be_some() {
        let is_said = |calls: &str, clock: &str, id| {
            let facts = facts(&format!("calls = {calls}\nclock = {clock}\nthreads = looks 3"));
            let found = [Finding::new(id, Confidence::High, "")];
            let unseen = unseen(&facts, None, &Options::default(), &found);
            unseen.iter().any(|one| one.starts_with("phases and waits"))
        };
        let short = "wall_s 0.09, user_s 0.08";
        assert!(!is_said("processes 1", short, Id::CpuBound), "it has none");
        assert!(is_said("processes 1, threads_started 3", short, Id::CpuBound));
        assert!(is_said("processes 4", short, Id::CpuBound));
        assert!(is_said("processes 1", short, Id::MemoryIsFine), "it may have waited");
        assert!(!is_said("processes 4", "wall_s 0.004, user_s 0.001", Id::MemoryIsFine));
        assert!(is_said("processes 4", "wall_s 60, user_s 0.01", Id::IoBound), "it waited");
    }
}
