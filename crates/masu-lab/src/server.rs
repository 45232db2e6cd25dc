//! Servers: every variant's server kept warm beside the others, and load on one of them at a time.
//!
//! A run is a *burst* of load, so the lab measures a warm server and not its start. Each server has a data folder and
//! a port of its own; the bursts take turns in the engine's random order. `place` and `running` start and end a
//! server, `family` knows its processes, `ready` checks whether it answers, `proof` shows in a traced start that the
//! preload took effect, `steady` says when it is warm, `consumption` and `guard` measure it, `burst` makes a run
//! of these.
//!
//! Nothing remains afterwards: servers are asked to end, killed if they do not, and their folders removed.

use std::cell::RefCell;
use std::mem;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hyper::body::Bytes;

use crate::Measure;
use crate::load::{self, Client, Failures, LoadPlan, Pace, Target};
use masu_run::execute::{self, Alone, Ending, Offsets};
use masu_run::executor::{Executor, Remarks};
use masu_run::hooks::Hook;
use masu_run::parameter::{Values, mentions};
use masu_run::{Error, Evidence, Hooks, Limits, Program, Row, Run, Stop};

mod burst;
mod consumption;
mod counting;
mod guard;
mod latency_rate;
mod outputs;
mod place;
mod process_groups;
mod proof;
mod ready;
mod remarks;
mod request;
mod running;
mod steady;
mod urls;

use guard::Guard;
pub use latency_rate::LatencyRate;
use place::Place;
use ready::NotReady;
pub use ready::Ready;
pub use request::ServerRequest;
use running::Running;
use steady::Point;

pub(crate) const DEFAULT_BURST: Duration = Duration::from_secs(2);

pub(crate) const DEFAULT_READY_WITHIN: Duration = Duration::from_secs(60);

/// The time in which a server without load is watched, to measure its CPU use without requests.
const IDLE_WATCH: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq)]
pub struct ServerPlan {
    pub ready: Ready,
    /// The most time until a server is ready.
    pub ready_within: Duration,
    pub load: Load,
    /// The length of each burst; a load command sets its own.
    pub burst: Duration,
    /// Whether only one server runs at a time, for servers that cannot run side by side. Each run is
    /// then a start, a warm-up and a burst.
    pub one_at_a_time: bool,
    /// The counting build of `libmasu.so` for the program's C library, to count allocations a
    /// request; see `masu_run::count`.
    pub counting: Option<PathBuf>,
}

/// The work of a server in a burst. Placeholders are allowed.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    Http {
        /// The URLs that are requested in turn.
        urls: Vec<String>,
        /// The body that is posted to the URLs; none for `GET` requests.
        body: Option<Bytes>,
        connections: usize,
        pace: Pace,
        /// A second half of each burst at this rate, for the latencies; throughput is that of the
        /// first half. For [`Pace::Closed`].
        latency_rate: Option<LatencyRate>,
        timeout: Duration,
    },
    /// The work of this shell command, the same each time.
    Command(String),
}

impl ServerPlan {
    /// The measure that is fit to carry the verdict: throughput where it can vary, CPU per
    /// request where the rate is given, the time of a load command.
    pub fn primary(&self) -> Measure {
        match &self.load {
            Load::Http { pace: Pace::Closed, .. } => Measure::Throughput,
            Load::Http { pace: Pace::Open { .. }, .. } => Measure::CpuPerRequest,
            Load::Command(_) => Measure::Wall,
        }
    }

    /// Finds the mistakes that are visible before anything is started.
    pub fn check(&self) -> Result<(), Error> {
        match &self.load {
            Load::Command(_) => Ok(()),
            Load::Http { urls, connections, pace, .. } => {
                urls.iter().try_for_each(|url| Target::check(url))?;
                load::check_pace(&urls.join(" "), *connections, *pace)
            }
        }
    }

    /// Load before the clock starts, so that the CPU's caches and clock rate adapt to this server again.
    fn lead_in(&self) -> Duration {
        (self.burst / 10).min(Duration::from_millis(500))
    }

    /// The seconds of a run, at least: a burst, and where one server runs at a time the shortest warm-up before it. A
    /// burst of the warm-up, half as long except for a command, took `burst_s`.
    pub(crate) fn run_s(&self, burst_s: f64) -> f64 {
        let takes_s = |burst: Duration| match self.load {
            Load::Http { .. } => (self.lead_in() + burst).as_secs_f64(),
            Load::Command(_) => burst_s,
        };
        let before = if self.one_at_a_time { steady::BURSTS_MIN } else { 0 };
        before as f64 * takes_s(self.burst / 2) + takes_s(self.burst)
    }
}

#[derive(Debug)]
pub(crate) struct Servers<'a> {
    rows: &'a [Row],
    plan: &'a ServerPlan,
    limits: &'a Limits,
    shell: Program,
    /// The running servers, by the variant's index.
    warm: Vec<Option<Warm>>,
    books: Vec<Book>,
    /// The ending of the server that did not get ready last.
    unready: RefCell<Option<Ending>>,
    /// Answers a second of the reference at the end of its warm-up.
    reference_throughput: Option<f64>,
    /// Allocations a request of each combination of parameters that was counted.
    counted: Vec<(Values, Option<f64>)>,
    offsets: Offsets,
    /// In the preparation `{dir}` and `{port}` are those of that start.
    hooks: Hooks,
    /// Whether the setup was begun, so that there is something to clean up.
    is_set_up: bool,
    guard: Guard,
    turn: Alone,
}

#[derive(Debug)]
struct Warm {
    running: Running,
    /// None where a command makes the load.
    client: Option<Client>,
}

#[derive(Debug, Default)]
struct Book {
    /// The server's early ending, and its last words.
    fate: Option<(Ending, String)>,
    trend: Option<String>,
    /// The share of a CPU that the server used without load.
    idle_cpu: Option<f64>,
    requests: u64,
    failures: Failures,
    load_notes: Vec<String>,
    goodbye: Option<Ending>,
}

impl<'a> Servers<'a> {
    /// Servers of which none is started yet. Every start takes the next of `offsets`.
    pub(crate) fn new(
        rows: &'a [Row],
        plan: &'a ServerPlan,
        limits: &'a Limits,
        hooks: &Hooks,
        offsets: Offsets,
    ) -> Result<Servers<'a>, Error> {
        plan.check()?;
        let turn = execute::alone();
        Ok(Servers {
            rows,
            plan,
            limits,
            shell: Program::find("sh".as_ref())?,
            warm: rows.iter().map(|_| None).collect(),
            books: rows.iter().map(|_| Book::default()).collect(),
            unready: RefCell::default(),
            reference_throughput: None,
            counted: Vec::new(),
            offsets,
            hooks: hooks.clone(),
            is_set_up: false,
            guard: Guard::new(limits.memory_bytes.or_else(execute::default_memory_limit)),
            turn,
        })
    }

    /// Checks that the servers can run side by side: each at a port of its own.
    fn check_ports(&self) -> Result<(), Error> {
        let names_port = |row: &Row| {
            let words = row.workload.arguments.iter().chain(&self.hooks.prepare);
            words.into_iter().any(|word| mentions(word, "port"))
        };
        let alone = self.plan.one_at_a_time || self.rows.len() < 2;
        match self.rows.iter().find(|row| !names_port(row)) {
            Some(row) if !alone => Err(Error::Server {
                variant: row.variant.label.clone(),
                reason: "has no port of its own: write {port} into its command (or into what \
                         --prepare writes), or let it run with --one-at-a-time"
                    .to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// The folder of setup and cleanup, which belong to the table: the folder of its first row.
    fn folder(&self) -> Option<&Path> {
        self.rows.first()?.workload.folder.as_deref()
    }

    fn place(&mut self, row: &Row, stop: &Stop) -> Result<Place, Error> {
        if !self.is_set_up {
            self.is_set_up = true;
            if let Some(command) = &self.hooks.setup {
                Hook::Setup.run(command, self.folder(), stop)?;
            }
        }
        let place = Place::new(&row.variant.label)?;
        if let Some(command) = &self.hooks.prepare {
            let folder = row.workload.folder.as_deref();
            Hook::Prepare.run(&place.words(command, row), folder, stop)?;
        }
        Ok(place)
    }

    /// Fails where another server answers: it would receive the load and be measured instead.
    fn check_nobody_answers(&self, row: &Row, place: &Place) -> Result<(), Error> {
        let urls = match &self.plan.load {
            Load::Http { urls, .. } => urls.as_slice(),
            Load::Command(_) => &[],
        };
        let ready = ready::address(&self.plan.ready, place, row)?;
        let mut addresses: Vec<SocketAddr> = ready;
        for url in urls {
            addresses.extend(Target::new(&place.text(url, row))?.addresses());
        }
        // Thousands of URLs belong to one server.
        addresses.dedup();
        match addresses.into_iter().find(ready::is_taken) {
            None => Ok(()),
            Some(address) => Err(Error::Server {
                variant: row.variant.label.clone(),
                reason: format!(
                    "was not started: something else answers at {address} already and would get \
                     the load; write {{port}} for the port, here and in the server's command, or \
                     stop what runs there"
                ),
            }),
        }
    }

    /// Starts the server of `row` and waits until it is ready; `number` is its number in the guard.
    fn start(&mut self, row: &Row, number: usize, stop: &Stop) -> Result<Warm, Error> {
        let place = self.place(row, stop)?;
        self.check_nobody_answers(row, &place)?;
        let running = Running::start(row, place, self.offsets.draw())?;
        self.guard.watch(number, &running.family);
        let ready = self.wait_until_ready(row, number, running, stop);
        let warm = ready.and_then(|running| {
            let client = self.client(row, &running.place)?;
            Ok(Warm { running, client })
        });
        if warm.is_err() {
            self.guard.forget(number);
        }
        warm
    }

    fn wait_until_ready(
        &self,
        row: &Row,
        number: usize,
        mut running: Running,
        stop: &Stop,
    ) -> Result<Running, Error> {
        let others: Vec<_> = self.warm.iter().flatten().map(|warm| &*warm.running.family).collect();
        let mut ended = None;
        let mut sooner = || {
            running.family.claim(&others);
            ended = self.guard.killed(number).or_else(|| running.ended());
            ended.is_some() || stop.requested()
        };
        let ready = ready::wait(self.plan, &running.place, row, &mut sooner);
        // Another program may answer at the server's port.
        sooner();
        if stop.requested() {
            return Err(Error::Stopped);
        }
        let wrong = |reason| Error::Server { variant: row.variant.label.clone(), reason };
        let (ending, why) = match (ended, ready) {
            (Some(ending), _) => (ending, "ended before it was ready".to_owned()),
            (None, Ok(_)) => return Ok(running),
            (None, Err(NotReady { reason, is_impossible: true })) => {
                return Err(wrong(format!("was not ready {reason}")));
            }
            (None, Err(NotReady { reason, .. })) => {
                (Ending::TimedOut, format!("was not ready {reason}"))
            }
        };
        let words = running.last_words(&ending);
        self.unready.replace(Some(ending));
        Err(wrong(format!("{why}: it {words}")))
    }

    fn client(&self, row: &Row, place: &Place) -> Result<Option<Client>, Error> {
        let Load::Http { urls, body, connections, pace, timeout, .. } = &self.plan.load else {
            return Ok(None);
        };
        let target = |url: &String| Ok(Target::new(&place.text(url, row))?.with_body(body.clone()));
        let targets = urls.iter().map(target).collect::<Result<Vec<Target>, Error>>()?;
        let plan = LoadPlan { targets, connections: *connections, pace: *pace, timeout: *timeout };
        Ok(Some(Client::new(plan)?))
    }

    /// Warms a server up until it is steady and, as long as that changes, until it does nothing without load; returns the
    /// last burst's run.
    fn warm_until_at_rest(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        let mut points = Vec::new();
        let mut idle = f64::INFINITY;
        loop {
            let run = self.warm(index, &mut points, stop)?;
            if run.ending != Ending::Exited(0) {
                return Ok(run);
            }
            let before = mem::replace(&mut idle, self.rest(index, stop));
            if !steady::still_settles(before, idle) || points.len() >= steady::BURSTS_MAX {
                if index == 0 {
                    self.reference_throughput = points.last().map(|point| point.throughput);
                }
                return Ok(run);
            }
        }
    }

    /// Sends bursts until the server is steady, at least two; returns the last one's run.
    fn warm(&mut self, index: usize, points: &mut Vec<Point>, stop: &Stop) -> Result<Run, Error> {
        let enough = steady::BURSTS_MIN.max(points.len() + 2);
        loop {
            let burst = self.burst(index, self.plan.burst / 2, None, stop)?;
            if burst.run.ending != Ending::Exited(0) {
                return Ok(burst.run);
            }
            burst.check(&self.plan.load)?;
            points.push(burst.point());
            let trend = steady::trend(points);
            if points.len() >= steady::BURSTS_MAX || points.len() >= enough && trend.is_none() {
                self.books[index].trend = trend;
                return Ok(burst.run);
            }
        }
    }

    /// Measures the share of a CPU that the server uses without load.
    fn rest(&mut self, index: usize, stop: &Stop) -> f64 {
        let Some(warm) = &self.warm[index] else { return 0.0 };
        let began = Instant::now();
        let before = consumption::cpu_s(&warm.running.family);
        while began.elapsed() < IDLE_WATCH.min(self.plan.burst) && !stop.requested() {
            std::thread::sleep(Duration::from_millis(20));
        }
        let used = consumption::cpu_s(&warm.running.family) - before;
        *self.books[index].idle_cpu.insert(used.max(0.0) / began.elapsed().as_secs_f64())
    }

    fn end(&mut self, index: usize) {
        let Some(Warm { running, client }) = self.warm[index].take() else { return };
        drop(client);
        self.guard.forget(index);
        let mut goodbyes = Running::end(vec![running]);
        self.books[index].goodbye = goodbyes.pop().flatten();
    }

    /// Notes that the server at `index` ended early; returns its run.
    fn lost(&mut self, index: usize, ending: Ending) -> Run {
        let mut words = String::new();
        if let Some(mut warm) = self.warm[index].take() {
            self.guard.forget(index);
            words = warm.running.last_words(&ending);
        }
        self.books[index].fate = Some((ending.clone(), words));
        Run { ending, ..Run::default() }
    }

    fn timed(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        let burst = self.burst(index, self.plan.burst, self.latency_rate(), stop)?;
        if burst.run.ending == Ending::Exited(0) {
            burst.check_command(&self.plan.load)?;
            self.books[index].add(&burst);
        }
        Ok(burst.run)
    }

    /// Requests a second for the latencies, where they are measured separately and the rate is known.
    fn latency_rate(&self) -> Option<f64> {
        match &self.plan.load {
            Load::Http { latency_rate, .. } => {
                latency_rate.as_ref()?.per_second(self.reference_throughput)
            }
            Load::Command(_) => None,
        }
    }

    /// Makes a run with one server at a time: a start, a warm-up and a burst.
    fn alone(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        match (self.start(&self.rows[index], index, stop), self.unready.take()) {
            (Err(Error::Server { reason, .. }), Some(ending)) => {
                self.books[index].fate = Some((ending.clone(), reason));
                return Ok(Run { ending, ..Run::default() });
            }
            (started, _) => self.warm[index] = Some(started?),
        }
        let mut run = self.warm(index, &mut Vec::new(), stop)?;
        if run.ending == Ending::Exited(0) {
            run = self.timed(index, stop)?;
        }
        self.end(index);
        Ok(run)
    }
}

impl Executor for Servers<'_> {
    fn warm_up(&mut self, index: usize, stop: &Stop) -> Result<(Run, Evidence), Error> {
        self.check_ports()?;
        let row = &self.rows[index];
        let mut evidence = self.prove(row, stop)?;
        self.count(index, stop)?;
        let warm = self.start(row, index, stop)?;
        let warm = self.warm[index].insert(warm);
        match proof::is_mapped(row, &warm.running) {
            Ok(note) => evidence.notes.extend(note),
            Err(error) => {
                self.end(index);
                return Err(error);
            }
        }
        let run = self.warm_until_at_rest(index, stop)?;
        if let Some((ending, words)) = &self.books[index].fate {
            let variant = row.variant.label.clone();
            debug_assert_ne!(*ending, Ending::Stopped);
            return Err(Error::Server { variant, reason: format!("did not stay up: it {words}") });
        }
        if self.plan.one_at_a_time {
            self.end(index);
        }
        Ok((run, evidence))
    }

    fn run(&mut self, index: usize, stop: &Stop) -> Result<Run, Error> {
        if let Some((ending, _)) = &self.books[index].fate {
            return Ok(Run { ending: ending.clone(), ..Run::default() });
        }
        let made =
            if self.plan.one_at_a_time { self.alone(index, stop) } else { self.timed(index, stop) };
        let run = match made {
            Err(Error::Stopped) => Run { ending: Ending::Stopped, ..Run::default() },
            made => made?,
        };
        match &self.books[index].fate {
            // Without the reference there is no comparison.
            Some((_, words)) if index == 0 => {
                let variant = self.rows[0].variant.label.clone();
                let reason = format!("is the reference and did not stay up: it {words}");
                Err(Error::Server { variant, reason })
            }
            _ => Ok(run),
        }
    }

    fn is_kept_warm(&self) -> bool {
        !self.plan.one_at_a_time
    }

    fn finish(&mut self) -> Result<(), Error> {
        let running: Vec<(usize, Running)> = (0..self.warm.len())
            .filter_map(|index| {
                self.guard.forget(index);
                Some((index, self.warm[index].take()?.running))
            })
            .collect();
        let (indices, running): (Vec<usize>, Vec<Running>) = running.into_iter().unzip();
        for (index, goodbye) in indices.into_iter().zip(Running::end(running)) {
            self.books[index].goodbye = goodbye;
        }
        if std::mem::take(&mut self.is_set_up)
            && let Some(command) = &self.hooks.cleanup
        {
            Hook::Cleanup.run(command, self.folder(), &Stop::never())?;
        }
        Ok(())
    }

    fn remarks(&self) -> Remarks {
        let mut remarks = remarks::of(self.rows, &self.books, self.plan, self.latency_rate());
        let counted = (0..self.rows.len()).map(|index| self.counted_of(index));
        remarks.notes.extend(remarks::allocations(self.rows, counted));
        remarks
    }
}
