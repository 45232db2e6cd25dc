//! The assignment of helpers to jobs: jobs offer seats, helpers take them, and a withdrawn job waits
//! until its last helper left.
//!
//! Relies on one lock and two conditions: everything is decided under the lock, once for each helper
//! and job, never for each chunk. `tests/loom.rs` runs it in every interleaving.

use crate::sync::{Condvar, Mutex, lock, wait};

/// The jobs that have seats, and the helpers that wait for one.
pub(crate) struct Seats<B> {
    state: Mutex<State<B>>,
    offered: Condvar,
    left: Condvar,
}

struct State<B> {
    jobs: Vec<Job<B>>,
    last_job: u64,
    idle: usize,
    /// Idle helpers that were woken and have not arrived yet.
    coming: usize,
    helpers: usize,
}

struct Job<B> {
    id: u64,
    body: B,
    free: usize,
    taken: usize,
    /// Whether the offering thread waits for the last helper to leave.
    is_awaited: bool,
    /// The number of the next worker; 0 is the offering thread.
    next_worker: usize,
}

pub(crate) struct Taken<B> {
    pub(crate) job: u64,
    pub(crate) worker: usize,
    pub(crate) body: B,
}

impl<B: Copy> Seats<B> {
    pub(crate) fn new() -> Self {
        let state = State { jobs: Vec::new(), last_job: 0, idle: 0, coming: 0, helpers: 0 };
        Self { state: Mutex::new(state), offered: Condvar::new(), left: Condvar::new() }
    }

    /// Offers seats to helpers. Returns the job's number and the number of idle helpers.
    pub(crate) fn offer(&self, body: B, seats: usize) -> (u64, usize) {
        let mut state = lock(&self.state);
        state.last_job += 1;
        let id = state.last_job;
        state.jobs.push(Job { id, body, free: seats, taken: 0, is_awaited: false, next_worker: 1 });
        let idle = state.idle;
        // Those on their way find this job as well, if the other ones have no seats for all of them.
        let woken = seats.min(idle - state.coming);
        state.coming += woken;
        drop(state);
        for _ in 0..woken {
            self.offered.notify_one();
        }
        (id, idle)
    }

    /// Withdraws the offer and waits until no helper works on it.
    pub(crate) fn withdraw(&self, job: u64) {
        let mut state = lock(&self.state);
        loop {
            let Some(at) = state.position(job) else { return };
            state.jobs[at].free = 0;
            if state.jobs[at].taken == 0 {
                state.jobs.remove(at);
                return;
            }
            state.jobs[at].is_awaited = true;
            state = wait(&self.left, state);
        }
    }

    /// Waits for a seat and takes one of the oldest job, the outermost, whose chunks are the longest.
    pub(crate) fn sit_down(&self) -> Taken<B> {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.iter_mut().find(|job| job.free > 0) {
                job.free -= 1;
                job.taken += 1;
                let worker = job.next_worker;
                job.next_worker += 1;
                return Taken { job: job.id, worker, body: job.body };
            }
            state.idle += 1;
            state = wait(&self.offered, state);
            state.idle -= 1;
            // After a spurious wake-up another one may count as arrived: it comes all the same.
            state.coming = state.coming.saturating_sub(1);
        }
    }

    /// Whether a job that is newer than this one has free seats. A helper that goes only to newer ones does not go to and
    /// fro.
    pub(crate) fn has_newer(&self, job: u64) -> bool {
        lock(&self.state).jobs.iter().any(|other| other.id > job && other.free > 0)
    }

    /// Leaves the seat: the helper does not touch the job any more.
    pub(crate) fn get_up(&self, job: u64) {
        let mut state = lock(&self.state);
        if let Some(at) = state.position(job) {
            let job = &mut state.jobs[at];
            job.taken -= 1;
            if job.taken == 0 && job.is_awaited {
                drop(state);
                self.left.notify_all();
            }
        }
    }

    /// Adds a helper and returns its number, unless there are `most` already.
    pub(crate) fn hire(&self, most: usize) -> Option<usize> {
        let mut state = lock(&self.state);
        (state.helpers < most).then(|| {
            state.helpers += 1;
            state.helpers
        })
    }

    /// Removes a helper that could not be started, or ends.
    pub(crate) fn dismiss(&self) {
        lock(&self.state).helpers -= 1;
    }
}

impl<B> State<B> {
    fn position(&self, job: u64) -> Option<usize> {
        self.jobs.iter().position(|it| it.id == job)
    }
}
