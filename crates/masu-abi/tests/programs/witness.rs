//! Runs a program and reports for every executable in its process tree whether `libmasu.so` was
//! mapped and whether it served an allocation.
//!
//! Relies on `ptrace` alone: the library has nothing for it, and the program sees no environment
//! variable or file of it. It works for lazy and immediate binding, for programs that leave by `_exit`,
//! and for children that live a millisecond.
//!
//! *Served* means that the processor ran the first instruction of one of the
//! library's doors (`malloc`, `calloc`, `operator new`, …). After each `exec` a breakpoint stands
//! at the program's entry point; when it is reached, the dynamic linker has mapped everything that
//! was preloaded, and a breakpoint goes to every door. The first thread to reach one is the proof;
//! all of them are then taken away, so that a program is stopped once, not at each allocation.
//! What constructors of a preloaded library allocate comes before the entry point and does not
//! count.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::doors::Doors;
use crate::tracee::{self, Stop, Tid};

/// One executable that ran: a process tree has one for each `exec` in it.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// The file, as `/proc/PID/exe` names it.
    pub(crate) executable: PathBuf,
    /// The library was in its address space when the program's own code began.
    pub(crate) mapped: bool,
    /// The program, or a child of it that did not `exec`, entered one of the library's doors.
    pub(crate) served: bool,
}

/// What was seen of a process tree.
#[derive(Debug)]
pub(crate) struct Sighting {
    /// How the first process ended.
    pub(crate) exit: ExitStatus,
    /// Every executable, in the order of their `exec`s.
    pub(crate) images: Vec<Image>,
    /// The tree was killed because it ran longer than it may.
    pub(crate) expired: bool,
}

/// Runs `command` to its end, watching its process tree for the library whose doors are given.
///
/// A tree that runs longer than `limit` is killed: a deadlock is a failure, not a test without end.
pub(crate) fn watch(mut command: Command, doors: &Doors, limit: Duration) -> io::Result<Sighting> {
    command.process_group(0);
    // SAFETY: Between fork and exec only one system call is made, and it is async-signal-safe.
    unsafe { command.pre_exec(tracee::ask_to_be_traced) };
    let child = command.spawn()?;
    let root = Tid::try_from(child.id()).map_err(io::Error::other)?;
    let expired = AtomicBool::new(false);
    let (done, until_done) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let expired = &expired;
        scope.spawn(move || {
            if until_done.recv_timeout(limit) == Err(mpsc::RecvTimeoutError::Timeout) {
                // ORDERING: Relaxed: the flag alone is the message, and the kill that follows is
                // what makes the tracer look at it.
                expired.store(true, Ordering::Relaxed);
                tracee::kill_group(root);
            }
        });
        let seen = Tracer::new(doors, root).run(expired);
        drop(done);
        seen
    })
}

/// The state of one process tree under watch.
struct Tracer<'a> {
    doors: &'a Doors,
    root: Tid,
    images: Vec<Image>,
    /// Which image each live thread runs.
    image_of: HashMap<Tid, usize>,
    /// The breakpoint at the entry point of a program that has not begun: its address and the word
    /// that stood there.
    entry_of: HashMap<Tid, (u64, u64)>,
    /// Threads that their parent's event has named and whose own first stop is still to come.
    announced: HashSet<Tid>,
    /// Threads that run although their parent's event is still to come, and did not `exec` yet.
    adopted: HashSet<Tid>,
}

impl<'a> Tracer<'a> {
    fn new(doors: &'a Doors, root: Tid) -> Self {
        Tracer {
            doors,
            root,
            images: Vec::new(),
            image_of: HashMap::new(),
            entry_of: HashMap::new(),
            announced: HashSet::new(),
            adopted: HashSet::new(),
        }
    }

    /// Takes events until the last process of the tree is gone.
    fn run(mut self, expired: &AtomicBool) -> io::Result<Sighting> {
        let mut exit = None;
        while let Some((tid, stop)) = tracee::next_stop()? {
            match stop {
                Stop::Ended(status) => {
                    self.image_of.remove(&tid);
                    self.adopted.remove(&tid);
                    self.entry_of.remove(&tid);
                    if tid == self.root {
                        exit = Some(ExitStatus::from_raw(status));
                    }
                }
                Stop::At { event, signal } => match self.take(tid, event, signal) {
                    Err(error) if is_gone(&error) => {}
                    other => other?,
                },
            }
            // ORDERING: Relaxed: see the store.
            if expired.load(Ordering::Relaxed) {
                self.image_of.keys().for_each(|&tid| tracee::kill(tid));
            }
        }
        let exit = exit.ok_or_else(|| io::Error::other("the program's end was not reported"))?;
        // ORDERING: Relaxed: see the store.
        Ok(Sighting { exit, images: self.images, expired: expired.load(Ordering::Relaxed) })
    }

    /// Takes one stop and lets the thread go on.
    fn take(&mut self, tid: Tid, event: i32, signal: i32) -> io::Result<()> {
        match event {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                let child = tracee::event_message(tid)?;
                let image = self.image_of[&tid];
                if !self.image_of.contains_key(&child) {
                    self.announced.insert(child);
                    self.image_of.insert(child, image);
                } else if self.adopted.remove(&child) {
                    self.image_of.insert(child, image);
                }
                tracee::go_on(tid, 0)
            }
            libc::PTRACE_EVENT_EXEC => self.begin(tid),
            _ if self.announced.remove(&tid) => tracee::go_on(tid, 0),
            _ if self.image_of.contains_key(&tid) => {
                let ours = signal == libc::SIGTRAP && self.breakpoint(tid)?;
                tracee::go_on(tid, if ours { 0 } else { signal })
            }
            _ if tid == self.root => {
                tracee::follow_children(tid)?;
                self.begin(tid)
            }
            _ => self.adopt(tid),
        }
    }

    /// A thread at its first stop before its parent's event, which comes later, or never where the
    /// parent was killed in that time: until then it counts to the last image of its executable.
    fn adopt(&mut self, tid: Tid) -> io::Result<()> {
        let executable = fs::read_link(format!("/proc/{tid}/exe"))?;
        let image = self.images.iter().rposition(|image| image.executable == executable);
        self.image_of.insert(tid, image.unwrap_or_default());
        self.adopted.insert(tid);
        tracee::go_on(tid, 0)
    }

    /// A new executable: waits for its entry point.
    fn begin(&mut self, tid: Tid) -> io::Result<()> {
        let executable = fs::read_link(format!("/proc/{tid}/exe"))?;
        self.images.push(Image { executable, mapped: false, served: false });
        self.image_of.insert(tid, self.images.len() - 1);
        self.adopted.remove(&tid);
        let entry = entry_point(tid)?;
        let word = tracee::peek(tid, entry)?;
        tracee::poke(tid, entry, with_breakpoint(word))?;
        self.entry_of.insert(tid, (entry, word));
        tracee::go_on(tid, 0)
    }

    /// Handles a trap of a breakpoint of this tracer; false if it is the program's own.
    fn breakpoint(&mut self, tid: Tid) -> io::Result<bool> {
        let at = tracee::instruction_pointer(tid)?.wrapping_sub(1);
        if let Some(&(entry, word)) = self.entry_of.get(&tid)
            && entry == at
        {
            self.entry_of.remove(&tid);
            tracee::poke(tid, entry, word)?;
            tracee::set_instruction_pointer(tid, entry)?;
            if let Some(base) = self.library_base(tid)? {
                self.images[self.image_of[&tid]].mapped = true;
                for door in self.doors.offsets() {
                    let word = tracee::peek(tid, base + door)?;
                    tracee::poke(tid, base + door, with_breakpoint(word))?;
                }
            }
            return Ok(true);
        }
        let Some(base) = self.library_base(tid)? else { return Ok(false) };
        if at < base || self.doors.first_byte(at - base).is_none() {
            return Ok(false);
        }
        self.images[self.image_of[&tid]].served = true;
        self.open_doors(tid, base)?;
        tracee::set_instruction_pointer(tid, at)?;
        Ok(true)
    }

    /// Takes the breakpoints away in the thread's address space. Another thread, or a child that
    /// was forked before, may come with a trap of the same set: doing it twice does no harm.
    fn open_doors(&self, tid: Tid, base: u64) -> io::Result<()> {
        for door in self.doors.offsets() {
            let word = tracee::peek(tid, base + door)?;
            let byte = self.doors.first_byte(door).unwrap_or_default();
            tracee::poke(tid, base + door, (word & !0xff) | u64::from(byte))?;
        }
        Ok(())
    }

    /// Where the library's first byte lies in the thread's address space, if it is there.
    fn library_base(&self, tid: Tid) -> io::Result<Option<u64>> {
        let maps = fs::read_to_string(format!("/proc/{tid}/maps"))?;
        Ok(maps.lines().find_map(|line| mapping_base(line, self.doors.library())))
    }
}

/// A thread killed while it was stopped is not there to be asked, neither by `ptrace` nor in
/// `/proc`; the report of its end follows.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT))
}

/// The start address of a line of `/proc/PID/maps` that maps the beginning of `file`.
fn mapping_base(line: &str, file: &Path) -> Option<u64> {
    let path = line.get(line.find('/')?..)?;
    let mut fields = line.split_ascii_whitespace();
    let (start, _) = fields.next()?.split_once('-')?;
    let offset = fields.nth(1)?;
    (Path::new(path) == file && offset.bytes().all(|digit| digit == b'0'))
        .then(|| u64::from_str_radix(start, 16).ok())
        .flatten()
}

/// The address of the program's first own instruction, from the auxiliary vector (`AT_ENTRY`).
fn entry_point(tid: Tid) -> io::Result<u64> {
    let vector = fs::File::open(format!("/proc/{tid}/auxv"))?;
    let mut entry = [0; 16];
    let mut at = 0;
    loop {
        vector.read_exact_at(&mut entry, at)?;
        let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|byte| entry[8 * i + byte]));
        if word(0) == libc::AT_ENTRY {
            return Ok(word(1));
        }
        at += 16;
    }
}

/// The word with the breakpoint instruction of x86-64 (`int3`) in its first byte.
fn with_breakpoint(word: u64) -> u64 {
    (word & !0xff) | 0xcc
}
