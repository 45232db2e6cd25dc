//! The engine for data whose chunks can be reached at once: slices, vectors, ranges of numbers.
//!
//! Relies on [`spans`](crate::spans) to divide the work, on [`idle`](crate::idle) for sharing, and on the
//! [pool](crate::pool) for threads. The hard part is the cost of a chunk: a worker takes batches that last some ten
//! microseconds, and a chunk is one turn of a plain loop inside a batch, which stores its position and loads one
//! unchanged word. No lock, no atomic change, no allocation, no copy; a panic is caught around the batch, with its
//! chunk.

use std::any::Any;
use std::ops::Range;
use std::thread;

use crate::alone::{self, Alone};
use crate::batch::{Batch, Turn};
use crate::control::Reporter;
use crate::executor::Executor;
use crate::failure::{Cause, Failure, caught};
use crate::idle::Idle;
use crate::pace::Pace;
use crate::place::{Chunk, Place};
use crate::pool;
use crate::spans::Spans;
use crate::statistics::{Clock, Statistics, Worker};
use crate::sync::{Mutex, into_inner, lock};

/// Data whose parts can be handed out in any order.
///
/// # Safety
///
/// `part` and `discard` of ranges that do not overlap may be called by several threads at once.
pub unsafe trait Indexed: Sync {
    /// A part, as a function gets it.
    type Data<'c>;

    /// The number of items.
    fn items(&self) -> u64;

    /// Items from `range.start` to `range.end` − 1.
    ///
    /// # Safety
    ///
    /// - The range lies within the items, and no item of it was in a part or discarded before.
    /// - `'c` ends before the data is touched in any other way.
    unsafe fn part<'c>(&self, range: Range<u64>) -> Self::Data<'c>;

    /// Drops items that no function will get.
    ///
    /// # Safety
    ///
    /// As for `part`.
    unsafe fn discard(&self, _range: Range<u64>) {}
}

/// The receiver of results.
///
/// # Safety
///
/// `put` may be called by several threads at once, with different indexes.
pub(crate) unsafe trait Gather<R>: Sync {
    /// The results that one worker gathers.
    type Local: Send;
    fn local(&self) -> Self::Local;
    /// # Safety
    ///
    /// `index` is below the number of chunks and is put once.
    unsafe fn put(&self, local: &mut Self::Local, index: usize, result: R);
}

/// Data cut into chunks: long ones first, then short ones.
pub(crate) struct Cut<'a, S> {
    pub(crate) source: &'a S,
    pub(crate) items: u64,
    /// Items of a long chunk.
    size: u64,
    /// The number of long chunks.
    long: u64,
    /// Items of a short chunk; the last may have fewer.
    short: u64,
    pub(crate) chunks: u64,
}

impl<S> Clone for Cut<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Cut<'_, S> {}

impl<'a, S: Indexed> Cut<'a, S> {
    /// All chunks have this size, but the last one.
    pub(crate) fn even(source: &'a S, size: u64) -> Self {
        let (size, items) = (size.max(1), source.items());
        Self { source, items, size, long: items / size, short: size, chunks: items.div_ceil(size) }
    }

    /// The chunks of the last eighth have a quarter of this size. While chunks are left, a worker that is through with a
    /// long one finds another; at the end the others wait for it.
    pub(crate) fn tapered(source: &'a S, size: u64) -> Self {
        let short = size / 4;
        if short < 4 {
            return Self::even(source, size);
        }
        let items = source.items();
        let long = (items - items / 8) / size;
        let chunks = long + (items - long * size).div_ceil(short);
        Self { source, items, size, long, short, chunks }
    }

    /// The first item of a chunk; of the one behind the last, the number of items.
    fn start(&self, chunk: u64) -> u64 {
        let long = chunk.min(self.long);
        (long * self.size).saturating_add((chunk - long).saturating_mul(self.short)).min(self.items)
    }

    /// The items of some chunks.
    pub(crate) fn of(&self, chunks: &Range<u64>) -> Range<u64> {
        self.start(chunks.start)..self.start(chunks.end)
    }

    fn place(&self, index: u64) -> Place {
        Place { index, items: self.of(&(index..index + 1)) }
    }

    /// Drops the items that no function got.
    pub(crate) fn discard_rest(&self, begun: &[Range<u64>]) {
        let end = self.chunks..self.chunks;
        let mut next = 0;
        for chunks in begun.iter().chain([&end]) {
            let rest = self.of(&(next..chunks.start));
            if !rest.is_empty() {
                // SAFETY: No chunk between the begun ones was ever handed out, and the job is over.
                unsafe { self.source.discard(rest) };
            }
            next = chunks.end;
        }
    }
}

/// The outcome of a job, with the facts that the cleanup after a failure needs.
pub(crate) struct Ran<L, E> {
    /// The gathered results of each worker.
    pub(crate) locals: Vec<L>,
    /// Chunks that were begun, in order, without gaps inside a range.
    pub(crate) begun: Vec<Range<u64>>,
    /// Chunks that were begun and gave no result.
    pub(crate) failed: Vec<u64>,
    pub(crate) ended: Result<Statistics, Failure<E>>,
}

struct Job<'a, S, W, G: Gather<R>, R, E> {
    executor: &'a Executor<'a>,
    cut: Cut<'a, S>,
    spans: Spans,
    idle: Idle,
    work: W,
    gather: &'a G,
    reporter: Reporter<'a>,
    total: Mutex<Total<G::Local, E>>,
}

struct Total<L, E> {
    locals: Vec<L>,
    begun: Vec<Range<u64>>,
    causes: Vec<(u64, Cause<E>)>,
    /// A panic of the callback for progress, after this chunk and perhaps further ones had given results.
    callback: Option<(u64, Box<dyn Any + Send>)>,
    cancelled: bool,
    workers: Vec<(usize, Worker)>,
}

/// Puts every chunk through `work` and every result into `gather`.
pub(crate) fn run<S, W, G, R, E>(
    executor: &Executor<'_>,
    cut: Cut<'_, S>,
    work: W,
    gather: &G,
) -> Ran<G::Local, E>
where
    S: Indexed,
    W: for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
    G: Gather<R>,
    E: Send,
{
    let workers = executor.workers_in_function();
    let workers = workers.min(usize::try_from(cut.chunks).unwrap_or(workers)).max(1);
    let total = Total {
        locals: Vec::new(),
        begun: Vec::new(),
        causes: Vec::new(),
        callback: None,
        cancelled: false,
        workers: Vec::new(),
    };
    let job = Job {
        executor,
        spans: Spans::new(cut.chunks, workers),
        idle: Idle::new(),
        work,
        gather,
        reporter: executor.reporter(Some(cut.items)),
        cut,
        total: Mutex::new(total),
    };
    let code = Job::<'_, S, W, G, R, E>::run as *const () as usize;
    pool::beside(workers, &|worker| job.run(worker, Alone::not()), |help| {
        job.run(0, Alone::begin(help, code, job.cut.chunks / workers as u64));
    });
    let ran = job.finish();
    // The length of a job that was stopped says nothing.
    if let Ok(statistics) = &ran.ended {
        alone::learn(code, statistics.busy());
    }
    ran
}

/// The outcome of a batch.
struct Worked<E> {
    /// Chunks that gave a result.
    done: Range<u64>,
    /// The cause why the chunk after them gave none.
    failed: Option<Cause<E>>,
}

impl<S, W, G, R, E> Job<'_, S, W, G, R, E>
where
    S: Indexed,
    W: for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E> + Sync,
    G: Gather<R>,
    E: Send,
{
    fn run(&self, worker: usize, mut alone: Alone<'_>) {
        if !self.idle.enter() {
            return;
        }
        let mut clock = Clock::start();
        let mut local = self.gather.local();
        let mut begun: Vec<Range<u64>> = Vec::new();
        let mut pace = Pace::new();
        loop {
            if self.executor.is_cancelled() {
                lock(&self.total).cancelled = true;
                self.stop();
                break;
            }
            let Some(chunks) = self.spans.take(worker, pace.most(), pace.is_short()) else {
                if self.look(worker) {
                    pace = Pace::new();
                    continue;
                }
                break;
            };
            // After the batch began, because stopping the job stops the existing batches.
            if self.idle.is_stopped() {
                break;
            }
            self.share(worker);
            alone.begins();
            clock.waited();
            let Worked { done, failed } = self.work_off(worker, chunks.clone(), &mut local);
            let count = done.end - done.start;
            let lap = clock.worked(count);
            alone.worked(lap);
            let heard = self.report(&done);
            let end = done.end + u64::from(failed.is_some());
            match begun.last_mut() {
                Some(last) if last.end == done.start => last.end = end,
                _ => begun.push(done.start..end),
            }
            if let Some(cause) = failed {
                lock(&self.total).causes.push((done.end, cause));
                self.stop();
                break;
            }
            if let Err(payload) = heard {
                lock(&self.total).callback = Some((done.start, payload));
                self.stop();
                break;
            }
            if done == chunks {
                pace.took(lap);
            } else {
                pace = Pace::new();
            }
        }
        let (mut total, worked) = (lock(&self.total), clock.finish());
        if worked.chunks > 0 {
            total.workers.push((worker, worked));
        }
        total.locals.push(local);
        total.begun.append(&mut begun);
    }

    /// Does chunks until the end of the batch, which may move, or until one fails.
    fn work_off(&self, worker: usize, chunks: Range<u64>, local: &mut G::Local) -> Worked<E> {
        let batch = self.spans.batch(worker);
        let ended = caught(|| {
            loop {
                // SAFETY: The batch lets this worker alone do each of its chunks, once: the one that it
                // is at, and each that it lets it go on to.
                unsafe { each(self.cut, &self.work, self.gather, local, batch) }?;
                match self.spans.turn(worker, batch.at()) {
                    Turn::Go => {}
                    Turn::Share => self.share(worker),
                    Turn::Over => return Ok(()),
                }
            }
        });
        Worked { done: chunks.start..batch.at(), failed: ended.err() }
    }

    /// Looks for other workers' chunks; `false`: there are none for it.
    fn look(&self, worker: usize) -> bool {
        let (steal, rob) = (|| self.spans.steal(worker), || self.spans.rob(worker));
        // Worker 0 is the job's own: nobody ends it otherwise.
        self.idle.look(steal, rob, || worker > 0 && pool::is_wanted_within())
    }

    /// Wakes workers that could take some of this worker's chunks.
    fn share(&self, worker: usize) {
        self.idle.share(|| self.spans.has_more(worker));
    }

    /// Lets nothing more begin.
    #[cold]
    fn stop(&self) {
        self.idle.stop();
        self.spans.stop();
    }

    fn report(&self, done: &Range<u64>) -> thread::Result<()> {
        let items = self.cut.of(done);
        self.reporter.add(done.end - done.start, items.end - items.start)
    }

    fn finish(self) -> Ran<G::Local, E> {
        let Total { locals, begun, mut causes, mut callback, cancelled, mut workers } =
            into_inner(self.total);
        workers.sort_by_key(|(number, _)| *number);
        let workers = workers.into_iter().map(|(_, worker)| worker).collect();
        let statistics = Statistics { workers };
        let begun = joined(begun);
        causes.sort_by_key(|(index, _)| *index);
        let failed: Vec<u64> = causes.iter().map(|(index, _)| *index).collect();
        let next = begun.first().filter(|range| range.start == 0).map_or(0, |range| range.end);
        let cause = match causes.into_iter().next() {
            Some(failed) => Some(failed),
            None if callback.is_some() => callback.take().map(panicked),
            // A token cancelled after everything had begun stopped nothing.
            None if cancelled && next < self.cut.chunks => Some((next, Cause::Cancelled)),
            // Everything is done: the callback hears of it.
            None => self.reporter.finish().err().map(|payload| panicked((0, payload))),
        };
        let ended = match cause {
            Some((index, cause)) => {
                let mut place = self.cut.place(index);
                if matches!(cause, Cause::Cancelled) {
                    place.items.end = place.items.start;
                }
                Err(Failure { place, cause, statistics })
            }
            None => Ok(statistics),
        };
        Ran { locals, begun, failed, ended }
    }
}

/// The loop over chunks from the batch's current one, as far as the batch lets it go on. Not inlined,
/// so that the compiler knows that nothing in it changes the arguments, and keeps the data's address
/// and the chunk size in registers.
///
/// # Safety
///
/// - The batch is this worker's, and lets each chunk be done once.
/// - The source outlives the job, which nothing else touches.
#[inline(never)]
unsafe fn each<S, W, G, R, E>(
    cut: Cut<'_, S>,
    work: &W,
    gather: &G,
    local: &mut G::Local,
    batch: &Batch,
) -> Result<(), E>
where
    S: Indexed,
    W: for<'c> Fn(Chunk<S::Data<'c>>) -> Result<R, E>,
    G: Gather<R>,
{
    let mut index = batch.at();
    let mut start = cut.start(index);
    // Long, short and last chunks are rounds of their own, so that none compares its size.
    let rest = cut.items - cut.long * cut.size;
    let full = cut.long + rest / cut.short;
    let rounds = [(cut.long, cut.size), (full, cut.short), (cut.chunks, rest % cut.short)];
    for (round_end, size) in rounds {
        while index < round_end {
            let place = Place { index, items: start..start + size };
            // SAFETY: The chunk is this worker's, once (first condition), and the data is there for
            // as long as the function has it (second).
            let data = unsafe { cut.source.part(place.items.clone()) };
            let result = work(Chunk::new(place, data))?;
            // SAFETY: As above: the chunk is this worker's, once.
            unsafe { gather.put(local, index as usize, result) };
            start += size;
            index += 1;
            if !batch.next(index) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn panicked<E>((chunk, payload): (u64, Box<dyn Any + Send>)) -> (u64, Cause<E>) {
    (chunk, Cause::Panic(payload))
}

/// Sorts ranges and joins those that touch.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}
