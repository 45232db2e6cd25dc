//! The limit on how many chunks are in the function at once, apart from the number of workers: a
//! semaphore, where a stream's further workers read and deliver at the same time.

use crate::sync::{Condvar, Mutex, lock, wait};

/// So many at once.
pub(crate) struct Limit {
    /// `None` where there is a permit for every worker anyway.
    permits: Option<Mutex<usize>>,
    left: Condvar,
}

impl Limit {
    pub(crate) fn new(concurrency: usize, workers: usize) -> Self {
        let permits = (concurrency < workers).then(|| Mutex::new(concurrency.max(1)));
        Self { permits, left: Condvar::new() }
    }

    /// Waits until fewer than the limit are in the function.
    pub(crate) fn enter(&self) {
        let Some(permits) = &self.permits else { return };
        let mut free = lock(permits);
        while *free == 0 {
            free = wait(&self.left, free);
        }
        *free -= 1;
    }

    /// The function returned.
    pub(crate) fn leave(&self) {
        let Some(permits) = &self.permits else { return };
        *lock(permits) += 1;
        self.left.notify_one();
    }
}
