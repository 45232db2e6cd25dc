//! Programs that spend most of their time in system calls, of any kind.

use super::super::facts::Facts;
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::thresholds::{STOPS_SHARE, SYSTEM_SHARE};
use super::explain;
use masu_run::calls::CallKind;
use masu_run::prices::Service;
use masu_run::quantity::{count, percent, seconds};

/// The most kinds of calls that are named.
const NAMED: usize = 3;

/// The least share and the least number of calls of a named kind: a single call that took long yielded to others. If no
/// kind has so many, the number does not matter.
const NAMED_SHARE: f64 = 0.02;
const NAMED_CALLS: u64 = 10;

/// Calls are blamed for the kernel's time if at least this share of it is known to be theirs.
const KNOWN: f64 = 0.3;

/// If less is known, page faults must be at most this share of the kernel's time.
const FAULTS_LITTLE: f64 = 0.1;

/// The least time of the kernel in a finding, in seconds.
const LEAST_S: f64 = 0.1;

/// Calls that have findings of their own, or that every program makes at its start and its end.
const OTHERS: [&str; 11] = [
    "brk", "mmap", "munmap", "madvise", "mprotect", "futex", "execve", "clone", "clone3", "vfork",
    "exit_group",
];

/// Stops take up to this many times their price of CPU time: caches are cold after a program ran for long.
const STOPS_AT_MOST: f64 = 2.0;

/// The kernel's time of which stops for counting cannot be a part.
fn sure_sys_s(facts: &Facts) -> f64 {
    let clock = &facts.clock;
    if clock.kernel_share_before.is_some() {
        return clock.own_sys_s;
    }
    let stops_s = STOPS_AT_MOST * clock.stops as f64 * facts.price_s(Service::CountedCallCpu);
    let sampled = facts.calls.as_ref().and_then(|calls| calls.sampled).unwrap_or_default();
    let unseen_s = sampled.unseen_sys_s.min(clock.sys_s);
    unseen_s + (clock.sys_s - unseen_s - stops_s).max(0.0)
}

/// The kernel works for the program most of the time, and no other finding says why.
pub(super) fn calls(facts: &Facts, found: &[Finding]) -> Option<Finding> {
    let explained = [
        Id::HeapCallStorm,
        Id::FaultStorm,
        Id::MallocLock,
        Id::RemoteFrees,
        Id::OneLock,
        Id::ThreadChurn,
        Id::ForkStorm,
        Id::Spinning,
        Id::SmallWrites,
    ];
    if explain(facts, found, &explained) {
        return None;
    }
    let clock = &facts.clock;
    let kinds = facts.calls.as_ref().map_or(&[][..], |calls| &calls.kinds);
    let own: Vec<&CallKind> =
        kinds.iter().filter(|kind| !OTHERS.contains(&kind.name.as_str())).collect();
    let faults_s = facts.memory.minor_faults as f64 * facts.price_s(Service::PageFault);
    let kernel_s = (clock.own_sys_s.min(sure_sys_s(facts)) - faults_s).max(0.0);
    let all_s: f64 = kinds.iter().map(|kind| kind.seconds).sum();
    let own_s: f64 = own.iter().map(|kind| kind.seconds).sum();
    let is_known = all_s > 0.0 && all_s >= KNOWN * kernel_s;
    // If the calls are not known, page faults may have taken longer than their price, and those of huge pages do.
    let faults_are_few =
        faults_s <= FAULTS_LITTLE * clock.own_sys_s && facts.memory.huge_bytes == 0;
    // If others have the CPUs, many stops for counting take more of the kernel's time than is subtracted for them.
    let stops_s = clock.stops as f64 * facts.price_s(Service::CountedCallCpu);
    let may_be_stops = facts.others.is_busy()
        && clock.kernel_share_before.is_none()
        && stops_s >= STOPS_SHARE * clock.sys_s;
    // In a short run the cost of counting, which is subtracted, is known less exactly.
    if kernel_s < LEAST_S || !is_known && (!faults_are_few || may_be_stops) {
        return None;
    }
    // The timed calls show the parts of the kernel's time, but they are too rough to show its length.
    let calls_s = if is_known { kernel_s * own_s / all_s } else { kernel_s };
    let share = facts.share(calls_s);
    // A server has nothing to do for part of the time.
    if calls_s < SYSTEM_SHARE * clock.own_cpu_s() || share < SYSTEM_SHARE / 2.0 {
        return None;
    }
    let takes_much = |kind: &&CallKind| kind.seconds >= NAMED_SHARE * own_s;
    let is_often = |kind: &CallKind| kind.calls >= NAMED_CALLS;
    let any_is_often = own.iter().any(|kind| takes_much(kind) && is_often(kind));
    let mut title = "Most of its CPU time goes into system calls".to_owned();
    let listed = |each: Vec<String>| each.join(", ");
    let mut named: Vec<&str> = Vec::new();
    let which = if is_known {
        let often = own.into_iter().filter(takes_much);
        let often = often.filter(|kind| is_often(kind) || !any_is_often);
        let most: Vec<&CallKind> = often.take(NAMED).collect();
        named.extend(most.iter().map(|kind| kind.name.as_str()));
        title = format!("{title}: {}", named.join(", "));
        let scale = (kernel_s / all_s.max(1e-9)).min(1.0);
        let each = most.iter().map(|kind| {
            let each_s = scale * kind.seconds / (kind.calls as f64).max(1.0);
            format!("{} {} × about {}", count(kind.calls as f64), kind.name, seconds(each_s))
        });
        listed(each.collect())
    } else if kinds.is_empty() {
        "which calls is not known: they were not counted".to_owned()
    } else {
        // Stops hide the times of cheap calls.
        let mut all: Vec<&CallKind> = kinds.iter().collect();
        all.sort_by_key(|kind| std::cmp::Reverse(kind.calls));
        all.truncate(NAMED);
        named.extend(all.iter().map(|kind| kind.name.as_str()));
        let each = all.iter().map(|kind| format!("{} {}", count(kind.calls as f64), kind.name));
        format!("which calls take it is not known; it made {}", listed(each.collect()))
    };
    let confidence =
        if is_known || kinds.is_empty() { Confidence::Medium } else { Confidence::Low };
    let finding = Finding::new(Id::SystemCalls, confidence, title)
        .sharing(share)
        .seeing(which)
        .seeing(format!(
            "{} in the kernel, {} in its own code; page faults are {} of it",
            seconds(clock.own_sys_s),
            seconds(clock.user_s),
            percent((faults_s / clock.own_sys_s.max(1e-9)).min(1.0))
        ));
    // A block grows by little each time, which is the malloc's work.
    let grows_blocks = named.contains(&"mremap");
    let cost = if grows_blocks {
        "a change of the program"
    } else {
        "a change of the program; no malloc helps"
    };
    let mut remedies = vec![Remedy::code(
        4,
        "ask for more at once (a larger buffer, one call for many), or for less (keep what was asked before)",
        cost,
    )];
    if grows_blocks && facts.malloc.name != "masu" && facts.malloc.refusal.is_none() {
        let what = "a malloc that grows blocks without mremap";
        remedies.push(Remedy::allocator(what, "masu", "another malloc under the program"));
    }
    Some(finding.remedied(remedies))
}
