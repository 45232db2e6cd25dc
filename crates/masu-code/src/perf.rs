//! Files for `perf`: a map of symbols in `/tmp`, or a jitdump.
//!
//! Relies on the formats in the kernel's `tools/perf/Documentation` (`jit-interface.txt`,
//! `jitdump-specification.txt`). `perf` finds a jitdump by an executable mapping of its
//! first page, though nothing in it runs; this is the arena's second executable
//! mapping. Both files have a process in their names, and are of that process alone: a forked child writes nothing.
//! The arenas of a process share them.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::kernel;
use crate::sync::{self, AtomicU64, Mutex, MutexGuard, Ordering};

/// A function as `perf` has it.
pub(crate) struct Named<'a> {
    pub(crate) address: usize,
    pub(crate) size: usize,
    pub(crate) name: &'a [u8],
    pub(crate) code: &'a [u8],
}

#[derive(Debug, Default)]
pub(crate) struct Perf {
    process: u32,
    map: Option<File>,
    dump: Option<Dump>,
}

#[derive(Debug)]
struct Dump {
    file: File,
    marker: usize,
}

/// The most by which the time in a file and the process's age may be wrong.
const CLOCKS: Duration = Duration::from_millis(50);

/// The dumps that have a header of this process.
static BEGUN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The lock of the list of dumps, if no thread has it.
pub(crate) fn try_hold() -> Option<MutexGuard<'static, impl Sized>> {
    sync::try_hold(&BEGUN)
}

impl Perf {
    /// Opens the requested files.
    pub(crate) fn open(map: bool, dump: Option<&Path>) -> io::Result<Perf> {
        let process = std::process::id();
        let mut perf = Perf { process, ..Perf::default() };
        if map {
            let name = format!("/tmp/perf-{process}.map");
            let mut file = File::options();
            let file = file.append(true).create(true).custom_flags(kernel::NO_LINK).open(name)?;
            // An earlier process of this number may have left it. Other JITs of this process write into it, too.
            let written = file.metadata()?.modified()?.elapsed().unwrap_or_default();
            if kernel::age().is_some_and(|age| written > age + CLOCKS) {
                file.set_len(0)?;
            }
            perf.map = Some(file);
        }
        if let Some(folder) = dump {
            perf.dump = Some(Dump::open(folder.join(format!("jit-{process}.dump")), process)?);
        }
        Ok(perf)
    }

    /// Whether any file is open, and this process's own.
    pub(crate) fn is_on(&self) -> bool {
        (self.map.is_some() || self.dump.is_some()) && self.process == std::process::id()
    }

    /// Writes new functions, with one write a file.
    pub(crate) fn tell(&mut self, functions: &[Named<'_>]) -> io::Result<()> {
        if let Some(map) = &mut self.map {
            let mut lines = Vec::new();
            for Named { address, size, name, .. } in functions {
                write!(lines, "{address:x} {size:x} ")?;
                lines.extend(name.iter().map(|&byte| if byte < b' ' { b'?' } else { byte }));
                lines.push(b'\n');
            }
            map.write_all(&lines)?;
        }
        if let Some(dump) = &mut self.dump {
            let mut records = Vec::new();
            // ORDERING: Relaxed: only the numbers must differ.
            let first = COUNT.fetch_add(functions.len() as u64, Ordering::Relaxed);
            for (function, number) in functions.iter().zip(first..) {
                record(&mut records, function, number);
            }
            dump.file.write_all(&records)?;
        }
        Ok(())
    }
}

/// The number of the next function in any dump of the process.
static COUNT: AtomicU64 = AtomicU64::new(1);

impl Dump {
    /// Begins a dump, or goes on with one that another arena of this process began.
    fn open(path: PathBuf, process: u32) -> io::Result<Dump> {
        let mut begun = sync::hold(&BEGUN);
        let mut file = File::options();
        let file = file.read(true).append(true).create(true).custom_flags(kernel::NO_LINK);
        let mut file = file.open(&path)?;
        let is_begun = begun.contains(&path);
        if !is_begun || file.metadata()?.len() == 0 {
            file.set_len(0)?;
            file.write_all(&header(process))?;
        }
        let marker = kernel::map_marker(&file)?;
        if !is_begun {
            begun.push(path);
        }
        Ok(Dump { file, marker })
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        kernel::unmap(self.marker, kernel::page_size());
    }
}

const LITTLE_ENDIAN_MAGIC: u32 = 0x4a69_5444;

fn header(process: u32) -> Vec<u8> {
    let mut header = Vec::new();
    let machine = u32::from(crate::relocation::HOST.machine);
    for word in [LITTLE_ENDIAN_MAGIC, 1, 40, machine, 0, process] {
        header.extend(word.to_ne_bytes());
    }
    header.extend((kernel::monotonic().as_nanos() as u64).to_ne_bytes());
    header.extend(0_u64.to_ne_bytes());
    header
}

/// A JIT_CODE_LOAD.
fn record(to: &mut Vec<u8>, function: &Named<'_>, index: u64) {
    let Named { address, name, code, .. } = function;
    let size = 16 + 8 + 32 + name.len() + 1 + code.len();
    let (process, thread) = (std::process::id(), 0_u32);
    to.extend(0_u32.to_ne_bytes());
    to.extend(u32::try_from(size).unwrap_or(u32::MAX).to_ne_bytes());
    to.extend((kernel::monotonic().as_nanos() as u64).to_ne_bytes());
    to.extend(process.to_ne_bytes());
    to.extend(thread.to_ne_bytes());
    for word in [*address as u64, *address as u64, code.len() as u64, index] {
        to.extend(word.to_ne_bytes());
    }
    to.extend_from_slice(name);
    to.push(0);
    to.extend_from_slice(code);
}
