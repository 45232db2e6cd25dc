//! Runs that are not timed, as many at once as there are CPUs.

use std::sync::Mutex;
use std::thread;

use anyhow::{Result, anyhow};

/// The results of `run` for each of `jobs`, in no order; the first error ends the call.
pub(crate) fn run_each<J: Sync, R: Send>(
    jobs: &[J],
    run: impl Fn(&J) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (left, done) = (Mutex::new(jobs.iter()), Mutex::new(Vec::new()));
    let panicked = || anyhow!("a run's thread panicked");
    let work = || -> Result<()> {
        loop {
            let Some(job) = left.lock().map_err(|_| panicked())?.next() else { return Ok(()) };
            let result = run(job)?;
            done.lock().map_err(|_| panicked())?.push(result);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| panicked())?)
    })?;
    done.into_inner().map_err(|_| panicked())
}
