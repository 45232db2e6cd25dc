//! What the plugin writes about one run (`workloads/scale/coherence/plugin.c`), read. It names data and the hottest lines,
//! too; they are left to readers of the file.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// The part of a run in which each thread did its first operations.
pub(super) const START: usize = 1;
/// The part behind it, which the tables are about.
pub(super) const STEADY: usize = 2;
const PHASES: usize = 3;

/// Lines that came from another core or that others had to give up, by what was wanted and how they were there.
const MOVES: [&str; 4] = ["read_dirty", "read_clean", "write", "upgrade"];

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
    pub(super) holds: u64,
    /// Atomic operations of others on it while it was held.
    pub(super) attempts: u64,
    /// Instructions while it was held, in all and at most.
    pub(super) held: u64,
    pub(super) longest: u64,
    /// System calls of the holder.
    pub(super) calls: u64,
}

/// A line of proc(5)'s `maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    /// Empty where no file is mapped.
    pub(super) path: String,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Report {
    /// What all threads did in each part of the run, by the plugin's names.
    phases: [BTreeMap<String, u64>; PHASES],
    pub(super) turns: u64,
    /// How often a turn was taken from a thread that did not come.
    pub(super) slips: u64,
    pub(super) sites: Vec<Site>,
    pub(super) locks: Vec<Lock>,
    pub(super) maps: Vec<Mapping>,
}

impl Report {
    pub(super) fn count(&self, phase: usize, name: &str) -> u64 {
        self.phases[phase].get(name).copied().unwrap_or_default()
    }

    pub(super) fn moved(&self, phase: usize) -> u64 {
        MOVES.iter().map(|name| self.count(phase, name)).sum()
    }

    /// The lock that was held for most instructions, of those that threads have met at. One that its thread alone takes
    /// keeps nobody waiting.
    pub(super) fn busiest(&self, phase: usize) -> Option<&Lock> {
        let shared = self.locks.iter().filter(|lock| lock.phase == phase && lock.attempts > 0);
        shared.max_by_key(|lock| lock.held)
    }

    pub(super) fn parse(text: &str) -> Result<Report> {
        let mut lines = text.lines();
        if lines.next() != Some("coherence 1") || lines.next_back() != Some("end") {
            bail!("the report of the plugin is not whole");
        }
        let mut report = Report::default();
        for line in lines {
            report
                .add(line)
                .with_context(|| format!("`{line}` of the report is not understood"))?;
        }
        Ok(report)
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let mut words = rest.split_whitespace();
        let mut number = || words.next()?.parse::<u64>().ok();
        match kind {
            "phase" => {
                let counts = self.phases.get_mut(usize::try_from(number()?).ok()?)?;
                while let Some(name) = words.next() {
                    counts.insert(name.to_owned(), words.next()?.parse().ok()?);
                }
            }
            "turns" => self.turns = number()?,
            "slips" => self.slips = number()?,
            "site" => {
                let phase = usize::try_from(number()?).ok()?;
                let instruction = hex(words.next()?)?;
                self.sites.push(Site { phase, instruction, moves: words.next()?.parse().ok()? });
            }
            "lock" => {
                let phase = usize::try_from(number()?).ok()?;
                let numbers: Option<Vec<u64>> =
                    words.skip(1).map(|word| word.parse().ok()).collect();
                let [holds, attempts, held, longest, calls, ..] = numbers?[..] else { return None };
                self.locks.push(Lock { phase, holds, attempts, held, longest, calls });
            }
            "map" => self.maps.push(Mapping::parse(rest)?),
            "name" | "thread" | "line" | "by" => {}
            _ => return None,
        }
        Some(())
    }
}

impl Mapping {
    /// `start-end permissions offset device inode path`.
    fn parse(line: &str) -> Option<Mapping> {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let offset = hex(words.nth(1)?)?;
        let path = words.skip(2).collect::<Vec<_>>().join(" ");
        Some(Mapping { start: hex(start)?, end: hex(end)?, offset, path })
    }
}

fn hex(word: &str) -> Option<u64> {
    u64::from_str_radix(word, 16).ok()
}
