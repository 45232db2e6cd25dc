//! Idle workers of a job: they look for chunks, and sleep until a worker shares some or the job is
//! over.
//!
//! Relies on one counter that every worker reads after it takes a batch, and a lock that only idle workers and the
//! workers that share with them take. The hard part is the counter, `attention`: a worker that took chunks and reads
//! 0 need not wake any other, and a worker counted in it that finds no chunks may sleep. An idle worker steals the
//! rest of a busy worker's [batch](crate::batch) by itself, so it waits for at most the one chunk that the other is
//! in.

use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, fence, lock, spin, wait};

/// The idle workers of a job.
pub(crate) struct Idle {
    /// The number of workers that look for chunks, and [`STOP`].
    attention: AtomicUsize,
    /// The number of workers; changes under the lock.
    inside: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    asleep: usize,
    over: bool,
}

/// Set in `attention` when nothing more may begin.
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
            // ORDERING: Relaxed: everything decided by it is decided under the lock.
            self.inside.fetch_add(1, Ordering::Relaxed);
        }
        !state.over
    }

    /// Whether nothing more may begin.
    pub(crate) fn is_stopped(&self) -> bool {
        // ORDERING: Relaxed: the locks of the stopped batches decide the order.
        self.attention.load(Ordering::Relaxed) & STOP != 0
    }

    /// Wakes sleeping workers if there are more chunks in the caller's span; called by a worker that
    /// took chunks, before it begins them.
    pub(crate) fn share(&self, has_more: impl FnOnce() -> bool) {
        // ORDERING: The store-load pair: this worker changed its span and now reads `attention`, an
        // idle one changed `attention` and then reads the spans, each with a SeqCst fence between.
        // So one of them sees the other: no worker sleeps while there are chunks to take.
        fence(Ordering::SeqCst);
        if self.attention.load(Ordering::Relaxed) != 0 && has_more() {
            // Under the lock, so that no worker is between its last check and its sleep. The one that wakes and finds
            // something wakes the next one.
            let state = lock(&self.state);
            if state.asleep > 0 {
                self.changed.notify_one();
            }
        }
    }

    /// Repeats `steal`, and after a while also `rob`, which costs others time, until one finds chunks; `false`: the
    /// worker has left, because the job is over or because it is of use elsewhere.
    #[cold]
    pub(crate) fn look(
        &self,
        mut steal: impl FnMut() -> bool,
        mut rob: impl FnMut() -> bool,
        is_wanted_elsewhere: impl FnOnce() -> bool,
    ) -> bool {
        // ORDERING: Relaxed, and a fence: see `share`.
        self.attention.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // ORDERING: Relaxed: it only decides whether to spin. With no other busy worker, or with STOP
        // (a large number too), there is nothing to wait for.
        let alone =
            || self.attention.load(Ordering::Relaxed) >= self.inside.load(Ordering::Relaxed);
        let mut stolen = false;
        spin(|| {
            stolen = steal();
            stolen || alone()
        });
        let found = stolen
            || rob()
            || if is_wanted_elsewhere() { self.leave() } else { self.sleep(|| steal() || rob()) };
        // ORDERING: Relaxed: it only undoes the first line.
        self.attention.fetch_sub(1, Ordering::Relaxed);
        found
    }

    fn sleep(&self, mut steal: impl FnMut() -> bool) -> bool {
        let mut state = lock(&self.state);
        let mut was_woken = false;
        loop {
            if state.over {
                return false;
            }
            if steal() {
                // There may be more, also where this worker found a single chunk, of which it shares nothing.
                if was_woken && state.asleep > 0 {
                    self.changed.notify_one();
                }
                return true;
            }
            if self.ends_as_last(&mut state) {
                return false;
            }
            state.asleep += 1;
            state = wait(&self.changed, state);
            state.asleep -= 1;
            was_woken = true;
        }
    }

    /// Ends the job if the caller, which has no chunks, is the last worker awake: nobody holds any, and the spans had none.
    fn ends_as_last(&self, state: &mut State) -> bool {
        // ORDERING: Relaxed: it is changed under the lock, which the caller holds.
        let is_last = state.asleep + 1 == self.inside.load(Ordering::Relaxed);
        if is_last {
            state.over = true;
            if state.asleep > 0 {
                self.changed.notify_all();
            }
        }
        is_last
    }

    /// A worker without chunks leaves: all that is left has begun, an idle worker has just taken it, or a busy one that
    /// was asked to share does it itself.
    fn leave(&self) -> bool {
        let mut state = lock(&self.state);
        self.ends_as_last(&mut state);
        // ORDERING: Relaxed: it is changed under this lock.
        self.inside.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// Lets nothing more begin.
    #[cold]
    pub(crate) fn stop(&self) {
        // ORDERING: Relaxed: the bit publishes nothing; sleepers are woken under the lock.
        self.attention.fetch_or(STOP, Ordering::Relaxed);
        lock(&self.state).over = true;
        self.changed.notify_all();
    }
}
