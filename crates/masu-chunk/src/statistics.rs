//! The work of each worker of a job: figures that distinguish uneven work from too little of it.

use std::time::{Duration, Instant};

/// The work of a job, worker by worker.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// The workers that took part, the calling thread first; helpers that found nothing to do are
    /// not among them.
    pub workers: Vec<Worker>,
}

/// The work of one worker.
#[derive(Clone, Debug, Default)]
pub struct Worker {
    /// Chunks that it put through the function.
    pub chunks: u64,
    /// Time in the function and in the taker of results.
    pub busy: Duration,
    /// Other time: waiting for data, for room, for its turn, or for others to end.
    pub waiting: Duration,
}

impl Statistics {
    /// Chunks that went through the function.
    pub fn chunks(&self) -> u64 {
        self.workers.iter().map(|worker| worker.chunks).sum()
    }

    /// The busy time of all workers together.
    pub(crate) fn busy(&self) -> Duration {
        self.workers.iter().map(|worker| worker.busy).sum()
    }
}

/// Splits a worker's time into busy and waiting.
pub(crate) struct Clock {
    worker: Worker,
    since: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { worker: Worker::default(), since: Instant::now() }
    }

    /// Counts the time since the last call as waiting.
    pub(crate) fn waited(&mut self) {
        let lap = self.lap();
        self.worker.waiting += lap;
    }

    /// Counts the time since the last call as work on so many chunks.
    pub(crate) fn worked(&mut self, chunks: u64) -> Duration {
        let lap = self.lap();
        self.worker.busy += lap;
        self.worker.chunks += chunks;
        lap
    }

    pub(crate) fn finish(mut self) -> Worker {
        self.waited();
        self.worker
    }

    fn lap(&mut self) -> Duration {
        let now = Instant::now();
        let lap = now.duration_since(self.since);
        self.since = now;
        lap
    }
}
