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
const THREADS_MAX: usize = 512;

static POOL: OnceLock<(u32, Seats<Body>)> = OnceLock::new();

thread_local! {
    /// Whether this thread is in a job: a nested job starts no threads, it uses idle ones.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// The function that a worker runs, with its number.
#[derive(Clone, Copy)]
struct Body(&'static (dyn Fn(usize) + Sync));

/// Runs `body` on this thread, as worker 0, and on up to `workers` − 1 helpers; returns when all of
/// them have ended.
pub(crate) fn run(workers: usize, body: &(dyn Fn(usize) + Sync)) {
    beside(workers, body, |_| body(0));
}

/// Runs `own` on this thread and `body` on up to `workers` − 1 helpers; returns when all of them have ended. `own` gets the
/// number of helpers on their way, which other jobs may need first.
pub(crate) fn beside<R>(
    workers: usize,
    body: &(dyn Fn(usize) + Sync),
    own: impl FnOnce(usize) -> R,
) -> R {
    let (_, seats) = POOL.get_or_init(|| (std::process::id(), Seats::new()));
    if workers <= 1 || is_forked_off() {
        return own(0);
    }
    // SAFETY: Only the lifetime changes. Helpers call the body between taking a seat and leaving it. `_job`, dropped
    // at the end of this function also when `own` unwinds, lets no helper take a seat any more and waits until
    // every seat was left.
    let lasting = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static _>(body) };
    let wanted = workers - 1;
    let (job, idle) = seats.offer(Body(lasting), wanted);
    let _job = Offered { seats, job };
    let within = Within(WITHIN.replace(true));
    let started = if within.0 { 0 } else { (idle..wanted).take_while(|_| start(seats)).count() };
    own(idle.min(wanted) + started)
}

/// Whether this is the child of a `fork`: the helpers are gone, and one of them may have held any lock.
pub(crate) fn is_forked_off() -> bool {
    POOL.get().is_some_and(|(process, _)| *process != std::process::id())
}

struct Offered {
    seats: &'static Seats<Body>,
    job: u64,
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.seats.withdraw(self.job);
    }
}

struct Within(bool);

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.set(self.0);
    }
}

/// Starts one more helper; `false` if there are enough or the system refuses, and the job has fewer
/// workers.
fn start(seats: &'static Seats<Body>) -> bool {
    let Some(number) = seats.hire(THREADS_MAX) else { return false };
    let started = thread::Builder::new().name(format!("masu-chunk-{number}")).spawn(move || {
        WITHIN.set(true);
        loop {
            let Taken { job, worker, body } = seats.sit_down();
            let _seat = Seat { seats, job };
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
        self.seats.get_up(self.job);
    }
}
