//! Threads that come and go, and phases in which most threads have nothing to do.

use super::super::facts::{Facts, ThreadTime};
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::thresholds::{
    CAUSE_SHARE, CERTAIN_SHARE, CHURNED_THREADS, LOOKS_MIN, PARALLEL_SHARE, SERIAL_SHARE,
    TOOK_PART_SHARE, UNEVEN_RATIO, WAITS, WORKER_SHARE, WORKERS_SHARE,
};
use super::has;
use masu_run::prices::Service;
use masu_run::quantity::{count, percent, seconds};

/// Threads that are started for little work each.
pub(super) fn churn(facts: &Facts) -> Option<Finding> {
    let calls = facts.calls.as_ref()?;
    let at_once = facts.threads.most_at_once.max(1) as u64;
    let churned = calls.threads_started.saturating_sub(at_once);
    let price_s = facts.price_s(Service::Thread);
    let cost_s = churned as f64 * price_s;
    let share = facts.share(cost_s);
    if churned < CHURNED_THREADS || share < CAUSE_SHARE {
        return None;
    }
    let confidence = if share >= CERTAIN_SHARE { Confidence::High } else { Confidence::Medium };
    let title =
        format!("It starts a thread for little work each: {}", count(calls.threads_started as f64));
    let rate = calls.threads_started as f64 / facts.clock.own_wall_s(facts.cpus);
    let finding = Finding::new(Id::ThreadChurn, confidence, title)
        .sharing(share)
        .seeing(format!(
            "{} threads beyond the {at_once} that lived at once × {} to start and join = {}",
            count(churned as f64),
            seconds(price_s),
            seconds(cost_s)
        ))
        .seeing(format!("{} threads a second, what counting took left out", count(rate)));
    Some(finding.remedied([Remedy::code(
        4,
        "keep threads and hand them work (a pool), in pieces that take longer than starting a thread",
        "a change of the program",
    )]))
}

/// A thread that works for long while others could work too.
struct Alone<'a> {
    thread: &'a ThreadTime,
    alone_s: f64,
    /// The share of the watched time, without stops, in which the thread worked alone.
    share: f64,
    workers: Vec<&'a ThreadTime>,
    /// Mean CPU time of the workers.
    mean_s: f64,
    /// Whether the thread is one of the workers, and has more to do.
    is_uneven: bool,
}

impl<'a> Alone<'a> {
    /// Waits for a lock make one thread work alone too: if threads are `hindered` by a lock, only the time in which no
    /// thread waited counts.
    fn of(facts: &'a Facts, found: &[Finding], hindered: bool) -> Option<Alone<'a>> {
        let threads = &facts.threads;
        // Threads that come and go do not work at once for that reason. If others have the CPUs, a thread that waits
        // for a CPU looks like a thread that has nothing to do. A program that mostly waits, as a server between
        // requests, is not held back by the thread that answers.
        if facts.others.starves()
            || facts.clock.own_cpu_s() <= WAITS * facts.clock.own_wall_s(facts.cpus)
            || facts.cpus < 2
            || threads.looks < LOOKS_MIN
            || has(found, &[Id::ThreadChurn])
        {
            return None;
        }
        // A look gives all of its time to a thread that worked for a part of it.
        let waited = if facts.others.is_busy() { facts.others.waited_share.min(0.95) } else { 0.0 };
        let alone_s = |one: &ThreadTime| {
            let alone_s = if hindered { one.serial_s } else { one.alone_s };
            alone_s.min(one.cpu_s / (1.0 - waited))
        };
        // A process of one thread is no candidate, even if its thread works alone for longer.
        let (thread, workers) = threads
            .busiest
            .iter()
            .map(|thread| (thread, workers(&threads.busiest, thread)))
            .filter(|(_, workers)| workers.len() >= 2)
            .max_by(|(one, _), (other, _)| alone_s(one).total_cmp(&alone_s(other)))?;
        let workers_s: f64 = workers.iter().map(|worker| worker.cpu_s).sum();
        if workers_s < WORKERS_SHARE * threads.cpu_s {
            return None;
        }
        let alone_s = alone_s(thread);
        // While threads are stopped for counting, they work neither alone nor together.
        let met_s = threads.looked_s - threads.stopped_s;
        let share = alone_s / met_s.max(1e-9);
        if share < SERIAL_SHARE || threads.together_s < PARALLEL_SHARE * met_s {
            return None;
        }
        let took_part = thread.together_s >= TOOK_PART_SHARE * threads.together_s;
        let mean_s = workers_s / workers.len() as f64;
        let is_uneven = took_part && !thread.is_first && thread.cpu_s >= UNEVEN_RATIO * mean_s;
        Some(Alone { thread, alone_s, share, workers, mean_s, is_uneven })
    }
}

/// Whether there is a serial phase that no lock explains: a finding of its own, which hides the cause that holds the
/// rest back.
pub(super) fn has_serial_phase(facts: &Facts, found: &[Finding]) -> bool {
    Alone::of(facts, found, true).is_some_and(|alone| !alone.is_uneven)
}

/// One thread works while others could: the phase is serial, or one worker has more to do.
pub(super) fn phases(facts: &Facts, found: &[Finding]) -> Option<Finding> {
    let is_hindered = has(found, &[Id::MallocLock, Id::RemoteFrees, Id::OneLock]);
    let alone = Alone::of(facts, found, is_hindered)?;
    if alone.is_uneven && !is_hindered {
        return Some(uneven(&alone));
    }
    let title = "One thread works for long while the others have nothing to do";
    let finding = Finding::new(Id::SerialPhase, Confidence::Medium, title)
        .sharing(alone.share)
        .seeing(format!(
            "`{}`{} worked alone for {}, {} of the time looked at{}",
            alone.thread.name,
            if alone.thread.is_first { ", the first thread," } else { "" },
            seconds(alone.alone_s),
            percent(alone.share),
            if is_hindered { ", when nobody waited for a lock" } else { "" }
        ))
        .seeing(format!(
            "{} other threads and it worked together for {}; {} CPUs",
            alone.workers.len(),
            seconds(facts.threads.together_s),
            facts.cpus
        ));
    Some(finding.remedied([Remedy::code(
        4,
        "let several threads do what one does there, or let it go on while they work",
        "a change of the program",
    )]))
}

fn uneven(alone: &Alone) -> Finding {
    let others = alone.workers.len();
    let title = "One thread has more to do than the others, which wait for it";
    Finding::new(Id::UnevenCores, Confidence::Medium, title)
        .sharing(alone.share)
        .seeing(format!(
            "`{}` took {} of CPU time, {others} others {} each on average",
            alone.thread.name,
            seconds(alone.thread.cpu_s),
            seconds(alone.mean_s)
        ))
        .seeing(format!("it worked alone for {}", seconds(alone.alone_s)))
        .remedied([Remedy::code(
            4,
            "cut the work into more, smaller pieces that threads take as they get free",
            "a change of the program",
        )])
}

/// The workers beside `alone`: threads of its process, with the most common kind of name, that did a share of the work.
fn workers<'a>(all: &'a [ThreadTime], alone: &ThreadTime) -> Vec<&'a ThreadTime> {
    let others = || all.iter().filter(|one| *one != alone && one.process == alone.process);
    let whole: f64 = others().map(|one| one.cpu_s).sum();
    let busy = others().filter(|one| one.cpu_s >= WORKER_SHARE * whole && !one.is_first);
    let busy: Vec<&ThreadTime> = busy.collect();
    // Helpers of a run-time (a compiler's thread, a collector's) have names of their own.
    let kinds = busy.iter().map(|one| {
        let same = busy.iter().filter(|other| kind(&other.name) == kind(&one.name));
        same.copied().collect::<Vec<_>>()
    });
    kinds.max_by_key(Vec::len).unwrap_or_default()
}

/// A thread's name without its number: `worker-3` and `worker-12` are of one kind.
fn kind(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || "-#_: ".contains(c))
}
