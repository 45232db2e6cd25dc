//! Programs that failed.

use super::super::super::facts::{Facts, Failure};
use super::super::super::finding::{Confidence, Id};
use super::{base, first, ids};
use masu_run::Ending;

fn failing(facts: Facts, ending: &Ending, stderr: &str) -> Facts {
    Facts { ending: Some(ending.to_string()), failure: Failure::of(ending, stderr), ..facts }
}

#[test]
fn a_failure_comes_first_with_its_code_and_its_last_lines_and_nothing_is_healthy() {
    let stderr = "one\ntwo\nthree\nfour\nfive\n\nsix: \u{1b}[31mno such file\n";
    let facts = failing(base("quiet"), &Ending::Exited(3), stderr);
    let failed = first(&facts);
    assert_eq!((failed.id, failed.confidence), (Id::ProgramFailed, Confidence::High));
    assert_eq!(failed.title, "The program failed: it returned 3");
    assert_eq!(failed.evidence.last().unwrap(), "| six:  [31mno such file");
    assert_eq!(failed.evidence.iter().filter(|line| line.starts_with("| ")).count(), 5);
    assert!(!ids(&facts).contains(&Id::MemoryIsFine), "{:?}", ids(&facts));
    // A failure also comes before a cause that explains nearly all of the time.
    let facts = failing(base("storm"), &Ending::Signalled(11), "");
    assert_eq!(ids(&facts)[..2], [Id::ProgramFailed, Id::HeapCallStorm]);
    assert!(first(&facts).title.contains("SIGSEGV"), "{}", first(&facts).title);
}

#[test]
fn killed_over_the_limit_comes_first() {
    let ending = Ending::OutOfMemory { process: "job (7), 900 MiB".to_owned(), bytes: 1 << 30 };
    let failed = first(&failing(base("storm"), &ending, ""));
    assert_eq!(failed.id, Id::ProgramFailed);
    assert!(failed.title.contains("over the memory limit"), "{}", failed.title);
    assert!(failed.remedies[0].what.contains("--memory-limit"), "{failed:?}");
}

#[test]
fn one_without_a_word_may_be_an_answer_and_a_stop_is_no_failure() {
    let answer = first(&failing(base("quiet"), &Ending::Exited(1), ""));
    assert_eq!((answer.id, answer.confidence), (Id::ProgramFailed, Confidence::Low));
    let facts = failing(base("quiet"), &Ending::Exited(20), "");
    assert_eq!(ids(&facts), [Id::ProgramFailed, Id::CpuBound, Id::MemoryIsFine]);
    assert!(
        facts.has_ended_well()
            && !failing(base("quiet"), &Ending::Exited(127), "").has_ended_well()
    );
    let said = first(&failing(base("quiet"), &Ending::Exited(1), "job: no input\n"));
    assert_eq!(said.confidence, Confidence::High);
    let shell = first(&failing(base("quiet"), &Ending::Exited(139), ""));
    assert!(shell.evidence[1].contains("signal 11"), "{shell:?}");
    for ending in [Ending::Stopped, Ending::TimedOut, Ending::Exited(0)] {
        assert_eq!(ids(&failing(base("quiet"), &ending, "x")), [Id::CpuBound, Id::MemoryIsFine]);
    }
}

#[test]
fn one_that_had_no_rights_under_the_tracer_may_fail_for_that() {
    let mut facts =
        failing(base("storm"), &Ending::Exited(1), "su: must be suid to work properly\n");
    facts.calls.as_mut().unwrap().without_rights = vec!["/usr/bin/su".to_owned()];
    let failed = first(&facts);
    assert_eq!((failed.id, failed.confidence), (Id::ProgramFailed, Confidence::Medium));
    assert!(failed.evidence.iter().any(|line| line.contains("/usr/bin/su had no more rights")));
    assert!(failed.remedies[0].what.starts_with("diagnose what it starts"), "{failed:?}");
}
