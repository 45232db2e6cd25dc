//! The limit on the number of chunks in the function at once, where a stream has more workers: a
//! semaphore.

use crate::sync::{Condvar, Mutex, lock, wait};

pub(crate) struct Limit {
    /// `None` where every worker has a permit.
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

    pub(crate) fn leave(&self) {
        let Some(permits) = &self.permits else { return };
        *lock(permits) += 1;
        self.left.notify_one();
    }
}
