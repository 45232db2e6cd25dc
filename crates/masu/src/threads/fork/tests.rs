//! `fork` beside threads that hold locks, with real locks and real processes.
//!
//! Each test runs in a process of its own, which is ended if it takes long: a `fork` that waits for ever is what is
//! looked for. The thread that holds a lock while it forks stands for code that a signal interrupted.

extern crate std;

use std::sync::Barrier;
use std::thread;
use std::time::Duration;
use std::vec::Vec;

use super::*;
use crate::platform::alone::{self, run_alone};

const SIGABRT: i32 = 6;

/// Forks, runs `work` in the child, and returns the child's status: its exit status, or 256 and the signal that ended
/// it.
fn in_child(work: impl FnOnce() -> bool) -> i32 {
    // SAFETY: The child calls nothing but `work`, whose locks the handlers have seen to.
    let child = unsafe { ::libc::fork() };
    if child == 0 {
        let status = if work() { 0 } else { 1 };
        // SAFETY: It ends the child and nothing else.
        unsafe { ::libc::_exit(status) };
    }
    assert!(child > 0, "a child");
    let mut status = 0;
    // SAFETY: The status is this function's.
    assert_eq!(unsafe { ::libc::waitpid(child, &raw mut status, 0) }, child);
    if status & 0x7f == 0 { status >> 8 } else { 256 + (status & 0x7f) }
}

/// Begins a test in a process of its own, which a signal ends if it waits for ever.
fn begin() {
    // SAFETY: The signal ends the process.
    unsafe { ::libc::alarm(120) };
    watch();
}

/// The modules with locks, in the order of ranks.
const MODULES: &[fn(Visit<'_>)] = &[
    all::each_lock,
    idle::each_lock,
    owner::each_lock,
    owner::each_lock_of_heaps,
    shard::each_lock,
    transfer::each_lock,
    unwind::each_lock,
    sampling::each_lock,
    guards::each_lock,
    metadata::each_lock,
    stripes::each_lock,
    settings::each_lock,
    #[cfg(feature = "secure")]
    random::each_lock,
];

/// The number of locks that a visit sees.
fn count(module: fn(Visit<'_>)) -> usize {
    let mut count = Visitor::new(|_, count| *count += 1);
    module(&mut count);
    count.number()
}

/// One lock of each module, in the order of ranks.
fn one_of_each() -> Vec<&'static RawLock> {
    owner::Owner::create().expect("memory for a heap");
    HOLDS_ALL.store(true, Ordering::Relaxed);
    assert_eq!(count(each_lock), MODULES.iter().map(|module| count(*module)).sum());
    let mut locks = Vec::new();
    for module in MODULES {
        let mut first = Visitor::new(|lock, first| {
            if *first == 0 {
                *first = core::ptr::from_ref(lock).expose_provenance();
            }
        });
        module(&mut first);
        let lock = core::ptr::with_exposed_provenance::<RawLock>(first.number());
        // SAFETY: Null, or a lock, all of which live as long as the program.
        locks.extend(unsafe { lock.as_ref() });
    }
    assert!(locks.len() >= MODULES.len() - usize::from(!guards::IS_BUILT_IN));
    locks
}

/// The number of locks that are not free, in all modules.
fn taken() -> usize {
    HOLDS_ALL.store(true, Ordering::Relaxed);
    let mut taken = Visitor::new(|lock, taken| *taken += usize::from(!lock.is_free()));
    each_lock(&mut taken);
    taken.number() + usize::from(!TURN.is_free())
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::yield_now();
    }
}

/// Forks while this thread holds `own` and another one holds `others` and waits for `own`.
fn fork_beside(
    others: &'static RawLock,
    own: &'static RawLock,
    work: impl FnOnce() -> bool,
) -> i32 {
    own.acquire();
    let other = thread::spawn(|| {
        others.acquire();
        own.acquire();
        own.release();
        others.release();
    });
    wait_until(|| own.has_sleepers());
    let status = in_child(work);
    assert!(own.is_this_threads() && !own.is_held_for_fork(), "the handler's return continues it");
    own.release();
    other.join().expect("it gets both locks");
    assert_eq!(taken(), 0, "a lock is left over");
    status
}

#[test]
fn fork_does_not_wait_for_a_thread_that_waits_for_its_own() {
    run_alone!();
    begin();
    let locks = one_of_each();
    let (first, last) = (locks[0], locks[locks.len() - 1]);
    let with_first = locks[1..].iter().map(|own| (first, *own));
    let with_last = locks[1..locks.len() - 1].iter().map(|others| (*others, last));
    for (others, own) in with_first.chain(with_last) {
        let status = fork_beside(others, own, || {
            taken() == 2 && own.is_this_threads() && !others.is_free() && !others.is_this_threads()
        });
        assert_eq!(status, 0);
    }
    // A child that needs the lost lock ends at once.
    let status = fork_beside(first, last, || {
        first.acquire();
        true
    });
    assert_eq!(status, 256 + SIGABRT);
}

#[test]
fn heaps_that_are_gone_cost_a_fork_nothing() {
    run_alone!();
    let of_heaps = || count(owner::each_lock_of_heaps);
    let [kept, gone] = [(); 2].map(|()| owner::Owner::create().expect("memory for a heap"));
    assert_eq!(of_heaps(), 2);
    let all = count(each_lock);
    HOLDS_ALL.store(true, Ordering::Relaxed);
    assert!(count(each_lock) > all + 2, "one thread alone needs none of them");
    // SAFETY: Nothing uses the heap.
    unsafe { gone.destroy() };
    assert_eq!(of_heaps(), 1);
    // A thread may look whether blocks that it has are of this heap, and in a child that thread does not exist.
    gone.raw().acquire();
    assert_eq!(of_heaps(), 2, "fork waits for it");
    let other =
        thread::spawn(|| core::ptr::from_ref(owner::Owner::create().expect("memory")).addr());
    let other = other.join().expect("it waits for nothing");
    assert!(other != core::ptr::from_ref(gone).addr() && !kept.raw().is_held_for_fork());
}

#[test]
fn fork_waits_for_a_thread_that_does_not_wait_for_it() {
    run_alone!();
    begin();
    let locks = one_of_each();
    let (others, own) = (locks[0], locks[locks.len() - 1]);
    own.acquire();
    let other = thread::spawn(|| {
        others.acquire();
        thread::sleep(Duration::from_millis(3 * PATIENCE as u64));
        others.release();
    });
    wait_until(|| !others.is_free());
    assert_eq!(in_child(|| others.is_free()), 0, "fork has waited, and the child has the lock");
    own.release();
    other.join().expect("it ends");
}

#[test]
#[cfg_attr(target_env = "musl", ignore = "musl has one thread wait for the other in its own lock")]
fn forks_that_wait_for_each_other_both_return() {
    run_alone!();
    begin();
    let locks = one_of_each();
    let (first, last) = (locks[0], locks[locks.len() - 1]);
    let both_hold = Barrier::new(2);
    let fork_with = |own: &RawLock| {
        own.acquire();
        both_hold.wait();
        let status = in_child(|| own.is_this_threads());
        own.release();
        assert_eq!(status, 0);
    };
    thread::scope(|scope| {
        scope.spawn(|| fork_with(first));
        scope.spawn(|| fork_with(last));
    });
    assert_eq!(taken(), 0, "a lock is left over");
}

#[test]
fn a_fork_inside_another_one_leaves_it_its_locks() {
    run_alone!();
    begin();
    let locks = one_of_each();
    before();
    assert_eq!(in_child(|| taken() == 0), 0);
    assert!(locks.iter().all(|lock| lock.is_held_for_fork()), "the outer one has what it needs");
    after_in_parent();
    assert_eq!(taken(), 0, "the outer one releases all");
}

#[test]
fn no_signal_comes_while_locks_are_held() {
    run_alone!();
    const SIGUSR1_ONLY: usize = 1 << 9;
    /// `SIGKILL` and `SIGSTOP`.
    const NEVER: usize = 1 << 8 | 1 << 18;
    begin();
    let is_as_before = || kernel::replace_blocked_signals(SIGUSR1_ONLY) == SIGUSR1_ONLY;
    kernel::replace_blocked_signals(SIGUSR1_ONLY);
    before();
    assert_eq!(kernel::replace_blocked_signals(usize::MAX), usize::MAX & !NEVER);
    after_in_parent();
    assert!(is_as_before());
    assert_eq!(in_child(is_as_before), 0);
    assert!(is_as_before());
}

#[test]
#[cfg_attr(not(feature = "profile"), ignore = "nothing is sampled")]
fn no_thread_of_a_child_samples_as_its_parents_would() {
    run_alone!();
    // SAFETY: The signal ends the process.
    unsafe { ::libc::alarm(120) };
    crate::profile::start(Some(1 << 40)).expect("none is taken");
    let ended = thread::spawn(|| {
        // SAFETY: Nothing uses the block.
        unsafe { crate::c::free(crate::c::malloc(100)) };
    });
    ended.join().expect("it leaves its cache to the next thread");
    let noticed = || all::caches().filter(|cache| cache.has_noticed()).count();
    assert_eq!(noticed(), 2, "the test would show nothing");
    assert_eq!(in_child(|| noticed() == 0), 0);
    assert_eq!(noticed(), 2);
}

#[test]
#[cfg_attr(feature = "secure", ignore = "nothing is parked")]
fn a_child_has_back_what_threads_parked_that_it_does_not_have() {
    run_alone!();
    begin();
    const BYTES: usize = 512 << 10;
    let use_large = || {
        for _ in 0..3 {
            // SAFETY: Nothing uses the block.
            unsafe { crate::c::free(crate::c::malloc(BYTES)) };
        }
    };
    use_large();
    let large_blocks = || crate::statistics::now().large_blocks;
    let before = large_blocks();
    let (parks, ends) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            use_large();
            parks.wait();
            ends.wait();
        });
        parks.wait();
        let parked = [(); 2].map(|()| {
            let parked = all::parked().0;
            (parked, in_child(|| all::parked().0 == 1 && large_blocks() == before))
        });
        ends.wait();
        assert_eq!(parked, [(2, 0); 2], "runs parked in the parent, and the child's status");
    });
}
