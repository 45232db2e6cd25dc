//! The caller of a call for memory: the program itself, or its malloc.
//!
//! It relies on the memory map of the process and on its stack, which is read while the thread is stopped. The hard
//! part is that the system call stands in a function of the C library for every caller: so the caller is the first word
//! on the stack that leads into code. If that cannot be known, the call counts as the malloc's.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::Pid;
use super::locks::is_malloc;
use crate::kernel::calls::CalledFrom;
use crate::mapping::Mapping;
use crate::proc_files::maps;

/// The most processes that are known at once; all are forgotten when there are more.
const KEPT_MAX: usize = 64;

/// The number of words of the stack that are checked: the C library's functions for mappings keep few.
const WORDS: usize = 12;

/// The places of the code of the processes of a tree.
#[derive(Debug, Default)]
pub(super) struct Callers(HashMap<Pid, Code>);

#[derive(Debug)]
struct Code {
    memory: Option<File>,
    /// Mappings of code; true for those of the C library, its loader or a malloc.
    mappings: Vec<(Range<u64>, bool)>,
}

impl Callers {
    /// True if a call was made on behalf of the program, and not of its malloc or the C library.
    pub(super) fn are_own(&mut self, process: Pid, from: &CalledFrom) -> bool {
        if self.0.len() == KEPT_MAX && !self.0.contains_key(&process) {
            self.0.clear();
        }
        let code = self.0.entry(process).or_insert_with(|| Code::of(process));
        code.is_own(from)
    }

    /// Forgets a process that runs another program now, has mapped more code, or has ended.
    pub(super) fn forget(&mut self, process: Pid) {
        self.0.remove(&process);
    }
}

impl Code {
    fn of(process: Pid) -> Code {
        let maps = maps(process);
        let memory = File::open(format!("/proc/{process}/mem")).ok();
        Code { memory, mappings: mappings(&maps) }
    }

    fn is_own(&self, from: &CalledFrom) -> bool {
        let is_library = |address| {
            self.mappings.iter().find(|(range, _)| range.contains(&address)).map(|(_, own)| *own)
        };
        match is_library(from.instruction) {
            // The program makes the call without the C library.
            Some(false) => return true,
            None => return false,
            Some(true) => {}
        }
        if let Some(is_library) = from.link.and_then(is_library) {
            return !is_library;
        }
        let mut words = [0; WORDS * 8];
        let Some(memory) = &self.memory else { return false };
        if memory.read_exact_at(&mut words, from.stack).is_err() {
            return false;
        }
        let words = words.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
        words.into_iter().find_map(is_library) == Some(false)
    }
}

fn mappings(maps: &str) -> Vec<(Range<u64>, bool)> {
    let code = Mapping::all(maps).filter(|one| one.access.contains('x'));
    code.map(|one| (one.start..one.end, is_library(Path::new(one.path)))).collect()
}

/// True if a file is a C library, its loader or a malloc.
fn is_library(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let known = ["libc.so", "libc-2.", "ld-linux", "ld-2.", "ld-musl", "libc.musl", "libpthread"];
    is_malloc(name) || known.iter().any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
        555500000000-555500010000 r-xp 00000000 08:01 1    /usr/bin/job\n\
        7f0000000000-7f0000100000 r-xp 00000000 08:01 2    /usr/lib/x86_64-linux-gnu/libc.so.6\n\
        7f0000100000-7f0000110000 rw-p 00000000 08:01 2    /usr/lib/x86_64-linux-gnu/libc.so.6\n\
        7f0000200000-7f0000210000 r-xp 00000000 08:01 3    /opt/libmasu.so\n\
        7f0000300000-7f0000310000 r-xp 00000000 00:00 0    \n";

    fn code() -> Code {
        Code { memory: None, mappings: mappings(MAPS) }
    }

    #[test]
    fn a_call_is_whose_code_asks_for_it() {
        let from = |instruction, link| CalledFrom { instruction, stack: 0, link };
        let (library, program) = (0x7f00_0000_0100, 0x5555_0000_0100);
        assert!(code().is_own(&from(program, None)));
        assert!(code().is_own(&from(0x7f00_0030_0010, None)), "code made at run time");
        assert!(code().is_own(&from(library, Some(program))));
        assert!(!code().is_own(&from(library, Some(library))));
        assert!(!code().is_own(&from(0x7f00_0020_0010, Some(library))));
        // Calls of unknown callers count as the malloc's.
        assert!(!code().is_own(&from(0x10, None)));
        assert!(!code().is_own(&from(library, None)));
    }
}
