//! A job beside asynchronous code: a future of what a thread computes.
//!
//! Relies on a thread of its own for each, because an executor's worker may not wait for another job. The hard part is
//! the one lock: the result and the waker meet there, so that no end is missed.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use crate::sync::{Mutex, lock};

/// Runs `work`, which may use executors, on a thread of its own; the future is ready when it has ended. No runtime is
/// needed, and none is blocked. A future that is dropped lets the work go on; [`Cancel`](crate::Cancel) ends it.
///
/// ```
/// # use std::task::{Context, Poll, Waker};
/// use masu_chunk::Executor;
///
/// async fn total(numbers: Vec<u64>) -> Option<u64> {
///     let sum = move || {
///         let sums = Executor::new().slice(&numbers).reduce(|part| part.iter().sum(), |a, b| a + b);
///         sums.ok()?.value
///     };
///     masu_chunk::background(sum).ok()?.await
/// }
/// # let mut total = std::pin::pin!(total(vec![1, 2, 3]));
/// # let mut context = Context::from_waker(Waker::noop());
/// # let total = loop {
/// #     if let Poll::Ready(total) = total.as_mut().poll(&mut context) { break total; }
/// #     std::thread::yield_now();
/// # };
/// # assert_eq!(total, Some(6));
/// ```
///
/// # Errors
///
/// If the system refuses a thread.
pub fn background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<Background<T>> {
    let shared = Arc::new(Mutex::new(State { result: None, waker: None }));
    let future = Background { shared: Arc::clone(&shared) };
    thread::Builder::new().name("masu-chunk-job".to_owned()).spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(work));
        let mut state = lock(&shared);
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    })?;
    Ok(future)
}

/// The future of [`background`].
///
/// ```
/// let job: masu_chunk::Background<usize> = masu_chunk::background(|| "work".len())?;
/// # drop(job);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A panic of the work goes on in the task that awaits it.
#[must_use = "a future does nothing visible unless it is awaited"]
pub struct Background<T> {
    shared: Arc<Mutex<State<T>>>,
}

struct State<T> {
    result: Option<thread::Result<T>>,
    waker: Option<Waker>,
}

impl<T> Future for Background<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = lock(&self.shared);
        match state.result.take() {
            Some(Ok(value)) => Poll::Ready(value),
            Some(Err(payload)) => {
                drop(state);
                resume_unwind(payload)
            }
            None => {
                let before = state.waker.replace(context.waker().clone());
                // A waker's code is the runtime's, and runs without the lock.
                drop(state);
                drop(before);
                Poll::Pending
            }
        }
    }
}

impl<T> Drop for Background<T> {
    /// Lets go of the task that awaited it, which need not be woken any more.
    fn drop(&mut self) {
        let waker = lock(&self.shared).waker.take();
        drop(waker);
    }
}

impl<T> std::fmt::Debug for Background<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_done = lock(&self.shared).result.is_some();
        to.debug_struct("Background").field("is_done", &is_done).finish()
    }
}
