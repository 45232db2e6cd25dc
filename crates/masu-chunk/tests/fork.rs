//! The contract of forks and of jobs in the background: results, panics, nesting, and nobody left waiting.

use std::collections::HashSet;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, ThreadId};
use std::time::Duration;
use std::{future::Future, pin::pin, sync::Arc};

use masu_chunk::{Executor, background, join};

#[path = "shared/quietly.rs"]
mod quietly;

use quietly::quietly;

fn sum(numbers: &[u64]) -> u64 {
    match numbers {
        [] => 0,
        [one] => *one,
        more => {
            let (left, right) = more.split_at(more.len() / 2);
            let (left, right) = join(|| sum(left), || sum(right));
            left + right
        }
    }
}

#[test]
fn a_tree_of_forks_gives_the_sum_on_any_number_of_workers() {
    let numbers: Vec<u64> = (0..100_000).collect();
    for workers in [0, 1, 2, 3, 16] {
        for count in [0, 1, 2, 3, 1_000, 100_000] {
            let numbers = &numbers[..count];
            let executor = Executor::new().workers(workers);
            let ((), total) = executor.join(|| (), || sum(numbers));
            assert_eq!(total, numbers.iter().sum::<u64>(), "{workers} workers, {count} numbers");
        }
    }
}

#[test]
fn the_second_function_may_run_at_the_same_time() {
    // The first waits for the second: only two threads can end this.
    let (tell, hear) = mpsc::channel();
    let first = move || loop {
        // A fork is where a worker looks whether another is wanted.
        join(|| (), || ());
        match hear.try_recv() {
            Ok(number) => return number,
            Err(_) => thread::yield_now(),
        }
    };
    let (heard, ()) = Executor::new().workers(2).join(first, move || tell.send(7).unwrap());
    assert_eq!(heard, 7);
}

#[test]
fn functions_that_fork_no_further_run_at_the_same_time() {
    for _ in 0..50 {
        let (tell, hear) = mpsc::channel();
        let first = move || hear.recv_timeout(Duration::from_secs(30));
        let (heard, ()) = Executor::new().workers(2).join(first, move || tell.send(7).unwrap());
        assert_eq!(heard, Ok(7));
    }
    // Each waits for the three others.
    let all = Barrier::new(4);
    let wait = || {
        all.wait();
    };
    Executor::new().workers(4).join(|| join(wait, wait), || join(wait, wait));
}

#[test]
fn concurrency_limits_the_functions_at_once() {
    fn ids(depth: u32) -> HashSet<ThreadId> {
        if depth == 0 {
            return HashSet::from([thread::current().id()]);
        }
        let (mut left, right) = join(|| ids(depth - 1), || ids(depth - 1));
        left.extend(right);
        left
    }
    let executor = Executor::new().workers(4).concurrency(1);
    let ((), ids) = executor.join(|| (), || ids(10));
    assert_eq!(ids, HashSet::from([thread::current().id()]));
}

#[test]
fn a_function_does_not_see_the_panic_of_another() {
    let (has_begun, saw) = (AtomicBool::new(false), AtomicBool::new(false));
    let first = || {
        while !has_begun.load(Ordering::Relaxed) {
            join(thread::yield_now, || ());
        }
        panic!("first");
    };
    // Forks until the thread whose function panicked, and which waits, has done one of the forks.
    let second = || {
        let here = thread::current().id();
        has_begun.store(true, Ordering::Relaxed);
        loop {
            let ask = || (thread::current().id(), thread::panicking());
            let ((), (id, is_panicking)) = join(thread::yield_now, ask);
            if is_panicking || id != here {
                return saw.store(is_panicking, Ordering::Relaxed);
            }
        }
    };
    let both = || Executor::new().workers(2).join(first, second);
    let caught = quietly(|| panic::catch_unwind(AssertUnwindSafe(both)));
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"first"));
    assert!(!saw.load(Ordering::Relaxed));
}

#[test]
fn results_are_borrowed_and_owned_as_the_functions_like() {
    let text = String::from("forked");
    let mut count = 0;
    let (length, upper) = join(
        || {
            count += 1;
            text.len()
        },
        || text.to_uppercase(),
    );
    assert_eq!((length, upper.as_str(), count), (6, "FORKED", 1));
}

#[test]
fn a_panic_comes_back_after_both_functions_are_over() {
    for who in [1, 2, 3] {
        for workers in [1, 2, 4] {
            let ends = AtomicUsize::new(0);
            let one = |number: usize| {
                // Forks enough that another worker gets some.
                let total = sum(&[1; 5_000]);
                ends.fetch_add(1, Ordering::Relaxed);
                assert!(who & number == 0, "number {number} of {total}");
            };
            let both = || Executor::new().workers(workers).join(|| one(1), || one(2));
            let caught = quietly(|| panic::catch_unwind(AssertUnwindSafe(both)));
            let message = caught.unwrap_err();
            let message = message.downcast_ref::<String>().unwrap();
            assert!(message.contains("of 5000"), "{message}");
            assert!((1..=2).contains(&ends.load(Ordering::Relaxed)));
            assert_eq!(sum(&[1; 100]), 100, "forks go on to work");
        }
    }
}

#[test]
fn forks_and_jobs_nest_in_each_other() {
    let numbers: Vec<u64> = (0..10_000).collect();
    let of_job = |numbers: &[u64]| {
        let sums = Executor::new().chunk(100).slice(numbers).map(|chunk| sum(&chunk)).unwrap();
        sums.value.iter().sum::<u64>()
    };
    let (left, right) = join(|| of_job(&numbers), || of_job(&numbers));
    assert_eq!((left, right), (49_995_000, 49_995_000));
}

#[test]
fn threads_fork_at_the_same_time() {
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(sum(&[2; 3_000]), 6_000);
                }
            });
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_forked_within_a_fork_goes_on_alone() {
    unsafe extern "C" {
        fn fork() -> i32;
        fn alarm(seconds: u32) -> u32;
        fn _exit(status: i32) -> !;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    }
    let is_over = AtomicBool::new(false);
    // Shares as often as it can, so that the lock is often held when the process is forked.
    let busy = || {
        while !is_over.load(Ordering::Relaxed) {
            join(|| (), || ());
        }
    };
    let parent = || {
        for _ in 0..300 {
            // SAFETY: The child touches its own memory alone, and ends without returning. One that waits for a thread
            // that it has not got is ended by the alarm.
            let status = unsafe {
                let child = fork();
                if child == 0 {
                    alarm(60);
                    _exit(i32::from(sum(&[1; 100]) != 100));
                }
                let mut status = -1;
                waitpid(child, &raw mut status, 0);
                status
            };
            if status != 0 {
                is_over.store(true, Ordering::Relaxed);
                return status;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        0
    };
    let executor = Executor::new().workers(4);
    let (status, _) = executor.join(parent, || join(busy, busy));
    assert_eq!(status, 0, "the status of a child");
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        thread::park();
    }
}

#[test]
fn a_job_in_the_background_wakes_whoever_awaits_it() {
    let (let_go, wait) = mpsc::channel::<()>();
    let mut job = pin!(background(move || wait.recv().map(|()| sum(&[1; 1_000]))).unwrap());
    let mut context = Context::from_waker(Waker::noop());
    assert!(job.as_mut().poll(&mut context).is_pending());
    let_go.send(()).unwrap();
    assert_eq!(block_on(job), Ok(1_000));
}

#[test]
fn a_job_in_the_background_holds_only_the_task_that_awaits_it() {
    let (let_go, wait) = mpsc::channel::<()>();
    let (tell, hear) = mpsc::channel();
    let mut job = background(move || tell.send(wait.recv()).unwrap()).unwrap();
    let tasks = [(); 2].map(|()| Arc::new(Unpark(thread::current())));
    for task in &tasks {
        let waker = Waker::from(Arc::clone(task));
        assert!(pin!(&mut job).poll(&mut Context::from_waker(&waker)).is_pending());
    }
    assert_eq!(tasks.each_ref().map(Arc::strong_count), [1, 2]);
    drop(job);
    assert_eq!(tasks.each_ref().map(Arc::strong_count), [1, 1]);
    let_go.send(()).unwrap();
    assert_eq!(hear.recv().unwrap(), Ok(()), "the work goes on");
}

#[test]
fn a_panic_in_the_background_goes_on_where_it_is_awaited() {
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    let caught = quietly(|| {
        let job = background(|| -> u8 {
            HAS_BEGUN.store(true, Ordering::Relaxed);
            panic!("in the background")
        });
        panic::catch_unwind(AssertUnwindSafe(|| block_on(job.unwrap())))
    });
    assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"in the background"));
    assert!(HAS_BEGUN.load(Ordering::Relaxed));
}
