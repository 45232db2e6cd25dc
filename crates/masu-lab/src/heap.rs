//! Heap profiles: reads the file that a program writes under `MASU_PROFILE`, finds the names and shows the profile.
//!
//! Relies on `heap/message.rs` for the file and on `heap/names.rs` for symbols. The program writes addresses and its
//! mappings, because looking names up would allocate; the names are found here, where the files are. The hard idea is
//! the form of a stack: a list of *functions*, outermost first, with inlined functions as their source has them and
//! without the allocator's own, so that equal stacks of two runs, at other addresses, are known to be equal.

mod message;
pub mod names;
mod request;
mod shape;
mod speedscope;
mod table;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use request::ask;
pub use shape::Shape;
pub(crate) use table::{amount, phrase, share};

use masu_run::error::Error;
use masu_run::once::once;
use message::Message;
use names::Names;

/// A function in a stack, and the line at which it calls the next function or allocates the block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The function's name as its source has it, or the file and the address where there is none.
    pub function: String,
    /// The source file, if that is known; else the shared library, where the function is in one.
    pub file: Option<String>,
    /// The line in the file; 0 where it is not known.
    pub line: u32,
}

/// The blocks and bytes of a stack, as estimates; in a difference any number may be negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub allocated_blocks: i64,
    pub allocated_bytes: i64,
    /// Blocks that were live when the profile was written.
    pub live_blocks: i64,
    pub live_bytes: i64,
}

impl Sums {
    fn with(self, other: Sums, make: fn(i64, i64) -> i64) -> Sums {
        Sums {
            allocated_blocks: make(self.allocated_blocks, other.allocated_blocks),
            allocated_bytes: make(self.allocated_bytes, other.allocated_bytes),
            live_blocks: make(self.live_blocks, other.live_blocks),
            live_bytes: make(self.live_bytes, other.live_bytes),
        }
    }

    pub fn of(self, what: What) -> i64 {
        match what {
            What::LiveBytes => self.live_bytes,
            What::LiveBlocks => self.live_blocks,
            What::AllocatedBytes => self.allocated_bytes,
            What::AllocatedBlocks => self.allocated_blocks,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    LiveBytes,
    LiveBlocks,
    AllocatedBytes,
    AllocatedBlocks,
}

#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Bytes between two samples on average.
    pub interval_bytes: i64,
    /// Each stack once: its frames, outermost first, with its sums.
    pub stacks: BTreeMap<Vec<Frame>, Sums>,
    /// Remarks for the reader: files that have changed or are gone, samples that are missing.
    pub remarks: Vec<String>,
}

impl Profile {
    /// Reads a profile and finds the names, in the files that the program had mapped.
    pub fn read(path: &Path) -> Result<Profile, Error> {
        let wrong = |reason: String| Error::HeapProfile { path: path.to_owned(), reason };
        let bytes = fs::read(path).map_err(|error| wrong(error.to_string()))?;
        let message = Message::read(&bytes).map_err(wrong)?;
        let mut names = Names::new(&message);
        let mut profile = Profile { interval_bytes: message.interval_bytes, ..Profile::default() };
        for sample in &message.samples {
            let mut frames: Vec<Frame> = Vec::new();
            // Innermost first, also among functions that were inlined.
            for location in &sample.locations {
                frames.extend(names.of(*location).iter().cloned());
            }
            drop_allocator(&mut frames);
            frames.reverse();
            let sums = profile.stacks.entry(frames).or_default();
            *sums = sums.with(sample.sums, i64::saturating_add);
        }
        profile.remarks.extend(names.remarks());
        profile.remarks.extend(message.remarks);
        Ok(profile)
    }

    /// This profile minus `before`, stack by stack; negative where `before` had more.
    pub fn minus(mut self, before: Profile) -> Profile {
        // Lines move from one build to the next, functions seldom. But where both profiles are of one build, a line is
        // worth knowing, so stacks with different lines are different stacks.
        for (frames, sums) in before.stacks {
            let own = self.stacks.entry(frames).or_default();
            *own = own.with(sums, i64::saturating_sub);
        }
        self.stacks.retain(|_, sums| *sums != Sums::default());
        self.remarks = once(self.remarks.into_iter().chain(before.remarks));
        self
    }

    pub fn sum(&self) -> Sums {
        self.stacks.values().fold(Sums::default(), |sum, sums| sum.with(*sums, i64::saturating_add))
    }

    pub(crate) fn text(&self, what: What, title: &str) -> String {
        table::text(self, what, title)
    }

    pub(crate) fn speedscope(&self, what: What, title: &str) -> String {
        speedscope::json(self, what, title)
    }

    /// The profile for pprof, with names.
    pub(crate) fn message(&self) -> Vec<u8> {
        message::write(self)
    }

    /// The memory that was never freed, for the terminal: how much, and the calls that allocated most of it.
    pub fn never_freed(&self) -> String {
        table::never_freed(self)
    }

    /// Folded stacks, a line each: functions from the outermost on, semicolons between them, and the number.
    pub(crate) fn folded(&self, what: What) -> String {
        let mut folded: BTreeMap<String, i64> = BTreeMap::new();
        for (frames, sums) in &self.stacks {
            // A semicolon within a name would be read as the start of the next name.
            let name = |frame: &Frame| frame.function.replace(';', ":");
            let line: Vec<String> = frames.iter().map(name).collect();
            let number = folded.entry(line.join(";")).or_default();
            *number = number.saturating_add(sums.of(what));
        }
        let lines = folded.iter().filter(|(_, number)| **number != 0);
        lines.map(|(stack, number)| format!("{stack} {number}\n")).collect()
    }
}

/// A profile's file, by its name: `PREFIX.PROCESS.NUMBER.pb`.
struct Written {
    prefix: String,
    process: u32,
    number: u64,
    path: PathBuf,
}

/// The profiles in a folder, each process's oldest first.
fn all_in(folder: &Path) -> Vec<Written> {
    let read = |path: PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let (name, number) = name.strip_suffix(".pb")?.rsplit_once('.')?;
        let (prefix, process) = name.rsplit_once('.')?;
        let (process, number) = (process.parse().ok()?, number.parse().ok()?);
        Some(Written { prefix: prefix.to_owned(), process, number, path })
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<Written> = entries.filter_map(|entry| read(entry.path())).collect();
    all.sort_by_key(|one| (one.process, one.number));
    all
}

/// The newest profile of each process in a folder, the profile of `process` first.
pub fn written_in(folder: &Path, process: u32) -> Vec<PathBuf> {
    let newest: BTreeMap<(bool, u32), PathBuf> = all_in(folder)
        .into_iter()
        .map(|one| ((one.process != process, one.process), one.path))
        .collect();
    newest.into_values().collect()
}

/// Takes the allocator's own functions off the front of a stack that starts with the innermost.
fn drop_allocator(frames: &mut Vec<Frame>) {
    let own = frames.iter().take_while(|frame| is_allocator(&frame.function)).count();
    if own < frames.len() {
        frames.drain(..own);
    }
}

/// Whether a function lies between the program's request and the block: part of a malloc, of `new`, or of Rust's
/// allocation path.
pub(crate) fn is_allocator(function: &str) -> bool {
    const NAMES: &[&str] = &[
        "malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "posix_memalign",
        "memalign", "valloc", "pvalloc", "cfree", "__rust_alloc", "__rust_realloc",
        "__rust_alloc_zeroed", "__rdl_alloc", "__rg_alloc", "__rg_realloc", "__rg_alloc_zeroed",
        "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_memalign", "exchange_malloc",
    ];
    const BEGINNINGS: &[&str] = &[
        "masu::", "<masu::", "alloc_core::", "<alloc_core::", "operator new", "alloc::alloc::",
        "<alloc::alloc::", "__rustc::", "_Zn", "libmasu",
    ];
    NAMES.contains(&function) || BEGINNINGS.iter().any(|start| function.starts_with(start))
}

/// The profiles of `process` that begin with `prefix` and its number, the newest last.
fn files_of(prefix: &Path, process: u32) -> Vec<PathBuf> {
    let Some(folder) = prefix.parent() else { return Vec::new() };
    let beginning = prefix.file_name().unwrap_or_default().to_string_lossy();
    let is_its = |one: &Written| one.process == process && one.prefix == beginning;
    all_in(folder).into_iter().filter(is_its).map(|one| one.path).collect()
}

#[cfg(test)]
mod tests;
