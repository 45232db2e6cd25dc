//! The crate's protocols under loom: spans, batches and idle workers, tasks, the window, the pool's seats.
//!
//! `cargo xtask ci` runs it; by hand: `RUSTFLAGS="--cfg loom" cargo test --release -p masu-chunk --test
//! loom`. It relies on the sources taking their atomics and locks from `crate::sync`: here that is a
//! door with loom's. Loom runs every interleaving up to three preemptions; a deadlock or a thread
//! that is never woken fails the model.
#![cfg(loom)]

#[path = "../src/batch.rs"]
mod batch;
#[path = "../src/idle.rs"]
mod idle;
#[path = "../src/pool/seats.rs"]
#[expect(dead_code, reason = "how helpers are hired is no protocol")]
mod seats;
#[path = "../src/spans.rs"]
mod spans;
#[path = "loom/sync.rs"]
mod sync;
#[path = "../src/tasks.rs"]
mod tasks;
#[path = "../src/window.rs"]
mod window;

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread;

use batch::{Batch, Turn};
use idle::Idle;
use seats::Seats;
use spans::Spans;
use tasks::Tasks;
use window::{Next, Window};

fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

/// A job as `indexed.rs` runs it.
struct Job {
    spans: Spans,
    idle: Idle,
    /// The number of times that each chunk was done. Loom reports two threads at one of them.
    done: Vec<UnsafeCell<u32>>,
}

impl Job {
    fn new(chunks: u64, workers: usize) -> Arc<Self> {
        let done = (0..chunks).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Self { spans: Spans::new(chunks, workers), idle: Idle::new(), done })
    }

    fn run(&self, worker: usize, most: u32) {
        self.run_until(worker, most, || false);
    }

    /// With a worker that leaves when it finds no chunk and is wanted elsewhere.
    fn run_until(&self, worker: usize, most: u32, is_wanted: impl Fn() -> bool) {
        if !self.idle.enter() {
            return;
        }
        loop {
            let Some(_) = self.spans.take(worker, most, true) else {
                let (steal, rob) = (|| self.spans.steal(worker), || self.spans.rob(worker));
                if self.idle.look(steal, rob, &is_wanted) {
                    continue;
                }
                break;
            };
            if self.idle.is_stopped() {
                break;
            }
            self.share(worker);
            let mut at = self.spans.batch(worker).at();
            loop {
                self.done[at as usize].with_mut(|done| {
                    // SAFETY: Loom checks that no other thread accesses it.
                    unsafe { *done += 1 };
                });
                at += 1;
                if self.spans.batch(worker).next(at) {
                    continue;
                }
                match self.spans.turn(worker, at) {
                    Turn::Go => {}
                    Turn::Share => self.share(worker),
                    Turn::Over => break,
                }
            }
        }
    }

    fn share(&self, worker: usize) {
        self.idle.share(|| self.spans.has_more(worker));
    }

    fn stop(&self) {
        self.idle.stop();
        self.spans.stop();
    }

    fn assert_done_once_each(&self) {
        for done in &self.done {
            // SAFETY: The other threads have ended.
            done.with(|done| assert_eq!(unsafe { *done }, 1));
        }
    }
}

#[test]
fn every_chunk_is_done_once_and_no_worker_sleeps_forever() {
    every_chunk_is_done_once();
}

fn every_chunk_is_done_once() {
    model(|| {
        let job = Job::new(3, 2);
        let helper = thread::spawn({
            let job = Arc::clone(&job);
            move || job.run(1, 2)
        });
        job.run(0, 2);
        helper.join().unwrap();
        job.assert_done_once_each();
    });
}

/// A batch of all three chunks, from which another worker steals.
fn a_batch_is_robbed() {
    model(|| {
        let batch = Arc::new(Batch::new());
        let done: Arc<Vec<_>> = Arc::new((0..3).map(|_| UnsafeCell::new(0_u32)).collect());
        // SAFETY: Loom checks that no other thread accesses it.
        let work = |done: &[UnsafeCell<u32>], at: u64| {
            done[at as usize].with_mut(|done| unsafe { *done += 1 })
        };
        batch.begin(&(0..3));
        let robber = thread::spawn({
            let (batch, done) = (Arc::clone(&batch), Arc::clone(&done));
            move || {
                for _ in 0..2 {
                    batch.rob(1).into_iter().flatten().for_each(|at| work(&done, at));
                }
            }
        });
        let mut at = 0;
        loop {
            work(&done, at);
            at += 1;
            if !batch.next(at) && batch.turn(at, 1) == Turn::Over {
                break;
            }
        }
        robber.join().unwrap();
        let all = done.iter().all(|done| {
            // SAFETY: The other thread has ended.
            done.with(|done| unsafe { *done } == 1)
        });
        assert!(all, "each chunk is done, and once");
    });
}

#[test]
fn a_chunk_of_a_batch_has_one_worker() {
    a_batch_is_robbed();
}

#[test]
fn a_chunk_of_a_batch_has_one_worker_without_a_fence_for_two() {
    sync::REFUSES.set(true);
    a_batch_is_robbed();
}

#[test]
fn no_worker_sleeps_forever_without_a_fence_for_two() {
    sync::REFUSES.set(true);
    every_chunk_is_done_once();
}

#[test]
fn a_helper_that_never_comes_is_not_missed() {
    model(|| {
        let job = Job::new(4, 3);
        job.run(0, 4);
        job.assert_done_once_each();
    });
}

#[test]
fn a_helper_that_is_wanted_elsewhere_leaves() {
    model(|| {
        let job = Job::new(3, 2);
        let helper = thread::spawn({
            let job = Arc::clone(&job);
            move || job.run_until(1, 2, || true)
        });
        job.run(0, 2);
        helper.join().unwrap();
        job.assert_done_once_each();
    });
}

#[test]
fn a_stopped_job_lets_everybody_go() {
    model(|| {
        let job = Job::new(2, 2);
        let helper = thread::spawn({
            let job = Arc::clone(&job);
            move || job.run(1, 1)
        });
        job.stop();
        job.run(0, 1);
        helper.join().unwrap();
    });
}

/// Pulls chunks as `stream.rs` does, and delivers into `taken`.
fn stream(
    window: &Window<u64>,
    next: &loom::sync::Mutex<u64>,
    taken: &UnsafeCell<Vec<u64>>,
    chunks: u64,
) {
    loop {
        let index = {
            let mut next = next.lock().unwrap();
            if *next == chunks || !window.admit(*next) {
                break;
            }
            *next += 1;
            *next - 1
        };
        window.put(index, index, |result| {
            // SAFETY: Loom checks that one thread at a time delivers.
            taken.with_mut(|taken| unsafe { (*taken).push(result) });
            Next::Go
        });
    }
}

#[test]
fn results_are_delivered_in_order_and_by_one_thread_at_a_time() {
    model(|| {
        let shared = Arc::new((
            Window::new(2, true),
            loom::sync::Mutex::new(0),
            UnsafeCell::new(Vec::new()),
        ));
        let helper = thread::spawn({
            let shared = Arc::clone(&shared);
            move || stream(&shared.0, &shared.1, &shared.2, 2)
        });
        stream(&shared.0, &shared.1, &shared.2, 2);
        helper.join().unwrap();
        // SAFETY: The other thread has ended.
        shared.2.with(|taken| assert_eq!(unsafe { &*taken }, &[0, 1]));
    });
}

#[test]
fn a_closing_window_releases_waiting_workers() {
    model(|| {
        let window = Arc::new(Window::new(1, true));
        let helper = thread::spawn({
            let window = Arc::clone(&window);
            move || window.admit(1)
        });
        window.put(0, 0, |_| Next::Stop);
        assert!(!helper.join().unwrap());
    });
}

#[test]
fn a_withdrawn_job_is_touched_by_nobody() {
    model(|| {
        let seats = Arc::new(Seats::<u64>::new());
        let body = Arc::new(UnsafeCell::new(0_u32));
        let (job, _) = seats.offer(7, 1);
        let helper = thread::spawn({
            let (seats, body) = (Arc::clone(&seats), Arc::clone(&body));
            move || {
                let taken = seats.sit_down();
                // The second job is empty, and ends this thread.
                if taken.body == 7 {
                    // SAFETY: Loom watches that the owner is done waiting only after this.
                    body.with_mut(|body| unsafe { *body += 1 });
                }
                seats.get_up(taken.job);
            }
        });
        seats.withdraw(job);
        // SAFETY: No thread works on the job any more, which loom checks.
        body.with_mut(|body| unsafe { *body += 1 });
        let (last, _) = seats.offer(8, 1);
        helper.join().unwrap();
        seats.withdraw(last);
    });
}

/// An owner shares a task, and gets it back and does it, or waits until the helper has done it; then both go home.
fn shared_task(others: usize, expected: usize) {
    let tasks = Arc::new((
        Tasks::new(),
        loom::sync::atomic::AtomicUsize::new(0),
        // The number of times that the task was done. Loom reports two threads at it.
        UnsafeCell::new(0_u32),
    ));
    // SAFETY: Loom checks that no other thread accesses it.
    let work = |count: &UnsafeCell<u32>| count.with_mut(|count| unsafe { *count += 1 });
    let helpers: Vec<_> = (0..others)
        .map(|_| {
            let tasks = Arc::clone(&tasks);
            thread::spawn(move || {
                let (tasks, done, count) = &*tasks;
                while let Some(task) = tasks.next() {
                    assert_eq!(task, 7);
                    work(count);
                    tasks.finish(|| {
                        done.fetch_add(1, loom::sync::atomic::Ordering::Release);
                    });
                }
            })
        })
        .collect();
    let (shared, done, count) = &*tasks;
    let is_done = || done.load(loom::sync::atomic::Ordering::Acquire) == 1;
    shared.expect(expected);
    // Forks share where somebody looks for a task, or is expected.
    let is_shared = shared.are_wanted();
    assert!(is_shared || expected == 0);
    if is_shared {
        shared.share(7);
    }
    if is_shared && !shared.take_back(7) {
        assert_eq!(shared.next_until(is_done), None);
        assert!(is_done());
    } else {
        work(count);
    }
    // SAFETY: Loom checks that no other thread accesses it.
    count.with(|count| assert_eq!(unsafe { *count }, 1));
    shared.end();
    for helper in helpers {
        helper.join().unwrap();
    }
    // SAFETY: The other threads have ended.
    count.with(|count| assert_eq!(unsafe { *count }, 1));
}

#[test]
fn a_shared_task_is_done_once_and_nobody_sleeps_for_ever() {
    model(|| shared_task(1, 1));
    model(|| shared_task(1, 0));
}

#[test]
fn one_of_two_helpers_does_a_shared_task() {
    model(|| shared_task(2, 1));
}

#[test]
fn an_owner_wakes_for_its_task_whoever_waits_beside_it() {
    model(|| {
        let tasks = Arc::new((
            Tasks::<usize>::new(),
            [(); 2].map(|()| loom::sync::atomic::AtomicUsize::new(0)),
        ));
        let owners = [0, 1].map(|task: usize| {
            let tasks = Arc::clone(&tasks);
            thread::spawn(move || {
                let done = || tasks.1[task].load(loom::sync::atomic::Ordering::Acquire) == 1;
                assert_eq!(tasks.0.next_until(done), None);
            })
        });
        for (task, owner) in owners.into_iter().enumerate() {
            tasks.0.finish(|| tasks.1[task].store(1, loom::sync::atomic::Ordering::Release));
            owner.join().unwrap();
        }
    });
}

/// Two tasks for a helper and for an owner that waits. Each ends when both have begun.
#[test]
fn nobody_sleeps_while_a_task_waits() {
    model(|| {
        let shared = Arc::new((Tasks::new(), Both::default()));
        let others: Vec<_> = [false, true]
            .map(|is_owner| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let (tasks, both) = &*shared;
                    let task = if is_owner { tasks.next_until(|| false) } else { tasks.next() };
                    assert!(task.is_some());
                    both.begin();
                })
            })
            .into();
        shared.0.share(0);
        shared.0.share(1);
        for other in others {
            other.join().unwrap();
        }
    });
}

#[derive(Default)]
struct Both {
    begun: loom::sync::Mutex<usize>,
    changed: loom::sync::Condvar,
}

impl Both {
    fn begin(&self) {
        let mut begun = self.begun.lock().unwrap();
        *begun += 1;
        self.changed.notify_all();
        while *begun < 2 {
            begun = self.changed.wait(begun).unwrap();
        }
    }
}

#[test]
fn a_waiting_owner_does_another_s_task() {
    model(|| {
        let tasks =
            Arc::new((Tasks::new(), [(); 2].map(|()| loom::sync::atomic::AtomicUsize::new(0))));
        let helper = {
            let tasks = Arc::clone(&tasks);
            thread::spawn(move || {
                let (tasks, done) = &*tasks;
                while let Some(task) = tasks.next() {
                    if task == 0 {
                        // A task that shares another, as a fork within a fork does.
                        tasks.share(1);
                        let is_done = || done[1].load(loom::sync::atomic::Ordering::Acquire) == 1;
                        if !tasks.take_back(1) {
                            while tasks.next_until(is_done).is_some() {}
                        }
                    }
                    tasks.finish(|| done[task].store(1, loom::sync::atomic::Ordering::Release));
                }
            })
        };
        let (shared, done) = &*tasks;
        shared.share(0);
        let is_done = || done[0].load(loom::sync::atomic::Ordering::Acquire) == 1;
        if !shared.take_back(0) {
            while let Some(task) = shared.next_until(is_done) {
                assert_eq!(task, 1);
                shared.finish(|| done[1].store(1, loom::sync::atomic::Ordering::Release));
            }
        }
        shared.end();
        helper.join().unwrap();
    });
}
