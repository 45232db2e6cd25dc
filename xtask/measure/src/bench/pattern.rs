//! The patterns that `patterns --list` prints, and the part of its work that each does here.
//!
//! Defaults take about a second with glibc; a fraction of that is enough to distinguish mallocs. Some patterns keep
//! their character only from some size on: a heap must be full before its replacement means anything. [`LEAST`] keeps
//! these patterns whole.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use xtask::{commands, options};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Usual,
    Quick,
    /// Fewer operations for musl's malloc, which takes a hundred times as long: it makes system calls where others
    /// make none.
    Musl,
}

impl Share {
    /// The part of a pattern's default operations that a run does.
    fn part(self) -> u64 {
        match self {
            Share::Usual => 8,
            Share::Quick => 40,
            Share::Musl => 400,
        }
    }
}

/// The least number of operations at which a pattern keeps its character. COUPLING: the parameters in
/// `workloads/patterns`.
const LEAST: &[(&str, u64)] = &[
    // Four million blocks are live before the first is replaced.
    ("random-4m", 5_000_000),
    // Two rounds of 500,000: the second refills.
    ("fill-random-free-refill", 1_000_000),
    // Whole growths to 64 MiB, and enough of them for glibc to take longer than its start.
    ("realloc-1m", 384),
    ("realloc-1m-touched", 192),
    // One operation in 64 makes a block that stays; 250,000 places are to be mostly filled.
    ("long-among-short", 16_000_000),
    // Five phases of 128 MiB, whose blocks grow fourfold.
    ("phase-change", 2_800_000),
    // 400,000 blocks are live before the first is replaced.
    ("sparse-among-small", 1_000_000),
    // Twenty bursts of 100,000 blocks.
    ("bursts", 2_000_000),
    // The size is the point of these patterns.
    ("idle-threads", 1_000),
    ("small-program", 100),
];

/// Operations below which glibc takes too short, however slow others are.
const LEAST_FOR_GLIBC: &[(&str, u64)] = &[("pair-1m-untouched", 2_500_000)];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) name: String,
    pub(super) group: String,
    pub(super) threads: u64,
    /// Operations by default; none for a program that counts none.
    pub(crate) ops: Option<u64>,
}

impl Pattern {
    /// A program that is measured as it is.
    pub(super) fn unscaled(name: &str, group: &str) -> Self {
        Self { name: name.to_owned(), group: group.to_owned(), threads: 1, ops: None }
    }

    pub(super) fn command(&self, program: &str, share: Share) -> Vec<String> {
        let mut command = vec![program.to_owned(), self.name.clone()];
        if let Some(ops) = self.scaled(share) {
            command.extend(["--ops".to_owned(), ops.to_string()]);
        }
        command
    }

    pub(super) fn scaled(&self, share: Share) -> Option<u64> {
        let for_glibc = if share == Share::Musl { &[] } else { LEAST_FOR_GLIBC };
        let least = LEAST.iter().chain(for_glibc).find(|(name, _)| *name == self.name);
        let least = least.map_or(1, |(_, least)| *least);
        self.ops.map(|ops| (ops / share.part()).max(least).min(ops))
    }
}

pub(crate) fn list(program: &Path) -> Result<Vec<Pattern>> {
    understand(&commands::output(Command::new(program).arg("--list"))?)
}

pub(super) fn understand(list: &str) -> Result<Vec<Pattern>> {
    list.lines().map(understand_line).collect()
}

/// One line: name, group (which may be called `threads` too), then words in pairs, `threads` and
/// `ops` with their numbers among them.
fn understand_line(line: &str) -> Result<Pattern> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |word| Some(words.iter().skip(2).skip_while(|one| **one != word).nth(1)?.parse());
    let (threads, ops) = (after("threads"), after("ops"));
    let ([name, group, ..], Some(Ok(threads)), Some(Ok(ops))) = (words.as_slice(), threads, ops)
    else {
        bail!("`patterns --list` has a line that bench does not understand: {line}");
    };
    let (name, group) = ((*name).to_owned(), (*group).to_owned());
    Ok(Pattern { name, group, threads, ops: Some(ops) })
}

pub(crate) fn choose(all: Vec<Pattern>, wanted: &[String]) -> Result<Vec<Pattern>> {
    options::chosen(all, wanted, |one| &one.name)
}
