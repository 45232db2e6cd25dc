//! What lowers confidence whatever was found: numbers of calls that are estimates, and a machine that others use.

use super::super::facts::Facts;
use super::super::finding::{Confidence, Finding, Id};
use super::super::thresholds::{BUSY_SHARE, CERTAIN_SHARE, STARVED_SHARE};
use crate::quantity::percent;

/// Lowers confidence where what the findings rest on is less sure than usual.
pub(super) fn doubt(facts: &Facts, findings: &mut [Finding]) {
    let is_sampled = facts.calls.as_ref().is_some_and(|calls| calls.sampled.is_some());
    let others = &facts.others;
    let is_busy = others.taken_share() >= BUSY_SHARE;
    let is_starved = is_busy && others.waited_share >= STARVED_SHARE;
    for finding in findings {
        let share = finding.share.unwrap_or(0.0);
        if is_sampled && rests_on_counts(finding.id) && share < 2.0 * CERTAIN_SHARE {
            finding.confidence = finding.confidence.min(Confidence::Medium);
        }
        if !is_busy || !rests_on_time(finding.id) {
            continue;
        }
        // What explains half of the time does so on a busy machine too.
        let most = match finding.id {
            // Threads that wait for a CPU look as if they had nothing to do, and work that takes turns as if it had to.
            Id::SerialPhase | Id::UnevenCores if is_starved => Confidence::Low,
            _ if is_starved && share < 0.5 => Confidence::Low,
            _ => Confidence::Medium,
        };
        if most < finding.confidence {
            finding.confidence = most;
            finding.evidence.push(format!(
                "less sure than usual: others had {} of the CPUs, and the program waited for one in {} of \
                 the time it wanted one",
                percent(others.taken_share()),
                percent(others.waited_share)
            ));
        }
    }
}

/// Whether numbers of calls are what a finding rests on.
fn rests_on_counts(id: Id) -> bool {
    matches!(
        id,
        Id::HeapCallStorm
            | Id::MallocLock
            | Id::OneLock
            | Id::RemoteFrees
            | Id::FaultStorm
            | Id::SmallWrites
            | Id::SystemCalls
    )
}

/// Whether shares of time are, which others change.
fn rests_on_time(id: Id) -> bool {
    !matches!(
        id,
        Id::ProgramFailed
            | Id::Growth
            | Id::Retention
            | Id::HugePageWaste
            | Id::Swap
            | Id::GainShown
            | Id::Locality
            | Id::MemoryOpen
            | Id::UnoptimisedBuild
            | Id::Wrapper
            | Id::ScatteredCode
    )
}
