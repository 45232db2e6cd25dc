//! Load over HTTP: requests on kept connections, back to back or on a schedule.
//!
//! hyper speaks the protocol on tokio's sockets. A client that waits for each answer sends few requests while the
//! server does nothing, and so hardly notices (*coordinated omission*). In open loop, requests are therefore *due* on
//! a schedule that no answer can move, and latency counts from when a request was due. A closed loop cannot avoid
//! this omission: use its throughput.
//!
//! Memory is bounded: answers are dropped, latencies go into one histogram.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use masu_run::error::Doing;
use masu_run::{Error, Stop, kernel};

mod connection;
mod schedule;
mod tally;
mod target;
mod worker;

use connection::{Connection, Failure};
pub use schedule::Pace;
use schedule::Schedule;
use tally::Tally;
pub use tally::{Failures, Met};
pub use target::Target;

pub(crate) const DEFAULT_CONNECTIONS: usize = 8;

/// The longest a request may take when the caller does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// More connections would need more ports than one address has.
const CONNECTIONS_MAX: usize = 50_000;

/// Requests a second, more than a client can send.
pub(crate) const RATE_MAX: f64 = 1e6;

#[derive(Debug, Clone, PartialEq)]
pub struct LoadPlan {
    /// The requests of each connection, sent in turn; all of one server.
    pub targets: Vec<Target>,
    /// Connections, each with one request at a time.
    pub connections: usize,
    pub pace: Pace,
    /// The longest a request may take before it counts as failed.
    pub timeout: Duration,
}

/// Connections to one server that stay open between bursts.
#[derive(Debug)]
pub struct Client {
    plan: LoadPlan,
    runtime: Runtime,
    threads: usize,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Burst {
    plan: LoadPlan,
    began: Instant,
    /// The time in which requests are sent (closed loop) or due (open loop).
    window: Duration,
    tally: Mutex<Tally>,
    /// Open loop: the schedule of the next request that no worker has taken yet.
    due: Mutex<Schedule>,
    /// Open loop: one permit for each request that is due and not taken.
    released: Semaphore,
    /// Tells the dispatcher to end early.
    over: AtomicBool,
}

impl Client {
    /// A client without connections; the first burst opens them. An error for a plan without targets, with targets of
    /// several servers, without connections or with a rate that is not positive.
    pub fn new(plan: LoadPlan) -> Result<Client, Error> {
        plan.check()?;
        // Half of the CPUs, so that the server has as many: a client that takes them all measures itself.
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = (cpus / 2).clamp(1, 8).min(plan.connections);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("load")
            .enable_io()
            .enable_time()
            .build()
            .doing(|| "starting the threads of the load")?;
        let connections = (0..plan.connections).map(|_| Connection::default()).collect();
        Ok(Client { plan, runtime, threads, connections })
    }

    /// Sends requests for `window`, then waits for the answers still to come. Ends early when `stop` is
    /// requested, and returns the tally until then.
    pub fn run(&mut self, window: Duration, stop: &Stop) -> Met {
        self.run_at(self.plan.pace, window, stop)
    }

    /// [`run`](Self::run) at `pace` instead of the plan's.
    pub(crate) fn run_at(&mut self, pace: Pace, window: Duration, stop: &Stop) -> Met {
        self.open_connections();
        let cpu_before_s = kernel::own_cpu_s();
        let burst = Arc::new(Burst {
            plan: LoadPlan { pace, ..self.plan.clone() },
            began: Instant::now(),
            window,
            tally: Mutex::new(Tally::new(self.plan.timeout)),
            due: Mutex::new(Schedule::new(pace)),
            released: Semaphore::new(0),
            over: AtomicBool::new(false),
        });
        let dispatcher = match pace {
            Pace::Closed => None,
            Pace::Open { .. } => Some(std::thread::spawn({
                let burst = Arc::clone(&burst);
                move || burst.dispatch()
            })),
        };
        let connections = std::mem::take(&mut self.connections);
        let workers = connections.into_iter().enumerate().map(|(index, connection)| {
            self.runtime.spawn(worker::work(Arc::clone(&burst), connection, index))
        });
        let workers: Vec<JoinHandle<Connection>> = workers.collect();
        self.connections = self.runtime.block_on(gather(workers, stop));
        // ORDERING: Relaxed: the flag guards no other data; it only ends a wait.
        burst.over.store(true, Ordering::Relaxed);
        if let Some(dispatcher) = dispatcher {
            let _ = dispatcher.join();
        }
        let client_cpu_s = kernel::own_cpu_s() - cpu_before_s;
        let elapsed = burst.began.elapsed();
        let tally = burst.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.met(pace, window, elapsed, client_cpu_s, self.threads)
    }

    /// Opens the connections that are closed, so that no burst starts with it. A connection that cannot be opened fails
    /// again in the burst and counts there.
    fn open_connections(&mut self) {
        let address = self.plan.targets[0].addresses();
        let timeout = self.plan.timeout;
        self.runtime.block_on(async {
            for connection in &mut self.connections {
                if tokio::time::timeout(timeout, connection.open(address)).await != Ok(Ok(())) {
                    break;
                }
            }
        });
    }
}

pub(crate) fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// Sends one request on a connection of its own; the error says why there was no good answer.
pub(crate) fn ask_once(url: &str, body: Option<Bytes>, within: Duration) -> Result<(), Unanswered> {
    let without = |reason: String| Unanswered { reason, status: None };
    let target = Target::new(url).map_err(|error| without(error.to_string()))?.with_body(body);
    let runtime = Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| without(error.to_string()))?;
    let asked = runtime.block_on(async {
        let mut connection = Connection::default();
        tokio::time::timeout(within, connection.ask(&target)).await
    });
    let failure = match asked.unwrap_or(Err(Failure::TimedOut)) {
        Ok(_) => return Ok(()),
        Err(failure) => failure,
    };
    Err(match failure {
        Failure::Refused => without("no connection is taken".to_owned()),
        Failure::Broken => without("the connection broke, or the answer was no HTTP".to_owned()),
        Failure::TimedOut => without(format!("no answer within {} s", within.as_secs())),
        Failure::Status(status) => {
            Unanswered { reason: format!("answered with status {status}"), status: Some(status) }
        }
    })
}

/// The reason why a URL has no good answer, and the status of a bad one.
pub(crate) struct Unanswered {
    pub(crate) reason: String,
    pub(crate) status: Option<u16>,
}

impl LoadPlan {
    fn check(&self) -> Result<(), Error> {
        let wrong = |load: &str, reason: &str| {
            Err(Error::Load { load: load.to_owned(), reason: reason.to_owned() })
        };
        let Some(first) = self.targets.first() else { return wrong("", "no URL given") };
        if self.targets.iter().any(|target| target.authority() != first.authority()) {
            let reason = "all URLs must be of the same server: the same host and port";
            return wrong(first.text(), reason);
        }
        check_pace(first.text(), self.connections, self.pace)
    }
}

pub(crate) fn check_pace(load: &str, connections: usize, pace: Pace) -> Result<(), Error> {
    let wrong =
        |reason: &str| Err(Error::Load { load: load.to_owned(), reason: reason.to_owned() });
    if !(1..=CONNECTIONS_MAX).contains(&connections) {
        return wrong(&format!("{connections} connections; ask for 1 to {CONNECTIONS_MAX}"));
    }
    match pace {
        Pace::Open { rate, .. } if !(rate > 0.0 && rate <= RATE_MAX) => {
            wrong("the rate must be a positive number of requests a second, a million at most")
        }
        _ => Ok(()),
    }
}

impl Burst {
    /// Releases each request when it is due. A thread of its own that sleeps in the kernel is
    /// late by a twentieth of a millisecond, tokio's timer by up to a whole one.
    fn dispatch(&self) {
        let mut schedule = Schedule::new(self.plan.pace);
        loop {
            let due = schedule.advance();
            if due >= self.window {
                break;
            }
            loop {
                // ORDERING: Relaxed: see `Client::run`.
                if self.over.load(Ordering::Relaxed) {
                    return;
                }
                let now = self.began.elapsed();
                if now >= due {
                    break;
                }
                std::thread::sleep((due - now).min(LOOK_EVERY));
            }
            self.released.add_permits(1);
        }
        // Each worker takes one of these, finds that nothing is due any more, and ends.
        self.released.add_permits(self.plan.connections);
    }

    /// The time at which the next request is due, if within the window; the caller must then send the request.
    fn take_due(&self) -> Option<Duration> {
        let due = self.due.lock().unwrap_or_else(PoisonError::into_inner).advance();
        (due < self.window).then_some(due)
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the workers and returns their connections; a stop closes the connections in use.
async fn gather(workers: Vec<JoinHandle<Connection>>, stop: &Stop) -> Vec<Connection> {
    while !stop.requested() && !workers.iter().all(JoinHandle::is_finished) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let mut connections = Vec::with_capacity(workers.len());
    for worker in workers {
        worker.abort();
        connections.push(worker.await.unwrap_or_default());
    }
    connections
}

#[cfg(test)]
mod tests;
