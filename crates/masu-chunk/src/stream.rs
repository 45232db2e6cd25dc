//! The engine for data that comes one chunk after another: iterators and readers, and slices whose
//! results are taken one by one.
//!
//! Relies on the [window](crate::window) for order and bounded memory, and on the [pool](crate::pool) for threads.
//! Every worker does all three parts in turn. It pulls a chunk under the feed's lock, works on it, and delivers the
//! results that the window has ready. So reading, working and taking overlap without a thread for each, and a chunk
//! stays in the cache of the core that read it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::control::Reporter;
use crate::executor::Executor;
use crate::failure::{Cause, Failure, caught};
use crate::limit::Limit;
use crate::place::{Chunk, Place};
use crate::pool;
use crate::statistics::{Clock, Statistics, Worker};
use crate::sync::{AtomicUsize, Mutex, Ordering, into_inner, lock};
use crate::window::{Next, Window};

/// A source of chunks, one after another.
pub trait Pull: Send {
    /// The data of a chunk.
    type Data: Send;

    /// The next chunk and the number of its items; `None` at the end.
    fn pull(&mut self) -> io::Result<Option<(Self::Data, u64)>>;

    /// The number of items in all, if known.
    fn total(&self) -> Option<u64> {
        None
    }
}

struct Feed<P> {
    source: P,
    index: u64,
    items: u64,
    ended: bool,
}

/// A chunk's data or its result, or the cause why there is none.
type Made<R, E> = (Place, Result<R, Cause<E>>);

struct Job<'a, P, W, T, R, E> {
    executor: &'a Executor<'a>,
    feed: Mutex<Feed<P>>,
    window: Window<Made<R, E>>,
    limit: Limit,
    work: W,
    taker: Mutex<Taker<T, E>>,
    reporter: Reporter<'a>,
    /// Not 0 once nothing more may begin.
    stopping: AtomicUsize,
}

struct Taker<T, E> {
    take: T,
    failed: Option<(Place, Cause<E>)>,
    workers: Vec<(usize, Worker)>,
    /// Items of the chunks delivered.
    items: u64,
}

/// Puts every chunk of `source` through `work` and hands the results to `take`, one at a time.
pub(crate) fn deliver<P, R, E>(
    executor: &Executor<'_>,
    source: P,
    work: impl Fn(Chunk<P::Data>) -> Result<R, E> + Sync,
    take: impl FnMut(Place, R) -> Result<(), E> + Send,
) -> Result<Statistics, Failure<E>>
where
    P: Pull,
    R: Send,
    E: Send,
{
    let total = source.total();
    let workers = executor.workers_or_default();
    let concurrency = executor.concurrency_or(workers);
    let (failed, ended) = (None, Vec::new());
    let job = Job {
        executor,
        feed: Mutex::new(Feed { source, index: 0, items: 0, ended: false }),
        window: Window::new(executor.window_or(2 * workers), executor.in_order()),
        limit: Limit::new(concurrency, workers),
        work,
        taker: Mutex::new(Taker { take, failed, workers: ended, items: 0 }),
        reporter: executor.reporter(total),
        stopping: AtomicUsize::new(0),
    };
    pool::run(workers, &|worker| job.run(worker));
    job.finish()
}

impl<P, W, T, R, E> Job<'_, P, W, T, R, E>
where
    P: Pull,
    W: Fn(Chunk<P::Data>) -> Result<R, E> + Sync,
    T: FnMut(Place, R) -> Result<(), E> + Send,
    R: Send,
    E: Send,
{
    fn run(&self, worker: usize) {
        let mut clock = Clock::start();
        while let Some((place, pulled)) = self.next() {
            let index = place.index;
            let data = match pulled {
                Ok(data) => data,
                Err(cause) => {
                    self.window.put(index, (place, Err(cause)), |made| self.take(made));
                    break;
                }
            };
            self.limit.enter();
            clock.waited();
            let chunk = Chunk::new(place.clone(), data);
            let made = caught(|| (self.work)(chunk));
            self.limit.leave();
            if made.is_err() {
                self.stop();
            }
            self.window.put(index, (place, made), |made| self.take(made));
            clock.worked(1);
        }
        let worked = clock.finish();
        if worked.chunks > 0 {
            lock(&self.taker).workers.push((worker, worked));
        }
    }

    /// The next chunk, or the cause why there is none; `None` at the end.
    fn next(&self) -> Option<Made<P::Data, E>> {
        let mut feed = lock(&self.feed);
        if feed.ended || !self.window.admit(feed.index) || self.is_stopping() {
            return None;
        }
        let (index, start) = (feed.index, feed.items);
        let nowhere = Place { index, items: start..start };
        if self.executor.is_cancelled() {
            feed.ended = true;
            return Some((nowhere, Err(Cause::Cancelled)));
        }
        let pulled = catch_unwind(AssertUnwindSafe(|| feed.source.pull()));
        feed.index += 1;
        if let Ok(Ok(Some((data, items)))) = pulled {
            feed.items += items;
            return Some((Place { index, items: start..feed.items }, Ok(data)));
        }
        feed.ended = true;
        let cause = match pulled {
            Ok(read) => Cause::Read(read.err()?),
            Err(payload) => Cause::Panic(payload),
        };
        Some((nowhere, Err(cause)))
    }

    /// Passes one result on; called by one worker at a time.
    fn take(&self, (place, made): Made<R, E>) -> Next {
        let mut taker = lock(&self.taker);
        let items = place.items.clone();
        let taken = made.and_then(|result| caught(|| (taker.take)(place.clone(), result)));
        let taken = taken.and_then(|()| {
            taker.items += items.end - items.start;
            self.reporter.add(1, items.end - items.start).map_err(Cause::Panic)
        });
        let Err(cause) = taken else { return Next::Go };
        taker.failed = Some((place, cause));
        self.stop();
        Next::Stop
    }

    fn stop(&self) {
        // ORDERING: Relaxed: the flag publishes nothing; workers only have to see it soon. A failure
        // goes through the window's lock.
        self.stopping.store(1, Ordering::Relaxed);
    }

    fn is_stopping(&self) -> bool {
        // ORDERING: Relaxed, as above.
        self.stopping.load(Ordering::Relaxed) != 0
    }

    fn finish(self) -> Result<Statistics, Failure<E>> {
        let mut taker = into_inner(self.taker);
        taker.workers.sort_by_key(|(number, _)| *number);
        let workers = taker.workers.into_iter().map(|(_, worker)| worker).collect();
        let statistics = Statistics { workers };
        match taker.failed {
            None => self.reporter.finish().map(|()| statistics.clone()).map_err(|payload| {
                let (index, items) = (statistics.chunks(), taker.items..taker.items);
                let place = Place { index, items };
                Failure { place, cause: Cause::Panic(payload), statistics }
            }),
            Some((place, cause)) => Err(Failure { place, cause, statistics }),
        }
    }
}
