//! The output of servers: read as it comes, so that no server waits for the lab, and its end kept.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    tail: Mutex<String>,
    over: AtomicBool,
}

impl Outputs {
    pub(super) fn follow(stdout: OwnedFd, stderr: OwnedFd) -> Result<Outputs, Error> {
        // Some servers write on standard output why they end.
        let mut drains = [Drain::new(stdout, TAIL_BYTES)?, Drain::new(stderr, TAIL_BYTES)?];
        let shared = Arc::new(Shared::default());
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.read(&mut drains)
        });
        Ok(Outputs { shared, thread: Some(thread) })
    }

    /// Reads the rest of a server that has ended, and returns the last lines, of standard error
    /// or else of standard output.
    pub(super) fn finish(&mut self) -> String {
        // ORDERING: Relaxed: the flag guards no other data; `join` makes the tail visible.
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.tail.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Shared {
    fn read(&self, drains: &mut [Drain; 2]) {
        loop {
            // ORDERING: Relaxed: see `Outputs::finish`.
            let over = self.over.load(Ordering::Relaxed);
            // A stream that cannot be read is as good as closed.
            if drains.iter_mut().any(|drain| drain.take().is_err()) {
                return;
            }
            let [stdout, stderr] = &*drains;
            let mut said = stderr.tail();
            if said.is_empty() {
                said = stdout.tail();
            }
            let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            if *tail != said {
                *tail = said;
            }
            drop(tail);
            let open = [stdout.open(), stderr.open()];
            if over || open.iter().all(Option::is_none) {
                return;
            }
            if kernel::wait_readable(open, LOOK_EVERY).is_err() {
                return;
            }
        }
    }
}
