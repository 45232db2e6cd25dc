//! The work of one run, and each thread's part of it.

#[derive(Clone, Copy)]
pub struct Work {
    pub threads: u64,
    pub seed: u64,
    /// Operations of all threads together.
    pub ops: u64,
}

impl Work {
    /// A thread's part of `ops`.
    pub fn share(self, thread: u64) -> u64 {
        self.ops / self.threads + u64::from(thread < self.ops % self.threads)
    }
}
