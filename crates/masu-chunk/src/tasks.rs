//! Tasks that workers share: those that wait for a worker, and workers that look for one.
//!
//! Relies on one lock, which only workers without work take and those that share with them. The hard part is that
//! nobody sleeps while a task waits: a worker that shares wakes one sleeper, and a worker that stops looking while a task
//! waits wakes another. `tests/loom.rs` runs it in every interleaving.

use std::collections::VecDeque;

use crate::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, lock, spin, wait};

pub(crate) struct Tasks<T> {
    /// The number of workers that look for a task and find none waiting, and of those expected. Changed under the lock.
    wanted: AtomicUsize,
    /// The number of waiting tasks, for workers that look without the lock. Changed under the lock.
    waiting: AtomicUsize,
    state: Mutex<State<T>>,
    /// Workers without a task of their own sleep here.
    shared: Condvar,
    /// Workers that wait for another's result sleep here.
    finished: Condvar,
}

struct State<T> {
    /// Tasks that wait, the oldest first.
    queue: VecDeque<T>,
    /// Workers on their way for whom no task was shared yet.
    expected: usize,
    looking: usize,
    idle_asleep: usize,
    owners_asleep: usize,
    over: bool,
}

impl<T: Copy + PartialEq> Tasks<T> {
    pub(crate) fn new() -> Self {
        let state = State {
            queue: VecDeque::new(),
            expected: 0,
            looking: 0,
            idle_asleep: 0,
            owners_asleep: 0,
            over: false,
        };
        Self {
            wanted: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            state: Mutex::new(state),
            shared: Condvar::new(),
            finished: Condvar::new(),
        }
    }

    /// Wants as many tasks as `helpers` are on their way, before the first of these looks.
    pub(crate) fn expect(&self, helpers: usize) {
        let mut state = lock(&self.state);
        state.expected = helpers;
        self.note(&state);
    }

    /// Whether a worker looks for a task, or is expected.
    #[inline(always)]
    pub(crate) fn are_wanted(&self) -> bool {
        // ORDERING: Relaxed: a hint. A worker that sees it late shares a little later.
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Gives a task to a worker that looks for one.
    pub(crate) fn share(&self, task: T) {
        let mut state = lock(&self.state);
        state.queue.push_back(task);
        state.expected = state.expected.saturating_sub(1);
        self.note(&state);
        self.wake(state);
    }

    /// Takes this task back; `false`: a worker has begun it.
    pub(crate) fn take_back(&self, task: T) -> bool {
        let mut state = lock(&self.state);
        let at = state.queue.iter().position(|waiting| *waiting == task);
        if let Some(at) = at {
            state.queue.remove(at);
            self.note(&state);
        }
        at.is_some()
    }

    /// The next task, for a worker that has none; none at the end of the job.
    pub(crate) fn next(&self) -> Option<T> {
        self.look(false, || false)
    }

    /// Another task, for a worker that waits until `is_done`; none once it is.
    pub(crate) fn next_until(&self, is_done: impl FnMut() -> bool) -> Option<T> {
        self.look(true, is_done)
    }

    fn look(&self, is_owner: bool, mut is_done: impl FnMut() -> bool) -> Option<T> {
        let mut state = lock(&self.state);
        state.looking += 1;
        self.note(&state);
        let mut has_spun = false;
        let found = loop {
            let is_over = if is_owner { is_done() } else { state.over };
            if is_over {
                break None;
            }
            if let Some(task) = state.queue.pop_front() {
                break Some(task);
            }
            if !has_spun {
                has_spun = true;
                drop(state);
                // ORDERING: Relaxed: the lock decides.
                spin(|| is_done() || self.waiting.load(Ordering::Relaxed) != 0);
                state = lock(&self.state);
            } else if is_owner {
                state.owners_asleep += 1;
                state = wait(&self.finished, state);
                state.owners_asleep -= 1;
            } else {
                state.idle_asleep += 1;
                state = wait(&self.shared, state);
                state.idle_asleep -= 1;
            }
        };
        state.looking -= 1;
        self.note(&state);
        if !state.queue.is_empty() {
            self.wake(state);
        }
        found
    }

    /// Ends a task: `tell` lets its owner see that, and must be the last touch of what the owner holds.
    pub(crate) fn finish(&self, tell: impl FnOnce()) {
        let state = lock(&self.state);
        // Under the lock, so that no owner is between its last look and its sleep.
        tell();
        let are_asleep = state.owners_asleep > 0;
        drop(state);
        if are_asleep {
            self.finished.notify_all();
        }
    }

    /// Sends the workers without a task home. No owner waits any more.
    pub(crate) fn end(&self) {
        lock(&self.state).over = true;
        self.shared.notify_all();
    }

    /// Wakes a worker for a task that waits.
    fn wake(&self, state: MutexGuard<'_, State<T>>) {
        let (idle, owners) = (state.idle_asleep > 0, state.owners_asleep > 0);
        drop(state);
        if idle {
            self.shared.notify_one();
        } else if owners {
            self.finished.notify_one();
        }
    }

    fn note(&self, state: &State<T>) {
        let wanted = state.expected + state.looking.saturating_sub(state.queue.len());
        // ORDERING: Relaxed: hints, and changed under the lock.
        self.wanted.store(wanted, Ordering::Relaxed);
        self.waiting.store(state.queue.len(), Ordering::Relaxed);
    }
}
