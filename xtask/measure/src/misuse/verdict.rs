//! The outcome of one run, and of several.
//!
//! It relies on the marks of `workloads/misuse/misuse.h` and on the end of the process, nothing else. The hard part
//! is to give no outcome too good a name: memory that was handed out twice stays so, however the program ends later.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// The outcome of a program that misused memory, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// The malloc ended the program inside the very call, or when the damaged block was freed.
    Call,
    /// The very read or write met memory that is not to be touched.
    Access,
    /// The very call ended in a memory fault: the malloc stumbled over the pointer.
    Fault,
    /// The call said that it failed.
    Refused,
    /// A freed block could be read, but nothing of it was left.
    Wiped,
    /// The program ended in a later call, or at its exit.
    Later,
    /// The program ran to its end and noticed nothing.
    Silent,
    /// The program ran to its end; a live block had lost its contents.
    Damage,
    Hangs,
    /// Memory in use was handed out, or the program's data was followed as a pointer.
    Handed,
}

impl Verdict {
    /// Each with its word, the best first.
    const WORDS: [(Verdict, &str); 10] = [
        (Verdict::Call, "call"),
        (Verdict::Access, "access"),
        (Verdict::Fault, "fault"),
        (Verdict::Refused, "refused"),
        (Verdict::Wiped, "wiped"),
        (Verdict::Later, "later"),
        (Verdict::Silent, "silent"),
        (Verdict::Damage, "damage"),
        (Verdict::Hangs, "hangs"),
        (Verdict::Handed, "**handed**"),
    ];

    pub(super) fn word(self) -> &'static str {
        Verdict::WORDS[self as usize].1
    }

    /// The outcome of a run by its marks and exit status; none where the case could not be set up.
    pub(super) fn of(marks: &str, status: ExitStatus) -> Result<Option<Verdict>, String> {
        const KILL: i32 = 9;
        const BUS: i32 = 7;
        const SEGV: i32 = 11;
        const ALARM: i32 = 14;
        let has = |mark: char| marks.contains(mark);
        let signal = status.signal();
        if has('n') {
            return Ok(None);
        }
        if !(has('b') || has('t')) || signal == Some(KILL) || status.code() == Some(9) {
            return Err(format!("marks `{marks}`, {status}"));
        }
        let verdict = if has('o') {
            Verdict::Handed
        } else if signal == Some(ALARM) {
            Verdict::Hangs
        } else if !status.success() {
            match (has('a'), has('w'), signal) {
                (true, _, _) => Verdict::Later,
                (_, false, Some(BUS | SEGV)) if has('t') => Verdict::Access,
                (_, _, Some(BUS | SEGV)) => Verdict::Fault,
                _ => Verdict::Call,
            }
        } else if has('d') {
            Verdict::Damage
        } else if has('r') {
            Verdict::Refused
        } else if has('z') {
            Verdict::Wiped
        } else {
            Verdict::Silent
        };
        Ok(Some(verdict))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    counts: [usize; 10],
}

impl Tally {
    pub(super) fn add(&mut self, verdict: Verdict) {
        self.counts[verdict as usize] += 1;
    }

    pub(super) fn seen(&self) -> impl Iterator<Item = (Verdict, usize)> {
        let all = Verdict::WORDS.into_iter().map(|(verdict, _)| verdict).zip(self.counts);
        all.filter(|(_, count)| *count > 0)
    }

    pub(super) fn worst(&self) -> Option<Verdict> {
        self.seen().map(|(verdict, _)| verdict).last()
    }

    /// The one that was seen most often, the worse of two.
    pub(super) fn main(&self) -> Option<Verdict> {
        self.seen().max_by_key(|(verdict, count)| (*count, *verdict)).map(|(verdict, _)| verdict)
    }

    /// `call`, or `call 7, silent 3` where the runs differ, or `–` where there were none.
    pub(super) fn text(&self) -> String {
        let seen: Vec<(Verdict, usize)> = self.seen().collect();
        match seen[..] {
            [] => "–".to_owned(),
            [(verdict, _)] => verdict.word().to_owned(),
            _ => {
                let word =
                    |(verdict, count): &(Verdict, usize)| format!("{} {count}", verdict.word());
                seen.iter().map(word).collect::<Vec<_>>().join(", ")
            }
        }
    }
}
