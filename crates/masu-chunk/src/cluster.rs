//! The executor's job on several machines: the same function on every chunk, the results brought to
//! the first process, on the engine of the `timely` crate.
//!
//! Relies on timely for moving results and for knowing when all have come, and on TCP for knowing
//! that a process is gone. The one hard idea is what a lost process becomes. Timely's threads panic
//! then, here as in every process that is left; that is caught and becomes an error. (A program that
//! is built with `panic = "abort"` ends there and then, with timely's message.)

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use timely::communication::allocator::ProcessBuilder;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::{AllocatorBuilder, Hooks};
use timely::dataflow::InputHandle;
use timely::dataflow::operators::{Exchange, Input, Inspect, Probe};
use timely::worker::Worker;
use timely::{ExchangeData, WorkerConfig};

use crate::failure::Cause;
use crate::place::{Chunk, Place};

mod sockets;

/// Processes that do a job together. Each calls the same method with the same arguments.
#[derive(Clone, Debug)]
pub struct Cluster {
    addresses: Vec<String>,
    process: usize,
    workers: usize,
    chunk: u64,
    unordered: bool,
    patience: Duration,
}

/// Why a job of a cluster ended early.
#[derive(Debug)]
pub enum ClusterError {
    /// A chunk failed or panicked, in whichever process.
    Chunk {
        /// Which.
        place: Place,
        /// What it said.
        said: String,
    },
    /// The other processes could not all be reached.
    Connect {
        /// The address that this process was busy with.
        address: String,
        /// Why not.
        error: io::Error,
    },
    /// A process went away, or what it sent was damaged.
    Lost(String),
}

impl fmt::Display for ClusterError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chunk { place, said } => write!(to, "{place}, failed: {said}"),
            Self::Connect { address, error } => {
                write!(to, "the cluster did not come together: {address}: {error}")
            }
            Self::Lost(said) => write!(to, "a process of the cluster is gone: {said}"),
        }
    }
}

impl std::error::Error for ClusterError {}

/// How often a worker that waits for others looks whether they are still there.
const LOOK: Duration = Duration::from_millis(50);

/// A chunk that failed, on its way to every worker: to whom, which, and what it said.
type Failed = (u64, u64, String);

impl Cluster {
    /// The process number `process` of those at `addresses`, each `HOST:PORT`, with one worker.
    pub fn new(addresses: Vec<String>, process: usize) -> Self {
        let patience = Duration::from_secs(30);
        Self { addresses, process, workers: 1, chunk: 1, unordered: false, patience }
    }

    /// Workers in each process; 0 means 1.
    #[must_use]
    pub fn workers(self, workers: usize) -> Self {
        Self { workers: workers.max(1), ..self }
    }

    /// Items a chunk; 0 means 1.
    #[must_use]
    pub fn chunk(self, items: u64) -> Self {
        Self { chunk: items.max(1), ..self }
    }

    /// Results come as they are made.
    #[must_use]
    pub fn unordered(self) -> Self {
        Self { unordered: true, ..self }
    }

    /// How long to wait for the other processes to come; 30 seconds where nothing is said.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Puts chunks of `items` through `work`, in turn on the workers of all processes. The results
    /// are returned in process 0, in order unless unordered; `None` in the others, which return when
    /// all is done.
    ///
    /// # Errors
    ///
    /// The first chunk that failed or panicked, in every process alike; a process that did not come,
    /// or went away.
    pub fn try_map<R, E, W>(
        &self,
        items: Range<u64>,
        work: W,
    ) -> Result<Option<Vec<R>>, ClusterError>
    where
        R: ExchangeData + Clone,
        E: fmt::Display,
        W: Fn(Chunk<Range<u64>>) -> Result<R, E> + Send + Sync + 'static,
    {
        let cut = Cut { items, size: self.chunk };
        let mut results = self.run(cut, move |_, chunk| work(chunk).map(Some))?;
        if !self.unordered {
            results.sort_by_key(|(index, _)| *index);
        }
        let results = results.into_iter().map(|(_, result)| result).collect();
        Ok((self.process == 0).then_some(results))
    }

    /// The results of all chunks, combined; see [`Self::try_map`]. In order, they are combined from
    /// first to last in process 0; unordered, each worker combines its own and sends one result.
    /// `None` in the other processes, and where there are no chunks.
    ///
    /// # Errors
    ///
    /// As [`Self::try_map`].
    pub fn try_reduce<R, E, W, C>(
        &self,
        items: Range<u64>,
        work: W,
        combine: C,
    ) -> Result<Option<R>, ClusterError>
    where
        R: ExchangeData + Clone,
        E: fmt::Display,
        W: Fn(Chunk<Range<u64>>) -> Result<R, E> + Send + Sync + 'static,
        C: Fn(R, R) -> R + Send + Sync + 'static,
    {
        if !self.unordered {
            let results = self.try_map(items, work)?;
            return Ok(results.and_then(|results| results.into_iter().reduce(combine)));
        }
        let cut = Cut { items, size: self.chunk };
        let combine = Arc::new(combine);
        let shared = Arc::clone(&combine);
        let values = self.run(cut, move |kept: &mut Option<R>, chunk| {
            let result = work(chunk)?;
            *kept = Some(match kept.take() {
                Some(before) => shared(before, result),
                None => result,
            });
            Ok::<_, E>(None)
        })?;
        Ok(values.into_iter().map(|(_, value)| value).reduce(|one, other| combine(one, other)))
    }

    /// Runs `step` on every chunk; what it returns, and what it kept at the end, is gathered in
    /// process 0.
    fn run<R, E, S>(&self, cut: Cut, step: S) -> Result<Vec<(u64, R)>, ClusterError>
    where
        R: ExchangeData + Clone,
        E: fmt::Display,
        S: Fn(&mut Option<R>, Chunk<Range<u64>>) -> Result<Option<R>, E> + Send + Sync + 'static,
    {
        let sockets = sockets::connect(&self.addresses, self.process, self.patience)?;
        let lost = |said: &str| ClusterError::Lost(said.to_owned());
        let refill = Hooks::default().refill;
        let builders = ProcessBuilder::new_typed_vector(self.workers, refill, None);
        let hooks = Hooks::default();
        let (process, workers) = (self.process, self.workers);
        let networking =
            initialize_networking_from_sockets(builders, sockets, process, workers, hooks);
        let (builders, guard) = networking.map_err(|error| lost(&error.to_string()))?;
        let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
        let place = cut.clone();
        let (sender, receiver) = mpsc::channel();
        let member = move |worker: &mut Worker| {
            let ended = member(worker, &cut, &step);
            let is_lost = matches!(ended, Err(Why::Lost));
            // The caller waits for it, unless another worker told it already that all is lost.
            let _ = sender.send(ended);
            if is_lost {
                // Timely would go on, panic, and on the way of that panic again, which is an abort.
                loop {
                    thread::park();
                }
            }
        };
        let config = WorkerConfig::default();
        let started = timely::execute::execute_from(builders, Box::new(()), config, member);
        let members = started.map_err(|said| lost(&said))?;
        let mut gathered = Vec::new();
        let mut failed = None;
        for _ in 0..workers {
            match receiver.recv() {
                Ok(Ok(mut results)) => gathered.append(&mut results),
                Ok(Err(Why::Failed(index, said))) => failed = Some((index, said)),
                Ok(Err(Why::Lost)) | Err(_) => {
                    // Their ends would wait for threads that wait for ever, or panic.
                    std::mem::forget(members);
                    std::mem::forget(guard);
                    return Err(lost("its connection broke before the job was done"));
                }
            }
        }
        let closed = catch_unwind(AssertUnwindSafe(|| {
            drop(members);
            drop(guard);
        }));
        closed.map_err(|_| lost("its connection broke when the job was done"))?;
        match failed {
            Some((index, said)) => Err(ClusterError::Chunk { place: place.place(index), said }),
            None => Ok(gathered),
        }
    }
}

/// Numbers cut into chunks.
#[derive(Clone)]
struct Cut {
    items: Range<u64>,
    size: u64,
}

impl Cut {
    fn chunks(&self) -> u64 {
        self.items.end.saturating_sub(self.items.start).div_ceil(self.size)
    }

    fn place(&self, index: u64) -> Place {
        let start = index * self.size;
        let count = self.items.end - self.items.start;
        Place { index, items: start..start.saturating_add(self.size).min(count) }
    }

    fn chunk(&self, index: u64) -> Chunk<Range<u64>> {
        let place = self.place(index);
        let begin = self.items.start;
        let numbers = begin + place.items.start..begin + place.items.end;
        Chunk::new(place, numbers)
    }
}

/// What a worker ends with: results, in process 0, or why there are none.
type Ended<R> = Result<Vec<(u64, R)>, Why>;

/// Why a worker has no results.
enum Why {
    /// The first chunk that failed anywhere, and what it said.
    Failed(u64, String),
    /// A process is gone.
    Lost,
}

/// Does something with timely, which panics when a process is gone.
fn alive<T>(body: impl FnOnce() -> T) -> Result<T, Why> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|_| Why::Lost)
}

/// What one worker does: its share of the chunks, looking at what comes in between them.
fn member<R, E, S>(worker: &mut Worker, cut: &Cut, step: &S) -> Ended<R>
where
    R: ExchangeData + Clone,
    E: fmt::Display,
    S: Fn(&mut Option<R>, Chunk<Range<u64>>) -> Result<Option<R>, E>,
{
    let gathered: Rc<RefCell<Vec<(u64, R)>>> = Rc::default();
    let failed: Rc<RefCell<Option<(u64, String)>>> = Rc::default();
    let (into, first) = (Rc::clone(&gathered), Rc::clone(&failed));
    // Not dropped where a process is lost: they would send what they hold, panic, and that on the way
    // of a panic.
    let mut results = ManuallyDrop::new(InputHandle::<u64, _>::new());
    let mut failures = ManuallyDrop::new(InputHandle::<u64, _>::new());
    let (all_results, all_failures) = worker.dataflow(|scope| {
        let results = scope.input_from(&mut *results).container::<Vec<(u64, R)>>();
        let gather = move |result: &(u64, R)| into.borrow_mut().push(result.clone());
        let results = results.exchange(|_| 0).inspect(gather).probe();
        let failures = scope.input_from(&mut *failures).container::<Vec<Failed>>();
        let note = move |(_, index, said): &Failed| {
            let mut first = first.borrow_mut();
            if first.as_ref().is_none_or(|(before, _)| index < before) {
                *first = Some((*index, said.clone()));
            }
        };
        let failures = failures.exchange(|failed: &Failed| failed.0).inspect(note).probe();
        (results.0, failures.0)
    });
    let (index, peers) = (worker.index() as u64, worker.peers() as u64);
    let mut kept = None;
    for chunk in (index..cut.chunks()).step_by(worker.peers()) {
        let made = catch_unwind(AssertUnwindSafe(|| step(&mut kept, cut.chunk(chunk))));
        let said = match made {
            Ok(Ok(None)) => None,
            Ok(Ok(Some(result))) => {
                alive(|| results.send((chunk, result)))?;
                None
            }
            Ok(Err(error)) => Some(error.to_string()),
            Err(payload) => Some(panicked(payload)),
        };
        if let Some(said) = said {
            alive(|| (0..peers).for_each(|peer| failures.send((peer, chunk, said.clone()))))?;
            break;
        }
        alive(|| worker.step())?;
        if failed.borrow().is_some() {
            break;
        }
    }
    if let Some(kept) = kept {
        alive(|| results.send((index, kept)))?;
    }
    alive(|| results.advance_to(1))?;
    alive(|| failures.advance_to(1))?;
    while all_results.less_than(&1) || all_failures.less_than(&1) {
        // Not for ever: a lost connection wakes nobody, but is noticed by the next step.
        alive(|| worker.step_or_park(Some(LOOK)))?;
    }
    // Everybody has everything: nothing is left to be sent.
    ManuallyDrop::into_inner(results).close();
    ManuallyDrop::into_inner(failures).close();
    let failed = failed.borrow_mut().take();
    match failed {
        Some((index, said)) => Err(Why::Failed(index, said)),
        None => Ok(gathered.take()),
    }
}

fn panicked(payload: Box<dyn Any + Send>) -> String {
    let cause = Cause::<String>::Panic(payload);
    format!("panicked: {}", cause.panic_message().unwrap_or("without words"))
}
