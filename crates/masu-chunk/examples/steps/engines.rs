//! The steps: each takes the data and a job, and gives the results in order and the data back.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use masu_chunk::Executor;
use rayon::prelude::*;

use crate::Job;

/// From data and a job to the results and the data.
type Run = fn(Vec<i64>, Job) -> (Vec<i64>, Vec<i64>);

/// A step.
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) run: Run,
}

pub(crate) const ENGINES: &[Engine] = &[
    Engine { name: "loop", about: "a plain loop on one thread", run: plain_loop },
    Engine { name: "threads", about: "a thread for each chunk, which is a copy", run: threads },
    Engine {
        name: "semaphore",
        about: "the same, so many at once as there are workers",
        run: semaphore,
    },
    Engine {
        name: "pool",
        about: "a pool with one locked queue, 10 ms of sleep when it is empty",
        run: pool,
    },
    Engine { name: "channel", about: "the same, results through a channel", run: channel },
    Engine { name: "rayon-copy", about: "rayon on copies of the chunks", run: rayon_copy },
    Engine { name: "rayon", about: "rayon on the slice", run: rayon_slice },
    Engine { name: "ours", about: "masu-chunk on the slice", run: ours },
    Engine { name: "ours-owned", about: "masu-chunk on the vector, handed over", run: ours_owned },
    Engine {
        name: "limit",
        about: "no chunks: each worker sums its share, as fast as memory goes",
        run: limit,
    },
];

fn plain_loop(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
    (data.chunks(job.chunk).map(|chunk| job.work(chunk)).collect(), data)
}

/// Results by the number of their chunk.
type Results = Arc<Mutex<Vec<(usize, i64)>>>;

fn in_order(results: &Results) -> Vec<i64> {
    let mut results = std::mem::take(&mut *results.lock().unwrap());
    results.sort_unstable();
    results.into_iter().map(|(_, result)| result).collect()
}

fn threads(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
    let results = Results::default();
    let mut handles = Vec::new();
    for (index, chunk) in data.chunks(job.chunk).enumerate() {
        let (chunk, results) = (chunk.to_vec(), Arc::clone(&results));
        handles.push(thread::spawn(move || {
            let result = job.work(&chunk);
            results.lock().unwrap().push((index, result));
        }));
        // The report's kept all of them: past the kernel's limit of threads that ends the program.
        if handles.len() == 1000 {
            handles.drain(..).for_each(|handle| handle.join().unwrap());
        }
    }
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    (in_order(&results), data)
}

fn semaphore(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
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
    (in_order(&results), data)
}

/// Chunks that wait, and whether no more will come.
type Queue = Mutex<(VecDeque<(usize, Vec<i64>)>, bool)>;

/// Workers that take chunks from one locked queue and hand results to `put`.
fn with_pool(data: &[i64], job: Job, put: impl Fn(usize, i64) + Clone + Send + 'static) {
    let queue: Arc<Queue> = Arc::default();
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

fn pool(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
    let results = Results::default();
    let shared = Arc::clone(&results);
    with_pool(&data, job, move |index, result| shared.lock().unwrap().push((index, result)));
    (in_order(&results), data)
}

fn channel(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
    let (sender, receiver) = mpsc::channel();
    with_pool(&data, job, move |index, result| sender.send((index, result)).unwrap());
    let results: Results = Arc::new(Mutex::new(receiver.into_iter().collect()));
    (in_order(&results), data)
}

fn rayon_pool(workers: usize) -> &'static rayon::ThreadPool {
    use std::sync::OnceLock;
    static POOL: OnceLock<rayon::ThreadPool> = OnceLock::new();
    let build = || rayon::ThreadPoolBuilder::new().num_threads(workers).build().unwrap();
    POOL.get_or_init(build)
}

fn rayon_copy(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
    let copies = || data.par_chunks(job.chunk).map(<[i64]>::to_vec);
    let map = || copies().map(|chunk| job.work(&chunk)).collect();
    (rayon_pool(job.workers).install(map), data)
}

fn rayon_slice(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
    let map = || data.par_chunks(job.chunk).map(|chunk| job.work(chunk)).collect();
    (rayon_pool(job.workers).install(map), data)
}

fn ours(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
    let executor = Executor::new().chunk(job.chunk).workers(job.workers);
    (executor.slice(&data).map(|chunk| job.work(&chunk)).unwrap().value, data)
}

fn ours_owned(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
    let executor = Executor::new().chunk(job.chunk).workers(job.workers);
    // The data must come back for the next round, so what is handed over is a vector on the same
    // memory, which the executor would free: it is told that there is none.
    let lent = std::mem::ManuallyDrop::new(data);
    let count = lent.len();
    let (first, capacity) = (lent.as_ptr().cast_mut(), lent.capacity());
    // SAFETY: The parts are the vector's, which is not used before the executor is done.
    let results = executor.vec(unsafe { Vec::from_raw_parts(first, count, 0) });
    let results = results.map(|chunk| job.work(&chunk)).unwrap().value;
    // SAFETY: A vector without capacity freed nothing, and numbers are not changed by being dropped.
    (results, unsafe { Vec::from_raw_parts(first, count, capacity) })
}

fn limit(data: Vec<i64>, job: Job) -> (Vec<i64>, Vec<i64>) {
    let share = data.len().div_ceil(job.workers);
    let results = thread::scope(|scope| {
        let sum = |share: &[i64]| black_box(share.iter().sum::<i64>());
        let handles: Vec<_> =
            data.chunks(share.max(1)).map(|share| scope.spawn(move || sum(share))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    (results, data)
}
