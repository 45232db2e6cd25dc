//! A program that failed: the failure must be fixed before anything is made faster.

use super::super::facts::Facts;
use super::super::finding::{Confidence, Finding, Id, Remedy};
use masu_run::quantity::seconds;

/// The finding about a failure, with the last lines of the program's output.
pub(super) fn failed(facts: &Facts) -> Option<Finding> {
    let failure = facts.failure.as_ref()?;
    let (title, confidence) = if failure.may_be_answer() {
        let title =
            format!("It {}: it failed, or answers so, as grep, diff and solvers do", failure.how);
        (title, Confidence::Low)
    } else {
        (format!("The program failed: it {}", failure.how), Confidence::High)
    };
    let mut finding = Finding::new(Id::ProgramFailed, confidence, title)
        .seeing(format!("after {}", seconds(facts.clock.wall_s)));
    if let Some(means) = failure.code.and_then(means) {
        finding = finding.seeing(means);
    }
    let without_rights = facts.calls.as_ref().map_or(&[][..], |calls| &calls.without_rights);
    if !without_rights.is_empty() {
        // The program may succeed if its calls are not counted.
        finding.confidence = finding.confidence.min(Confidence::Medium);
        finding = finding.seeing(format!(
            "perhaps because {} had no more rights than you have: the kernel gives a traced program no others",
            without_rights.join(", ")
        ));
    }
    if failure.last_lines.is_empty() {
        finding = finding.seeing("it wrote nothing to its standard error");
    } else {
        finding = finding.seeing("the last lines of its standard error:");
        finding.evidence.extend(failure.last_lines.iter().map(|line| format!("| {line}")));
    }
    let what = if !without_rights.is_empty() {
        "diagnose what it starts, as the user that it becomes, or run masu as root"
    } else if failure.is_over_limit {
        "give it more memory (--memory-limit), or find out why it holds so much"
    } else if failure.may_be_answer() {
        "if it failed, fix that first: the times of a program that fails say little"
    } else {
        "fix that first: the times of a program that fails say little"
    };
    Some(finding.remedied([Remedy::code(4, what, "none")]))
}

/// The shell's meaning of an exit code.
fn means(code: i32) -> Option<String> {
    match code {
        126 => Some("126 is what a shell returns for a file that it may not run".to_owned()),
        127 => Some("127 is what a shell returns for a program that it did not find".to_owned()),
        129..=192 => Some(format!(
            "{code} is what a shell returns for a program that signal {} has ended",
            code - 128
        )),
        _ => None,
    }
}
