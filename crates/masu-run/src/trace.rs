//! A traced run: every program that a process tree runs is watched for its first allocation.
//!
//! A breakpoint waits at each program's entry point. There the loader is done, so the memory map tells whether the
//! variant's library is loaded. Breakpoints are then put on `malloc`, `calloc`, `operator new` and so on in that
//! library and in every other file that has a `malloc`. A hit in the variant's library is the proof; all are removed
//! and the program runs on at full speed. This works with every malloc and C library.
//!
//! Breakpoints are shared by threads and copied by `fork`: addresses stay known for as long as the program runs, and a
//! thread that hits one late is put right.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::Doing;
use crate::execute::{self, Conditions, Look, Run, Unseen, assemble};
use crate::kernel::trace::{self as ptrace, BREAKPOINT, PASSED};
use crate::kernel::{Status, Usage, is_crash};
use crate::mapping::Mapping;
use crate::proc_files::maps;
use crate::program::elf::{ENTRIES, Image};
use crate::program::privileges;
use crate::{Error, Stop, Variant, Workload};

mod follow;

pub(crate) use follow::{CallStops, Witness};

type Pid = i32;

/// One program that was run by some process of the tree, from its `exec` on, with every process that it forked
/// without running something else.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) program: PathBuf,
    /// The reason why nothing can be preloaded into the program, as far as its start showed.
    pub(crate) obstacle: Option<String>,
    pub(crate) entered: bool,
    /// True if one of its processes was asked to end by a signal.
    pub(crate) cut_short: bool,
    pub(crate) mapped: bool,
    pub(crate) served: bool,
    /// The file whose malloc was asked for memory, if it was not the variant's library.
    pub(crate) elsewhere: Option<PathBuf>,
    /// Original code by address, for every breakpoint ever placed.
    pub(crate) breakpoints: HashMap<u64, Breakpoint>,
}

/// Code that was replaced to learn when it runs.
#[derive(Debug, Clone)]
pub(crate) struct Breakpoint {
    original: Vec<u8>,
    place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// The entry point of the program.
    Entry,
    /// An allocation function of the variant's library.
    Library,
    /// An allocation function of this other file.
    Elsewhere(PathBuf),
}

/// Runs `workload` once under `variant` and returns every program seen. The run's times are those
/// of a traced program.
pub(crate) fn run_traced(
    workload: &Workload,
    variant: &Variant,
    conditions: &Conditions,
    stop: &Stop,
) -> Result<(Run, Vec<Seen>), Error> {
    let mut tracer = Tracer::new(variant.library.as_deref());
    let run = run_witnessed(workload, variant, conditions, stop, &mut tracer, &mut Unseen)?;
    Ok((run, tracer.seen))
}

/// Runs `workload` once under `variant` while `witness` is informed of its threads' actions, and `look` looks at its
/// processes now and then.
pub(crate) fn run_witnessed(
    workload: &Workload,
    variant: &Variant,
    conditions: &Conditions,
    stop: &Stop,
    witness: &mut impl Witness,
    look: &mut dyn Look,
) -> Result<Run, Error> {
    let _alone = execute::alone();
    let (mut started, tree) = execute::start(workload, variant, conditions, true)?;
    let root = tree.root;
    let (watched, traced) = std::thread::scope(|scope| {
        let watching = scope.spawn(move || {
            let watched = started.watch(&tree, stop, look);
            if watched.is_err() {
                // Nothing ends the program any more, and it may run for ever.
                tree.kill();
            }
            (watched, tree)
        });
        let traced = follow::follow(root, witness);
        if traced.is_err() {
            // No thread lets the program go on any more, so the watch would wait for ever.
            crate::kernel::kill(root);
        }
        (watching.join(), traced)
    });
    let Ok((watched, tree)) = watched else { unreachable!("the watch does not panic") };
    let (status, usage) = traced.doing(|| "tracing the program")?;
    Ok(assemble(watched?, status, usage.plus(tree.reap())))
}

struct Tracer<'a> {
    library: Option<&'a Path>,
    seen: Vec<Seen>,
    /// The program each live thread runs, as an index into `seen`.
    runs: HashMap<Pid, usize>,
    /// Libraries read so far.
    images: HashMap<PathBuf, Option<Image>>,
}

impl<'a> Tracer<'a> {
    fn new(library: Option<&'a Path>) -> Tracer<'a> {
        Tracer { library, seen: Vec::new(), runs: HashMap::new(), images: HashMap::new() }
    }

    /// The loader is done: looks at the mapped libraries, and waits for the first allocation in any library that
    /// defines `malloc`, and in the program itself.
    fn enter(&mut self, pid: Pid, program: usize) {
        let seen = &mut self.seen[program];
        seen.entered = true;
        let library = self.library.and_then(|path| fs::canonicalize(path).ok());
        for (path, start) in mapped_files(pid) {
            let image = self.images.entry(path.clone()).or_insert_with(|| Image::read(&path).ok());
            let Some(image) = image else { continue };
            if path == seen.program {
                seen.obstacle = seen.obstacle.take().or_else(|| image.refusal());
            }
            let place = if library.as_ref() == Some(&path) {
                seen.mapped = true;
                Place::Library
            } else if image.defines("malloc") && !is_glibc_loader(&path) {
                Place::Elsewhere(path)
            } else {
                continue;
            };
            let page = crate::kernel::os_page_bytes();
            // A program that is not position-independent has its addresses as they are.
            let bias = start.wrapping_sub(image.lowest & !(page - 1));
            for (name, address) in &image.defined {
                if ENTRIES.contains(&name.as_str()) && *address != 0 {
                    seen.place(pid, bias.wrapping_add(*address), &place);
                }
            }
        }
    }
}

impl Witness for Tracer<'_> {
    /// A new program is about to run its loader in `pid`.
    fn begin(&mut self, pid: Pid) {
        let mut seen = Seen {
            program: fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default(),
            ..Seen::default()
        };
        // Under a tracer the kernel may withhold a setuid program's rights, and the loader would
        // then not ignore the preload as it does otherwise.
        let rights = privileges(&seen.program);
        match start_of(pid) {
            Ok(entry) => {
                seen.place(pid, entry, &Place::Entry);
                let lost = || self.library.and_then(|library| lost_preload(pid, library));
                seen.obstacle = rights.or_else(lost);
            }
            Err(obstacle) => seen.obstacle = Some(rights.unwrap_or(obstacle)),
        }
        self.runs.insert(pid, self.seen.len());
        self.seen.push(seen);
    }

    fn start(&mut self, pid: Pid, new: Pid) {
        if let Some(&program) = self.runs.get(&pid) {
            self.runs.insert(new, program);
        }
    }

    /// Answers a trap; false if it was none of ours.
    fn trap(&mut self, pid: Pid) -> bool {
        let Some(&program) = self.runs.get(&pid) else { return false };
        let Ok(counter) = ptrace::program_counter(pid) else { return false };
        let address = counter - PASSED;
        let Some(breakpoint) = self.seen[program].breakpoints.get(&address).cloned() else {
            return false;
        };
        write_code(pid, address, &breakpoint.original);
        if ptrace::set_program_counter(pid, address).is_err() {
            return false;
        }
        match breakpoint.place {
            Place::Entry => self.enter(pid, program),
            Place::Elsewhere(path) => self.seen[program].elsewhere = Some(path),
            Place::Library => {
                let seen = &mut self.seen[program];
                seen.served = true;
                for (&address, breakpoint) in &seen.breakpoints {
                    write_code(pid, address, &breakpoint.original);
                }
            }
        }
        true
    }

    fn end(&mut self, pid: Pid, status: Status, _usage: &Usage) {
        let Some(program) = self.runs.remove(&pid) else { return };
        // Programs that outlive the command are killed, perhaps before their loader is done.
        let is_asked = matches!(status, Status::Signalled(signal) if !is_crash(signal));
        self.seen[program].cut_short |= is_asked;
    }
}

impl Seen {
    /// Puts a breakpoint at `address`, once.
    fn place(&mut self, pid: Pid, address: u64, place: &Place) {
        if self.breakpoints.contains_key(&address) {
            return;
        }
        let mut original = vec![0; BREAKPOINT.len()];
        let read = memory(pid).and_then(|memory| memory.read_exact_at(&mut original, address));
        if read.is_ok() {
            self.breakpoints.insert(address, Breakpoint { original, place: place.clone() });
            write_code(pid, address, BREAKPOINT);
        }
    }
}

fn memory(pid: Pid) -> std::io::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))
}

/// Writes code into a stopped process. The write fails only when the process is being killed, and then its code does
/// not matter any more.
fn write_code(pid: Pid, address: u64, code: &[u8]) {
    let _ = memory(pid).and_then(|memory| memory.write_all_at(code, address));
}

/// The entry point of the program that `pid` is about to run, or the reason why nothing is preloaded into it.
fn start_of(pid: Pid) -> Result<u64, String> {
    const AT_BASE: u64 = 7;
    const AT_ENTRY: u64 = 9;
    let mut kind = [0; 5];
    let program = File::open(format!("/proc/{pid}/exe"));
    let read = program.and_then(|program| program.read_exact_at(&mut kind, 0));
    if read.is_ok() && kind[4] == 1 {
        return Err("a 32-bit program".to_owned());
    }
    if has_more_rights(pid) {
        return Err("it runs with more rights than ours, so its loader ignores preloads".to_owned());
    }
    if auxiliary(pid, AT_BASE).unwrap_or(0) == 0 {
        return Err("it is linked statically".to_owned());
    }
    auxiliary(pid, AT_ENTRY).ok_or_else(|| "the kernel does not tell where it starts".to_owned())
}

/// True if the program that `pid` is about to run has more rights than the one that started it.
fn has_more_rights(pid: Pid) -> bool {
    const AT_SECURE: u64 = 23;
    auxiliary(pid, AT_SECURE).is_some_and(|secure| secure != 0)
}

/// The value of a key in the auxiliary vector (`<elf.h>`) of the program that `pid` runs.
fn auxiliary(pid: Pid, key: u64) -> Option<u64> {
    let bytes = fs::read(format!("/proc/{pid}/auxv")).ok()?;
    let words: Vec<u64> =
        bytes.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
    words.as_chunks().0.iter().find(|[known, _]| *known == key).map(|[_, value]| *value)
}

/// The message that a new program's environment lost the preload on its way; none if it has the preload.
fn lost_preload(pid: Pid, library: &Path) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let preload = environment
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(b"LD_PRELOAD="))
        .unwrap_or_default();
    let library = library.as_os_str().as_bytes();
    let kept = preload.split(|byte| b": ".contains(byte)).any(|one| one == library);
    (!kept).then(|| "its parent took LD_PRELOAD out of its environment".to_owned())
}

/// The files mapped into `pid`, each with its lowest address.
fn mapped_files(pid: Pid) -> Vec<(PathBuf, u64)> {
    let maps = maps(pid);
    let mut files: Vec<(PathBuf, u64)> = Vec::new();
    for Mapping { start, path, .. } in Mapping::all(&maps).filter(|one| one.path.starts_with('/')) {
        if !files.iter().any(|(known, _)| known == Path::new(path)) {
            files.push((path.into(), start));
        }
    }
    files
}

/// glibc's loader has a small malloc of its own for the time before any other is loaded. musl's
/// loader is the C library itself.
fn is_glibc_loader(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ld-linux"))
}
