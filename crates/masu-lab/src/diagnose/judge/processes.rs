//! Processes that are started for little work, threads that wait without sleeping, and memory that only grows.

use super::super::facts::{Facts, Growth};
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::thresholds::{
    CAUSE_SHARE, GROWN_BYTES, GROWN_LEAST, GROWN_SHARE, SPINNING_SHARE, STARTED_PROCESSES, YIELDS,
    YIELDS_SAMPLED,
};
use masu_run::prices::Service;
use masu_run::quantity::{bytes, count, percent, seconds};

/// A process, or a program, for each small piece of work.
pub(super) fn storm(facts: &Facts) -> Option<Finding> {
    /// The least time that current machines take to start and end a process, and the least time for a program in it.
    const PROCESS_S: f64 = 1e-4;
    const PROGRAM_S: f64 = 4e-4;
    let calls = facts.calls.as_ref()?;
    let started = calls.processes.saturating_sub(1);
    let of = |name: &str| calls.counts.get(name).copied().unwrap_or(0);
    // A program that is searched for in one folder after the other is tried more often than it runs.
    let programs = (of("execve") + of("execveat")).saturating_sub(1).min(started);
    let cost_s = started as f64 * PROCESS_S + programs as f64 * PROGRAM_S;
    // On a busy machine the processes wait for a CPU, and looks miss such short processes: CPU time stands for the run.
    let of_cpu = (cost_s / facts.clock.own_cpu_s().max(1e-9)).min(1.0);
    let share = if facts.others.is_busy() { of_cpu } else { facts.share(cost_s) };
    if started < STARTED_PROCESSES || share < CAUSE_SHARE {
        return None;
    }
    let title = format!("It starts {} processes, each for little work", count(started as f64));
    let finding = Finding::new(Id::ForkStorm, Confidence::Medium, title)
        .sharing(share)
        .seeing(format!(
            "{} of them run a program; {} of CPU time in all",
            count(programs as f64),
            seconds(facts.clock.own_cpu_s())
        ))
        .seeing(format!(
            "at least {} for a process and {} more for a program: {}",
            seconds(PROCESS_S),
            seconds(PROGRAM_S),
            seconds(cost_s)
        ));
    Some(finding.remedied([Remedy::code(
        4,
        "do the work in one process, or give each process many pieces (xargs instead of a loop)",
        "a change of the program",
    )]))
}

/// Threads that wait for others without sleeping: they yield over and over, or wait in OpenMP's library.
pub(super) fn spinning(facts: &Facts) -> Option<Finding> {
    /// The share of the counted calls that is nearly all of them.
    const MOSTLY: f64 = 0.8;
    /// The most time that a switch to another thread takes.
    const SWITCH_S: f64 = 20e-6;
    let counts = facts.calls.as_ref().map(|calls| &calls.counts);
    let counted = counts.and_then(|counts| counts.get("sched_yield")).copied().unwrap_or(0);
    let all: u64 = counts.map_or(0, |counts| counts.values().sum());
    let is_most = counted > 0 && counted as f64 >= MOSTLY * all as f64;
    // A yield to another thread is a switch, which the kernel always counts, with samples of calls or without.
    let is_sampled = facts.calls.as_ref().is_some_and(|calls| calls.sampled.is_some());
    let switches = if is_most && is_sampled { facts.clock.involuntary_switches } else { 0 };
    let yields = counted.max(switches);
    // A yield to another thread takes longer than a call that does nothing, and no longer than a switch: if nearly all
    // calls are yields, the kernel's time is theirs.
    let most_s = if is_most { facts.clock.own_sys_s.min(yields as f64 * SWITCH_S) } else { 0.0 };
    let yields_s = (yields as f64 * facts.price_s(Service::SystemCall)).max(most_s);
    // A program with fewer CPUs yields less often. If nearly all calls are yields and only samples of calls were
    // counted, the kernel's time says more than their number.
    let least = match is_most && is_sampled {
        true => YIELDS_SAMPLED as f64,
        false => YIELDS as f64 * (1.0 - facts.others.taken_share()),
    };
    let is_yielding = yields as f64 >= least && facts.share(yields_s) >= CAUSE_SHARE;
    let places = facts.sampled().map_or(&[][..], |sampled| &sampled.places);
    let of_openmp = places.iter().filter(|place| {
        let name = place.file.file_name().unwrap_or_default().to_string_lossy();
        ["libgomp.", "libomp.", "libiomp5."].iter().any(|known| name.starts_with(known))
    });
    let waited: f64 = of_openmp.map(|place| place.share).sum();
    let is_openmp = waited >= SPINNING_SHARE;
    if !is_yielding && !is_openmp {
        return None;
    }
    let waited_s = if is_openmp { waited * facts.clock.user_s } else { 0.0 };
    let share = facts.share(waited_s.max(yields_s));
    let title = "Threads wait for each other without sleeping: they use CPUs and do nothing";
    let mut finding = Finding::new(Id::Spinning, Confidence::Medium, title).sharing(share);
    if is_yielding {
        finding = finding.seeing(format!(
            "{} sched_yield × {} = {}",
            count(yields as f64),
            seconds(yields_s / (yields as f64).max(1.0)),
            seconds(yields_s)
        ));
    }
    if is_openmp {
        finding = finding
            .seeing(format!(
                "{} of the samples of its own code are in OpenMP's library, which waits there",
                percent(waited)
            ))
            .remedied([Remedy::code(
                4,
                "OMP_NUM_THREADS=1 or OMP_THREAD_LIMIT=1 where several such programs run side by side; \
                 OMP_WAIT_POLICY=passive has threads sleep",
                "none: variables to set before the program",
            )]);
    }
    Some(finding.remedied([Remedy::code(
        4,
        "sleep until there is work (a condition variable, a channel), after a few turns at most",
        "a change of the program",
    )]))
}

/// The sentence about memory that grew until a program's end: a program that ends by itself may have needed all of it.
pub(in super::super) fn may_leak(facts: &Facts) -> Option<String> {
    let growth = facts.memory.growth.filter(|growth| is_much(facts, *growth))?;
    // Profiles are masu's, so a program that can have no other malloc has none.
    let way = match facts.malloc.refusal {
        None => "; `masu heap -- PROGRAM` lists the functions whose memory is never freed",
        Some(_) => "",
    };
    ended_by_itself(facts).then(|| {
        format!(
            "whether it needs the memory that it holds: it grew until its end, by {} within {}{way}",
            bytes(growth.bytes as f64),
            seconds(growth.over_s)
        )
    })
}

fn ended_by_itself(facts: &Facts) -> bool {
    facts.ending.as_deref().is_some_and(|ending| ending.starts_with("returned"))
}

fn is_much(facts: &Facts, growth: Growth) -> bool {
    // A program with fewer CPUs grows by less in the same time.
    let free = (1.0 - facts.others.taken_share()).max(GROWN_LEAST);
    growth.bytes as f64 >= GROWN_BYTES as f64 * free && grown_share(facts, growth) >= GROWN_SHARE
}

fn grown_share(facts: &Facts, growth: Growth) -> f64 {
    growth.bytes as f64 / (facts.memory.peak_rss_bytes as f64).max(1.0)
}

/// Memory that grew to the end of a program that did not end by itself.
pub(super) fn growth(facts: &Facts) -> Option<Finding> {
    let growth = facts.memory.growth?;
    let is_over_limit = facts.failure.as_ref().is_some_and(|failure| failure.is_over_limit);
    if !is_over_limit && (ended_by_itself(facts) || !is_much(facts, growth)) {
        return None;
    }
    let share = grown_share(facts, growth);
    let confidence = if is_over_limit { Confidence::High } else { Confidence::Medium };
    let title = format!(
        "Its memory never stops growing: {} a second",
        bytes(growth.bytes as f64 / growth.over_s.max(1e-9))
    );
    let mut finding = Finding::new(Id::Growth, confidence, title).sharing(share).seeing(format!(
        "{} more resident within {}, with growth in every part of that time: a leak, or a cache without a bound",
        bytes(growth.bytes as f64),
        seconds(growth.over_s)
    ));
    if let Some(site) = facts.inside.as_ref().and_then(|inside| inside.held.as_ref()) {
        let site = super::program::site(site);
        finding = finding.seeing(format!("by a heap profile, of the live bytes: {site}"));
    }
    Some(finding.remedied([Remedy::code(
        1,
        "free what is no longer used, or bound what is kept: `masu heap -- PROGRAM` lists at its end the functions whose \
         memory is never freed; `masu heap show -p PID` lists them for a process under MASU_PROFILE=/tmp/heap masu run",
        "a change of the program",
    )]))
}
