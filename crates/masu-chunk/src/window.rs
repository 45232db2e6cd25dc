//! The window of a stream: results on their way from the workers to their taker.
//!
//! Relies on one lock and one condition. There is no delivering thread: a worker that puts a result in while nobody
//! delivers does so itself, outside the lock, in order, with every ready result. So a result never waits for a sleeping
//! thread. The chunks that are begun and not yet delivered never exceed the limit, which bounds the memory and slows
//! the reader to the pace of the taker.

use std::collections::VecDeque;

use crate::sync::{Condvar, Mutex, lock, wait};

/// Results between workers and the taker.
pub(crate) struct Window<R> {
    state: Mutex<State<R>>,
    /// Something was delivered, or the window was closed.
    room: Condvar,
    limit: u64,
    in_order: bool,
}

struct State<R> {
    /// Results that wait; in order, the first is that of chunk `base` and may not be made yet.
    ready: VecDeque<Option<R>>,
    base: u64,
    /// The number of results taken.
    delivered: u64,
    delivering: bool,
    closed: bool,
}

/// The taker's answer to a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Continue.
    Go,
    /// Close the window.
    Stop,
}

impl<R> Window<R> {
    /// A window for at most `limit` chunks at a time.
    pub(crate) fn new(limit: usize, in_order: bool) -> Self {
        // A limit may be any number, so room for few is taken ahead.
        let ready = VecDeque::with_capacity(limit.min(1 << 10));
        let state = State { ready, base: 0, delivered: 0, delivering: false, closed: false };
        let limit = limit.max(1) as u64;
        Self { state: Mutex::new(state), room: Condvar::new(), limit, in_order }
    }

    /// Waits until chunk `index` may begin. `false`: never, the window is closed.
    pub(crate) fn admit(&self, index: u64) -> bool {
        let mut state = lock(&self.state);
        while !state.closed && index >= state.delivered.saturating_add(self.limit) {
            state = wait(&self.room, state);
        }
        !state.closed
    }

    /// Puts in the result of chunk `index`, and passes ready results to `take`, unless another worker
    /// is doing so. `take` is called by one worker at a time, outside the lock.
    pub(crate) fn put(&self, index: u64, result: R, mut take: impl FnMut(R) -> Next) {
        let mut state = lock(&self.state);
        if state.closed {
            drop(state);
            // Outside the lock, because dropping it may take long, or call this again.
            drop(result);
            return;
        }
        if self.in_order {
            let slot = (index - state.base) as usize;
            if state.ready.len() <= slot {
                state.ready.resize_with(slot + 1, || None);
            }
            state.ready[slot] = Some(result);
        } else {
            state.ready.push_back(Some(result));
        }
        if state.delivering {
            return;
        }
        state.delivering = true;
        while let Some(result) = state.next() {
            drop(state);
            let next = take(result);
            state = lock(&self.state);
            state.delivered += 1;
            if next == Next::Stop {
                state.closed = true;
                let rest = std::mem::take(&mut state.ready);
                drop(state);
                self.room.notify_all();
                drop(rest);
                return;
            }
            self.room.notify_all();
        }
        state.delivering = false;
    }
}

impl<R> State<R> {
    /// The next result, if it is there.
    fn next(&mut self) -> Option<R> {
        let result = self.ready.front_mut()?.take()?;
        self.ready.pop_front();
        self.base += 1;
        Some(result)
    }
}
