//! Programs that are mostly system calls, of whatever kind.

use super::super::facts::Facts;
use super::super::finding::{Confidence, Finding, Id, Remedy};
use super::super::thresholds::SYSTEM_SHARE;
use super::explain;
use crate::calls::CallKind;
use crate::prices::Service;
use crate::quantity::{count, percent, seconds};

/// So many kinds of calls are named.
const NAMED: usize = 3;

/// Each with this share of them at least, and made so often: one call that takes long gave way to others in it.
const NAMED_SHARE: f64 = 0.02;
const NAMED_CALLS: u64 = 10;

/// Calls are blamed for the kernel's time where at least this share of it is known to be theirs.
const KNOWN: f64 = 0.3;

/// Calls that have findings of their own, and that every program makes where it begins and ends.
const OTHERS: [&str; 12] = [
    "brk",
    "mmap",
    "munmap",
    "madvise",
    "mprotect",
    "mremap",
    "futex",
    "execve",
    "clone",
    "clone3",
    "vfork",
    "exit_group",
];

/// The kernel works for it most of the time, and no other finding says why.
pub(super) fn calls(facts: &Facts, found: &[Finding]) -> Option<Finding> {
    let explained = [
        Id::HeapCallStorm,
        Id::FaultStorm,
        Id::MallocLock,
        Id::OneLock,
        Id::ThreadChurn,
        Id::ForkStorm,
        Id::Spinning,
        Id::SmallWrites,
    ];
    if explain(found, &explained) {
        return None;
    }
    let kinds = &facts.calls.as_ref()?.kinds;
    let own: Vec<&CallKind> =
        kinds.iter().filter(|kind| !OTHERS.contains(&kind.name.as_str())).collect();
    let faults_s = facts.memory.minor_faults as f64 * facts.price_s(Service::PageFault);
    let kernel_s = (facts.clock.own_sys_s - faults_s).max(0.0);
    let all_s: f64 = kinds.iter().map(|kind| kind.seconds).sum();
    let own_s: f64 = own.iter().map(|kind| kind.seconds).sum();
    // What was timed says how the kernel's time is shared out, and is too rough to say how much it is.
    let share = facts.share(kernel_s * own_s / all_s.max(1e-9));
    if share < SYSTEM_SHARE || all_s < KNOWN * kernel_s {
        return None;
    }
    let scale = (kernel_s / all_s).min(1.0);
    let counts =
        |kind: &&CallKind| kind.calls >= NAMED_CALLS && kind.seconds >= NAMED_SHARE * own_s;
    let most = own.into_iter().filter(counts);
    let most: Vec<&CallKind> = most.take(NAMED).collect();
    let names: Vec<&str> = most.iter().map(|kind| kind.name.as_str()).collect();
    let title = format!("Most of its time goes into system calls: {}", names.join(", "));
    let each = most.iter().map(|kind| {
        let each_s = scale * kind.seconds / (kind.calls as f64).max(1.0);
        format!("{} {} × about {}", count(kind.calls as f64), kind.name, seconds(each_s))
    });
    let finding = Finding::new(Id::SystemCalls, Confidence::Medium, title)
        .sharing(share)
        .seeing(each.collect::<Vec<_>>().join(", "))
        .seeing(format!(
            "{} in the kernel, {} in its own code; page faults are {} of it",
            seconds(facts.clock.own_sys_s),
            seconds(facts.clock.user_s),
            percent((faults_s / facts.clock.own_sys_s.max(1e-9)).min(1.0))
        ));
    Some(finding.remedied([Remedy::code(
        4,
        "ask for more at once (a larger buffer, one call for many), or for less (keep what was asked before)",
        "a change of the program; no malloc helps",
    )]))
}
