//! The threads of the crate: started on demand, kept for the next job.
//!
//! Relies on [`seats`] to assign them. A job never *needs* a helper: the calling thread works to the end, and helpers
//! only join if they are free. So nested jobs cannot wait for each other, and a child after `fork`, which has none of
//! the threads, still finishes its jobs.

use std::cell::Cell;
use std::sync::OnceLock;
use std::thread;

mod seats;

use seats::{Seats, Taken};

/// The most helpers that are ever started.
const HELPERS_MAX: usize = 512;

/// The most workers that a job can have.
pub(crate) const WORKERS_MAX: usize = HELPERS_MAX + 1;

static POOL: OnceLock<(u32, Seats<Body>)> = OnceLock::new();

thread_local! {
    /// Whether this thread is in a job that called helpers: a nested job starts no threads then, it uses idle ones.
    static WITHIN: Cell<bool> = const { Cell::new(false) };

    /// The job in which this thread, a helper, has a seat.
    static SEAT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// The function that a worker runs, with its number.
#[derive(Clone, Copy)]
struct Body(&'static (dyn Fn(usize) + Sync));

/// Runs `body` on this thread, as worker 0, and on up to `workers` − 1 helpers; returns when all of
/// them have ended.
pub(crate) fn run(workers: usize, body: &(dyn Fn(usize) + Sync)) {
    beside(workers, body, |help| {
        help.call();
        body(0);
    });
}

/// Runs `own` on this thread, and from its call for help on `body` on up to `workers` − 1 helpers; returns when all of
/// them have ended.
pub(crate) fn beside<R>(
    workers: usize,
    body: &(dyn Fn(usize) + Sync),
    own: impl FnOnce(&Help<'_>) -> R,
) -> R {
    own(&Help { body, wanted: workers.saturating_sub(1), offered: Cell::new(None) })
}

/// The helpers that a job can call. Dropped, also when the job unwinds, it waits until all of them have left.
pub(crate) struct Help<'b> {
    body: &'b (dyn Fn(usize) + Sync),
    wanted: usize,
    offered: Cell<Option<Offered>>,
}

impl Help<'_> {
    /// Whether any helpers are wanted.
    pub(crate) fn is_there(&self) -> bool {
        self.wanted > 0
    }

    /// Calls the helpers, the first time. Returns the number of those on their way, which other jobs may need first.
    pub(crate) fn call(&self) -> usize {
        let offered = self.offered.take();
        let (offered, coming) = match offered {
            Some(offered) => (Some(offered), 0),
            None if self.wanted == 0 || is_forked_off() => (None, 0),
            None => self.offer(),
        };
        self.offered.set(offered);
        coming
    }

    #[cold]
    fn offer(&self) -> (Option<Offered>, usize) {
        let (_, seats) = POOL.get_or_init(|| (std::process::id(), Seats::new()));
        // SAFETY: Only the lifetime changes. Helpers call the body between taking a seat and leaving it. `Offered`,
        // dropped with this value, lets no helper take a seat any more and waits until every seat was left; nobody can
        // forget the value, which `beside` owns.
        let lasting =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static _>(self.body) };
        let (job, idle) = seats.offer(Body(lasting), self.wanted);
        let offered = Offered { seats, job, within: WITHIN.replace(true) };
        let started = if offered.within {
            0
        } else {
            (idle..self.wanted).take_while(|_| start(seats)).count()
        };
        (Some(offered), idle.min(self.wanted) + started)
    }
}

/// Whether this is the child of a `fork`: the helpers are gone, and one of them may have held any lock.
pub(crate) fn is_forked_off() -> bool {
    POOL.get().is_some_and(|(process, _)| *process != std::process::id())
}

/// Whether this thread is a helper that could work on a newer job, as those within its own are.
pub(crate) fn is_wanted_within() -> bool {
    let job = SEAT.get();
    job.zip(POOL.get()).is_some_and(|(job, (_, seats))| seats.has_newer(job))
}

struct Offered {
    seats: &'static Seats<Body>,
    job: u64,
    /// Whether the thread was in a job before.
    within: bool,
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.seats.withdraw(self.job);
        WITHIN.set(self.within);
    }
}

/// Starts one more helper; `false` if there are enough or the system refuses, and the job has fewer
/// workers.
fn start(seats: &'static Seats<Body>) -> bool {
    let Some(number) = seats.hire(HELPERS_MAX) else { return false };
    let started = thread::Builder::new().name(format!("masu-chunk-{number}")).spawn(move || {
        WITHIN.set(true);
        loop {
            let Taken { job, worker, body } = seats.sit_down();
            let _seat = Seat { seats, job };
            SEAT.set(Some(job));
            (body.0)(worker);
        }
    });
    if started.is_err() {
        seats.dismiss();
    }
    started.is_ok()
}

struct Seat {
    seats: &'static Seats<Body>,
    job: u64,
}

impl Drop for Seat {
    fn drop(&mut self) {
        // A user's value whose drop panics ends the thread.
        if thread::panicking() {
            self.seats.dismiss();
        }
        self.seats.get_up(self.job);
    }
}
