//! The reader of the plugin's report about one run (`workloads/scale/coherence/plugin.c`).

use std::ops::Range;
use std::str::{FromStr, SplitWhitespace};

use anyhow::{Context, Result, bail};

/// The part of a run in which each thread did its first operations.
pub(super) const START: usize = 1;
/// The part after it, which the tables show.
pub(super) const STEADY: usize = 2;
const PHASES: usize = 3;

/// The counts of all threads in one part of the run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Counts {
    pub(super) operations: u64,
    pub(super) instructions: u64,
    pub(super) atomics: u64,
    pub(super) calls: u64,
    /// Lines that no core had.
    pub(super) cold: u64,
    /// Lines that came from another core, by the kind of access and the state of the line there.
    pub(super) read_dirty: u64,
    pub(super) read_clean: u64,
    pub(super) write: u64,
    pub(super) upgrade: u64,
    /// The part of the four counts above that the program's own code moved, and not a library's.
    pub(super) by_program: u64,
}

impl Counts {
    /// Lines that were moved, or that others had to give up.
    pub(super) fn moved(&self) -> u64 {
        self.read_dirty + self.read_clean + self.write + self.upgrade
    }
}

/// A line that moved often, with the instructions that moved it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) phase: usize,
    /// The address of its first byte.
    pub(super) address: u64,
    pub(super) moves: u64,
    pub(super) by: Vec<(u64, u64)>,
}

/// An instruction that moved lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) phase: usize,
    pub(super) instruction: u64,
    pub(super) moves: u64,
}

/// A word that threads took and gave back: most likely a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) phase: usize,
    pub(super) address: u64,
    pub(super) holds: u64,
    /// Atomic operations of others on it while it was held.
    pub(super) attempts: u64,
    /// Instructions while it was held, in all and at most.
    pub(super) held: u64,
    pub(super) longest: u64,
    pub(super) calls: u64,
    /// Lines that the holder moved, that of the word among them.
    pub(super) moves: u64,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Report {
    phases: [Counts; PHASES],
    pub(super) turns: u64,
    /// The number of turns that were taken from a thread that did not come.
    pub(super) slips: u64,
    pub(super) lines: Vec<Line>,
    pub(super) sites: Vec<Site>,
    /// The locks; in each phase those that were held longest come first.
    pub(super) locks: Vec<Lock>,
    /// Memory that the program gave a name.
    pub(super) names: Vec<(Range<u64>, String)>,
    /// The beginning of each thread's stack, and the end of its local storage.
    pub(super) threads: Vec<(u64, u64)>,
    /// Lines of proc(5)'s `maps`.
    pub(super) maps: String,
}

impl Report {
    pub(super) fn of(&self, phase: usize) -> &Counts {
        &self.phases[phase]
    }

    /// The locks at which threads have met. A lock that only its own thread takes lets no thread wait.
    pub(super) fn shared(&self, phase: usize) -> impl Iterator<Item = &Lock> {
        self.locks.iter().filter(move |lock| lock.phase == phase && lock.attempts > 0)
    }

    /// The lock among them that was held for most instructions.
    pub(super) fn busiest(&self, phase: usize) -> Option<&Lock> {
        self.shared(phase).max_by_key(|lock| lock.held)
    }

    pub(super) fn parse(text: &str) -> Result<Report> {
        let mut lines = text.lines();
        if lines.next() != Some("coherence 1") || lines.next_back() != Some("end") {
            bail!("the report of the plugin is not whole");
        }
        let mut report = Report::default();
        for line in lines {
            let added = report.add(line);
            added.with_context(|| format!("`{line}` of the report is not understood"))?;
        }
        Ok(report)
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let words = &mut rest.split_whitespace();
        match kind {
            "phase" => {
                let phase: usize = number(words)?;
                let mut counts = serde_json::Map::new();
                while let Some(name) = words.next() {
                    counts.insert(name.to_owned(), number::<u64>(words)?.into());
                }
                *self.phases.get_mut(phase)? = serde_json::from_value(counts.into()).ok()?;
            }
            "turns" => self.turns = number(words)?,
            "slips" => self.slips = number(words)?,
            "name" => {
                let range = hex(words)?..hex(words)?;
                self.names.push((range, words.collect::<Vec<_>>().join(" ")));
            }
            "thread" => self.threads.push((hex(words)?, hex(words)?)),
            "line" => self.lines.push(Line {
                phase: number(words)?,
                address: hex(words)? << 6,
                moves: number(words)?,
                by: Vec::new(),
            }),
            "by" => self.lines.last_mut()?.by.push((hex(words)?, number(words)?)),
            "site" => self.sites.push(Site {
                phase: number(words)?,
                instruction: hex(words)?,
                moves: number(words)?,
            }),
            "lock" => self.locks.push(Lock {
                phase: number(words)?,
                address: hex(words)?,
                holds: number(words)?,
                attempts: number(words)?,
                held: number(words)?,
                longest: number(words)?,
                calls: number(words)?,
                moves: number(words)?,
            }),
            "map" => self.maps.extend([rest, "\n"]),
            _ => return None,
        }
        Some(())
    }
}

fn number<T: FromStr>(words: &mut SplitWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

fn hex(words: &mut SplitWhitespace<'_>) -> Option<u64> {
    u64::from_str_radix(words.next()?, 16).ok()
}
