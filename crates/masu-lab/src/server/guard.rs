//! The watch over all servers: their memory sampled, one limit over them together, and a flag for the thread that
//! waits for a burst that cannot go on.
//!
//! Servers that wait for their turn are watched too. A sample costs at most about one per cent of a CPU: after an
//! expensive sample the next one comes later.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::process_groups::Family;
use masu_run::Stop;
use masu_run::execute::tree::name_with_pid;
use masu_run::execute::{Curve, Ending};

/// The time between two samples, when a sample is cheap.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// The least time to the next sample, as a multiple of the sample's own.
const LOOK_COST_FACTOR: u32 = 100;

/// The longest time between two samples, so that a request to stop is noticed.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(200);

/// The watching thread, which ends when the guard is dropped.
#[derive(Debug)]
pub(super) struct Guard {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    limit: Option<u64>,
    over: AtomicBool,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    /// The watched servers, by the variant's index.
    families: Vec<(usize, Arc<Family>)>,
    killed: Vec<(usize, Ending)>,
    burst: Option<Burst>,
}

#[derive(Debug)]
struct Burst {
    index: usize,
    began: Instant,
    /// The server's memory so far.
    resident: Curve,
    /// The caller's request to stop everything.
    stop: Stop,
    abort: Stop,
}

impl Guard {
    /// Starts the watch, with no server yet. Where all servers together exceed `limit` bytes, the largest is killed.
    pub(super) fn new(limit: Option<u64>) -> Guard {
        let shared = Arc::new(Shared {
            limit,
            over: AtomicBool::new(false),
            watched: Mutex::new(Watched::default()),
        });
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.watch()
        });
        Guard { shared, thread: Some(thread) }
    }

    pub(super) fn watch(&self, index: usize, family: &Arc<Family>) {
        self.shared.lock().families.push((index, Arc::clone(family)));
    }

    pub(super) fn forget(&self, index: usize) {
        self.shared.lock().families.retain(|(of, _)| *of != index);
    }

    /// A burst on the server at `index` begins. The flag returned is raised when it cannot go on.
    pub(super) fn begin(&self, index: usize, stop: &Stop) -> Stop {
        let abort = Stop::never();
        let burst = Burst {
            index,
            began: Instant::now(),
            resident: Curve::default(),
            stop: stop.clone(),
            abort: abort.clone(),
        };
        let mut watched = self.shared.lock();
        watched.burst = Some(burst);
        watched.look(self.shared.limit);
        abort
    }

    /// Ends the burst and returns the server's memory in that time.
    pub(super) fn end(&self) -> Option<Curve> {
        let mut watched = self.shared.lock();
        watched.look(self.shared.limit);
        watched.burst.take().map(|burst| burst.resident)
    }

    pub(super) fn killed(&self, index: usize) -> Option<Ending> {
        let watched = self.shared.lock();
        let one = watched.killed.iter().find(|(of, _)| *of == index);
        one.map(|(_, ending)| ending.clone())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // ORDERING: Relaxed: the flag guards no other data; it only ends the thread.
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        // ORDERING: Relaxed: see `Guard::drop`.
        while !self.over.load(Ordering::Relaxed) {
            let look = Instant::now();
            self.lock().look(self.limit);
            let cost = look.elapsed() * LOOK_COST_FACTOR;
            std::thread::park_timeout(cost.clamp(LOOK_EVERY, LOOK_AT_LEAST_EVERY));
        }
    }
}

impl Watched {
    fn look(&mut self, limit: Option<u64>) {
        let mut sum = 0;
        let mut largest = (0, None);
        for (index, family) in &self.families {
            let held = family.held();
            sum += held.bytes;
            if held.bytes > largest.0 {
                largest = (held.bytes, Some((*index, held.largest.map(|(pid, _)| pid))));
            }
            if let Some(burst) = &mut self.burst
                && burst.index == *index
            {
                burst.resident.add(burst.began.elapsed(), held.resident_bytes);
                if burst.stop.requested() || family.alive().is_empty() {
                    burst.abort.request();
                }
            }
        }
        if let (Some(limit), (bytes, Some((index, process)))) = (limit, largest)
            && sum > limit
        {
            self.kill(index, process.map(name_with_pid).unwrap_or_default(), bytes);
        }
    }

    /// Kills the server at `index`, the largest of the servers that together exceed the limit.
    fn kill(&mut self, index: usize, process: String, bytes: u64) {
        let Some(at) = self.families.iter().position(|(of, _)| *of == index) else { return };
        let (_, family) = self.families.remove(at);
        family.kill();
        self.killed.push((index, Ending::OutOfMemory { process, bytes }));
        if let Some(burst) = &self.burst
            && burst.index == index
        {
            burst.abort.request();
        }
    }
}
