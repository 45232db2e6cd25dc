//! Fork and join: two functions at once, each of which may fork again.
//!
//! Relies on [`tasks`](crate::tasks) for what is shared, and on the [pool](crate::pool) for threads. The hard idea is
//! the price of a fork that nobody takes: a thread holds a few ready for others, whose second functions stay on its stack,
//! in a list that only this thread touches; more than those are plain calls. Only when another worker looks for work, or is
//! on its way at the beginning, is a fork shared: the oldest, which in a tree has most of the work under it.

use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::executor::Executor;
use crate::pool;
use crate::tasks::Tasks;

/// Forks that a thread holds ready for others. With as many, a further one is two plain calls: in a tree those held have
/// more work under them.
const ENOUGH: usize = 3;

thread_local! {
    /// This thread's part in a job of forks.
    static WORKER: Cell<*const Worker<'static>> = const { Cell::new(ptr::null()) };
}

/// Calls both functions, at once if there is a free core, and returns both results. Each may call `join` again: a fork
/// that nobody takes costs some nanoseconds, so that a tree of calls can fork down to small leaves.
///
/// ```
/// fn sum(numbers: &[u64]) -> u64 {
///     if numbers.len() < 100 {
///         return numbers.iter().sum();
///     }
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     let (left, right) = masu_chunk::join(|| sum(left), || sum(right));
///     left + right
/// }
/// assert_eq!(sum(&[1; 10_000]), 10_000);
/// ```
///
/// The first function runs on the calling thread. The second can be taken by a worker that is free at that time, and later
/// when this thread forks again: fork down to small leaves, and let the function that forks on be the second in a chain.
/// A thread that waits for a result does others' functions until then, so hold no lock that they take too.
///
/// # Panics
///
/// If one of the functions does, with its payload, after the other has ended or was not begun.
#[inline]
pub fn join<A, B, RA, RB>(first: A, second: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    let worker = WORKER.get();
    if worker.is_null() {
        return outermost(&Executor::new(), first, second);
    }
    // SAFETY: It points to a worker further down this thread's stack, which takes the pointer back before it goes.
    unsafe { &*worker }.join(first, second)
}

impl Executor<'_> {
    /// [`join`](crate::join) on as many workers as this executor has, as far as its concurrency allows; within another fork,
    /// on those of the outermost. The other settings are for chunks.
    ///
    /// ```
    /// let (left, right) = masu_chunk::Executor::new().workers(2).join(|| 1 + 1, || "two".len());
    /// assert_eq!((left, right), (2, 3));
    /// ```
    ///
    /// # Panics
    ///
    /// If one of the functions does, with its payload, after the other has ended or was not begun.
    pub fn join<A, B, RA, RB>(&self, first: A, second: B) -> (RA, RB)
    where
        A: FnOnce() -> RA,
        B: FnOnce() -> RB + Send,
        RB: Send,
    {
        if WORKER.get().is_null() { outermost(self, first, second) } else { join(first, second) }
    }
}

#[cold]
fn outermost<A, B, RA, RB>(executor: &Executor<'_>, first: A, second: B) -> (RA, RB)
where
    A: FnOnce() -> RA,
    B: FnOnce() -> RB + Send,
    RB: Send,
{
    let tasks = Tasks::new();
    let help = |_| {
        Worker::new(&tasks).within(|_| {
            while let Some(task) = tasks.next() {
                // SAFETY: It was shared, and the thread that gets it from `tasks` runs it, once.
                unsafe { task.run(&tasks) };
            }
        });
    };
    pool::beside(executor.workers_in_function(), &help, |help| {
        let _end = End(&tasks);
        tasks.expect(help.call());
        Worker::new(&tasks).within(|worker| worker.join(first, second))
    })
}

/// Sends the helpers home, also when a function panicked.
struct End<'t>(&'t Tasks<Task>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A thread with its forks that are not shared, in a list from the oldest to the newest.
struct Worker<'t> {
    tasks: &'t Tasks<Task>,
    oldest: Cell<*const Header>,
    newest: Cell<*const Header>,
    /// The length of the list.
    count: Cell<usize>,
}

/// The part of a fork that does not depend on its functions.
struct Header {
    /// Runs the second function and keeps its result.
    run: unsafe fn(*const Header),
    older: Cell<*const Header>,
    newer: Cell<*const Header>,
    /// Read and written by the owner's thread alone.
    is_shared: Cell<bool>,
    is_done: AtomicBool,
}

#[repr(C)]
struct Fork<B, R> {
    header: Header,
    second: UnsafeCell<Option<B>>,
    result: UnsafeCell<Option<thread::Result<R>>>,
}

/// A fork that was shared.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Task(*const Header);

// SAFETY: What a task leads to, another thread may run: the second function and its result are `Send`.
unsafe impl Send for Task {}

impl Task {
    /// # Safety
    ///
    /// The task came from `tasks`, and is run once.
    unsafe fn run(self, tasks: &Tasks<Task>) {
        // SAFETY: The fork's owner waits until it is done.
        unsafe { ((*self.0).run)(self.0) };
        // SAFETY: As above; this store is the last touch.
        // ORDERING: Release: the owner that sees it reads the result.
        tasks.finish(|| unsafe { (*self.0).is_done.store(true, Ordering::Release) });
    }
}

impl<B: FnOnce() -> R, R> Fork<B, R> {
    fn new(second: B) -> Self {
        let header = Header {
            run: Self::run,
            older: Cell::new(ptr::null()),
            newer: Cell::new(ptr::null()),
            is_shared: Cell::new(false),
            is_done: AtomicBool::new(false),
        };
        Self { header, second: UnsafeCell::new(Some(second)), result: UnsafeCell::new(None) }
    }

    /// # Safety
    ///
    /// `header` is that of such a fork, which nobody else touches until it is done.
    unsafe fn run(header: *const Header) {
        let fork = header.cast::<Self>();
        // SAFETY: The header is the first field, and nobody else touches the fork.
        let second = unsafe { (*(*fork).second.get()).take() };
        let result = second.map(|second| catch_unwind(AssertUnwindSafe(second)));
        // SAFETY: As above.
        unsafe { *(*fork).result.get() = result };
    }
}

impl<'t> Worker<'t> {
    fn new(tasks: &'t Tasks<Task>) -> Self {
        let (oldest, newest) = (Cell::new(ptr::null()), Cell::new(ptr::null()));
        Self { tasks, oldest, newest, count: Cell::new(0) }
    }

    /// Makes this the thread's worker while `body` runs.
    fn within<R>(&self, body: impl FnOnce(&Self) -> R) -> R {
        struct Before(*const Worker<'static>);
        impl Drop for Before {
            fn drop(&mut self) {
                WORKER.set(self.0);
            }
        }
        let _before = Before(WORKER.replace(ptr::from_ref(self).cast()));
        body(self)
    }

    #[inline]
    fn join<A, B, RA, RB>(&self, first: A, second: B) -> (RA, RB)
    where
        A: FnOnce() -> RA,
        B: FnOnce() -> RB + Send,
        RB: Send,
    {
        if self.count.get() >= ENOUGH {
            if !self.tasks.are_wanted() {
                return (first(), second());
            }
            self.share();
        }
        let fork = Fork::new(second);
        let header = ptr::from_ref(&fork).cast::<Header>();
        self.push(header);
        if self.tasks.are_wanted() {
            self.share();
        }
        // Caught, so that others' functions, which run here until the second is done, see no panic under way.
        let first = catch_unwind(AssertUnwindSafe(first));
        let is_shared = !self.pop(header) && !self.come_back(header);
        let first = first.unwrap_or_else(|payload| resume_unwind(payload));
        if is_shared {
            // SAFETY: It is done: the thread that ran it touches it no more.
            return match unsafe { (*fork.result.get()).take() } {
                Some(Ok(second)) => (first, second),
                Some(Err(payload)) => resume_unwind(payload),
                None => unreachable!("a task that was run has a result"),
            };
        }
        // SAFETY: Nobody else has got it, nor will.
        match unsafe { (*fork.second.get()).take() } {
            Some(second) => (first, second()),
            None => unreachable!("nobody took it"),
        }
    }

    /// Adds the newest fork, which stays where it is until [`Self::pop`].
    #[inline(always)]
    fn push(&self, header: *const Header) {
        self.count.set(self.count.get() + 1);
        let older = self.newest.replace(header);
        if older.is_null() {
            self.oldest.set(header);
        } else {
            // SAFETY: Forks in the list are further down this thread's stack, whose frames wait for this one.
            unsafe {
                (*header).older.set(older);
                (*older).newer.set(header);
            }
        }
    }

    /// Removes the newest fork; `false`: it was shared.
    #[inline(always)]
    fn pop(&self, header: *const Header) -> bool {
        // SAFETY: The caller holds the fork; others in the list are further down the stack.
        unsafe {
            if (*header).is_shared.get() {
                return false;
            }
            self.count.set(self.count.get() - 1);
            let older = (*header).older.get();
            if self.oldest.get() == header {
                self.oldest.set(ptr::null());
                self.newest.set(ptr::null());
            } else {
                self.newest.set(older);
            }
        }
        true
    }

    /// Gives the oldest fork to a worker that looks for one, if this process has others.
    #[cold]
    fn share(&self) {
        if pool::is_forked_off() {
            return;
        }
        let header = self.oldest.get();
        // SAFETY: There is one, as the caller has just added it; forks in the list are on this thread's stack.
        unsafe {
            (*header).is_shared.set(true);
            self.count.set(self.count.get() - 1);
            self.oldest.set((*header).newer.get());
        }
        if self.newest.get() == header {
            self.oldest.set(ptr::null());
            self.newest.set(ptr::null());
        }
        self.tasks.share(Task(header));
    }

    /// Takes back a fork that was shared (`true`), or runs others until it is done.
    #[cold]
    fn come_back(&self, header: *const Header) -> bool {
        if self.tasks.take_back(Task(header)) {
            return true;
        }
        // SAFETY: The caller holds the fork.
        // ORDERING: Acquire: with the store of the thread that ran it.
        let is_done = || unsafe { (*header).is_done.load(Ordering::Acquire) };
        while let Some(task) = self.tasks.next_until(is_done) {
            // SAFETY: As in `outermost`.
            unsafe { task.run(self.tasks) };
        }
        false
    }
}
