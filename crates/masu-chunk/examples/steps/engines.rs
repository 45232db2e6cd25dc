//! The steps: each takes the data and a job, and returns the results in order. It also returns the data, unless the
//! caller handed it over.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use masu_chunk::Executor;
use rayon::prelude::*;

use crate::{Item, Job};

/// A step: it takes data and a job, and returns the results and the data.
type Run<T> = fn(Vec<T>, Job) -> (Vec<i64>, Option<Vec<T>>);

pub(crate) struct Engine<T> {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: Run<T>,
}

const fn engine<T>(name: &'static str, about: &'static str, run: Run<T>) -> Engine<T> {
    Engine { name, about, run }
}

pub(crate) fn engines<T: Item>() -> [Engine<T>; 11] {
    [
        engine("none", "nothing is worked on: what the rest of the program takes", nothing),
        engine("loop", "a plain loop on one thread", plain_loop),
        engine("threads", "a thread for each chunk, which is a copy", threads),
        engine("semaphore", "the same, so many at once as there are workers", semaphore),
        engine("pool", "a pool with one locked queue, 10 ms of sleep when it is empty", pool),
        engine("channel", "the same, results through a channel", channel),
        engine("rayon-copy", "rayon on copies of the chunks", rayon_copy),
        engine("rayon", "rayon on the slice", rayon_slice),
        engine("ours", "masu-chunk on the slice", ours),
        engine("ours-owned", "masu-chunk on the vector, handed over", ours_owned),
        engine("limit", "no chunks: each worker sums its share, as fast as memory goes", limit),
    ]
}

fn nothing<T: Item>(data: Vec<T>, _: Job) -> (Vec<i64>, Option<Vec<T>>) {
    (Vec::new(), Some(data))
}

fn plain_loop<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    (data.chunks(job.chunk).map(|chunk| job.work(chunk)).collect(), Some(data))
}

/// Results by the number of their chunk.
type Results = Arc<Mutex<Vec<(usize, i64)>>>;

fn in_order(results: &Results) -> Vec<i64> {
    let mut results = std::mem::take(&mut *results.lock().unwrap());
    results.sort_unstable();
    results.into_iter().map(|(_, result)| result).collect()
}

fn threads<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    let results = Results::default();
    let mut handles = Vec::new();
    for (index, chunk) in data.chunks(job.chunk).enumerate() {
        let (chunk, results) = (chunk.to_vec(), Arc::clone(&results));
        handles.push(thread::spawn(move || {
            let result = job.work(&chunk);
            results.lock().unwrap().push((index, result));
        }));
        // The report's program kept all threads, which ends the program past the kernel's limit of threads.
        if handles.len() == 1000 {
            handles.drain(..).for_each(|handle| handle.join().unwrap());
        }
    }
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    (in_order(&results), Some(data))
}

fn semaphore<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    let permits = Arc::new((Mutex::new(job.workers), Condvar::new()));
    let results = Results::default();
    let mut handles = Vec::new();
    for (index, chunk) in data.chunks(job.chunk).enumerate() {
        let (chunk, results) = (chunk.to_vec(), Arc::clone(&results));
        let permits = Arc::clone(&permits);
        handles.push(thread::spawn(move || {
            let mut free = permits.0.lock().unwrap();
            while *free == 0 {
                free = permits.1.wait(free).unwrap();
            }
            *free -= 1;
            drop(free);
            let result = job.work(&chunk);
            *permits.0.lock().unwrap() += 1;
            permits.1.notify_one();
            results.lock().unwrap().push((index, result));
        }));
        if handles.len() == 1000 {
            handles.drain(..).for_each(|handle| handle.join().unwrap());
        }
    }
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    (in_order(&results), Some(data))
}

/// Chunks that wait, and whether no more will come.
type Queue<T> = Mutex<(VecDeque<(usize, Vec<T>)>, bool)>;

/// Workers that take chunks from one locked queue and hand results to `put`.
fn with_pool<T: Item>(data: &[T], job: Job, put: impl Fn(usize, i64) + Clone + Send + 'static) {
    let queue: Arc<Queue<T>> = Arc::default();
    let work = |put: Box<dyn Fn(usize, i64) + Send>| {
        let queue = Arc::clone(&queue);
        thread::spawn(move || {
            loop {
                let mut locked = queue.lock().unwrap();
                let (chunk, ended) = (locked.0.pop_front(), locked.1);
                drop(locked);
                match chunk {
                    Some((index, chunk)) => put(index, job.work(&chunk)),
                    None if ended => break,
                    None => thread::sleep(Duration::from_millis(10)),
                }
            }
        })
    };
    let handles: Vec<_> = (0..job.workers).map(|_| work(Box::new(put.clone()))).collect();
    for (index, chunk) in data.chunks(job.chunk).enumerate() {
        queue.lock().unwrap().0.push_back((index, chunk.to_vec()));
    }
    queue.lock().unwrap().1 = true;
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

fn pool<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    let results = Results::default();
    let shared = Arc::clone(&results);
    with_pool(&data, job, move |index, result| shared.lock().unwrap().push((index, result)));
    (in_order(&results), Some(data))
}

fn channel<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    let (sender, receiver) = mpsc::channel();
    with_pool(&data, job, move |index, result| sender.send((index, result)).unwrap());
    let results: Results = Arc::new(Mutex::new(receiver.into_iter().collect()));
    (in_order(&results), Some(data))
}

fn rayon_pool(workers: usize) -> &'static rayon::ThreadPool {
    use std::sync::OnceLock;
    static POOL: OnceLock<rayon::ThreadPool> = OnceLock::new();
    let build = || rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
    POOL.get_or_init(build)
}

fn rayon_copy<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    let copies = || data.par_chunks(job.chunk).map(<[T]>::to_vec);
    let map = || copies().map(|chunk| job.work(&chunk)).collect();
    (rayon_pool(job.workers).install(map), Some(data))
}

fn rayon_slice<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    let map = || data.par_chunks(job.chunk).map(|chunk| job.work(chunk)).collect();
    (rayon_pool(job.workers).install(map), Some(data))
}

fn ours<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    let executor = Executor::new().chunk(job.chunk).workers(job.workers);
    (executor.slice(&data).map(|chunk| job.work(&chunk)).unwrap().value, Some(data))
}

fn ours_owned<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    let executor = Executor::new().chunk(job.chunk).workers(job.workers);
    (executor.vec(data).map(|chunk| job.work(&chunk)).unwrap().value, None)
}

fn limit<T: Item>(data: Vec<T>, job: Job) -> (Vec<i64>, Option<Vec<T>>) {
    let share = data.len().div_ceil(job.workers);
    let results = thread::scope(|scope| {
        let sum = |share: &[T]| black_box(share.iter().map(|item| item.widen()).sum::<i64>());
        let handles: Vec<_> =
            data.chunks(share.max(1)).map(|share| scope.spawn(move || sum(share))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    (results, Some(data))
}
