//! The scatter of a process's machine code: its executable mappings, and the OS pages and 2 MiB regions they take.
//!
//! Relies on `/proc/PID/smaps` (proc(5)). Every OS page of code in use wants an entry of the instruction TLB, and code
//! at equal offsets competes for the same few sets of the caches.

use std::collections::{BTreeMap, BTreeSet};

use crate::Error;
use crate::mapping::Mapping;
use crate::process::mappings;

/// Addresses at a distance of a multiple of this share a set of common second-level caches.
const SAME_SET: u64 = 64 << 10;

/// The bytes that one huge page maps.
const HUGE: u64 = 2 << 20;

/// The largest mapping that holds one function or a few: a library each, say.
const SMALL: u64 = 64 << 10;

/// The executable mappings of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Scatter {
    pub mappings: usize,
    /// Bytes of addresses.
    pub bytes: u64,
    pub resident: u64,
    /// Resident bytes in huge pages.
    pub huge: u64,
    /// Mappings of at most 64 KiB.
    pub small: usize,
    /// Different files behind them.
    pub files: usize,
    /// Mappings without a file, or of a deleted file: the output of a JIT.
    pub made: usize,
    /// Mappings of deleted files: the output of a JIT that has a linker make libraries.
    pub deleted: usize,
    /// The name of most deleted files, with `*` for their numbers; empty without any.
    pub deleted_as: String,
    /// Regions of 2 MiB that hold some code.
    pub regions: usize,
    /// The most mappings that begin at the same offset of 64 KiB.
    pub same_offset: usize,
    /// Mappings that are writable too.
    pub writable: usize,
}

impl Scatter {
    /// Reads the mappings of a running process.
    pub fn of(process: u32) -> Result<Scatter, Error> {
        Ok(Scatter::read(&mappings(process, "smaps")?))
    }

    fn read(smaps: &str) -> Scatter {
        let mut scatter = Scatter::default();
        let (mut files, mut regions) = (BTreeSet::new(), BTreeSet::new());
        let mut offsets: BTreeMap<u64, usize> = BTreeMap::new();
        let mut deleted: BTreeMap<String, usize> = BTreeMap::new();
        let mut counts = false;
        for line in smaps.lines() {
            let Some(mapping) = Mapping::read(line) else {
                if counts {
                    scatter.add(line);
                }
                continue;
            };
            let Mapping { start, end, access, path, .. } = mapping;
            counts = access.contains('x') && path != "[vsyscall]";
            if !counts {
                continue;
            }
            scatter.mappings += 1;
            scatter.bytes += end - start;
            scatter.small += usize::from(end - start <= SMALL);
            scatter.writable += usize::from(access.contains('w'));
            let without_file = path.strip_suffix(" (deleted)");
            let is_file = path.starts_with('/') && without_file.is_none();
            // A file in memory was never anywhere; its name looks like that of a deleted file.
            if let Some(path) = without_file.filter(|path| !path.starts_with("/memfd:")) {
                *deleted.entry(without_numbers(path)).or_default() += 1;
            }
            scatter.made += usize::from(!is_file && path != "[vdso]");
            if is_file {
                files.insert(path);
            }
            regions.extend(start / HUGE..end.div_ceil(HUGE));
            *offsets.entry(start % SAME_SET).or_default() += 1;
        }
        scatter.deleted = deleted.values().sum();
        let most = deleted.into_iter().max_by_key(|(_, count)| *count);
        scatter.deleted_as = most.map(|(name, _)| name).unwrap_or_default();
        scatter.files = files.len();
        scatter.regions = regions.len();
        scatter.same_offset = offsets.into_values().max().unwrap_or(0);
        scatter
    }

    fn add(&mut self, line: &str) {
        let Some((name, rest)) = line.split_once(':') else { return };
        let kib: u64 = rest.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
        match name {
            "Rss" => self.resident += kib << 10,
            "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => self.huge += kib << 10,
            _ => {}
        }
    }

    /// True if so many small mappings lie about that calls between them are likely to be slow.
    pub fn is_scattered(&self) -> bool {
        self.small >= 100
    }
}

/// `/tmp/_ruby_mjit_p*u*.so` for a path with numbers.
fn without_numbers(path: &str) -> String {
    let mut text = String::new();
    for char in path.chars() {
        let char = if char.is_ascii_digit() { '*' } else { char };
        if char != '*' || !text.ends_with('*') {
            text.push(char);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = include_str!("scatter/smaps.txt");

    #[test]
    fn executable_mappings_are_counted_and_others_are_not() {
        let expected = Scatter {
            mappings: 4,
            bytes: 0x52000 + 0x1000 + 0x1000 + 0x20_0000,
            resident: (200 + 4 + 4 + 2048) << 10,
            huge: 2 << 20,
            small: 2,
            files: 2,
            made: 2,
            deleted: 1,
            deleted_as: "/tmp/m_p*u*.so".to_owned(),
            regions: 3,
            same_offset: 4,
            writable: 1,
        };
        assert_eq!(Scatter::read(SMAPS), expected);
        assert!(!expected.is_scattered());
    }

    #[test]
    fn this_process_has_code() {
        let scatter = Scatter::of(std::process::id()).unwrap();
        assert!(scatter.mappings >= 2 && scatter.resident > 0 && scatter.resident <= scatter.bytes);
        assert_eq!(scatter.writable, 0);
    }
}
