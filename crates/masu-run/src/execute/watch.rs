//! The watch over one run: one thread waits for the program's end, drains and hashes its output, samples its memory
//! and guards its limits.
//!
//! A single `poll` waits for the process (a pidfd), both pipes and the next sample. Output never goes to `/dev/null`:
//! some programs recognize it and then do no work.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::Xxh3;

use super::neighbors::{Interference, Neighbors};
use super::pace::{Pace, USUAL};
use super::rss_curve::Curve;
use super::tree::{Pid, Sample, Tree, name_with_pid};
use super::{Conditions, Ending, Output, Run};
use crate::error::Doing;
use crate::{Error, Stop, kernel};

/// The time in which output may still arrive after every process was killed.
const LAST_OUTPUT: Duration = Duration::from_millis(500);

/// A closer look at the processes of a run, each time the watch looks.
///
/// The duration of this closer look is part of the whole look, whose price sets the time to the next.
pub trait Look: Send {
    /// Looks at `members`, the processes of the run `at` this time since its start, zombies included.
    fn look(&mut self, at: Duration, members: &[Pid]);
}

#[derive(Debug)]
pub struct Unseen;

impl Look for Unseen {
    fn look(&mut self, _at: Duration, _members: &[Pid]) {}
}

/// A program that runs, and what is to be known of its start.
#[derive(Debug)]
pub struct Started {
    pub(super) began: Instant,
    pub(super) neighbors: Neighbors,
    pub(super) conditions: Conditions,
    /// True if a tracer reaps the processes.
    pub(super) is_traced: bool,
    pub(super) rss_floor_bytes: Option<u64>,
    pub(super) process: OwnedFd,
    pub(super) stdout: Drain,
    pub(super) stderr: Drain,
}

#[derive(Debug)]
pub struct Watched {
    /// The run, without its ending and the kernel's figures.
    pub(super) run: Run,
    pub(super) threads: usize,
    pub(super) interference: Interference,
    pub(super) cut: Option<Ending>,
}

impl Started {
    /// Waits until the program ends or is cut short, then ends the processes that it left; the root stays a zombie.
    pub(crate) fn watch(
        &mut self,
        tree: &Tree,
        stop: &Stop,
        closer: &mut dyn Look,
    ) -> Result<Watched, Error> {
        let mut peak_rss_bytes = 0;
        let mut rss_over_time = Curve::default();
        let mut threads = 0;
        let mut cut = None;
        let mut pace = Pace::default();
        let mut next_look = Instant::now() + USUAL / 2;
        let wall = loop {
            let patience = next_look.saturating_duration_since(Instant::now());
            if self.wait(patience)? {
                break self.began.elapsed();
            }
            self.stdout.take()?;
            self.stderr.take()?;
            let look = Instant::now();
            if look < next_look {
                continue;
            }
            let sample = tree.sample();
            peak_rss_bytes = peak_rss_bytes.max(sample.held.resident_bytes);
            let at = look - self.began;
            rss_over_time.add(at, sample.held.resident_bytes);
            threads = threads.max(sample.threads);
            closer.look(at, &sample.members);
            if !self.is_traced {
                tree.reap_orphans(&sample.members);
            }
            if cut.is_none() {
                cut = self.reason_to_cut(&sample, stop);
                if cut.is_some() {
                    tree.kill();
                }
            }
            let limit = self.conditions.limits.memory_bytes;
            next_look = look + pace.after(at, look.elapsed(), sample.held.bytes, limit);
        };
        let interference = self.neighbors.interference();
        tree.note_queued(tree.root);
        let left_behind = if cut.is_some() { Vec::new() } else { tree.left_behind() };
        tree.kill();
        self.take_rest()?;
        let run = Run {
            wall_s: wall.as_secs_f64(),
            peak_rss_bytes,
            rss_over_time: rss_over_time.points(),
            queued_s: tree.queued_s(),
            steal_s: interference.steal_s,
            load: interference.load,
            offset_bytes: self.conditions.offset_bytes,
            rss_floor_bytes: self.rss_floor_bytes,
            left_behind,
            stdout: self.stdout.output(),
            stderr: self.stderr.output(),
            ..Run::default()
        };
        Ok(Watched { run, threads, interference, cut })
    }

    /// The ending of the run if it must not go on.
    fn reason_to_cut(&self, sample: &Sample, stop: &Stop) -> Option<Ending> {
        let limits = &self.conditions.limits;
        let is_over = |limit: Duration| self.began.elapsed() > limit;
        if stop.requested() {
            Some(Ending::Stopped)
        } else if limits.time.is_some_and(is_over) {
            Some(Ending::TimedOut)
        } else if limits.memory_bytes.is_some_and(|limit| sample.held.bytes > limit) {
            let process = sample
                .held
                .largest
                .map(|(pid, bytes)| format!("{} with {} MiB", name_with_pid(pid), bytes >> 20));
            let process = process.unwrap_or_default();
            Some(Ending::OutOfMemory { process, bytes: sample.held.bytes })
        } else {
            None
        }
    }

    /// Waits for the program's end (then true), for output, or for `patience` to run out.
    fn wait(&self, patience: Duration) -> Result<bool, Error> {
        let open = [Some(self.process.as_fd()), self.stdout.open(), self.stderr.open()];
        let ready = kernel::wait_readable(open, patience).doing(|| "waiting for the program")?;
        Ok(ready[0])
    }

    /// Takes the rest of the pipes; a process that could not be killed must not hold the lab up.
    fn take_rest(&mut self) -> Result<(), Error> {
        let until = Instant::now() + LAST_OUTPUT;
        loop {
            self.stdout.take()?;
            self.stderr.take()?;
            let open = [None, self.stdout.open(), self.stderr.open()];
            let patience = until.saturating_duration_since(Instant::now());
            if open.iter().all(Option::is_none) || patience.is_zero() {
                return Ok(());
            }
            kernel::wait_readable(open, patience).doing(|| "reading the last output")?;
        }
    }
}

pub struct Drain {
    /// None once the last writer closed it.
    pipe: Option<File>,
    hash: Xxh3,
    bytes: u64,
    tail: Vec<u8>,
    tail_bytes_max: usize,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Drain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drain").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Drain {
    /// Keeps the last `tail_bytes_max` bytes that come through `pipe`.
    pub fn new(pipe: OwnedFd, tail_bytes_max: usize) -> Result<Drain, Error> {
        kernel::make_roomy_and_nonblocking(pipe.as_fd())
            .doing(|| "preparing the pipe for the program's output")?;
        Ok(Drain {
            pipe: Some(File::from(pipe)),
            hash: Xxh3::new(),
            bytes: 0,
            tail: Vec::new(),
            tail_bytes_max,
            buffer: vec![0; 64 << 10],
        })
    }

    /// The descriptor to wait for until there is more to take.
    pub fn open(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes the available bytes, a megabyte at most, so that neither stream starves the other.
    pub fn take(&mut self) -> Result<(), Error> {
        for _ in 0..16 {
            let Some(pipe) = &mut self.pipe else { return Ok(()) };
            match pipe.read(&mut self.buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => self.add(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if kernel::terminal::is_hung_up(&error) => self.pipe = None,
                Err(error) => return Err(error).doing(|| "reading the program's output"),
            }
        }
        Ok(())
    }

    fn add(&mut self, length: usize) {
        let new = &self.buffer[..length];
        self.hash.update(new);
        self.bytes += length as u64;
        if self.tail_bytes_max > 0 {
            let kept = &new[new.len().saturating_sub(self.tail_bytes_max)..];
            self.tail.extend_from_slice(kept);
            let surplus = self.tail.len().saturating_sub(self.tail_bytes_max);
            self.tail.drain(..surplus);
        }
    }

    fn output(&self) -> Output {
        Output {
            bytes: self.bytes,
            hash: format!("{:032x}", self.hash.digest128()),
            tail: self.tail(),
        }
    }

    pub fn tail(&self) -> String {
        String::from_utf8_lossy(&self.tail).into_owned()
    }
}
