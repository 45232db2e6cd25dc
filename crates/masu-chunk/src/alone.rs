//! Short jobs: the calling thread begins alone where the last job of the same code was over within microseconds.
//!
//! Relies on the [pool](crate::pool) for the helpers. Waking a thread costs both sides some microseconds, and each further
//! one as much again. Nothing else tells how long a job will take: a first chunk can be long, and nobody does the
//! rest at that time. So only a job whose like was short begins alone, and calls its helpers before the batch in which it
//! would take longer than that: batches begin with one chunk and double. If one chunk then takes long, others wait for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::kernel::prepare_barrier;
use crate::pool::Help;

/// The longest time of a short job.
const SHORT: Duration = Duration::from_micros(10);

/// A job with fewer chunks a worker calls its helpers at once: its first chunk could be a large part of the work.
const MANY_CHUNKS: u64 = 16;

/// The code whose last job was short, by a hash of its address: a job of other code with the same hash takes the place.
static WAS_SHORT: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

/// The helpers of a job that are not called yet, if any.
pub(crate) struct Alone<'h> {
    help: Option<&'h Help<'h>>,
    /// The time that the batches took so far.
    spent: Duration,
    /// The time of those and the next.
    expected: Duration,
}

impl<'h> Alone<'h> {
    /// No helpers to call.
    pub(crate) fn not() -> Self {
        Self { help: None, spent: Duration::ZERO, expected: Duration::ZERO }
    }

    /// Calls the helpers, unless the last job of this code was short and this one has many `chunks` a worker.
    pub(crate) fn begin(help: &'h Help<'h>, code: usize, chunks: u64) -> Self {
        // ORDERING: Relaxed, as in `learn`.
        let was_short = place(code).load(Ordering::Relaxed) == code;
        let is_alone = was_short && chunks >= MANY_CHUNKS;
        let expected = if is_alone { Duration::ZERO } else { Duration::MAX };
        let mut alone = Self { help: Some(help), spent: Duration::ZERO, expected };
        alone.begins();
        alone
    }

    /// Calls the helpers before a batch that would take too long.
    pub(crate) fn begins(&mut self) {
        if self.expected > SHORT
            && let Some(help) = self.help.take()
        {
            if help.is_there() {
                prepare_barrier();
            }
            help.call();
        }
    }

    /// The next batch has at most twice as many chunks as this one.
    pub(crate) fn worked(&mut self, lap: Duration) {
        self.spent += lap;
        self.expected = self.spent + 2 * lap;
    }
}

/// Keeps in mind that a job of this code took so long, of all its workers together.
pub(crate) fn learn(code: usize, busy: Duration) {
    let place = place(code);
    // ORDERING: Relaxed: a hint, which publishes nothing.
    let was_short = place.load(Ordering::Relaxed) == code;
    if was_short != (busy <= SHORT) {
        place.store(if was_short { 0 } else { code }, Ordering::Relaxed);
    }
}

fn place(code: usize) -> &'static AtomicUsize {
    &WAS_SHORT[(code >> 4) % WAS_SHORT.len()]
}
