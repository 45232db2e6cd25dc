//! Threads that wait for locks: the malloc's, or one of the program's.

use super::super::facts::{CallFacts, Facts};
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::thresholds::{
    CAUSE_SHARE, LOCK_COST_SHARE, LOCK_WAITED_SHARE, LOCK_WAITS, LOOKS_MIN, ONE_LOCK_SHARE,
    PARALLEL_CPU_MIN_S, REMOTE_SHARE,
};
use super::threads::has_serial_phase;
use super::waits::Waits;
use masu_run::calls::{Lock, Owner};
use masu_run::quantity::{count, percent, seconds};

/// The findings about locks for which threads wait.
pub(super) fn locks(facts: &Facts, found: &[Finding]) -> Vec<Finding> {
    let Some(calls) = &facts.calls else { return Vec::new() };
    // A serial phase is a finding of its own. A lock that holds back the rest of the run is compared with that rest.
    let parallel_s = Some(facts.threads.parallel_cpu_s)
        .filter(|parallel_s| *parallel_s >= PARALLEL_CPU_MIN_S && has_serial_phase(facts, found));
    let mut findings = Vec::new();
    findings.extend(of_malloc(facts, calls, parallel_s));
    findings.extend(of_program(facts, calls, parallel_s));
    findings
}

/// The cost of waiting for an owner's locks, if it is a cause.
struct Waited {
    waits: u64,
    /// See [`Waits`].
    cost_s: f64,
    /// Seconds that threads slept; none if there are too few looks.
    slept_s: Option<f64>,
    /// The share of the time of threads at work in the whole run.
    share: f64,
    /// CPU time of the parallel part, if the waits are a cause of that part alone.
    parallel_s: Option<f64>,
}

impl Waited {
    /// Compares the waits with the whole run, or else with the parallel part, if there is one.
    fn of(facts: &Facts, waits: u64, owner: Owner, parallel_s: Option<f64>) -> Option<Waited> {
        let Waits { count: waits, cost_s, .. } = Waits::of(facts, waits);
        let threads = &facts.threads;
        let slept_s = (threads.looks >= LOOKS_MIN).then(|| threads.waited_for(owner));
        let slept_of = |slept_s: Option<f64>, cpu_s: f64| {
            slept_s.map(|slept_s| slept_s / (slept_s + cpu_s).max(1e-9))
        };
        let cost = facts.share(cost_s);
        let slept = slept_of(slept_s, threads.cpu_s);
        let slept_long = |slept: f64| slept >= LOCK_WAITED_SHARE;
        // If a lock is held briefly, going to sleep and being woken is its whole cost: looks meet few threads asleep.
        // If others have CPUs, threads meet more rarely and sleep longer, in proportion to the taken CPUs. A malloc
        // holds its locks briefly, so the sleep alone is evidence there.
        let others = &facts.others;
        let is_hidden = owner == Owner::Malloc && others.is_busy();
        let waits_min = if is_hidden {
            LOCK_WAITS as f64 * (1.0 - others.taken_share())
        } else {
            LOCK_WAITS as f64
        };
        let is_long = slept.is_none_or(slept_long);
        let is_cause = cost >= CAUSE_SHARE
            || cost >= LOCK_COST_SHARE && is_long
            || is_hidden && slept.is_some_and(slept_long);
        // A thread that is stopped at a call keeps its locks, so samples of calls count waits that an uncounted run
        // does not have. The malloc makes few calls with a lock held; for any other lock, looks must meet threads
        // asleep. Where a process was attached to, these are the looks before.
        let is_sampled = facts.calls.as_ref().is_some_and(|calls| calls.sampled.is_some());
        let before = threads.lock_share_before.filter(|_| owner != Owner::Malloc);
        let is_met = match before {
            Some(before) => before >= LOCK_WAITED_SHARE,
            None if owner == Owner::Malloc || !is_sampled => true,
            None => slept.is_none_or(|slept| slept >= CAUSE_SHARE),
        };
        if waits as f64 >= waits_min && is_cause && is_met {
            // A thread that sleeps until another has had its CPU sleeps for longer than it would on an idle machine.
            let waited = if others.is_busy() { others.waited_share } else { 0.0 };
            let slept_alone_s = slept_s.map(|slept_s| slept_s * (1.0 - waited));
            let share =
                slept_of(slept_alone_s, threads.cpu_s).map_or(cost, |slept| slept.max(cost));
            let share = before.map_or(share, |before| before.min(share));
            // While a process is attached to, stops lengthen the sleep.
            let slept_s = slept_s.filter(|_| before.is_none());
            return Some(Waited { waits, cost_s, slept_s, share, parallel_s: None });
        }
        // For the parallel part, only the sleep that looks met there counts, because waits are counted over the whole
        // run. Waits that are next to nothing of the whole run are no reason why it is slow. While no thread works
        // there is no parallel part.
        let parallel_s = parallel_s.filter(|_| before.is_none())?;
        let slept_s = slept_s.map(|_| threads.waited_beside_work(owner));
        let slept = slept_of(slept_s, parallel_s).filter(|slept| slept_long(*slept))?;
        let share = slept.max(cost_s / parallel_s) * parallel_s / threads.cpu_s.max(1e-9);
        let is_cause = cost_s >= LOCK_COST_SHARE * parallel_s && share >= LOCK_COST_SHARE;
        (waits >= LOCK_WAITS && is_cause).then_some(Waited {
            waits,
            cost_s,
            slept_s,
            share,
            parallel_s: Some(parallel_s),
        })
    }

    fn described(&self, facts: &Facts, mut finding: Finding) -> Finding {
        finding = finding.seeing(format!(
            "{} waits × {} on average to sleep and be woken = {}",
            count(self.waits as f64),
            seconds(self.cost_s / (self.waits as f64).max(1.0)),
            seconds(self.cost_s)
        ));
        let cpu_s = self.parallel_s.unwrap_or(facts.threads.cpu_s);
        if let Some(slept_s) = self.slept_s.filter(|slept_s| *slept_s > 0.0) {
            finding = finding.seeing(format!(
                "threads slept {} for it, {} of the time they worked or waited for it",
                seconds(slept_s),
                percent(slept_s / (slept_s + cpu_s))
            ));
        }
        finding = finding.sharing(self.share);
        let Some(parallel_s) = self.parallel_s else { return finding };
        // The waits explain little of the whole run, and looks met little of the evidence.
        finding.confidence = finding.confidence.min(Confidence::Medium);
        finding.seeing(format!(
            "that is of the {} of CPU time in which threads worked side by side or waited for each other: in \
             the rest one worked alone",
            seconds(parallel_s)
        ))
    }
}

fn of_malloc(facts: &Facts, calls: &CallFacts, parallel_s: Option<f64>) -> Option<Finding> {
    let waits = calls.lock_waits(Owner::Malloc);
    let waited = Waited::of(facts, waits, Owner::Malloc, parallel_s)?;
    let locks: Vec<&Lock> = calls.locks.iter().filter(|lock| lock.owner == Owner::Malloc).collect();
    let finding = match remote(facts, &locks) {
        Some(why) => Finding::new(
            Id::RemoteFrees,
            if facts.inside.is_some() { Confidence::High } else { Confidence::Medium },
            "Threads free blocks that other threads allocate, and wait for the malloc's lock to do so",
        )
        .seeing(why),
        None => Finding::new(
            Id::MallocLock,
            Confidence::High,
            "Threads wait for each other inside malloc and free",
        ),
    };
    let most = locks.iter().map(|lock| lock.threads).max().unwrap_or(0);
    let most = of_threads(most);
    let many = format!("{} of the malloc's locks, the busiest wanted by {most}", locks.len());
    let finding = waited.described(facts, finding).seeing(many);
    Some(remedied(facts, finding))
}

/// The number of threads that waited for a lock; of more than the most that are counted, only so many are known.
fn of_threads(known: usize) -> String {
    let or_more = if known == Lock::THREADS_MAX { " or more" } else { "" };
    format!("{known}{or_more} threads")
}

/// The evidence that remote frees contend, if there is any. In glibc each thread has an arena of its own as long as
/// there are enough of them: a thread that waits for another's arena frees that thread's blocks.
fn remote(facts: &Facts, locks: &[&Lock]) -> Option<String> {
    if let Some(inside) = &facts.inside {
        let (remote, fetched) = (inside.remote_blocks as f64, inside.fetched_blocks as f64);
        return (remote >= REMOTE_SHARE * fetched && fetched > 0.0).then(|| {
            format!(
                "on masu: of {} blocks that threads fetched, {} were freed by others",
                count(fetched),
                percent(remote / fetched)
            )
        });
    }
    if facts.malloc.name != "glibc" {
        return None;
    }
    let waits = |of: &dyn Fn(&Lock) -> bool| -> u64 {
        locks.iter().filter(|lock| of(lock)).map(|lock| lock.waits).sum()
    };
    let arenas = facts.threads.arenas;
    let workers = facts.threads.most_at_once.saturating_sub(1);
    // Each lock has an allocating and a freeing thread.
    let has_own = arenas >= workers && workers >= 2;
    if has_own && waits(&|lock| lock.threads <= 2) > waits(&|lock| lock.threads > 2) {
        return Some(format!(
            "each of {workers} threads has an arena of its own ({arenas} and the first), so a thread that \
             waits frees another's blocks"
        ));
    }
    // If threads have to share arenas, they share the first like the others.
    let has_room = arenas >= 1 && arenas < ARENAS_A_CPU * facts.cpus;
    let of_others = waits(&|lock| lock.is_of_another_arena());
    (has_room && of_others > 3 * waits(&|lock| !lock.is_of_another_arena())).then(|| {
        format!(
            "{} waits are for arenas that glibc made for one thread each ({arenas}, and there may be \
             more), so a thread that waits frees that thread's blocks",
            count(of_others as f64)
        )
    })
}

/// The most arenas for each CPU: up to this number, glibc makes one for each thread that allocates.
const ARENAS_A_CPU: usize = 8;

fn remedied(facts: &Facts, finding: Finding) -> Finding {
    let is_remote = finding.id == Id::RemoteFrees;
    let mut remedies = vec![if is_remote {
        Remedy::code(
            1,
            "let the thread that allocates a block free it: hand batches back, or reuse them",
            "a change of the program",
        )
    } else {
        Remedy::code(1, "allocate less in the threads' loops", "a change of the program")
    }];
    let threads = facts.threads.most_at_once.max(2);
    let has_settings = facts.malloc.name == "glibc" && facts.malloc.refusal.is_none();
    if has_settings && !is_remote && facts.threads.arenas + 1 < threads {
        remedies.push(Remedy::setting(
            "an arena for each thread; does nothing where the program itself sets fewer (mallopt)",
            format!("glibc:arenas={threads}"),
            "memory that is free in one arena is not used by another",
        ));
    }
    if facts.malloc.name != "masu" && facts.malloc.refusal.is_none() {
        remedies.push(of_few_locks());
    }
    finding.remedied(remedies)
}

/// The malloc to try if threads wait for the locks of the current one.
pub(super) fn of_few_locks() -> Remedy {
    let what = "a malloc in which most requests take no lock";
    Remedy::allocator(what, "masu", "another malloc under the program")
}

fn of_program(facts: &Facts, calls: &CallFacts, parallel_s: Option<f64>) -> Option<Finding> {
    let others = |lock: &&Lock| lock.owner != Owner::Malloc;
    let all: u64 = calls.locks.iter().filter(others).map(|lock| lock.waits).sum();
    let all = all + calls.more_lock_waits;
    let hottest = calls.locks.iter().filter(others).max_by_key(|lock| lock.waits)?;
    let waited = Waited::of(facts, hottest.waits, hottest.owner, parallel_s)?;
    let share = hottest.waits as f64 / (all as f64).max(1.0);
    if share < ONE_LOCK_SHARE || hottest.threads < 2 {
        return None;
    }
    let title = match hottest.owner {
        Owner::CLibrary => "Threads wait for one lock of the C library: of a stream, most likely",
        _ => "Threads wait for one lock of the program",
    };
    let finding = Finding::new(Id::OneLock, Confidence::High, title);
    let mut finding = waited.described(facts, finding).seeing(format!(
        "{} want the one at {:#x}, which has {} of all such waits",
        of_threads(hottest.threads),
        hottest.address,
        percent(share)
    ));
    if let Some(before) = facts.threads.lock_share_before {
        finding = finding.seeing(format!(
            "before it was attached to, threads slept for a lock in {} of the time they worked or waited for one",
            percent(before)
        ));
    }
    Some(finding.remedied([Remedy::code(
        4,
        "hold it for a shorter time, take it once for a batch, or split the data it guards",
        "a change of the program",
    )]))
}
