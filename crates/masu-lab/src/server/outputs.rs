//! The output of servers: read as it comes, so that no server waits for the lab, and its end kept.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use masu_run::execute::Drain;
use masu_run::{Error, kernel};

/// The longest time that a quiet server may keep the thread from seeing its end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The number of bytes kept of the end: an error stands above its trace, which may be long.
const TAIL_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Outputs {
    /// True once the server has ended, so that only the rest is read.
    is_over: Arc<AtomicBool>,
    /// The reading thread, which returns the end of standard error and that of standard output.
    thread: Option<JoinHandle<[String; 2]>>,
}

impl Outputs {
    pub(super) fn follow(stdout: OwnedFd, stderr: OwnedFd) -> Result<Outputs, Error> {
        let mut drains = [Drain::new(stderr, TAIL_BYTES)?, Drain::new(stdout, TAIL_BYTES)?];
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || {
                read(&mut drains, &is_over);
                drains.map(|drain| drain.tail())
            }
        });
        Ok(Outputs { is_over, thread: Some(thread) })
    }

    /// Reads the rest of a server that has ended, and returns the last lines, of standard error
    /// or else of standard output: some servers write there why they end. Empty when called again.
    pub(super) fn finish(&mut self) -> String {
        // ORDERING: Relaxed: the flag guards no other data; it only ends the thread.
        self.is_over.store(true, Ordering::Relaxed);
        let tails = self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        tails.into_iter().find(|tail| !tail.is_empty()).unwrap_or_default()
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Reads until both streams are closed, cannot be read, or `is_over`.
fn read(drains: &mut [Drain; 2], is_over: &AtomicBool) {
    loop {
        // ORDERING: Relaxed: see `Outputs::finish`.
        let is_last = is_over.load(Ordering::Relaxed);
        // A stream that cannot be read is as good as closed.
        if drains.iter_mut().any(|drain| drain.take().is_err()) || is_last {
            return;
        }
        let open = drains.each_ref().map(Drain::open);
        if open.iter().all(Option::is_none) || kernel::wait_readable(open, LOOK_EVERY).is_err() {
            return;
        }
    }
}
