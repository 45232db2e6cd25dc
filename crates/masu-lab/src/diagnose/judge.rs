//! The judgement: facts in, findings out. Nothing is measured here, so that every finding can be tested on
//! made-up facts.
//!
//! Relies on the numbers in `thresholds.rs`. The difficulty is that one cause has several symptoms: a storm of calls
//! causes page faults, a thread for each task causes mappings. So each judge sees the findings of the judges before it,
//! and does not count the same seconds twice.

use super::facts::Facts;
use super::finding::{Finding, Id};
use super::thresholds::{CAUSE_SHARE, CPU_MIN_S};

mod confidence;
mod failure;
mod heap;
mod held;
mod locks;
mod processes;
mod program;
mod system;
mod threads;
mod unexplained;
mod waits;
mod writes;

pub(super) use confidence::{LESS_SURE, as_sure_as_memory, waits_of_threads};
pub(super) use processes::may_leak;

/// The findings that follow from the facts, the cause first.
#[must_use]
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    findings.extend(failure::failed(facts));
    if facts.clock.own_cpu_s() >= CPU_MIN_S {
        findings.extend(threads::churn(facts));
        findings.extend(processes::storm(facts));
        findings.extend(processes::spinning(facts));
        findings.extend(heap::storms(facts, &findings));
        findings.extend(locks::locks(facts, &findings));
        findings.extend(writes::small(facts));
        findings.extend(threads::phases(facts, &findings));
        findings.extend(program::many_allocations(facts, &findings));
        findings.extend(system::calls(facts, &findings));
    }
    findings.extend(processes::growth(facts));
    findings.extend(held::held(facts));
    findings.extend(program::about(facts));
    findings.extend(unexplained::clear(facts, &findings));
    confidence::as_sure_as_memory(facts, &mut findings);
    confidence::doubt(facts, &mut findings);
    findings.sort_by_key(Finding::order);
    for finding in &mut findings {
        finding.remedies.sort_by_key(|remedy| remedy.rung);
    }
    findings
}

fn has(findings: &[Finding], ids: &[Id]) -> bool {
    findings.iter().any(|finding| ids.contains(&finding.id))
}

/// Whether a finding with one of these ids explains enough of the run to be a cause of it, not of a part alone. If
/// others have the CPUs, threads meet at the malloc's locks more rarely than usual: then the share that was seen is a
/// lower bound, and counts.
fn explain(facts: &Facts, findings: &[Finding], ids: &[Id]) -> bool {
    let explains = |finding: &Finding| {
        let is_hidden =
            facts.others.is_busy() && matches!(finding.id, Id::MallocLock | Id::RemoteFrees);
        is_hidden || finding.share.is_none_or(|share| share >= CAUSE_SHARE)
    };
    findings.iter().any(|finding| ids.contains(&finding.id) && explains(finding))
}

/// Whether memory explains a part of the run that is worth a finding: memory is not called fine beside it.
pub(super) fn is_of_memory(facts: &Facts, findings: &[Finding]) -> bool {
    let of_memory = [
        Id::HeapCallStorm,
        Id::MallocLock,
        Id::RemoteFrees,
        Id::FaultStorm,
        Id::FirstTouch,
        Id::Retention,
        Id::HugePageWaste,
        Id::Swap,
        Id::ManyAllocations,
        Id::Growth,
    ];
    explain(facts, findings, &of_memory)
}

#[cfg(test)]
pub(super) mod tests;
