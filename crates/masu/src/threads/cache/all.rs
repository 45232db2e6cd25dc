//! All caches, in use and idle, and operations on all of them.
//!
//! Relies on the caches. No cache ever leaves the list: one whose thread has ended serves another thread.

use core::ptr;

use super::depth::budget;
use super::{ThreadCache, User, are_counted};
use crate::blocks::ownership::{self, Shard};
use crate::blocks::{shard, slot};
use crate::diagnostics::sampling::Refusal;
use crate::diagnostics::{guards, sampling};
use crate::memory::class::Class;
use crate::memory::metadata;
use crate::memory::ranges::stripes;
use crate::platform::kernel;
use crate::platform::libc::Key;
use crate::platform::sync::{AtomicUsize, Count, Lock, Ordering, Visit};
use crate::settings;

/// All caches, in use and idle.
pub(crate) struct Threads {
    first: Option<&'static ThreadCache>,
    pub(crate) made: usize,
    cpus: usize,
    pub(crate) key: Option<Key>,
    /// Whether the handlers of `fork` are registered.
    pub(crate) watches_fork: bool,
}

// SAFETY: The references are followed under the lock around this; the caches they lead to are touched only by their
// threads, except for counts.
unsafe impl Send for Threads {}

pub(crate) static THREADS: Lock<Threads> =
    Lock::new(Threads { first: None, made: 0, cpus: 0, key: None, watches_fork: false });

/// The number of forks between the first process and this one. Guarded by the threads' lock, or set while there is one
/// thread.
static GENERATION: Count = Count::new(0);

impl Threads {
    /// A new cache for a thread that starts, whose end `key` notices.
    pub(crate) fn make(&mut self, key: Option<Key>) -> Option<&'static ThreadCache> {
        // Most programs have one thread, and never count the CPUs.
        if self.made == 1 {
            self.cpus = kernel::cpu_count();
            budget::note_cpus(self.cpus);
            slot::note_several();
        }
        let shards = settings::shards().unwrap_or(self.cpus);
        stripes::allow(shards);
        let shard = Shard::for_thread(self.made, shards);
        let cache = metadata::forever(ThreadCache::new(shard, self.made as u8, key))?;
        // Here and not in `new`: so the cache, of several KiB, is built on the stack only once.
        cache.own.stacks.init(shard);
        cache.update_share(0);
        let cache: &'static ThreadCache = cache;
        self.made += 1;
        if are_counted() {
            cache.begin_counting();
        }
        cache.next.set(self.first);
        self.first = Some(cache);
        Some(cache)
    }

    fn iter(&self) -> impl Iterator<Item = &'static ThreadCache> + use<> {
        core::iter::successors(self.first, |cache| cache.next.get())
    }
}

/// Starts a profile with this interval, or the option's, and has all threads' requests counted.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile.all_start_profile")]
pub(crate) fn start_profile(interval_bytes: Option<usize>) -> Result<(), Refusal> {
    let interval_bytes = sampling::interval_for(interval_bytes)?;
    let threads = THREADS.lock();
    // Before a thread can sample.
    shard::prepare_samples();
    drop(threads);
    sampling::begin(interval_bytes)?;
    if guards::are_on() {
        // A thread that counts for guards may have seen the profile's session before its interval.
        sampling::renew();
    }
    // A thread that starts later counts by itself.
    THREADS.lock().iter().for_each(ThreadCache::begin_counting);
    // This thread counts at once.
    if let Some(cache) = slot::get().cache() {
        cache.notice_profile();
    }
    Ok(())
}

/// Applies the option `guard_rate`, if it changed. This thread notices later, like the others: it may be inside a slow
/// path whose stack must not change.
#[inline]
pub(crate) fn apply_guard_rate() {
    if !guards::is_rate_current() {
        apply_guard_rate_slow();
    }
}

#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.guards.all_apply_guard_rate_slow")]
fn apply_guard_rate_slow() {
    let threads = THREADS.lock();
    if guards::apply_rate(ownership::admit_guarded) {
        // All threads draw again.
        sampling::renew();
    }
    if guards::are_on() {
        threads.iter().for_each(ThreadCache::begin_counting);
    }
}

/// Ends counting for this thread, whose cache this is, unless a profile has started or blocks are guarded.
#[cold]
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.profile.all_end_counting")]
pub(crate) fn end_counting(cache: &'static ThreadCache) {
    let threads = THREADS.lock();
    if !are_counted() {
        cache.end_counting();
    }
    drop(threads);
}

/// A block of `class` for a thread without a cache, directly from the pages. Null without memory. The thread must be
/// registered, because this takes locks that `fork` does not hold where it knows of one thread; the same holds below.
pub(crate) fn take_uncached(class: Class) -> *mut u8 {
    ptr::with_exposed_provenance_mut(Shard::default().refill_one(class))
}

/// Frees a block of `class` for a thread without a cache.
pub(crate) fn put_uncached(class: Class, block: *mut u8) {
    let _ = shard::flush_one(class, block.expose_provenance());
}

/// All caches, in use and idle, youngest first. They may change while they are visited.
pub(crate) fn caches() -> impl Iterator<Item = &'static ThreadCache> {
    // No cache ever leaves the list, and its `next` is set before it is in the list.
    THREADS.lock().iter()
}

/// Visits the threads' lock, for `fork`.
pub(crate) fn each_lock(visit: Visit<'_>) {
    visit.see(THREADS.raw());
}

/// The threads that have started to use masu, counted before they take a lock, and those of them that have ended. On a
/// line that only threads write that start or end.
#[repr(align(64))]
struct Number {
    starts: AtomicUsize,
    ends: AtomicUsize,
}

static NUMBER: Number = Number { starts: AtomicUsize::new(0), ends: AtomicUsize::new(0) };

/// Counts a thread.
pub(crate) fn note_start() {
    // ORDERING: Relaxed: the threads' lock and that of idle caches, which the thread takes next, publish it.
    NUMBER.starts.fetch_add(1, Ordering::Relaxed);
}

/// Counts a thread that ends.
pub(crate) fn note_end() {
    // ORDERING: Relaxed: for a number that may be out of date anyway.
    NUMBER.ends.fetch_add(1, Ordering::Relaxed);
}

/// Whether more than one thread has started. Exact while the caller holds the locks of threads and of idle caches.
pub(crate) fn are_several() -> bool {
    // ORDERING: Relaxed, as above.
    NUMBER.starts.load(Ordering::Relaxed) > 1
}

/// About how many threads there are.
pub(crate) fn threads() -> usize {
    // ORDERING: Relaxed in both: a thread between them is counted once more or less.
    let ends = NUMBER.ends.load(Ordering::Relaxed);
    NUMBER.starts.load(Ordering::Relaxed).saturating_sub(ends)
}

/// The number of forks between the first process and this one.
pub(crate) fn generation() -> usize {
    GENERATION.get()
}

/// Counts a fork, in the child's one thread.
pub(crate) fn begin_generation() {
    GENERATION.add(1);
    // ORDERING: Relaxed in both: there is one thread.
    let starts = NUMBER.starts.load(Ordering::Relaxed);
    NUMBER.ends.store(starts.saturating_sub(1), Ordering::Relaxed);
}

/// Whether this cache's last thread belongs to a process that this one was forked from: the thread does not exist here,
/// and its blocks stay in its cache.
pub(crate) fn is_orphaned(cache: &ThreadCache) -> bool {
    cache.traffic.user() != User::Nobody && cache.traffic.generation() != GENERATION.get()
}

/// In a forked child, takes back what threads parked that do not exist there, and their rights to park.
///
/// # Safety
///
/// - The condition of [`stripes::take_back_after_fork`], and this thread is the child's only one.
pub(crate) unsafe fn bring_parked_home_after_fork() {
    // Else a thread of the parent may have it.
    if THREADS.is_held_for_fork() {
        let own = slot::parked().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: It is held, by the thread that this one is a copy of.
        for cache in unsafe { THREADS.held() }.iter() {
            if !ptr::eq(&cache.parked, own) {
                // SAFETY: The caller's condition; the thread of this cache does not exist.
                unsafe { stripes::bring_home_after_fork(&cache.parked) };
            }
        }
    }
}

/// The number of runs that all threads have parked, and their slices; they may change while they are counted.
#[inline(never)]
#[unsafe(link_section = ".text.masu_cold.statistics.all_parked")]
pub(crate) fn parked() -> (usize, usize) {
    let slices = caches().map(|cache| cache.parked.slices()).filter(|slices| *slices > 0);
    slices.fold((0, 0), |(runs, sum), slices| (runs + 1, sum + slices))
}
