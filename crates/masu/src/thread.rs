//! The life of threads: a cache at the first slow call, left to the next thread or sent home at the
//! end, and what `fork` needs.
//!
//! Relies on the C library for a call at a thread's end. The order at an end is the hard part:
//! C++ and other destructors may free, and even allocate, after ours ran. So an ended thread's slot
//! holds an inert cache that says so, its late blocks come from and go to pages one by one, and no
//! cache is ever made again for it. (A thread whose very first use comes in the last round of its
//! destructors leaves a cache behind: the C library does not call for it any more.)

use core::ffi::c_void;
use core::ptr;

use crate::cache::{self, ThreadCache, User, idle};
use crate::class::Class;
use crate::libc::{self, Key};
use crate::ranges::RANGES;
use crate::statistics::page;
use crate::sync::{self, Count, Lock};
use crate::whose::Shard;
use crate::{guards, kernel, metadata, options, owner, profile, shard, slot, transfer};

/// All caches, in use and idle.
struct Threads {
    all: Option<&'static ThreadCache>,
    made: usize,
    cpus: usize,
    key: Option<Key>,
    /// `fork` is prepared for.
    watches_fork: bool,
    /// A `fork` is under way in a program where other threads may hold locks, and holds the streams' too.
    has_others: bool,
    /// It holds the locks of shards and of the transfer cache too.
    holds_all: bool,
}

// SAFETY: The references are followed under the lock around this; what they lead to is touched by
// the caches' threads only, or is a count.
unsafe impl Send for Threads {}

static THREADS: Lock<Threads> = Lock::new(Threads {
    all: None,
    made: 0,
    cpus: 0,
    key: None,
    watches_fork: false,
    has_others: false,
    holds_all: false,
});

/// How often this process is a copy of one that forked. The threads' lock, or before there are others.
static GENERATION: Count = Count::new(0);

/// This thread's cache for a slow path: makes one where the thread has none yet. `None` where there
/// is no memory for one, or where the thread has ended.
pub(crate) fn cache() -> Option<&'static ThreadCache> {
    let stacks = slot::get();
    if stacks.state() == slot::State::Empty { begin() } else { stacks.cache() }
}

#[cold]
fn begin() -> Option<&'static ThreadCache> {
    options::settle();
    follow_guards();
    // A profile that a variable asks for begins with this thread's cache.
    if let Some(begun) = slot::get().cache() {
        return Some(begun);
    }
    let Some(cache) = idle::take() else { return begin_anew() };
    slot::set(&cache.stacks);
    cache.traffic.note_user(User::Unknown, GENERATION.get());
    // From here on the thread has a cache, so the C library may allocate in this call.
    if let Some(key) = cache.key() {
        key.set(ptr::from_ref(cache).cast());
    }
    page::begin();
    cache.notice_profile();
    Some(cache)
}

/// Begins with a cache that is made for it.
#[inline(never)]
fn begin_anew() -> Option<&'static ThreadCache> {
    let mut threads = THREADS.lock();
    if threads.key.is_none() {
        threads.key = Key::new(end);
    }
    let key = threads.key;
    let cache = threads.make(key);
    let watches_fork = core::mem::replace(&mut threads.watches_fork, true);
    drop(threads);
    if let Some(cache) = cache {
        cache.traffic.note_user(User::Unknown, GENERATION.get());
        slot::set(&cache.stacks);
        // As above.
        if let Some(key) = key {
            key.set(ptr::from_ref(cache).cast());
        }
        cache.notice_profile();
    }
    // Where there is no memory for a cache, too: requests that fail take locks, which a child must not find taken.
    if !watches_fork {
        libc::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
    if cache.is_some() {
        page::begin();
    }
    cache
}

/// Prepares for `fork` and for threads' ends, as the first allocation of a process does otherwise. A library that
/// stands for the C library's malloc does so before the program runs: glibc allocates while handlers are registered,
/// under a lock that a second registration on the way would wait for; and the program may take all keys.
pub(crate) fn prepare() {
    let mut threads = THREADS.lock();
    let watches_fork = core::mem::replace(&mut threads.watches_fork, true);
    if threads.key.is_none() {
        threads.key = Key::new(end);
    }
    drop(threads);
    if !watches_fork {
        libc::at_fork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
}

/// Called by the C library at a thread's end with the thread's cache.
///
/// # Safety
///
/// - `cache` is the thread's cache, as [`begin`] gave it to the key.
unsafe extern "C" fn end(cache: *mut c_void) {
    // SAFETY: The key's value is the thread's cache, and caches are never unmapped.
    let cache: &'static ThreadCache = unsafe { &*cache.cast_const().cast() };
    slot::set(slot::ended());
    cache.traffic.note_user(User::Nobody, cache.traffic.generation());
    if cache.parked.has_right() {
        RANGES.lock().bring_home(Some(&cache.parked));
    }
    cache.empty_near();
    idle::put(cache);
    shard::go_on_at_end();
}

impl Threads {
    fn make(&mut self, key: Option<Key>) -> Option<&'static ThreadCache> {
        // Most programs have one thread and never ask how many CPUs there are.
        if self.made == 1 {
            self.cpus = kernel::cpu_count();
            slot::note_second();
        }
        let shards = options::shards().unwrap_or(self.cpus);
        let shard = Shard::for_thread(self.made, shards);
        let cache = metadata::forever(ThreadCache::new(shard, key))?;
        cache.settle();
        let cache: &'static ThreadCache = cache;
        self.made += 1;
        if cache::are_counted() {
            cache.begin_counting();
        }
        cache.next.set(self.all);
        self.all = Some(cache);
        Some(cache)
    }
}

/// Lets sampled blocks have pages, for a profile that is about to start.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile.thread_prepare_samples")]
pub(crate) fn prepare_samples() {
    let _threads = THREADS.lock();
    shard::prepare_samples();
}

/// Has all threads' allocations counted, for the profile that has just started.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile.thread_count_all")]
pub(crate) fn count_all() {
    if guards::are_on() {
        // A thread that counts for those may have noticed the profile's number before its interval.
        profile::renew();
    }
    // This thread's too, and at once.
    let _ = cache();
    let threads = THREADS.lock();
    core::iter::successors(threads.all, |cache| cache.next.get())
        .for_each(ThreadCache::begin_counting);
    drop(threads);
    if let Some(cache) = slot::get().cache() {
        cache.notice_profile();
    }
}

/// Does as the option `guard_rate` says, if that changed. This thread notices later, as others do: it may be in the midst
/// of a slow call, whose stack is not to be touched.
#[inline]
pub(crate) fn follow_guards() {
    if !guards::are_followed() {
        follow_guards_slow();
    }
}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.guards.thread_follow_guards_slow")]
fn follow_guards_slow() {
    let threads = THREADS.lock();
    if guards::follow(shard::guarded::admit) {
        // All draw again.
        profile::renew();
    }
    if guards::are_on() {
        core::iter::successors(threads.all, |cache| cache.next.get())
            .for_each(ThreadCache::begin_counting);
    }
}

/// Has this thread's allocations, whose cache this is, counted no longer, unless a profile has started or blocks are
/// guarded.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile.thread_end_counting")]
pub(crate) fn end_counting(cache: &'static ThreadCache) {
    let threads = THREADS.lock();
    if !cache::are_counted() {
        cache.end_counting();
    }
    drop(threads);
}

/// A block of `class` for a thread without a cache: straight from the pages. Null for want of
/// memory.
pub(crate) fn take_uncached(class: Class) -> *mut u8 {
    let mut block = [0];
    transfer::refill(class, Shard::default(), &mut block);
    ptr::with_exposed_provenance_mut(block[0])
}

/// Frees a block of `class` for a thread without a cache.
pub(crate) fn put_uncached(class: Class, block: *mut u8) {
    let _ = shard::flush(class, &[block.expose_provenance()]);
}

/// All caches there are now, in use and idle, the youngest first. They change while they are looked at.
pub(crate) fn caches() -> impl Iterator<Item = &'static ThreadCache> {
    // No cache ever leaves the list, and its place is fixed before it is found there.
    let all = THREADS.lock().all;
    core::iter::successors(all, |cache| cache.next.get())
}

/// How often this process is a copy of one that forked.
pub(crate) fn generation() -> usize {
    GENERATION.get()
}

/// Whether the thread that used this cache last is one of a process that this one is a copy of: it
/// does not go on here, and its blocks stay in its cache.
pub(crate) fn is_left_behind(cache: &ThreadCache) -> bool {
    cache.traffic.user() != User::Nobody && cache.traffic.generation() != GENERATION.get()
}

/// How many runs all threads have parked, and their slices; they change while they are counted.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.statistics.thread_parked")]
pub(crate) fn parked() -> (usize, usize) {
    let slices = caches().map(|cache| cache.parked.slices()).filter(|slices| *slices > 0);
    slices.fold((0, 0), |(runs, sum), slices| (runs + 1, sum + slices))
}

/// Takes every lock, so that the child finds none held by a thread that it does not have. A
/// program with one thread needs few: nobody touches shards and the transfer cache without having
/// begun. Where a signal handler forks, locks that its own thread holds stay as they are: what it interrupted
/// goes on in both processes.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.thread_before_fork")]
extern "C" fn before_fork() {
    THREADS.hold();
    idle::hold_for_fork();
    // SAFETY: Held just now.
    let has_others =
        unsafe { slot::get().cache().is_none() || THREADS.held().made > 1 || idle::has_served() };
    if has_others {
        // SAFETY: As above.
        unsafe {
            idle::let_go_after_fork();
            THREADS.let_go();
        }
        // Others hold this one while they wait for memory, so it comes first.
        libc::hold_streams();
        THREADS.hold();
        idle::hold_for_fork();
    }
    owner::hold_for_fork();
    // The child's statistics take all of them, and must know whether they can.
    let holds_all = has_others || options::statistics_page();
    if holds_all {
        shard::hold_for_fork();
        transfer::hold_for_fork();
    }
    profile::hold_for_fork();
    guards::hold_for_fork();
    metadata::hold_for_fork();
    RANGES.hold();
    options::hold_for_fork();
    // SAFETY: Held above.
    let threads = unsafe { THREADS.held() };
    (threads.has_others, threads.holds_all) = (has_others, holds_all);
}

#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.thread_after_fork_in_parent")]
extern "C" fn after_fork_in_parent() {
    if after_fork() {
        libc::let_go_streams();
    }
    let _ = sync::has_interrupted();
}

#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.thread_after_fork_in_child")]
extern "C" fn after_fork_in_child() {
    // SAFETY: `before_fork` took the lock, in the thread that this one is a copy of.
    libc::forget_asking(unsafe { THREADS.held() }.has_others);
    // SAFETY: As above.
    unsafe { RANGES.take_back_after_fork() };
    // There is no other thread here that could do the same.
    GENERATION.add(1);
    if let Some(cache) = slot::get().cache() {
        cache.traffic.note_user(User::Unknown, GENERATION.get());
        cache.forget_draw();
    }
    if after_fork() {
        libc::forget_streams();
    }
    page::after_fork(!sync::has_interrupted());
}

/// Gives back what [`before_fork`] took, but for the lock of streams; whether that was taken too.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.fork.thread_after_fork")]
fn after_fork() -> bool {
    // SAFETY: `before_fork` took these locks, in this thread or in the one it was forked from.
    unsafe {
        let threads = THREADS.held();
        let (has_others, holds_all) = (threads.has_others, threads.holds_all);
        options::let_go_after_fork();
        RANGES.let_go();
        metadata::let_go_after_fork();
        guards::let_go_after_fork();
        profile::let_go_after_fork();
        if holds_all {
            transfer::let_go_after_fork();
            shard::let_go_after_fork();
        }
        owner::let_go_after_fork();
        idle::let_go_after_fork();
        THREADS.let_go();
        has_others
    }
}
