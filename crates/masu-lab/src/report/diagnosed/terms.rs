//! The terms of a diagnosis, each explained in one line: a page explains the terms that it uses.

use crate::diagnose::Finding;
use crate::page::{Statement, Tone};

/// A term, the words that stand for it in a text, and its meaning.
type Term = (&'static str, &'static [&'static str], &'static str);

const TERMS: [Term; 14] = [
    (
        "page fault",
        &["page fault", "faults ×", "faults of"],
        "the first touch of a page: the kernel stops the program and puts memory there",
    ),
    ("resident", &["resident"], "in memory now, and not only promised (RSS)"),
    (
        "huge page",
        &["huge page"],
        "memory in pieces of 2 MiB in place of 4 KiB: one page fault in place of 512",
    ),
    ("TLB", &["TLB"], "the CPU's cache of page addresses; a miss costs a lookup in memory"),
    ("brk", &["brk", "the break"], "the system call that moves the end of the heap"),
    (
        "mmap, munmap",
        &["mmap", "munmap", "mapping"],
        "system calls that get a piece of memory from the kernel and give it back",
    ),
    (
        "madvise",
        &["madvise"],
        "the system call that gives the contents of memory back and keeps its addresses",
    ),
    ("system call", &["system call"], "a request to the kernel, for which the program waits"),
    ("futex", &["futex"], "the system call by which a thread sleeps until a lock is free"),
    ("arena", &["arena"], "a part of glibc's malloc that has a lock of its own"),
    (
        "hysteresis",
        &["hysteresis"],
        "the free memory that a malloc keeps, so that it need not ask the kernel again at once",
    ),
    ("OpenMP", &["OpenMP"], "the part of a compiler that runs loops on several threads"),
    ("swapped", &["swapped"], "moved from memory to the disk"),
    (
        "garbage",
        &["garbage"],
        "blocks that nothing points to any more, which a language's run-time finds and frees",
    ),
];

pub(super) fn explained<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Statement> {
    let mut text = String::new();
    for finding in findings {
        let remedies = finding.remedies.iter().flat_map(|remedy| [&remedy.what, &remedy.cost]);
        for part in std::iter::once(&finding.title).chain(&finding.evidence).chain(remedies) {
            text.push_str(part);
            text.push('\n');
        }
    }
    let is_used = |(_, met, _): &&Term| met.iter().any(|one| text.contains(one));
    let statement = |(term, _, meaning): &Term| Statement::new(term, *meaning, Tone::Dim);
    TERMS.iter().filter(is_used).map(statement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::{Confidence, Id};

    #[test]
    fn terms_that_are_used_are_explained_once_and_no_others() {
        let finding = |evidence: &str| Finding {
            id: Id::FirstTouch,
            title: "It touches memory".to_owned(),
            confidence: Confidence::High,
            share: None,
            evidence: vec![evidence.to_owned()],
            remedies: Vec::new(),
        };
        let terms = |evidence: [&str; 2]| -> Vec<String> {
            explained(&evidence.map(finding)).into_iter().map(|it| it.label).collect()
        };
        assert_eq!(
            terms(["2 page faults", "page faults, misses of the TLB"]),
            ["page fault", "TLB"]
        );
        assert!(terms(["", ""]).is_empty());
    }
}
