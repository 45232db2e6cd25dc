//! Locks that threads waited for, by the address of their word, and the owners of these locks.
//!
//! It relies on the memory map of the process and on the layout of the C libraries. The hard part is to recognize a
//! malloc's lock without symbols: glibc keeps the lock of its first arena among its initialized data (its other locks
//! begin as zeros and lie behind), and those of its other arenas at the start of a range that is aligned to 64 MiB;
//! musl's lies among its zeros; a library that is a malloc has no locks but its own.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::path::Path;

use serde::Serialize;

use super::Pid;
use crate::mapping::Mapping;
use crate::proc_files::maps;
use crate::program::elf::is_malloc_library;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    Malloc,
    /// The C library's, for something else: its streams, its loader.
    CLibrary,
    /// The program's, or a library's.
    Program,
}

/// A lock that threads waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lock {
    pub process: i32,
    pub address: u64,
    pub owner: Owner,
    /// The number of times that a thread asked to sleep until the lock is free.
    pub waits: u64,
    /// The number of different threads that did, [`THREADS_MAX`](Lock::THREADS_MAX) at most.
    pub threads: usize,
}

impl Lock {
    /// The most threads of a lock that are counted apart.
    pub const THREADS_MAX: usize = 64;

    /// True if the lock belongs to an arena of glibc's other than the first, to go by its address.
    pub fn is_of_another_arena(&self) -> bool {
        self.owner == Owner::Malloc && ARENA_HEADS.contains(&(self.address % ARENA))
    }
}

/// glibc's arenas but the first lie in ranges aligned to this (`HEAP_MAX_SIZE`), behind a head whose size has
/// grown with its versions.
const ARENA: u64 = 64 << 20;
const ARENA_HEADS: Range<u64> = 0x20..0x80;

#[derive(Debug, Default)]
pub(super) struct Locks {
    found: HashMap<(Pid, u64), Waits>,
    owners: HashMap<Pid, LockOwners>,
    /// Waits for locks beyond the most that are kept apart.
    more: u64,
}

#[derive(Debug)]
struct Waits {
    owner: Owner,
    waits: u64,
    threads: BTreeSet<Pid>,
}

/// The most locks that are kept apart: a program may make one for each of its objects.
const LOCKS_MAX: usize = 4096;

/// The most locks that are reported.
const LISTED: usize = 16;

impl Locks {
    /// Notes that a thread asks to sleep until the lock at `address` is free, `times`.
    pub(super) fn note(&mut self, process: Pid, thread: Pid, address: u64, times: u64) {
        let key = (process, address);
        if !self.found.contains_key(&key) {
            if self.found.len() == LOCKS_MAX {
                self.more += times;
                return;
            }
            let owners = self.owners.entry(process).or_insert_with(|| LockOwners::of(process));
            let owner = owners.owner(address);
            self.found.insert(key, Waits { owner, waits: 0, threads: BTreeSet::new() });
        }
        let Some(found) = self.found.get_mut(&key) else { return };
        found.waits += times;
        if found.threads.len() < Lock::THREADS_MAX {
            found.threads.insert(thread);
        }
    }

    /// Forgets a process that runs another program now, or has ended.
    pub(super) fn forget(&mut self, process: Pid) {
        self.owners.remove(&process);
    }

    /// The locks that were waited for most, and the waits for all others.
    pub(super) fn finish(self) -> (Vec<Lock>, u64) {
        let lock = |((process, address), found): ((Pid, u64), Waits)| Lock {
            process,
            address,
            owner: found.owner,
            waits: found.waits,
            threads: found.threads.len(),
        };
        let mut locks: Vec<Lock> = self.found.into_iter().map(lock).collect();
        locks.sort_by_key(|lock| (std::cmp::Reverse(lock.waits), lock.process, lock.address));
        let rest: u64 = locks.iter().skip(LISTED).map(|lock| lock.waits).sum();
        locks.truncate(LISTED);
        (locks, rest + self.more)
    }
}

/// The places of locks of known owners in a process.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LockOwners {
    known: Vec<(Range<u64>, Owner)>,
    /// True if the process has glibc, with its arenas.
    has_arenas: bool,
}

impl LockOwners {
    /// Reads the mappings of a process; a process that is gone has no locks.
    pub fn of(process: Pid) -> LockOwners {
        LockOwners::read(&maps(process))
    }

    fn read(maps: &str) -> LockOwners {
        let mut found = LockOwners::default();
        // The owner of zeros behind the writable part of a file, and where they must begin.
        let mut behind: Option<(u64, Owner)> = None;
        for Mapping { start, end, access, path, .. } in Mapping::all(maps) {
            if path.is_empty() {
                if let Some((_, owner)) = behind.take_if(|(at, _)| *at == start) {
                    found.known.push((start..end, owner));
                }
                continue;
            }
            let Some((data, zeros)) = owners(Path::new(path)) else { continue };
            found.has_arenas |= data == Owner::Malloc && zeros == Owner::CLibrary;
            if access.starts_with("rw") {
                found.known.push((start..end, data));
                behind = Some((end, zeros));
            }
        }
        found
    }

    pub fn owner(&self, address: u64) -> Owner {
        if self.has_arenas && ARENA_HEADS.contains(&(address % ARENA)) {
            return Owner::Malloc;
        }
        let known = self.known.iter().find(|(range, _)| range.contains(&address));
        known.map_or(Owner::Program, |(_, owner)| *owner)
    }
}

/// The owners of the locks among a library's initialized data and among its zeros; none for a file that is neither a C
/// library nor a malloc.
fn owners(path: &Path) -> Option<(Owner, Owner)> {
    let name = path.file_name()?.to_str()?;
    if is_malloc(name) {
        Some((Owner::Malloc, Owner::Malloc))
    } else if name.starts_with("libc.so") || name.starts_with("libc-2.") {
        Some((Owner::Malloc, Owner::CLibrary))
    } else if name.starts_with("ld-musl") || name.starts_with("libc.musl") {
        Some((Owner::CLibrary, Owner::Malloc))
    } else {
        None
    }
}

/// True if the library with this file name is a malloc, masu among them.
pub(super) fn is_malloc(name: &str) -> bool {
    let masu = name.strip_prefix("libmasu").is_some_and(|rest| rest.starts_with(['.', '-']));
    masu || is_malloc_library(name)
}

/// The malloc that a process with these mappings runs on: the library that is one, else that of the C library;
/// `unknown` where there is neither, as in a static program.
pub fn malloc_in(maps: &str) -> String {
    let names = maps.lines().filter_map(|line| {
        let path = Path::new(line.find('/').map(|at| &line[at..])?);
        path.file_name()?.to_str()
    });
    let mut own = "unknown";
    for name in names {
        match owners(Path::new(name)) {
            Some((Owner::Malloc, Owner::Malloc)) => {
                let short = name.trim_start_matches("lib").split(['.', '_', '-']).next();
                return short.unwrap_or_default().to_owned();
            }
            Some((Owner::Malloc, _)) => own = "glibc",
            Some(_) => own = "musl",
            None => {}
        }
    }
    own.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLIBC: &str = "\
5561b0000000-5561b0001000 rw-p 00002000 08:01 1   /usr/bin/program
5561b1000000-5561b1021000 rw-p 00000000 00:00 0   [heap]
7f1000000000-7f1000021000 rw-p 00000000 00:00 0
7f2000000000-7f2000028000 r--p 00000000 08:01 2   /usr/lib/x86_64-linux-gnu/libc.so.6
7f20001d6000-7f20001d8000 rw-p 001d6000 08:01 2   /usr/lib/x86_64-linux-gnu/libc.so.6
7f20001d8000-7f20001e5000 rw-p 00000000 00:00 0
7f2000300000-7f2000301000 rw-p 00001000 08:01 3   /usr/lib/libjemalloc.so.2
7f2000301000-7f2000310000 rw-p 00000000 00:00 0
";

    #[test]
    fn a_mallocs_locks_are_known_by_where_they_lie() {
        let owners = LockOwners::read(GLIBC);
        let cases = [
            (0x7f20_001d_6c80, Owner::Malloc),
            (0x7f20_001d_9000, Owner::CLibrary),
            (0x7f10_0000_0030, Owner::Malloc),
            (0x7f10_0000_0130, Owner::Program),
            (0x7f20_0030_5000, Owner::Malloc),
            (0x5561_b000_0010, Owner::Program),
            (0x5561_b100_0010, Owner::Program),
        ];
        for (address, owner) in cases {
            assert_eq!(owners.owner(address), owner, "{address:x}");
        }
    }

    #[test]
    fn the_malloc_is_recognized_by_what_is_mapped() {
        assert_eq!(malloc_in(GLIBC), "jemalloc");
        let without: Vec<&str> = GLIBC.lines().take(5).collect();
        assert_eq!(malloc_in(&without.join("\n")), "glibc");
        assert_eq!(malloc_in("7f00-7f10 r--p 0 08:01 2 /lib/ld-musl-x86_64.so.1\n"), "musl");
        assert_eq!(malloc_in("7f00-7f10 r--p 0 08:01 2 /bin/static\n"), "unknown");
        assert_eq!(malloc_in("7f00-7f10 r--p 0 08:01 2 /x/libmasu-glibc-0123.so\n"), "masu");
    }

    #[test]
    fn musl_has_its_lock_among_its_zeros_and_no_arenas() {
        let maps = "7f20000a0000-7f20000a1000 rw-p 0009f000 08:01 2   /lib/ld-musl-x86_64.so.1\n\
                    7f20000a1000-7f20000a4000 rw-p 00000000 00:00 0\n";
        let owners = LockOwners::read(maps);
        assert_eq!(owners.owner(0x7f20_000a_0100), Owner::CLibrary);
        assert_eq!(owners.owner(0x7f20_000a_1100), Owner::Malloc);
        assert_eq!(owners.owner(0x7f10_0000_0030), Owner::Program);
    }

    #[test]
    fn the_locks_waited_for_most_are_reported_and_the_others_summed() {
        let mut locks = Locks::default();
        // No process has this number, so its locks are nobody's in particular.
        let process = Pid::MAX;
        for lock in 0..20 {
            for wait in 0..=lock {
                locks.note(process, wait % 3, 0x1000 + u64::try_from(lock).unwrap(), 1);
            }
        }
        let (most_waited, rest) = locks.finish();
        assert_eq!((most_waited.len(), rest), (LISTED, 1 + 2 + 3 + 4));
        assert_eq!(
            (most_waited[0].address, most_waited[0].waits, most_waited[0].threads),
            (0x1013, 20, 3)
        );
        assert_eq!(most_waited[0].owner, Owner::Program);
    }
}
