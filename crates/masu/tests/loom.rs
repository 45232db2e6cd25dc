//! The protocols of `src/platform/sync/` under loom: the lock here, lock-free reads in `loom/published.rs`.
//! Loom runs every interleaving and every value that the memory model allows; for the lock up to three
//! preemptions.
//!
//! `cargo xtask ci` runs it; by hand: `RUSTFLAGS="--cfg loom" cargo test -p masu --test loom`.
//!
//! It relies on `src/platform/sync/raw_lock.rs` taking its atomics and its futex from the module around it:
//! here a *door* with loom's atomics and a modelled futex. Broken doors hold the same source, and loom must
//! find each fault, which shows that the check can fail.
#![cfg(loom)]
#![expect(clippy::duplicate_mod, reason = "several doors hold one source")]

#[path = "loom/published.rs"]
mod published;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread::{self, Thread};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// A futex: the sleeping threads. One is enough, because a model has one word to sleep on.
///
/// The futex's lock is invisible to loom, which switches threads only at its own operations; the code between two of
/// them is atomic, as under the kernel's lock.
#[derive(Default)]
struct Futex {
    sleepers: std::sync::Mutex<Vec<Thread>>,
}

loom::lazy_static! {
    static ref FUTEX: Futex = Futex::default();
}

impl Futex {
    fn wait_while(&self, word: &AtomicU32, expected: u32) {
        // ORDERING: Relaxed, the weakest that a kernel could use; a read-modify-write reads the newest
        // value, as a read under the kernel's lock does.
        if word.fetch_or(0, Ordering::Relaxed) == expected {
            self.sleep();
        }
    }

    /// A broken futex: it sleeps for any value of the word.
    fn wait_always(&self, word: &AtomicU32, _expected: u32) {
        // ORDERING: Relaxed, as above.
        let _ = word.fetch_or(0, Ordering::Relaxed);
        self.sleep();
    }

    fn sleep(&self) {
        self.sleepers.lock().expect("no thread panics").push(thread::current());
        thread::park();
    }

    fn wake_one(&self) {
        let sleeper = self.sleepers.lock().expect("no thread panics").pop();
        sleeper.iter().for_each(Thread::unpark);
    }

    /// A broken futex: it wakes nobody.
    fn wake_none(&self) {}
}

/// Makes a door with the lock: its orderings, its sleep, its wake-up.
macro_rules! door {
    ($name:ident, $orderings:ident, $wait_while:ident, $wake_one:ident) => {
        #[path = "."]
        mod $name {
            use loom::sync::atomic::AtomicU32;

            use crate::orderings::$orderings as Ordering;

            #[path = "../src/platform/sync/raw_lock.rs"]
            mod raw_lock;

            pub(crate) use raw_lock::RawLock;

            fn this_holder() -> u32 {
                crate::this_holder()
            }

            /// Nothing: loom chooses when another thread runs.
            fn spin_loop() {}

            fn wait_while(word: &AtomicU32, expected: u32) {
                crate::FUTEX.$wait_while(word, expected);
            }

            /// Loom knows no time, so only a release ends this wait.
            fn wait_briefly(word: &AtomicU32, expected: u32) {
                wait_while(word, expected);
            }

            fn holder_is_lost() -> ! {
                unreachable!("nothing forks");
            }

            fn wake_one(_: &AtomicU32) {
                crate::FUTEX.$wake_one();
            }

            impl crate::Raw for RawLock {
                fn new() -> RawLock {
                    RawLock::on(AtomicU32::new(0))
                }
                fn acquire(&self) {
                    self.acquire();
                }
                fn release(&self) {
                    self.release();
                }
                fn hold_for_fork_again(&self) {
                    assert!(self.is_this_threads() && !self.is_held_for_fork());
                    self.let_go_after_fork();
                    assert!(self.is_this_threads());
                }
                fn hold_and_let_go(&self, work: &mut dyn FnMut()) {
                    let mut has_waited = false;
                    while !self.try_hold_for_fork(has_waited) {
                        self.wait_briefly();
                        has_waited = true;
                    }
                    assert!(self.is_held_for_fork());
                    work();
                    self.let_go_after_fork();
                }
            }
        }
    };
}

/// The orderings of the language, also with one of them weakened.
mod orderings {
    macro_rules! orderings {
        ($name:ident, $acquire:ident, $release:ident) => {
            #[expect(non_snake_case, non_upper_case_globals, reason = "replaces the enum")]
            pub(crate) mod $name {
                use loom::sync::atomic::Ordering;

                pub(crate) const Relaxed: Ordering = Ordering::Relaxed;
                pub(crate) const Acquire: Ordering = Ordering::$acquire;
                pub(crate) const Release: Ordering = Ordering::$release;
            }
        };
    }
    orderings!(Sound, Acquire, Release);
    orderings!(NoAcquire, Relaxed, Release);
    orderings!(NoRelease, Acquire, Relaxed);
}

door!(sound, Sound, wait_while, wake_one);
door!(without_acquire, NoAcquire, wait_while, wake_one);
door!(without_release, NoRelease, wait_while, wake_one);
door!(without_wake, Sound, wait_while, wake_none);
door!(sleeping_without_a_check, Sound, wait_always, wake_one);

/// A number for this thread, not 0, with the lowest bits free for the lock.
fn this_holder() -> u32 {
    let mut hasher = DefaultHasher::new();
    thread::current().id().hash(&mut hasher);
    (hasher.finish() as u32) << 3 | 4
}

/// The lock behind any of the doors.
trait Raw: Send + Sync + 'static {
    fn new() -> Self;
    fn acquire(&self);
    fn release(&self);
    /// As around a `fork` in a handler that interrupts the holder.
    fn hold_for_fork_again(&self);
    /// As around a `fork`.
    fn hold_and_let_go(&self, work: &mut dyn FnMut());
}

/// A count that the lock guards; loom finds unordered accesses.
struct Counter<L> {
    lock: L,
    count: UnsafeCell<usize>,
}

// SAFETY: The count is only accessed under the lock, which loom checks here.
unsafe impl<L: Sync> Sync for Counter<L> {}

impl<L: Raw> Counter<L> {
    fn increment(&self) {
        self.lock.acquire();
        // SAFETY: The lock is held, so the pointer is the only one.
        self.count.with_mut(|count| unsafe { *count += 1 });
        self.lock.release();
    }

    /// The same under a lock that is held for a `fork`.
    fn increment_between_handlers(&self) {
        self.lock.hold_and_let_go(&mut || {
            // SAFETY: As above.
            self.count.with_mut(|count| unsafe { *count += 1 });
        });
    }

    /// The same with a `fork` in a signal handler that interrupts the holder.
    fn increment_interrupted(&self) {
        self.lock.acquire();
        self.lock.hold_for_fork_again();
        // SAFETY: As above.
        self.count.with_mut(|count| unsafe { *count += 1 });
        self.lock.release();
    }
}

/// More interleavings than any model here has, unless a part of the model loops.
const INTERLEAVINGS_MAX: usize = 200_000;

/// Lets `threads` threads add to a count `rounds` times each, in every interleaving.
fn count_under<L: Raw>(threads: usize, rounds: usize) {
    let tried = Arc::new(AtomicUsize::new(0));
    let mut model = Builder::new();
    model.preemption_bound = Some(3);
    model.max_permutations = Some(INTERLEAVINGS_MAX);
    model.check({
        let tried = Arc::clone(&tried);
        move || {
            // ORDERING: Relaxed: loom runs one thread at a time.
            tried.fetch_add(1, Relaxed);
            count_once::<L>(threads, rounds);
        }
    });
    // ORDERING: As above.
    let tried = tried.load(Relaxed);
    println!("{threads} threads, {rounds} rounds: {tried} interleavings");
    assert!(tried < INTERLEAVINGS_MAX, "not all were tried: does the lock spin long under loom?");
}

fn count_once<L: Raw>(threads: usize, rounds: usize) {
    // Leaked: dropping a loom object while a found deadlock unwinds would abort the test.
    let counter: &Counter<L> =
        Box::leak(Box::new(Counter { lock: L::new(), count: UnsafeCell::new(0) }));
    let others: Vec<_> = (1..threads)
        .map(|_| thread::spawn(move || (0..rounds).for_each(|_| counter.increment())))
        .collect();
    (0..rounds).for_each(|_| counter.increment());
    others.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    // SAFETY: All other threads have ended.
    let count = counter.count.with(|count| unsafe { *count });
    assert_eq!(count, threads * rounds);
}

#[test]
fn threads_exclude_each_other_and_no_wake_up_is_lost() {
    count_under::<sound::RawLock>(2, 3);
    count_under::<sound::RawLock>(3, 2);
}

#[test]
fn a_thread_that_forks_excludes_the_others_wherever_it_is_interrupted() {
    let mut model = Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let counter: &Counter<sound::RawLock> =
            Box::leak(Box::new(Counter { lock: Raw::new(), count: UnsafeCell::new(0) }));
        let other = thread::spawn(|| {
            counter.increment();
            counter.increment_between_handlers();
        });
        counter.increment_between_handlers();
        counter.increment_interrupted();
        other.join().expect("no thread panics");
        // SAFETY: The other thread has ended.
        assert_eq!(counter.count.with(|count| unsafe { *count }), 4);
    });
}

/// A test for each broken door, which must fail with the message.
macro_rules! found {
    ($($name:ident($door:ident, $message:literal);)*) => {$(
        #[test]
        #[should_panic(expected = $message)]
        fn $name() {
            count_under::<$door::RawLock>(2, 1);
        }
    )*};
}

found! {
    an_acquire_made_relaxed_is_found(without_acquire, "Causality violation");
    a_release_made_relaxed_is_found(without_release, "Causality violation");
    a_release_that_wakes_nobody_is_found(without_wake, "deadlock");
    a_sleep_without_a_check_of_the_word_is_found(sleeping_without_a_check, "deadlock");
}
