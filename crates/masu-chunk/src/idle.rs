//! Workers of one job that have run out of chunks: they ask for more, and sleep until somebody has
//! some to share or the job is over.
//!
//! Relies on one counter that every worker reads after it took a batch, and a lock that only idle workers
//! and those who share with them take. The one hard idea is the counter, `attention`: a worker that
//! took chunks and finds it 0 need not wake anybody, and one that is counted in it and finds no chunks may
//! sleep. What a busy worker holds in its [batch](crate::batch) the idle one takes by itself, so no idle
//! worker waits for more than the one chunk that another is in.

use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, lock, spin, wait};

/// The idle workers of a job.
pub(crate) struct Idle {
    /// How many workers look for chunks, and [`STOP`].
    attention: AtomicUsize,
    /// How many workers there are; grows under the lock.
    inside: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    asleep: usize,
    over: bool,
}

/// Set in `attention` when nothing more is to be begun.
const STOP: usize = 1 << (usize::BITS - 1);

impl Idle {
    pub(crate) fn new() -> Self {
        let (attention, inside) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let state = Mutex::new(State { asleep: 0, over: false });
        Self { attention, inside, state, changed: Condvar::new() }
    }

    /// A worker joins; `false`: the job is over.
    pub(crate) fn enter(&self) -> bool {
        let state = lock(&self.state);
        if !state.over {
            // ORDERING: Relaxed, for what is decided by it is decided under the lock.
            self.inside.fetch_add(1, Ordering::Relaxed);
        }
        !state.over
    }

    /// Whether somebody looks for chunks, or all is to stop.
    fn wants_attention(&self) -> bool {
        // ORDERING: Relaxed, with the fence in `share`.
        self.attention.load(Ordering::Relaxed) != 0
    }

    /// Whether nothing more is to be begun.
    pub(crate) fn is_stopped(&self) -> bool {
        // ORDERING: Relaxed, for the locks of the batches that are stopped say which came first.
        self.attention.load(Ordering::Relaxed) & STOP != 0
    }

    /// Called by a worker that took chunks, before it begins them: wakes those who sleep if there
    /// are more in its span.
    pub(crate) fn share(&self, has_more: impl FnOnce() -> bool) {
        // ORDERING: The store-load pair: this worker changed its span and now reads `attention`, an
        // idle one changed `attention` and then reads the spans, each with a SeqCst fence between.
        // So one of them sees the other: no worker sleeps beside chunks that nobody works on.
        fence(Ordering::SeqCst);
        if self.wants_attention() && has_more() {
            // Under the lock, so that nobody is between its last look and its sleep.
            let _state = lock(&self.state);
            self.changed.notify_all();
        }
    }

    /// Looks for chunks until `steal` finds some; `false`: there will be none, the job is over.
    #[cold]
    pub(crate) fn look(&self, mut steal: impl FnMut() -> bool) -> bool {
        // ORDERING: Relaxed, and a fence: see `share`.
        self.attention.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // ORDERING: Relaxed, for it only decides whether to spin: where nobody else has chunks, or all
        // is to stop, which is a large number too, there is nothing to wait for.
        let alone =
            || self.attention.load(Ordering::Relaxed) >= self.inside.load(Ordering::Relaxed);
        let mut stolen = false;
        spin(|| {
            stolen = steal();
            stolen || alone()
        });
        let found = stolen || self.sleep(steal);
        // ORDERING: Relaxed, for it only ends what the first line began.
        self.attention.fetch_sub(1, Ordering::Relaxed);
        found
    }

    fn sleep(&self, mut steal: impl FnMut() -> bool) -> bool {
        let mut state = lock(&self.state);
        loop {
            if state.over {
                return false;
            }
            if steal() {
                return true;
            }
            state.asleep += 1;
            // ORDERING: Relaxed, for it is changed under this lock.
            if state.asleep == self.inside.load(Ordering::Relaxed) {
                // Everybody else sleeps, so nobody holds a chunk, and none was in the spans.
                state.over = true;
                self.changed.notify_all();
                return false;
            }
            state = wait(&self.changed, state);
            state.asleep -= 1;
        }
    }

    /// Nothing more is to be begun.
    #[cold]
    pub(crate) fn stop(&self) {
        // ORDERING: Relaxed, for the bit publishes nothing; sleepers are woken under the lock.
        self.attention.fetch_or(STOP, Ordering::Relaxed);
        lock(&self.state).over = true;
        self.changed.notify_all();
    }
}
