//! Reasons to lower the confidence of any finding: numbers of calls that are estimates, and a machine that others use.

use super::super::facts::{Facts, Others};
use super::super::finding::{Confidence, Finding, Id};
use super::super::thresholds::CERTAIN_SHARE;
use masu_run::quantity::percent;

/// The beginning of the evidence that says so of the machine.
pub(in super::super) const LESS_SURE: &str = "less sure than usual";

/// The beginning of the title of a finding that others make doubtful.
const AS_FAR_AS_SHOWN: &str = "As far as so busy a machine shows, ";

/// Makes "it computes" as sure as "memory is no problem", because it also says that no malloc helps. It is not sure where a
/// finding names another malloc or a setting.
pub(in super::super) fn as_sure_as_memory(facts: &Facts, findings: &mut [Finding]) {
    let of_memory = |one: &&Finding| matches!(one.id, Id::MemoryIsFine | Id::MemoryOpen);
    let mut remedies = findings.iter().flat_map(|one| &one.remedies);
    let confidence = match findings.iter().find(of_memory) {
        Some(memory) => memory.confidence,
        None if remedies.any(|remedy| remedy.variant.is_some()) => Confidence::Low,
        None => return,
    };
    for finding in findings.iter_mut().filter(|one| one.id == Id::CpuBound) {
        let most = most(&facts.others, finding);
        let (before, now) = (finding.confidence, confidence.min(most));
        finding.confidence = now;
        let is_said = finding.evidence.iter().any(|line| line.starts_with(LESS_SURE));
        if most < confidence && !is_said {
            finding.evidence.push(less_sure(&facts.others));
        }
        if let Some(title) = finding.title.strip_prefix(AS_FAR_AS_SHOWN).filter(|_| now > before) {
            finding.title = title.to_owned();
            finding.title[..1].make_ascii_uppercase();
        }
    }
}

/// The reason why a finding is less sure beside these others.
fn less_sure(others: &Others) -> String {
    format!(
        "{LESS_SURE}: other programs used {} of the CPUs, and the program waited for one in {} of the time it \
         wanted one",
        percent(others.taken_share()),
        percent(others.waited_share)
    )
}

/// The most confidence of a finding that rests on time, beside these others.
fn most(others: &Others, finding: &Finding) -> Confidence {
    match others.is_busy() {
        // A finding that explains half of the time does so on a busy machine too.
        true if others.starves() && finding.share.unwrap_or(0.0) < 0.5 => Confidence::Low,
        true => Confidence::Medium,
        false => Confidence::High,
    }
}

/// Lowers the confidence of findings whose evidence is less sure than usual.
pub(super) fn doubt(facts: &Facts, findings: &mut [Finding]) {
    let is_sampled = facts.calls.as_ref().is_some_and(|calls| calls.sampled.is_some());
    let others = &facts.others;
    for finding in findings {
        let share = finding.share.unwrap_or(0.0);
        if is_sampled && rests_on_counts(finding.id) && share < 2.0 * CERTAIN_SHARE {
            finding.confidence = finding.confidence.min(Confidence::Medium);
        }
        if !others.is_busy() || !rests_on_time(finding.id) {
            continue;
        }
        let most = most(others, finding);
        if most < finding.confidence {
            finding.confidence = most;
            finding.evidence.push(less_sure(others));
        }
        if others.starves() && finding.confidence == Confidence::Low {
            finding.title[..1].make_ascii_lowercase();
            finding.title.insert_str(0, AS_FAR_AS_SHOWN);
        }
    }
}

/// The sentence about threads that wait for each other, if others had the CPUs and the waits could not be seen.
pub(in super::super) fn waits_of_threads(facts: &Facts, findings: &[Finding]) -> Option<String> {
    let calls = facts.calls.as_ref()?;
    // A process that was attached to had its threads before.
    let is_attached = facts.threads.lock_share_before.is_some();
    let had_threads = is_attached && facts.threads.busiest.iter().any(|thread| !thread.is_first);
    let found = |ids: &[Id]| findings.iter().any(|one| ids.contains(&one.id));
    let has_threads = calls.threads_started > 0 || had_threads;
    if !has_threads || !facts.others.is_busy() || found(&[Id::IoBound]) {
        return None;
    }
    let taken = percent(facts.others.taken_share());
    match found(&[Id::MallocLock, Id::RemoteFrees, Id::OneLock]) {
        _ if facts.others.starves() => Some(format!(
            "whether threads wait for each other, for a lock or while one of them works alone: other programs used \
             {taken} of the CPUs, and a thread that waits for a CPU looks like one that has nothing to do"
        )),
        false => Some(format!(
            "whether threads wait for each other's locks: they meet where two CPUs are free at once, and other \
             programs used {taken} of the CPUs"
        )),
        true => None,
    }
}

/// Whether a finding rests on numbers of calls.
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

/// Whether a finding rests on shares of time, which others change.
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
            | Id::UnoptimizedBuild
            | Id::Wrapper
            | Id::ScatteredCode
    )
}
